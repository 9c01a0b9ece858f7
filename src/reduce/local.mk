# SPDX-License-Identifier: BSD-3-Clause
# Host reduction kernels: kernel_sources, which are core_sources.
kernel_sources += \
  src/reduce/isa.h \
  src/reduce/kernel.cc \
  src/reduce/kernel.h \
  src/reduce/kernels.h \
  src/reduce/kernels_avx2.cc \
  src/reduce/kernels_baseline.cc
core_sources += $(kernel_sources)
single_sources += $(kernel_sources)
