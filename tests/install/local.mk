# SPDX-License-Identifier: BSD-3-Clause
# What is installed.

install_tests = tests/install/install
if PLAIN_BUILD
install_tests += tests/install/symbols
endif
TESTS += $(install_tests)
EXTRA_DIST += tests/install/install tests/install/symbols tests/install/installed \
  tests/install/probe.c

installcheck-local:
	@$(AM_TESTS_ENVIRONMENT) \
	DESTDIR='$(DESTDIR)' bindir='$(bindir)' libdir='$(libdir)' includedir='$(includedir)' datadir='$(datadir)' \
	have_hwloc='$(have_hwloc)' have_openssl='$(have_openssl)' have_verbs='$(have_verbs)' \
	version='$(PACKAGE_VERSION)' CC='$(CC)' CXX='$(CXX)' \
	$(SHELL) $(top_srcdir)/build-aux/run-test $(top_srcdir)/tests/install/installed
