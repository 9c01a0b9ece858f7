# SPDX-License-Identifier: BSD-3-Clause
"""Distributes a mesh by PT-Scotch, which calls MPI from a second thread: petsc4py with MPI_THREAD_FUNNELED.

Prints, for each round, how many cells there are and how many the fullest rank has.
"""
import sys

import mpi4py

mpi4py.rc.thread_level = "funneled"

import petsc4py  # noqa: E402  pylint: disable=wrong-import-position

petsc4py.init(sys.argv[:1])

from mpi4py import MPI  # noqa: E402  pylint: disable=wrong-import-position
from petsc4py import PETSc  # noqa: E402  pylint: disable=wrong-import-position

for turn in range(8):
    mesh = PETSc.DMPlex().createBoxMesh([40, 40], simplex=False, comm=MPI.COMM_WORLD)
    for _ in range(2):  # from one rank to all, and once more between all
        mesh.getPartitioner().setType("ptscotch")
        mesh.distribute()
    begin, end = mesh.getHeightStratum(0)
    cells = MPI.COMM_WORLD.allreduce(end - begin)
    most = MPI.COMM_WORLD.allreduce(end - begin, op=MPI.MAX)
    if MPI.COMM_WORLD.rank == 0:
        print(f"round {turn}: {cells} cells, {most} on one rank", flush=True)
