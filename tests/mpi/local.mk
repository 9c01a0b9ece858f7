# SPDX-License-Identifier: BSD-3-Clause
# MPI programs under mpirun, with Sluice preloaded.

mpi_programs = \
  tests/mpi/breaks \
  tests/mpi/hostile_connections \
  tests/mpi/carriers \
  tests/mpi/communicators \
  tests/mpi/restricted \
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
  tests/mpi/odd \
  tests/mpi/operations \
  tests/mpi/payload \
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
  tests/mpi/types \
  tests/mpi/plaintext
check_PROGRAMS += $(mpi_programs)
# For tests/speed.
EXTRA_PROGRAMS += tests/mpi/progress_rate

# What they share.
check_LTLIBRARIES += tests/mpi/libharness.la
tests_mpi_libharness_la_SOURCES = tests/mpi/harness.cc tests/mpi/harness.h tests/mpi/narrow.cc tests/mpi/narrow.h \
  tests/mpi/numbers.cc tests/mpi/numbers.h tests/mpi/shapes.cc tests/mpi/shapes.h
tests_mpi_libharness_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_libharness_la_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
mpi_harness = tests/mpi/libharness.la $(MPI_LIBS) -ldl

tests_mpi_hostile_connections_SOURCES = tests/mpi/hostile_connections.cc
tests_mpi_breaks_SOURCES = tests/mpi/breaks.cc
tests_mpi_carriers_SOURCES = tests/mpi/carriers.cc
tests_mpi_communicators_SOURCES = tests/mpi/communicators.cc
tests_mpi_restricted_SOURCES = tests/mpi/restricted.cc
tests_mpi_descriptors_SOURCES = tests/mpi/descriptors.cc
tests_mpi_differential_SOURCES = tests/mpi/differential.cc \
  tests/mpi/rounding.cc tests/mpi/rounding.h tests/mpi/trial.cc tests/mpi/trial.h \
  tests/mpi/trial_moves.cc tests/mpi/trial_reductions.cc $(nccl_calls)
tests_mpi_endings_SOURCES = tests/mpi/endings.cc
tests_mpi_failures_SOURCES = tests/mpi/failures.cc
tests_mpi_choices_SOURCES = tests/mpi/choices.cc
tests_mpi_hints_SOURCES = tests/mpi/hints.cc
tests_mpi_invalid_SOURCES = tests/mpi/invalid.cc
tests_mpi_large_counts_SOURCES = tests/mpi/large_counts.cc
tests_mpi_lifetimes_SOURCES = tests/mpi/lifetimes.cc
tests_mpi_meeting_SOURCES = tests/mpi/meeting.cc
tests_mpi_movement_SOURCES = tests/mpi/movement.cc
tests_mpi_narrow_floats_SOURCES = tests/mpi/narrow_floats.cc
tests_mpi_odd_SOURCES = tests/mpi/odd.cc
tests_mpi_operations_SOURCES = tests/mpi/operations.cc
tests_mpi_payload_SOURCES = tests/mpi/payload.cc
tests_mpi_progress_SOURCES = tests/mpi/progress.cc
tests_mpi_progress_rate_SOURCES = tests/mpi/progress_rate.cc
tests_mpi_protected_SOURCES = tests/mpi/protected.cc
tests_mpi_reach_SOURCES = tests/mpi/reach.cc
tests_mpi_reductions_SOURCES = tests/mpi/reductions.cc
tests_mpi_repeats_SOURCES = tests/mpi/repeats.cc
tests_mpi_reproducible_SOURCES = tests/mpi/reproducible.cc
tests_mpi_secrets_SOURCES = tests/mpi/secrets.cc
tests_mpi_statistics_SOURCES = tests/mpi/statistics.cc
tests_mpi_setup_SOURCES = tests/mpi/setup.cc
tests_mpi_steps_SOURCES = tests/mpi/steps.cc
tests_mpi_stress_SOURCES = tests/mpi/stress.cc
tests_mpi_sum_SOURCES = tests/mpi/sum.c
tests_mpi_threads_SOURCES = tests/mpi/threads.cc
tests_mpi_types_SOURCES = tests/mpi/types.cc
tests_mpi_plaintext_SOURCES = tests/mpi/plaintext.cc

tests_mpi_hostile_connections_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_breaks_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_carriers_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_communicators_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_restricted_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_descriptors_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_differential_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_endings_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_failures_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_choices_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_hints_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_invalid_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_large_counts_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_lifetimes_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_meeting_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_movement_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_narrow_floats_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_odd_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_operations_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_payload_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_progress_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_progress_rate_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_protected_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_reach_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_reductions_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_repeats_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_reproducible_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_secrets_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_statistics_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_setup_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_steps_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_stress_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_sum_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_threads_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_types_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_mpi_plaintext_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)

tests_mpi_hostile_connections_LDADD = $(mpi_harness)
tests_mpi_breaks_LDADD = $(mpi_harness) -lpthread
tests_mpi_carriers_LDADD = $(mpi_harness)
tests_mpi_communicators_LDADD = $(mpi_harness)
tests_mpi_restricted_LDADD = $(mpi_harness)
tests_mpi_descriptors_LDADD = $(mpi_harness)
tests_mpi_differential_LDADD = $(mpi_harness)
tests_mpi_endings_LDADD = $(mpi_harness)
tests_mpi_failures_LDADD = $(mpi_harness)
tests_mpi_choices_LDADD = $(mpi_harness)
tests_mpi_hints_LDADD = $(mpi_harness)
tests_mpi_invalid_LDADD = $(MPI_LIBS)
tests_mpi_large_counts_LDADD = $(mpi_harness)
tests_mpi_lifetimes_LDADD = $(mpi_harness)
tests_mpi_meeting_LDADD = $(mpi_harness)
tests_mpi_movement_LDADD = $(mpi_harness)
tests_mpi_narrow_floats_LDADD = $(mpi_harness)
tests_mpi_odd_LDADD = $(mpi_harness)
tests_mpi_operations_LDADD = $(mpi_harness)
tests_mpi_payload_LDADD = $(mpi_harness)
tests_mpi_progress_LDADD = $(mpi_harness)
tests_mpi_progress_rate_LDADD = $(mpi_harness)
tests_mpi_protected_LDADD = $(mpi_harness)
tests_mpi_reach_LDADD = $(mpi_harness)
tests_mpi_reductions_LDADD = $(mpi_harness)
tests_mpi_repeats_LDADD = $(mpi_harness)
tests_mpi_reproducible_LDADD = $(mpi_harness)
tests_mpi_secrets_LDADD = $(mpi_harness)
tests_mpi_secrets_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
tests_mpi_statistics_LDADD = $(mpi_harness)
tests_mpi_setup_LDADD = $(mpi_harness)
tests_mpi_steps_LDADD = $(mpi_harness)
tests_mpi_stress_LDADD = $(mpi_harness)
tests_mpi_sum_LDADD = $(MPI_LIBS)
tests_mpi_threads_LDADD = $(mpi_harness) -lpthread
tests_mpi_types_LDADD = $(mpi_harness)
tests_mpi_plaintext_LDADD = $(mpi_harness)

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
  tests/mpi/test_stress \
  tests/mpi/test_progress \
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
