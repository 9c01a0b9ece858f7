! SPDX-License-Identifier: BSD-3-Clause
!
! A Fortran program that sums over all ranks; the table of SLUICE_STATS shows it if Sluice is in it.
program probe
  include 'mpif.h'
  double precision :: mine, total
  integer :: error, ranks
  call MPI_Init(error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  mine = 1
  call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (total /= ranks) stop 1
  call MPI_Finalize(error)
end program probe
