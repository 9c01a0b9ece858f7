# SPDX-License-Identifier: BSD-3-Clause
# The sluice command, tried as people use it.
TESTS += tests/tool/tool
EXTRA_DIST += tests/tool/tool
