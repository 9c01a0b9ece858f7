# SPDX-License-Identifier: BSD-3-Clause
# What is installed.

install_tests = tests/install/install tests/install/test_harmless tests/install/test_packages
if PLAIN_BUILD
install_tests += tests/install/symbols
endif
TESTS += $(install_tests)

# Whether it works: installed, so that packages' tests can run it.
dist_pkglibexec_SCRIPTS += tests/install/smoke
smoke: all
	@$(AM_TESTS_ENVIRONMENT) SLUICE='$(abs_top_builddir)/sluice' PROGRAMS='$(abs_top_builddir)/osu' \
	LIBRARY='$(abs_top_builddir)/.libs/libsluice.so' $(SHELL) $(top_srcdir)/tests/install/smoke
.PHONY: smoke

EXTRA_DIST += tests/install/install tests/install/in-layer tests/install/test_harmless tests/install/test_packages tests/install/symbols tests/install/installed \
  tests/install/probe.c tests/install/probe.f90

installcheck-local:
	@$(AM_TESTS_ENVIRONMENT) \
	DESTDIR='$(DESTDIR)' prefix='$(prefix)' mandir='$(mandir)' bindir='$(bindir)' libdir='$(libdir)' includedir='$(includedir)' datadir='$(datadir)' pkglibexecdir='$(pkglibexecdir)' \
	have_hwloc='$(have_hwloc)' have_openssl='$(have_openssl)' have_verbs='$(have_verbs)' \
	CMAKE='$(CMAKE)' LUA='$(LUA)' TCLSH='$(TCLSH)' \
	version='$(PACKAGE_VERSION)' CC='$(CC)' CXX='$(CXX)' \
	$(SHELL) $(top_srcdir)/build-aux/run-test $(top_srcdir)/tests/install/installed
