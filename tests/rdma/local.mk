# SPDX-License-Identifier: BSD-3-Clause
# Real verbs over Soft-RoCE, in a virtual machine: make check-rdma. Not part of `make check`. RDMA_CASES: names of those
# in tests/rdma/cases, such as small; empty: all but small.
EXTRA_DIST += tests/rdma/cases tests/rdma/elf tests/rdma/figures tests/rdma/guest tests/rdma/packages

rdma_programs = tests/mpi/communicators tests/mpi/differential tests/mpi/failures tests/mpi/stress
check-rdma: all $(rdma_programs)
	LIMIT=3600 top_builddir='$(abs_top_builddir)' $(top_srcdir)/tests/rdma/guest $(top_srcdir)/tests/rdma/cases \
	  '$(abs_top_builddir)' $(RDMA_CASES)
.PHONY: check-rdma
