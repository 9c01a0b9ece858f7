# SPDX-License-Identifier: BSD-3-Clause
# Host reduction kernels: core_sources.
