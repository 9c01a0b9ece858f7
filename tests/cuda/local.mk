# SPDX-License-Identifier: BSD-3-Clause
# A driver without a device, and what is tested with it.

# libcuda.so.1 twice: as it is now, and as it was in CUDA 10.2 (old/). The thread of a driver runs until the process
# ends, so neither is ever unloaded.
check_LTLIBRARIES += tests/cuda/standin/libstandin.la
tests_cuda_standin_libstandin_la_SOURCES = tests/cuda/standin/capture.cc tests/cuda/standin/contexts.cc tests/cuda/standin/copies.cc \
  tests/cuda/standin/cuda_driver.h tests/cuda/standin/driver.cc tests/cuda/standin/driver.h \
  tests/cuda/standin/functions.cc tests/cuda/standin/host_kernels.cc tests/cuda/standin/host_kernels.h \
  tests/cuda/standin/ipc.cc tests/cuda/standin/kernels.cc tests/cuda/standin/memory.cc tests/cuda/standin/modules.cc tests/cuda/standin/streams.cc \
  tests/cuda/standin/virtual_memory.cc
tests_cuda_standin_libstandin_la_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)

standin_drivers = tests/cuda/standin/libcuda.so.1 tests/cuda/standin/old/libcuda.so.1
standin_link = $(CXX) -shared $(MODE_FLAGS) -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete -Wl,--whole-archive \
  tests/cuda/standin/.libs/libstandin.a -Wl,--no-whole-archive -lpthread
tests/cuda/standin/libcuda.so.1: tests/cuda/standin/libstandin.la tests/cuda/standin/standin.map
	$(AM_V_CXXLD)$(standin_link) -Wl,--version-script=$(top_srcdir)/tests/cuda/standin/standin.map -o $@
tests/cuda/standin/old/libcuda.so.1: tests/cuda/standin/libstandin.la tests/cuda/standin/old.map
	$(AM_V_at)$(MKDIR_P) $(@D)
	$(AM_V_CXXLD)$(standin_link) -Wl,--version-script=$(top_srcdir)/tests/cuda/standin/old.map -o $@
check_DATA += $(standin_drivers)
CLEANFILES += $(standin_drivers)
EXTRA_DIST += tests/cuda/standin/standin.map tests/cuda/standin/old.map

# Linked with the stand-in; it also opens both libraries.
if HAVE_GTEST
TESTS += tests/cuda/standin_tests
check_PROGRAMS += tests/cuda/standin_tests
endif
EXTRA_PROGRAMS += tests/cuda/standin_tests
tests_cuda_standin_tests_SOURCES = tests/unit/main.cc tests/cuda/driver_test.cc tests/cuda/driver_rig.h \
  tests/cuda/standin_test.cc tests/cuda/standin_copies_test.cc \
  tests/cuda/ipc_peer.h tests/cuda/standin_ipc_test.cc \
  tests/cuda/standin_kernels_test.cc tests/cuda/standin_modules_test.cc tests/cuda/standin_rig.h

# What must hold of any driver, by itself: it takes the libcuda.so.1 that the loader finds. For on-gpu.
EXTRA_PROGRAMS += tests/cuda/driver_tests
if HAVE_GTEST
ci_programs += tests/cuda/driver_tests
endif
tests_cuda_driver_tests_SOURCES = tests/unit/main.cc tests/cuda/driver_test.cc tests/cuda/driver_rig.h
tests_cuda_driver_tests_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_driver_tests_LDADD = tests/cuda/standin/libcuda.so.1 $(GTEST_LIBS)

# The other process of tests of CUDA IPC.
check_PROGRAMS += tests/cuda/ipc_peer
tests_cuda_ipc_peer_SOURCES = tests/cuda/ipc_peer.cc
tests_cuda_ipc_peer_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_ipc_peer_LDADD = tests/cuda/standin/libstandin.la

# NCCL over it. The library finds the driver that the program has loaded, by its soname.
check_LTLIBRARIES += tests/cuda/standin_nccl/libstandin_nccl.la
tests_cuda_standin_nccl_libstandin_nccl_la_SOURCES = tests/cuda/standin_nccl/arithmetic.cc \
  tests/cuda/standin_nccl/arithmetic.h tests/cuda/standin_nccl/communicator.cc tests/cuda/standin_nccl/communicator.h \
  tests/cuda/standin_nccl/functions.cc tests/cuda/standin_nccl/init.cc tests/cuda/standin_nccl/job.cc \
  tests/cuda/standin_nccl/job.h tests/cuda/standin_nccl/shared_file.cc tests/cuda/standin_nccl/shared_file.h \
  tests/cuda/standin_nccl/standin_nccl.h
tests_cuda_standin_nccl_libstandin_nccl_la_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
standin_nccl_library = tests/cuda/standin_nccl/libnccl.so.2
tests/cuda/standin_nccl/libnccl.so.2: tests/cuda/standin_nccl/libstandin_nccl.la tests/cuda/standin_nccl/nccl.map \
  tests/cuda/standin/libcuda.so.1
	$(AM_V_CXXLD)$(CXX) -shared $(MODE_FLAGS) -Wl,-soname,libnccl.so.2 -Wl,-z,nodelete -Wl,--whole-archive \
	  tests/cuda/standin_nccl/.libs/libstandin_nccl.a -Wl,--no-whole-archive tests/cuda/standin/libcuda.so.1 \
	  -Wl,-rpath,'$$ORIGIN/../standin' -Wl,--version-script=$(top_srcdir)/tests/cuda/standin_nccl/nccl.map -lpthread -o $@
check_DATA += $(standin_nccl_library)
CLEANFILES += $(standin_nccl_library)
EXTRA_DIST += tests/cuda/standin_nccl/nccl.map

# Linked with both stand-ins; it also opens the library.
if HAVE_GTEST
TESTS += tests/cuda/nccl_standin_tests
check_PROGRAMS += tests/cuda/nccl_standin_tests
endif
EXTRA_PROGRAMS += tests/cuda/nccl_standin_tests
tests_cuda_nccl_standin_tests_SOURCES = tests/unit/main.cc tests/cuda/nccl_standin_test.cc \
  tests/cuda/nccl_standin_misuse_test.cc tests/cuda/nccl_standin_rig.h
tests_cuda_nccl_standin_tests_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_nccl_standin_tests_LDADD = tests/cuda/standin_nccl/libstandin_nccl.la tests/cuda/standin/libstandin.la \
  $(GTEST_LIBS) -ldl
EXTRA_tests_cuda_nccl_standin_tests_DEPENDENCIES = $(standin_nccl_library) $(standin_drivers)

# The module by itself. A program of its own, because it has other names for the driver's types.
if HAVE_GTEST
TESTS += tests/cuda/module_tests
check_PROGRAMS += tests/cuda/module_tests
endif
EXTRA_PROGRAMS += tests/cuda/module_tests
tests_cuda_module_tests_SOURCES = tests/unit/main.cc tests/cuda/module_rig.h tests/cuda/module_test.cc \
  tests/cuda/ipc_peer.h tests/cuda/module_ipc_test.cc \
  tests/cuda/module_packing_test.cc tests/cuda/module_reduce_test.cc tests/cuda/module_scratch_test.cc \
  tests/cuda/random_elements.cc tests/cuda/random_elements.h $(kernel_sources)
tests_cuda_module_tests_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_module_tests_LDADD = libdevices.la $(GTEST_LIBS) -ldl
EXTRA_tests_cuda_module_tests_DEPENDENCIES = $(standin_drivers) tests/cuda/ipc_peer

# Its NCCL part, over both stand-ins.
if HAVE_GTEST
TESTS += tests/cuda/nccl_module_tests
check_PROGRAMS += tests/cuda/nccl_module_tests
ci_programs += tests/cuda/nccl_module_tests
endif
EXTRA_PROGRAMS += tests/cuda/nccl_module_tests
tests_cuda_nccl_module_tests_SOURCES = tests/unit/main.cc tests/cuda/nccl_module_test.cc \
  tests/cuda/nccl_module_jobs_test.cc tests/cuda/nccl_module_process_test.cc tests/cuda/nccl_module_rig.h
tests_cuda_nccl_module_tests_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_nccl_module_tests_LDADD = libdevices.la $(GTEST_LIBS) -ldl
EXTRA_tests_cuda_nccl_module_tests_DEPENDENCIES = $(standin_nccl_library) $(standin_drivers)

tests_cuda_standin_tests_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_standin_tests_LDADD = tests/cuda/standin/libstandin.la $(GTEST_LIBS) -ldl
EXTRA_tests_cuda_standin_tests_DEPENDENCIES = $(standin_drivers) tests/cuda/ipc_peer

# MPI programs that load a driver of their own choice, for Sluice to find.
cuda_programs = tests/cuda/buffers tests/cuda/several tests/cuda/manners tests/cuda/nccl_use tests/cuda/offload \
  tests/cuda/reduced tests/cuda/rounds tests/cuda/tried tests/cuda/wire
deep_cuda_programs = tests/cuda/offload_failures
memory_kinds = tests/cuda/kinds.cc tests/cuda/kinds.h
bytes_received = tests/cuda/received.cc tests/cuda/received.h
nccl_calls = tests/cuda/nccl_calls.cc tests/cuda/nccl_calls.h $(memory_kinds)
check_PROGRAMS += $(cuda_programs)
ci_programs += $(cuda_programs) $(deep_cuda_programs) $(standin_drivers) $(standin_nccl_library)
EXTRA_PROGRAMS += $(deep_cuda_programs)
tests_cuda_several_SOURCES = tests/cuda/several.cc $(memory_kinds)
tests_cuda_several_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_buffers_SOURCES = tests/cuda/buffers.cc $(memory_kinds)
tests_cuda_buffers_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_manners_SOURCES = tests/cuda/manners.cc tests/cuda/manners.h tests/cuda/manners_aliased.cc \
  tests/cuda/manners_contexts.cc tests/cuda/manners_handles.cc tests/cuda/manners_mpi.cc tests/cuda/manners_stuck.cc \
  $(memory_kinds)
tests_cuda_manners_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_manners_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
tests_cuda_nccl_use_SOURCES = tests/cuda/nccl_use.cc $(nccl_calls) $(bytes_received)
tests_cuda_nccl_use_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_offload_SOURCES = tests/cuda/offload.cc $(nccl_calls)
tests_cuda_offload_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_offload_failures_SOURCES = tests/cuda/offload_failures.cc tests/cuda/offload_failures.h \
  tests/cuda/offload_endings.cc tests/cuda/offload_mismatches.cc $(nccl_calls)
tests_cuda_offload_failures_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_reduced_SOURCES = tests/cuda/reduced.cc $(memory_kinds)
tests_cuda_reduced_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_rounds_SOURCES = tests/cuda/rounds.cc tests/cuda/rounds.h tests/cuda/rounds_failures.cc $(nccl_calls)
tests_cuda_rounds_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_tried_SOURCES = tests/cuda/tried.cc $(nccl_calls) $(bytes_received)
tests_cuda_tried_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_cuda_wire_SOURCES = tests/cuda/wire.cc $(memory_kinds) $(bytes_received)
tests_cuda_wire_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
cuda_tests = tests/cuda/test_buffers tests/cuda/test_kernels tests/cuda/test_several tests/cuda/test_nccl_use tests/cuda/test_offload \
  tests/cuda/test_reduced tests/cuda/test_rounds tests/cuda/test_tried tests/cuda/test_wire
deep_cuda_tests = tests/cuda/test_manners tests/cuda/test_offload_failures tests/cuda/test_on_gpu
TESTS += $(cuda_tests)
ci_tests += $(deep_cuda_tests)
EXTRA_DIST += $(cuda_tests) $(deep_cuda_tests) tests/cuda/on-gpu

# The kernels on a device, for on-gpu.
EXTRA_PROGRAMS += tests/cuda/gpu_kernels
ci_programs += tests/cuda/gpu_kernels
tests_cuda_gpu_kernels_SOURCES = tests/cuda/gpu_kernels.cc tests/cuda/random_elements.cc tests/cuda/random_elements.h \
  $(kernel_sources)
tests_cuda_gpu_kernels_CXXFLAGS = $(AM_CXXFLAGS)
tests_cuda_gpu_kernels_LDADD = -ldl

# What the CUDA module declares for itself, compared with the toolkit's header.
if HAVE_CUDA_H
TESTS += tests/cuda/declarations
check_PROGRAMS += tests/cuda/declarations
endif
EXTRA_PROGRAMS += tests/cuda/declarations
tests_cuda_declarations_SOURCES = tests/cuda/declarations.cc
tests_cuda_declarations_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)

# The same of NCCL's.
if HAVE_NCCL_H
TESTS += tests/cuda/nccl_declarations
check_PROGRAMS += tests/cuda/nccl_declarations
endif
EXTRA_PROGRAMS += tests/cuda/nccl_declarations
tests_cuda_nccl_declarations_SOURCES = tests/cuda/nccl_declarations.cc
tests_cuda_nccl_declarations_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(NCCL_CPPFLAGS)
