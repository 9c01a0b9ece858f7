# SPDX-License-Identifier: BSD-3-Clause
# The audit module, which `sluice run --audit` has the dynamic linker load. It is linked with nothing, not even libc, so it
# is built without what instruments other code.
pkglib_LTLIBRARIES += libsluice-audit.la
libsluice_audit_la_SOURCES = src/audit/audit.c
libsluice_audit_la_CFLAGS = -Wall -Wextra $(WERROR_FLAGS) -O2 $(DEBUG_FLAGS) -fvisibility=hidden -ffreestanding \
  -fno-tree-loop-distribute-patterns -fno-stack-protector
libsluice_audit_la_LDFLAGS = -module -avoid-version -shared -Wc,-nostdlib -Wl,--version-script=$(top_srcdir)/src/audit/audit.map \
  -Wl,-z,relro -Wl,-z,now -Wl,-z,defs
EXTRA_libsluice_audit_la_DEPENDENCIES = src/audit/audit.map
EXTRA_DIST += src/audit/audit.map
