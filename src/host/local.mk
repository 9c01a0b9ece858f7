# SPDX-License-Identifier: BSD-3-Clause
# What a process may use of its host: core_sources; and the module that asks hwloc.

core_sources += \
  src/host/budget.cc \
  src/host/module.h \
  src/host/locality.cc \
  src/host/locality.h

if HAVE_HWLOC
pkglib_LTLIBRARIES += libsluice-hwloc.la
endif
libsluice_hwloc_la_SOURCES = src/host/hwloc.c $(module_allocator)
libsluice_hwloc_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden $(HWLOC_CFLAGS)
libsluice_hwloc_la_LIBADD = $(HWLOC_LIBS)
libsluice_hwloc_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,relro -Wl,-z,now
