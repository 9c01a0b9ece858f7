# SPDX-License-Identifier: BSD-3-Clause
# The CUDA module. It needs no CUDA toolkit, and no driver where it is built.

pkglib_LTLIBRARIES += libsluice-cuda.la
libsluice_cuda_la_SOURCES = \
  cuda/contexts.cc cuda/contexts.h \
  cuda/copies.cc cuda/copies.h \
  cuda/driver.cc cuda/driver.h \
  cuda/driver_api.h \
  cuda/kind.cc cuda/kind.h \
  cuda/nccl_api.h \
  cuda/nccl_group.cc cuda/nccl_group.h \
  cuda/nccl_job.cc cuda/nccl_job.h \
  cuda/nccl_library.cc cuda/nccl_library.h \
  cuda/nccl_module.cc cuda/nccl_module.h \
  cuda/module.cc cuda/module.h \
  cuda/pinned.cc cuda/pinned.h \
  cuda/streams.cc cuda/streams.h
libsluice_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,--version-script=$(top_srcdir)/cuda/cuda.map \
  -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete
if PLAIN_BUILD
libsluice_cuda_la_LDFLAGS += -Wl,-z,defs -Wc,-static-libstdc++ -Wc,-static-libgcc
endif
EXTRA_libsluice_cuda_la_DEPENDENCIES = cuda/cuda.map
EXTRA_DIST += cuda/cuda.map
