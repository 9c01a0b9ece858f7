# SPDX-License-Identifier: BSD-3-Clause
# libsluice.so: the exported functions, and which module they lead to.
chooser_sources += \
  src/chooser/chooser.c src/chooser/chooser.h \
  src/chooser/encryption.c src/chooser/encryption.h \
  src/chooser/find_mpi.c src/chooser/find_mpi.h \
  src/chooser/functions.h \
  src/chooser/jumps.c src/chooser/jumps.h \
  src/chooser/large_counts.c src/chooser/large_counts.h \
  src/chooser/module.h \
  src/chooser/objects.c src/chooser/objects.h
