# SPDX-License-Identifier: BSD-3-Clause
# Real programs of Debian's: hpcc in `make check-ci`, more in `make check-apps`.

ci_tests += tests/apps/test_hpcc
EXTRA_DIST += tests/apps/apps.py tests/apps/cavity.in tests/apps/check_apps tests/apps/hpccinf.txt \
  tests/apps/melt.in tests/apps/partition.py tests/apps/silicon.in tests/apps/test_hpcc

check-apps: all
	@$(AM_TESTS_ENVIRONMENT) TEST_LIMIT=7200 $(LOG_COMPILER) $(srcdir)/tests/apps/check_apps || test $$? -eq 77
.PHONY: check-apps
