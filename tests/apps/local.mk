# SPDX-License-Identifier: BSD-3-Clause
# Real programs of Debian's: hpcc in `make check`, more in `make check-apps`.

TESTS += tests/apps/test_hpcc
EXTRA_DIST += tests/apps/apps.py tests/apps/cavity.in tests/apps/check_apps tests/apps/hpccinf.txt \
  tests/apps/melt.in tests/apps/silicon.in tests/apps/test_hpcc

check-apps: all
	$(MAKE) $(AM_MAKEFLAGS) check check_PROGRAMS= TESTS=tests/apps/check_apps TEST_LIMIT=7200
	@cat tests/apps/check_apps.log
.PHONY: check-apps
