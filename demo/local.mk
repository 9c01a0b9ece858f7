# SPDX-License-Identifier: BSD-3-Clause
# `make demo`.

EXTRA_PROGRAMS += demo/allreduce
demo_allreduce_SOURCES = demo/allreduce.c
demo_allreduce_CPPFLAGS = $(MPI_CPPFLAGS)
demo_allreduce_LDADD = $(MPI_LIBS)
EXTRA_DIST += demo/run

# Of Sluice it needs what runs under Open MPI.
demo: demo/allreduce$(EXEEXT) libsluice.la libsluice-openmpi.la
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(top_srcdir)/demo/run
.PHONY: demo
