# SPDX-License-Identifier: BSD-3-Clause
# The style as a test, and the test of that test.

tidy_tests = tests/tidy/tidy tests/tidy/selftest tests/tidy/clang-tidy
TESTS += $(tidy_tests)
EXTRA_DIST += $(tidy_tests)

TIDY_FLAGS = -I$(abs_top_srcdir) -I$(abs_top_srcdir)/include -I$(abs_top_builddir) $(CXX_STANDARD) \
  -DHAVE_CONFIG_H -DSLUICE_LIBDIR="" -DSLUICE_PKGLIBEXECDIR="" $(MPI_CPPFLAGS)

tidy:
	@$(AM_TESTS_ENVIRONMENT) $(top_srcdir)/tests/tidy/tidy && $(top_srcdir)/tests/tidy/selftest
tidy-clang:
	@$(AM_TESTS_ENVIRONMENT) $(top_srcdir)/tests/tidy/clang-tidy
.PHONY: tidy tidy-clang
