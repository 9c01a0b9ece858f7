# SPDX-License-Identifier: BSD-3-Clause
"""A program that takes MPI's functions from the MPI library's own handle, as Julia's MPI.jl does, and programs with cffi:
ctypes_program.py LIBRARY local|global."""
import ctypes
import os
import sys

NAME, SCOPE = sys.argv[1:3]
mpi = ctypes.CDLL(NAME, mode=os.RTLD_NOW | (os.RTLD_GLOBAL if SCOPE == "global" else os.RTLD_LOCAL))


def has_standard_abi():
    major, minor = ctypes.c_int(-1), ctypes.c_int(-1)
    get = getattr(mpi, "MPI_Abi_get_version", None)
    return get is not None and get(ctypes.byref(major), ctypes.byref(minor)) == 0 and major.value >= 1


if has_standard_abi():  # MPI 5's
    COMM_WORLD, DOUBLE, INT, SUM = (ctypes.c_void_p(value) for value in (0x101, 0x214, 0x209, 0x21))
elif hasattr(mpi, "ompi_mpi_comm_world"):
    COMM_WORLD, DOUBLE, INT, SUM = (ctypes.c_void_p(ctypes.addressof(ctypes.c_byte.in_dll(mpi, "ompi_mpi_" + name)))
                                    for name in ("comm_world", "double", "int", "op_sum"))
else:  # MPICH and its kin
    COMM_WORLD, DOUBLE, INT, SUM = (ctypes.c_int(value) for value in (0x44000000, 0x4c00080b, 0x4c000405, 0x58000003))


def call(name, *arguments):
    assert getattr(mpi, name)(*arguments) == 0, name


def number(name):
    found = ctypes.c_int(-1)
    call(name, COMM_WORLD, ctypes.byref(found))
    return found.value


call("MPI_Init", None, None)
rank, size = number("MPI_Comm_rank"), number("MPI_Comm_size")
for count in (1, 1000, 100000):
    mine, total = (ctypes.c_double * count)(*[rank + 1] * count), (ctypes.c_double * count)()
    call("MPI_Allreduce", mine, total, count, DOUBLE, SUM, COMM_WORLD)
    assert all(each == size * (size + 1) // 2 for each in total), (count, total[0])
    call("MPI_Scan", mine, total, count, DOUBLE, SUM, COMM_WORLD)
    assert all(each == (rank + 1) * (rank + 2) // 2 for each in total), (count, total[0])
    call("MPI_Bcast", mine, count, DOUBLE, size - 1, COMM_WORLD)
    assert all(each == size for each in mine), (count, mine[0])
one, everyone = ctypes.c_int(rank), (ctypes.c_int * size)()
call("MPI_Allgather", ctypes.byref(one), 1, INT, everyone, 1, INT, COMM_WORLD)
assert list(everyone) == list(range(size)), list(everyone)
got = (ctypes.c_int * size)(*[-1] * size)
call("MPI_Gather", ctypes.byref(one), 1, INT, got, 1, INT, size - 1, COMM_WORLD)
assert list(got) == (list(range(size)) if rank == size - 1 else [-1] * size), list(got)
one.value = -1
call("MPI_Scatter", everyone, 1, INT, ctypes.byref(one), 1, INT, 0, COMM_WORLD)
assert one.value == rank, one
call("MPI_Barrier", COMM_WORLD)
print(f"ctypes: all held on rank {rank} of {size}", flush=True)
call("MPI_Finalize")
