# SPDX-License-Identifier: BSD-3-Clause
"""What mpi4py programs do: arrays and pickled objects, in MPI_THREAD_MULTIPLE."""
import array
import math

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
everyone = list(range(size))

comm.Barrier()
assert comm.allreduce(rank + 1) == size * (size + 1) // 2
assert comm.bcast({"from": rank, "text": "x" * 100000} if rank == size - 1 else None, root=size - 1)["from"] == size - 1
assert comm.allgather((rank, "y" * rank)) == [(r, "y" * r) for r in everyone]
assert comm.alltoall([100 * rank + r for r in everyone]) == [100 * r + rank for r in everyone]

mine, total = array.array("d", [rank] * 1000), array.array("d", [0] * 1000)
comm.Allreduce([mine, MPI.DOUBLE], [total, MPI.DOUBLE], op=MPI.SUM)
assert all(x == sum(everyone) for x in total)
comm.Allreduce(MPI.IN_PLACE, [mine, MPI.DOUBLE], op=MPI.MAX)
assert all(x == size - 1 for x in mine)
least = array.array("d", [rank] * 1000)
comm.Reduce(MPI.IN_PLACE if rank == 0 else [least, MPI.DOUBLE], [least, MPI.DOUBLE] if rank == 0 else None, op=MPI.MIN)
assert rank != 0 or all(x == 0 for x in least)

assert comm.scan(rank + 1) == (rank + 1) * (rank + 2) // 2
assert comm.exscan(rank + 1) == (rank * (rank + 1) // 2 if rank > 0 else None)
mine, total = array.array("d", [rank + 1] * 1000), array.array("d", [-1] * 1000)
comm.Scan([mine, MPI.DOUBLE], [total, MPI.DOUBLE], op=MPI.PROD)
assert all(x == math.factorial(rank + 1) for x in total)
comm.Exscan(MPI.IN_PLACE, [mine, MPI.DOUBLE], op=MPI.MAX)
assert all(x == max(rank, 1) for x in mine)

part, whole = array.array("i", [rank] * 10), array.array("i", [-1] * 10 * size)
comm.Allgather([part, MPI.INT], [whole, MPI.INT])
assert whole.tolist() == [r for r in everyone for _ in range(10)]
root = size - 1
assert comm.gather((rank, "y" * rank), root=root) == ([(r, "y" * r) for r in everyone] if rank == root else None)
assert comm.scatter([{"to": r} for r in everyone] if rank == root else None, root=root) == {"to": rank}
whole = array.array("i", [-1] * 10 * size)
comm.Gather([part, MPI.INT], [whole, MPI.INT] if rank == root else None, root=root)
assert whole.tolist() == [r if rank == root else -1 for r in everyone for _ in range(10)]
comm.Scatter([whole, MPI.INT] if rank == root else None, MPI.IN_PLACE if rank == root else [part, MPI.INT], root=root)
assert part.tolist() == [rank] * 10
counts = [r + 1 for r in everyone]
places = [10 * r for r in everyone]
whole = array.array("i", [-1] * 10 * size)
comm.Gatherv([part, rank + 1, MPI.INT], [whole, counts, places, MPI.INT] if rank == root else None, root=root)
assert rank != root or whole.tolist() == [r if i <= r else -1 for r in everyone for i in range(10)]
part = array.array("i", [-1] * 10)
comm.Scatterv([whole, counts, places, MPI.INT] if rank == root else None, [part, rank + 1, MPI.INT], root=root)
assert part.tolist() == [rank if i <= rank else -1 for i in range(10)]

to, back = array.array("i", [100 * rank + r for r in everyone]), array.array("i", [-1] * size)
comm.Alltoall([to, MPI.INT], [back, MPI.INT])
assert back.tolist() == [100 * r + rank for r in everyone]

matrix = array.array("i", [rank] * 30)
column = MPI.INT.Create_vector(10, 1, 3).Commit()
comm.Bcast([matrix, 1, column], root=0)
assert matrix.tolist() == [0 if i % 3 == 0 else rank for i in range(30)]
column.Free()

for _ in range(20):
    copy = comm.Dup()
    half = copy.Split(rank % 2, rank)
    assert half.allreduce(1) == half.Get_size()
    half.Free()
    copy.Free()

concatenate = MPI.Op.Create(lambda a, b, t: None, commute=False)
concatenate.Free()
comm.Barrier()
if rank == 0:
    print(f"mpi4py: all held on {size} ranks", flush=True)
