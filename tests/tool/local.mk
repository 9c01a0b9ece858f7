# SPDX-License-Identifier: BSD-3-Clause
# The sluice command, tried as people use it.
TESTS += tests/tool/tool tests/tool/test_report
EXTRA_DIST += tests/tool/tool tests/tool/test_report
