# SPDX-License-Identifier: BSD-3-Clause
# Host reduction kernels: core_sources.
core_sources += \
  src/reduce/isa.h \
  src/reduce/kernel.cc \
  src/reduce/kernel.h \
  src/reduce/kernels.h \
  src/reduce/kernels_avx2.cc \
  src/reduce/kernels_baseline.cc
