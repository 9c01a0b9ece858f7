# SPDX-License-Identifier: BSD-3-Clause
# MPI programs under mpirun, with Sluice preloaded.

mpi_programs = \
  tests/mpi/breaks \
  tests/mpi/hostile_connections \
  tests/mpi/carriers \
  tests/mpi/communicators \
  tests/mpi/counted_calls \
  tests/mpi/restricted \
  tests/mpi/deaths \
  tests/mpi/descriptors \
  tests/mpi/differential \
  tests/mpi/endings \
  tests/mpi/failures \
  tests/mpi/choices \
  tests/mpi/hints \
  tests/mpi/invalid \
  tests/mpi/large_counts \
  tests/mpi/lifetimes \
  tests/mpi/meeting \
  tests/mpi/movement \
  tests/mpi/narrow_floats \
  tests/mpi/nonblocking \
  tests/mpi/odd \
  tests/mpi/operations \
  tests/mpi/payload \
  tests/mpi/persistent \
  tests/mpi/progress \
  tests/mpi/protected \
  tests/mpi/reach \
  tests/mpi/reductions \
  tests/mpi/repeats \
  tests/mpi/reproducible \
  tests/mpi/secrets \
  tests/mpi/statistics \
  tests/mpi/setup \
  tests/mpi/steps \
  tests/mpi/stress \
  tests/mpi/sum \
  tests/mpi/threads \
  tests/mpi/threads_in_flight \
  tests/mpi/thrown \
  tests/mpi/types \
  tests/mpi/plaintext
check_PROGRAMS += $(mpi_programs)
# For tests/speed.
EXTRA_PROGRAMS += tests/mpi/progress_rate

# What they share.
check_LTLIBRARIES += tests/mpi/libharness.la
tests_mpi_libharness_la_SOURCES = tests/mpi/completion.cc tests/mpi/completion.h tests/mpi/harness.cc tests/mpi/harness.h \
  tests/mpi/narrow.cc tests/mpi/narrow.h \
  tests/mpi/numbers.cc tests/mpi/numbers.h tests/mpi/shapes.cc tests/mpi/shapes.h
tests_mpi_libharness_la_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
mpi_harness = tests/mpi/libharness.la $(MPI_LIBS) -ldl -lpthread
# Whatever is not said below: a program has one source, of its name (AM_DEFAULT_SOURCE_EXT), and these flags and libraries.
tests/mpi/%.o tests/mpi/%.lo tests/cuda/%.o: AM_CPPFLAGS += $(MPI_CPPFLAGS)
harnessed_programs = $(mpi_programs) $(cuda_programs) $(deep_cuda_programs) tests/mpi/progress_rate
$(harnessed_programs): LDADD = $(mpi_harness)
$(harnessed_programs): tests/mpi/libharness.la

tests_mpi_differential_SOURCES = tests/mpi/differential.cc tests/mpi/in_flight.cc tests/mpi/in_flight.h \
  tests/mpi/rounding.cc tests/mpi/rounding.h tests/mpi/trial.cc tests/mpi/trial.h \
  tests/mpi/trial_moves.cc tests/mpi/trial_reductions.cc $(nccl_calls)
tests_mpi_sum_SOURCES = tests/mpi/sum.c

tests_mpi_invalid_LDADD = $(MPI_LIBS)
tests_mpi_secrets_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
tests_mpi_sum_LDADD = $(MPI_LIBS)

mpi_tests = \
  tests/mpi/test_differential \
  tests/mpi/test_collectives \
  tests/mpi/test_failures \
  tests/mpi/test_tls \
  tests/mpi/test_settings \
  tests/mpi/test_setup \
  tests/mpi/test_reproducible \
  tests/mpi/test_algorithms \
  tests/mpi/test_communicators \
  tests/mpi/test_groups \
  tests/mpi/test_face \
  tests/mpi/test_statistics \
  tests/mpi/test_stress \
  tests/mpi/test_progress \
  tests/mpi/test_nonblocking \
  tests/mpi/test_persistent \
  tests/mpi/test_endings \
  tests/mpi/test_errors \
  tests/mpi/test_shared_memory \
  tests/mpi/test_payload \
  tests/mpi/test_modules \
  tests/mpi/test_languages \
  tests/mpi/test_types \
  tests/mpi/test_restricted \
  tests/mpi/test_descriptors \
  tests/mpi/test_carriers \
  tests/mpi/test_breaks \
  tests/mpi/test_choice \
  tests/mpi/test_hints \
  tests/mpi/test_disagreement \
  tests/mpi/test_large_counts \
  tests/mpi/test_audit \
  tests/mpi/test_preloads \
  tests/mpi/test_abi \
  tests/mpi/test_both_mpis \
  tests/mpi/test_chooser
# The longest first: others run beside it.
TESTS += $(mpi_tests)
second_mpi_tests = tests/mpi/test_other_mpi tests/mpi/test_mpi5
ci_tests += $(second_mpi_tests)
EXTRA_DIST += $(mpi_tests) $(second_mpi_tests) tests/mpi/second_mpi.py tests/mpi/fortran.F90 tests/mpi/invalid.F90 \
  tests/mpi/cleaned.c tests/mpi/counted.c tests/mpi/fortran_info.c tests/mpi/ctypes_program.py tests/mpi/handles.c tests/mpi/jobs.py tests/mpi/linked.c \
  tests/mpi/mpi4py_program.py tests/mpi/outcomes.c tests/mpi/traced.c tests/mpi/unreadable.c tests/mpi/weak.c \
  tests/mpi/on-rank

# tests/mpi/test_other_mpi and test_mpi5 make them in folders of their own, with the other MPI and MPI 5's ABI.
mpi-programs: $(mpi_programs) osu/osu_face
.PHONY: mpi-programs
clean-local:
	rm -rf other-mpi mpi5 tests/tidy/stamps
CLEANFILES += handling.mod operations.mod
