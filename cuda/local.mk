# SPDX-License-Identifier: BSD-3-Clause
# The CUDA module. It needs no CUDA toolkit, and no driver where it is built.

# Its objects, which tests link, too.
noinst_LTLIBRARIES += libdevices.la
libdevices_la_SOURCES = \
  cuda/contexts.cc cuda/contexts.h \
  cuda/copies.cc cuda/copies.h \
  cuda/driver.cc cuda/driver.h \
  cuda/driver_api.h \
  cuda/images.h \
  cuda/ipc_module.cc cuda/ipc_module.h \
  cuda/kernels/arguments.h cuda/kernels/base.h cuda/kernels/operations.h cuda/kernels/reduce.h \
  cuda/kind.cc cuda/kind.h \
  cuda/loaded_kernels.cc cuda/loaded_kernels.h \
  cuda/nccl_api.h \
  cuda/nccl_group.cc cuda/nccl_group.h \
  cuda/nccl_job.cc cuda/nccl_job.h \
  cuda/nccl_library.cc cuda/nccl_library.h \
  cuda/nccl_module.cc cuda/nccl_module.h \
  cuda/module.cc cuda/module.h \
  cuda/packing.cc cuda/packing.h \
  cuda/pinned.cc cuda/pinned.h \
  cuda/reductions.cc cuda/reductions.h \
  cuda/scratch.cc cuda/scratch.h \
  cuda/streams.cc cuda/streams.h
nodist_libdevices_la_SOURCES = cuda/images.cc

pkglib_LTLIBRARIES += libsluice-cuda.la
libsluice_cuda_la_SOURCES =
nodist_EXTRA_libsluice_cuda_la_SOURCES = linked-as-c++.cc
libsluice_cuda_la_LIBADD = libdevices.la
libsluice_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,--version-script=$(top_srcdir)/cuda/cuda.map \
  -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete
if PLAIN_BUILD
libsluice_cuda_la_LDFLAGS += -Wl,-z,defs -Wc,-static-libstdc++
endif
EXTRA_libsluice_cuda_la_DEPENDENCIES = cuda/cuda.map
EXTRA_DIST += cuda/cuda.map

# The kernels, as PTX, which drivers compile. Where clang 14 is, it makes them; elsewhere those serve that it has made. A
# test compares (tests/cuda/test_kernels); `make ptx` renews what comes with the source.
kernel_modules = int8 int16 int32 int64 float16 bfloat16 float32 float64 pairs copy
kernel_sources_of_devices = cuda/kernels/kernels.cu cuda/kernels/arguments.h cuda/kernels/base.h \
  cuda/kernels/operations.h cuda/kernels/reduce.h
kernels_made = $(kernel_modules:%=cuda/kernels/made/%.ptx)
kernels_shipped = cuda/kernels/int8.ptx cuda/kernels/int16.ptx cuda/kernels/int32.ptx cuda/kernels/int64.ptx \
  cuda/kernels/float16.ptx cuda/kernels/bfloat16.ptx cuda/kernels/float32.ptx cuda/kernels/float64.ptx \
  cuda/kernels/pairs.ptx cuda/kernels/copy.ptx
EXTRA_DIST += cuda/kernels/compile cuda/kernels/kernels.cu $(kernels_shipped)
CLEANFILES += $(kernels_made) cuda/images.cc cuda/images.cc-new

if HAVE_PTX_CLANG
$(kernels_made): $(kernel_sources_of_devices) cuda/kernels/compile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	  $(top_srcdir)/cuda/kernels/compile $(PTX_CLANG) $(top_srcdir) `basename $@ .ptx` >$@-new && mv $@-new $@
else
$(kernels_made): $(kernels_shipped)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(top_srcdir)/cuda/kernels/`basename $@` $@
endif
ptx: $(kernels_made)
	cp $(kernels_made) $(top_srcdir)/cuda/kernels/
.PHONY: ptx

cuda/images.cc: $(kernels_made) cuda/local.mk
	$(AM_V_GEN){ \
	  echo '#include "cuda/images.h"' && \
	  echo 'const char* const sluice::cuda::images[] = {' && \
	  for module in $(kernel_modules); do \
	    printf 'R"ptx(' && cat cuda/kernels/made/$$module.ptx && echo ')ptx",' || exit 1; \
	  done && echo '};'; } >$@-new && mv $@-new $@
