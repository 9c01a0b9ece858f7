# SPDX-License-Identifier: BSD-3-Clause
# One folder per transport: core_sources.
