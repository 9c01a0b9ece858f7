! SPDX-License-Identifier: BSD-3-Clause
!
! Calls from Fortran that MPI may refuse, compiled with -DUSE_MPIF_H and with -DUSE_MPI_F08. Rank 0
! prints what comes of each: the class of the error, how often the communicator's error handler was
! called, and whether for that communicator. To be run with Sluice and without: both print the same.
#ifdef USE_MPI_F08
#define HANDLE(KIND) type(KIND)
#else
#define HANDLE(KIND) integer
#endif

module handling
#ifdef USE_MPI_F08
  use mpi_f08
#endif
  implicit none
#ifndef USE_MPI_F08
  include 'mpif.h'
#endif
  HANDLE(MPI_Comm) :: own
  integer :: calls, right, told, size
contains
  subroutine note(comm, code)
    HANDLE(MPI_Comm) :: comm
    integer :: code
    integer :: ierror
    calls = calls + 1
    if (comm == own) right = right + 1
    call MPI_Error_class(code, told, ierror)
  end subroutine

  ! What came of a call, and then one that is right.
  subroutine report(what, code)
    character(*), intent(in) :: what
    integer, intent(in) :: code
    integer :: error_class, rank, one, total, ierror
    call MPI_Error_class(code, error_class, ierror)
    call MPI_Comm_rank(own, rank, ierror)
    if (rank == 0) print '(a, 4(a, i0))', what, ': class ', error_class, ', ', calls, &
      ' calls of the handler, the right communicator in ', right, ', class ', told
    calls = 0
    right = 0
    told = 0
    one = 1
    call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, own, ierror)
    if (total /= size) print *, 'a wrong sum'
  end subroutine
end module

program invalid
  use handling
  implicit none
  integer :: in(64), out(64), ierror
  HANDLE(MPI_Errhandler) :: handler
  HANDLE(MPI_Datatype) :: uncommitted

  call MPI_Init(ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, own, ierror)
  call MPI_Comm_size(own, size, ierror)
  call MPI_Comm_create_errhandler(note, handler, ierror)
  call MPI_Comm_set_errhandler(own, handler, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
  call MPI_Type_contiguous(2, MPI_INTEGER, uncommitted, ierror)
  in = 1
  calls = 0
  right = 0
  told = 0

  call MPI_Allreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, own, ierror)
  call report('allreduce of no type', ierror)
  call MPI_Allreduce(in, out, 1, MPI_INTEGER, MPI_OP_NULL, own, ierror)
  call report('allreduce by no operation', ierror)
  call MPI_Allreduce(in, out, 1, MPI_REAL, MPI_BAND, own, ierror)
  call report('allreduce of bits of reals', ierror)
  call MPI_Allreduce(in, out, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_NULL, ierror)
  call report('allreduce on no communicator', ierror)
  call MPI_Allreduce(in, MPI_IN_PLACE, 1, MPI_INTEGER, MPI_SUM, own, ierror)
  call report('allreduce into MPI_IN_PLACE', ierror)
  call MPI_Reduce(in, out, 1, MPI_INTEGER, MPI_SUM, size, own, ierror)
  call report('reduce to a rank that is not', ierror)
  call MPI_Scan(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, own, ierror)
  call report('scan of no type', ierror)
  call MPI_Scan(in, out, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_NULL, ierror)
  call report('scan on no communicator', ierror)
  call MPI_Exscan(in, out, 1, MPI_INTEGER, MPI_OP_NULL, own, ierror)
  call report('exscan by no operation', ierror)
  call MPI_Exscan(in, out, 1, MPI_REAL, MPI_BAND, own, ierror)
  call report('exscan of bits of reals', ierror)
  call MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, own, ierror)
  call report('bcast of no type', ierror)
  call MPI_Bcast(in, 1, uncommitted, 0, own, ierror)
  call report('bcast of a type that is not committed', ierror)
  call MPI_Bcast(in, 1, MPI_INTEGER, -7, own, ierror)
  call report('bcast from a rank that is not', ierror)
  call MPI_Allgather(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INTEGER, own, ierror)
  call report('allgather of no type', ierror)
  call MPI_Allgather(in, 1, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, own, ierror)
  call report('allgather into MPI_IN_PLACE', ierror)
  call MPI_Gather(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INTEGER, 0, own, ierror)
  call report('gather of no type', ierror)
  call MPI_Gather(in, 1, MPI_INTEGER, out, 1, MPI_INTEGER, size, own, ierror)
  call report('gather at a rank that is not', ierror)
  call MPI_Scatter(in, 1, MPI_INTEGER, out, 1, MPI_DATATYPE_NULL, 0, own, ierror)
  call report('scatter into no type', ierror)
  call MPI_Scatter(in, 1, MPI_INTEGER, out, 1, MPI_INTEGER, 0, MPI_COMM_NULL, ierror)
  call report('scatter on no communicator', ierror)
  call MPI_Alltoall(in, 1, MPI_INTEGER, out, 1, MPI_DATATYPE_NULL, own, ierror)
  call report('alltoall into no type', ierror)
  call MPI_Barrier(MPI_COMM_NULL, ierror)
  call report('barrier on no communicator', ierror)

  call MPI_Type_free(uncommitted, ierror)
  call MPI_Errhandler_free(handler, ierror)
  call MPI_Comm_free(own, ierror)
  call MPI_Finalize(ierror)
end program
