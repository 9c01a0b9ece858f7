# SPDX-License-Identifier: BSD-3-Clause
# MPI programs under mpirun: check_PROGRAMS, TESTS.
