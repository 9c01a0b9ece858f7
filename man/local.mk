# SPDX-License-Identifier: BSD-3-Clause
# Manual pages: dist_man_MANS.
