# SPDX-License-Identifier: BSD-3-Clause
# What only a clock can tell; by hand, on a quiet machine.
check-speed: check-programs
	$(MAKE) $(AM_MAKEFLAGS) tests/mpi/progress_rate
	@$(AM_TESTS_ENVIRONMENT) MACHINE_IS_HELD= $(LOG_COMPILER) $(top_srcdir)/tests/speed/speed $(SPEED)
.PHONY: check-speed
EXTRA_DIST += tests/speed/speed tests/speed/call_cost.c
