# SPDX-License-Identifier: BSD-3-Clause
# Team, execution, selection, waiting, statistics: core_sources.
