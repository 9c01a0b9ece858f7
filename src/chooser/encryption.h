/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether this process's settings demand encryption. Asked where no module reads them.
 */
#pragma once

/* Whether SLUICE_TLS asks for more than off, by the variables and files that a module would read
 * (src/base/setting_sources.h), unless SLUICE_ENABLE is off. In doubt it does: if a file that
 * SLUICE_CONFIG names cannot be read, or a line of a file is not NAME=value. text: gets what
 * demands it, for a message: "SLUICE_TLS=psk (FILE)". May block as opening a file does.
 * Thread-safe. */
int sluice_demands_encryption(char* text, unsigned room);
