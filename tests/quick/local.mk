# SPDX-License-Identifier: BSD-3-Clause
# What to run while working.
quick: all
	$(MAKE) $(AM_MAKEFLAGS) tests/unit/unit_tests tests/proof/proof_tests tests/mpi/movement tests/mpi/reductions
	@$(AM_TESTS_ENVIRONMENT) TEST_LIMIT=1200 $(LOG_COMPILER) $(top_srcdir)/tests/quick/quick tests/unit/unit_tests \
	  tests/proof/proof_tests tests/mpi
.PHONY: quick
EXTRA_DIST += tests/quick/quick
