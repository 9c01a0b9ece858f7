/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The objects (the program and libraries) that a process has loaded, and their symbols.
 * Thread-safe.
 */
#pragma once

#include <link.h>

/* The object that an address is in; null if it is in none. Valid while that is loaded. */
const struct link_map* sluice_object_of(const void* address);

int sluice_is_program(const struct link_map* object);

/* What a loaded library, or the first of those that it is linked with, has by this name. */
void* sluice_find_in(const char* library, const char* name);

/* Calls `accept` with what is found so in each library that the object names as needed, until that
 * is accepted, which is returned; null if nothing is. */
void* sluice_find_in_needed(const struct link_map* object, const char* name,
                            int (*accept)(void* symbol, const char* name));

/* How an object refers to a symbol that it does not define. */
enum SluiceReference { sluice_refers_not, sluice_refers_weakly, sluice_refers };
enum SluiceReference sluice_reference(const struct link_map* object, const char* name);
