# SPDX-License-Identifier: BSD-3-Clause
# The sluice command: tool_sources.
