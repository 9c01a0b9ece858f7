# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks with the OSU Micro-Benchmarks' options and output (MPI programs that know nothing of Sluice), and what
# runs them. They are installed where `compare` finds them: beside it.

noinst_LTLIBRARIES += osu/libbench.la
osu_libbench_la_SOURCES = osu/bench.cc osu/bench.h osu/device.cc osu/device.h osu/function.cc osu/function.h \
  osu/memory.h osu/pattern.cc osu/pattern.h osu/trial.cc osu/trial.h
osu_libbench_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)

pkglibexec_PROGRAMS = osu/osu_allgather osu/osu_allgatherv osu/osu_allreduce osu/osu_alltoall \
  osu/osu_alltoallv osu/osu_barrier osu/osu_bcast osu/osu_exscan osu/osu_reduce osu/osu_reduce_scatter \
  osu/osu_reduce_scatter_block osu/osu_scan osu/osu_cuda_floor osu/osu_face osu/osu_setup osu/osu_shm_floor osu/osu_tcp_floor osu/osu_tune

noinst_LTLIBRARIES += osu/libcommand_line.la
osu_libcommand_line_la_SOURCES = osu/command_line.cc osu/command_line.h osu/options.cc osu/options.h
osu_libcommand_line_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
osu_libcommand_line_la_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)

osu_osu_face_SOURCES = osu/face.cc
osu_osu_face_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
osu_osu_face_LDADD = osu/libcommand_line.la $(MPI_LIBS)
osu_osu_setup_SOURCES = osu/setup.cc
osu_osu_setup_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
osu_osu_setup_LDADD = osu/libcommand_line.la $(MPI_LIBS) -ldl
osu_osu_cuda_floor_SOURCES = osu/cuda_floor.cc osu/device.cc osu/device.h
osu_osu_cuda_floor_LDADD = osu/libcommand_line.la -ldl
osu_osu_shm_floor_SOURCES = osu/shm_floor.cc osu/floor.cc osu/floor.h
osu_osu_shm_floor_LDADD = osu/libcommand_line.la
osu_osu_tcp_floor_SOURCES = osu/tcp_floor.cc osu/floor.cc osu/floor.h
osu_osu_tcp_floor_LDADD = osu/libcommand_line.la
osu_osu_tune_SOURCES = osu/tune.cc osu/tuner.cc osu/tuner.h osu/contest.cc osu/contest.h \
  src/base/file.cc src/base/plain_text.cc src/base/status.cc src/base/system_call.cc src/base/write.cc
osu_osu_tune_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
osu_osu_tune_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
osu_osu_tune_LDADD = $(osu_libraries)
osu_sources = osu/main.cc
osu_libraries = osu/libbench.la osu/libcommand_line.la $(MPI_LIBS) -ldl

osu_osu_allgather_SOURCES = $(osu_sources)
osu_osu_allgather_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"allgather"'
osu_osu_allgather_LDADD = $(osu_libraries)
osu_osu_allgatherv_SOURCES = $(osu_sources)
osu_osu_allgatherv_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"allgatherv"'
osu_osu_allgatherv_LDADD = $(osu_libraries)
osu_osu_allreduce_SOURCES = $(osu_sources)
osu_osu_allreduce_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"allreduce"'
osu_osu_allreduce_LDADD = $(osu_libraries)
osu_osu_alltoall_SOURCES = $(osu_sources)
osu_osu_alltoall_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"alltoall"'
osu_osu_alltoall_LDADD = $(osu_libraries)
osu_osu_alltoallv_SOURCES = $(osu_sources)
osu_osu_alltoallv_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"alltoallv"'
osu_osu_alltoallv_LDADD = $(osu_libraries)
osu_osu_barrier_SOURCES = $(osu_sources)
osu_osu_barrier_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"barrier"'
osu_osu_barrier_LDADD = $(osu_libraries)
osu_osu_bcast_SOURCES = $(osu_sources)
osu_osu_bcast_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"bcast"'
osu_osu_bcast_LDADD = $(osu_libraries)
osu_osu_exscan_SOURCES = $(osu_sources)
osu_osu_exscan_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"exscan"'
osu_osu_exscan_LDADD = $(osu_libraries)
osu_osu_reduce_SOURCES = $(osu_sources)
osu_osu_reduce_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"reduce"'
osu_osu_reduce_LDADD = $(osu_libraries)
osu_osu_reduce_scatter_SOURCES = $(osu_sources)
osu_osu_reduce_scatter_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"reduce_scatter"'
osu_osu_reduce_scatter_LDADD = $(osu_libraries)
osu_osu_reduce_scatter_block_SOURCES = $(osu_sources)
osu_osu_reduce_scatter_block_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"reduce_scatter_block"'
osu_osu_reduce_scatter_block_LDADD = $(osu_libraries)
osu_osu_scan_SOURCES = $(osu_sources)
osu_osu_scan_CPPFLAGS = $(AM_CPPFLAGS) -DOSU_FUNCTION='"scan"'
osu_osu_scan_LDADD = $(osu_libraries)

dist_pkglibexec_SCRIPTS = osu/compare
osu_modulesdir = $(pkglibexecdir)
dist_osu_modules_DATA = osu/launch.py osu/output.py osu/plot.py osu/presets.py osu/programs.py osu/ratios.py osu/steady.py
EXTRA_DIST += osu/README.md osu/draw-results osu/host-bench osu/hosts-bench osu/results osu/tcp-bench osu/tls-bench tests/hosts/clone.c \
  tests/hosts/flow_cap.c tests/hosts/fresh.c \
  tests/hosts/hosts
dist_man_MANS += man/osu-benchmarks.1 man/osu-compare.1

osu_tests = tests/osu/test_compare tests/osu/test_programs tests/osu/test_tune tests/hosts/selftest \
  tests/hosts/test_collectives tests/hosts/test_connecting tests/hosts/test_outages tests/hosts/test_streams \
  tests/hosts/test_tls
TESTS += $(osu_tests)
EXTRA_DIST += $(osu_tests) tests/osu/broken.c
