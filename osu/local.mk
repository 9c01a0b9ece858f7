# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks with the OSU Micro-Benchmarks' options and output (MPI programs that know nothing of Sluice), and what
# runs them. They are installed where `compare` finds them: beside it.

noinst_LTLIBRARIES += osu/libbench.la
osu_libbench_la_SOURCES = osu/bench.cc osu/bench.h osu/device.cc osu/device.h osu/function.cc osu/function.h \
  osu/memory.h osu/pattern.cc osu/pattern.h osu/trial.cc osu/trial.h
osu_libbench_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)

pkglibexec_PROGRAMS = osu/osu_cuda_floor osu/osu_face osu/osu_setup osu/osu_shm_floor osu/osu_tcp_floor osu/osu_tune

# osu_FUNCTION for each of these: a row in function.cc and a word here. (Automake has no rule for such a family. It
# installs any file that is listed as a script.)
osu_functions = allgather allgatherv allreduce alltoall alltoallv barrier bcast exscan gather gatherv reduce \
  reduce_scatter reduce_scatter_block scan scatter scatterv
osu_programs = $(addprefix osu/osu_,$(osu_functions))
pkglibexec_SCRIPTS = $(osu_programs)
CLEANFILES += $(osu_programs)
EXTRA_DIST += osu/main.cc
osu/main-%.$(OBJEXT): osu/main.cc osu/bench.h
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(CXXCOMPILE) -DOSU_FUNCTION='"$*"' -c -o $@ $<
$(osu_programs): osu/osu_%: osu/main-%.$(OBJEXT) osu/libbench.la osu/libcommand_line.la
	$(AM_V_CXXLD)$(CXXLINK) $< $(osu_libraries)

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
osu_libraries = osu/libbench.la osu/libcommand_line.la $(MPI_LIBS) -ldl

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
