# SPDX-License-Identifier: BSD-3-Clause
# The rules of the tree as a test, and the test of that test: in `make check`. With clang's tools, of one version, they
# are the style: `make tidy`.

tidy_tests = tests/tidy/tidy tests/tidy/selftest
style_tests = tests/tidy/clang-format tests/tidy/clang-tidy
TESTS += $(tidy_tests)
if BESIDE_CHECK
TESTS += $(style_tests)
endif
EXTRA_DIST += $(tidy_tests) $(style_tests) tests/tidy/tools.py

TIDY_FLAGS = -I$(abs_top_srcdir) -I$(abs_top_srcdir)/include -I$(abs_top_builddir) $(CXX_STANDARD) \
  -DHAVE_CONFIG_H -DSLUICE_BINDIR="" -DSLUICE_LIBDIR="" -DSLUICE_PKGLIBEXECDIR="" -DSLUICE_SYSCONFDIR="" -I$(abs_top_srcdir)/src/mpi/abi/openmpi

tidy:
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS check_PROGRAMS= check_LTLIBRARIES= TESTS='$(tidy_tests) $(style_tests)'
tidy-clang:
	@$(AM_TESTS_ENVIRONMENT) $(top_srcdir)/tests/tidy/clang-tidy
.PHONY: tidy tidy-clang
