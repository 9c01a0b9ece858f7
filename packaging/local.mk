# SPDX-License-Identifier: BSD-3-Clause
# What others' package systems and build systems need: packaging/README.md.

cmakedir = $(libdir)/cmake/Sluice
cmake_DATA = packaging/cmake/SluiceConfig.cmake packaging/cmake/SluiceConfigVersion.cmake

# For `module use PREFIX/share/sluice/modulefiles`.
modulefilesdir = $(pkgdatadir)/modulefiles/sluice
modulefiles_DATA = packaging/modulefiles/$(PACKAGE_VERSION) packaging/modulefiles/$(PACKAGE_VERSION).lua
packaging/modulefiles/$(PACKAGE_VERSION): packaging/modulefiles/sluice.tcl
	$(AM_V_GEN)cp $< $@
packaging/modulefiles/$(PACKAGE_VERSION).lua: packaging/modulefiles/sluice.lua
	$(AM_V_GEN)cp $< $@
CLEANFILES += $(modulefiles_DATA)

EXTRA_DIST += packaging/README.md packaging/spack/package.py packaging/easybuild/Sluice-0.1.0-gompi-2024a.eb \
  debian/changelog debian/control debian/copyright debian/rules debian/source/format debian/source/lintian-overrides \
  debian/libsluice0.install debian/libsluice-dev.install debian/sluice-tools.install debian/not-installed \
  debian/libsluice0.lintian-overrides debian/libsluice-dev.lintian-overrides \
  debian/sluice-tools.lintian-overrides debian/watch debian/tests/control debian/tests/demo debian/tests/linked

# `make dist` says what the tarball's checksum is, for those who package it.
DIST_TARGETS = dist-xz dist-checksum
dist-checksum: dist-xz
	cd $(distdir)/.. && sha256sum $(distdir).tar.xz >$(distdir).tar.xz.sha256 && cat $(distdir).tar.xz.sha256
.PHONY: dist-checksum
