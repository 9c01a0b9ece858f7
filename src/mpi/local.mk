# SPDX-License-Identifier: BSD-3-Clause
# The face: face_sources.
face_sources += \
  src/mpi/abi/mpich/mpi.h src/mpi/abi/openmpi/mpi.h src/mpi/abi/prototypes.h src/mpi/abi/standard/mpi.h \
  src/mpi/aside.cc src/mpi/aside.h \
  src/mpi/bootstrap.cc src/mpi/bootstrap.h \
  src/mpi/call_by_mpi.cc src/mpi/call_by_mpi.h \
  src/mpi/carriers.cc src/mpi/carriers.h \
  src/mpi/communicator.cc src/mpi/communicator.h \
  src/mpi/communicators.cc src/mpi/communicators.h \
  src/mpi/datatype.cc src/mpi/datatype.h \
  src/mpi/datatypes.cc src/mpi/datatypes.h \
  src/mpi/describe.cc src/mpi/describe.h \
  src/mpi/host_copy_for_mpi.cc src/mpi/host_copy_for_mpi.h \
  src/mpi/entries.cc \
  src/mpi/nonblocking_call.cc src/mpi/nonblocking_call.h \
  src/mpi/nonblocking_entries.cc src/mpi/entry.h \
  src/mpi/pending_calls.cc src/mpi/pending_calls.h \
  src/mpi/persistent_call.cc src/mpi/persistent_call.h \
  src/mpi/persistent_entries.cc \
  src/mpi/persistent_requests.cc src/mpi/persistent_requests.h \
  src/mpi/progress_thread.cc src/mpi/progress_thread.h \
  src/mpi/progress_way.cc src/mpi/progress_way.h \
  src/mpi/wait_entries.cc \
  src/mpi/errors.cc src/mpi/errors.h \
  src/mpi/exchange.h \
  src/mpi/free_entries.cc \
  src/mpi/functions.h \
  src/mpi/info.cc src/mpi/info.h \
  src/mpi/info_entries.cc \
  src/mpi/module.cc \
  src/mpi/narrow_floats.cc src/mpi/narrow_floats.h \
  src/mpi/plain_arguments.cc src/mpi/plain_arguments.h \
  src/mpi/prepared_call.cc src/mpi/prepared_call.h \
  src/mpi/progress_request.cc src/mpi/progress_request.h \
  src/mpi/real.cc src/mpi/real.h \
  src/mpi/reductions.cc src/mpi/reductions.h \
  src/mpi/error_probe.cc src/mpi/error_probe.h \
  src/mpi/call_cache.cc src/mpi/call_cache.h \
  src/mpi/runtime.cc src/mpi/runtime.h \
  src/mpi/several_entries.cc \
  src/mpi/statistics_report.cc src/mpi/statistics_report.h \
  src/mpi/thread_state.cc src/mpi/thread_state.h \
  src/mpi/typemap.cc src/mpi/typemap.h \
  src/mpi/user_operation.cc src/mpi/user_operation.h

# What each call goes through, as in src/engine/local.mk.
single_face_sources += src/mpi/communicator.cc src/mpi/describe.cc src/mpi/entries.cc
mpi_parts = known prepared
sources_of_known = \
  src/mpi/call_cache.cc src/mpi/communicators.cc src/mpi/datatypes.cc src/mpi/thread_state.cc
sources_of_prepared = \
  src/mpi/host_copy_for_mpi.cc src/mpi/plain_arguments.cc src/mpi/prepared_call.cc src/mpi/reductions.cc
