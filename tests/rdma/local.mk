# SPDX-License-Identifier: BSD-3-Clause
# Real verbs over Soft-RoCE, in a virtual machine: a small set of tests/rdma/cases in `make check-ci`, all in
# `make check-long` and `make check-rdma`. RDMA_CASES: names of those to run, such as small; empty: all but small.
rdma_tests = tests/rdma/test_cases
if PLAIN_BUILD
ci_tests += $(rdma_tests)
ci_programs += $(rdma_programs)
endif
EXTRA_DIST += $(rdma_tests) tests/rdma/cases tests/rdma/elf tests/rdma/figures tests/rdma/guest tests/rdma/remote

rdma_programs = tests/mpi/communicators tests/mpi/differential tests/mpi/endings tests/mpi/failures tests/mpi/stress
check-rdma: all $(rdma_programs)
	LIMIT=3600 top_builddir='$(abs_top_builddir)' $(top_srcdir)/tests/rdma/guest $(top_srcdir)/tests/rdma/cases \
	  '$(abs_top_builddir)' $(RDMA_CASES)
.PHONY: check-rdma

# How long a message takes over a link alone, and with collectives; tests/rdma/figures runs them.
EXTRA_PROGRAMS += tests/rdma/collective_times tests/rdma/ping_pong
tests_rdma_collective_times_SOURCES = tests/rdma/collective_times.cc
tests_rdma_collective_times_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_rdma_collective_times_LDADD = $(MPI_LIBS)
tests_rdma_ping_pong_SOURCES = tests/rdma/ping_pong.cc
tests_rdma_ping_pong_CXXFLAGS = $(AM_CXXFLAGS) $(quick_flags)
tests_rdma_ping_pong_LDADD = libcore.la
