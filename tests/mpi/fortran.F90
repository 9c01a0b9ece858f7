! SPDX-License-Identifier: BSD-3-Clause
!
! The collectives from Fortran, in place and not, compiled three times: with -DUSE_MPIF_H, -DUSE_MPI
! and -DUSE_MPI_F08. All results are known beforehand.
#ifdef USE_MPI_F08
#define HANDLE(KIND) type(KIND)
#else
#define HANDLE(KIND) integer
#endif

module operations
#ifdef USE_MPI_F08
  use mpi_f08, only: MPI_Comm
#endif
  implicit none
  HANDLE(MPI_Comm) :: going
  integer :: counted = 0
contains
#ifdef USE_MPI_F08
  subroutine keep_left(from, to, length, type)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    use mpi_f08, only: MPI_Datatype
    type(c_ptr), value :: from, to
    integer :: length
    type(MPI_Datatype) :: type
    integer, pointer :: left(:), right(:)
    call c_f_pointer(from, left, [length])
    call c_f_pointer(to, right, [length])
    right = left
  end subroutine
#else
  subroutine keep_left(left, right, length, type)
    integer :: length, type
    integer :: left(length), right(length)
    right = left
  end subroutine
#endif

  ! Called while `going` is freed. (Open MPI 4.1.4 does not say so.)
  subroutine count_ranks(comm, keyval, value, extra, ierror)
#if defined(USE_MPI_F08)
    use mpi_f08
#elif defined(USE_MPI)
    use mpi
#endif
#ifdef USE_MPIF_H
    include 'mpif.h'
#endif
    HANDLE(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    integer :: one
    one = 1
    call MPI_Allreduce(one, counted, 1, MPI_INTEGER, MPI_SUM, going, ierror)
  end subroutine
end module

program fortran
  use operations
#if defined(USE_MPI_F08)
  use mpi_f08
#elif defined(USE_MPI)
  use mpi
#endif
  implicit none
#ifdef USE_MPIF_H
  include 'mpif.h'
#endif
  integer, parameter :: n = 1000
  integer :: rank, ranks, checks, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  checks = 0
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call test_types
  call test_reductions
  call test_scans
  call test_scatters
  call test_bcast
  call test_gathers
  call test_rooted
  call test_exchanges
  call test_bottom
  call test_precisions
  call test_operation
  call test_hints
  call test_callbacks
  if (rank == 0) print '(a,i0,a,i0,a)', 'fortran: ', checks, ' checks held on ', ranks, ' ranks'
  call MPI_Finalize(ierror)

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    integer :: ignored
    checks = checks + 1
    if (holds) return
    print '(a,i0,2a)', 'FAILED on rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
  end subroutine

  subroutine test_hints
    HANDLE(MPI_Info) :: info
    HANDLE(MPI_Comm) :: comm
    character(MPI_MAX_INFO_VAL) :: value
    logical :: found
    integer :: total
    call MPI_Info_create(info, ierror)
    call MPI_Info_set(info, 'sluice_allreduce', 'rabenseifner', ierror)
    call MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, comm, ierror)
    call MPI_Comm_set_name(comm, 'hinted', ierror)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
    call check(total == ranks, 'allreduce with a hint')
    call MPI_Info_set(info, 'sluice_allreduce', 'double_tree', ierror)
    call MPI_Comm_set_info(comm, info, ierror)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
    call check(total == ranks, 'allreduce with another hint')
    call MPI_Info_free(info, ierror)
    call MPI_Comm_get_info(comm, info, ierror)
    call MPI_Info_get(info, 'sluice_allreduce', MPI_MAX_INFO_VAL, value, found, ierror)
    call check(found .and. value == 'double_tree', 'the hint in force')
    call MPI_Info_free(info, ierror)
    call MPI_Comm_free(comm, ierror)
  end subroutine

  ! The next communicator has the handle of the freed one, and its ranks in another order.
  subroutine test_callbacks
    HANDLE(MPI_Comm) :: comm
    integer(kind=MPI_ADDRESS_KIND) :: nothing
    integer :: keyval, number
    nothing = 0
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_ranks, keyval, nothing, ierror)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_set_attr(comm, keyval, nothing, ierror)
    call MPI_Barrier(comm, ierror)
    going = comm
    call MPI_Comm_free(comm, ierror)
    call check(counted == ranks, 'allreduce while a communicator is freed')
    call MPI_Comm_free_keyval(keyval, ierror)
    call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, comm, ierror)
    number = merge(42, -1, rank == ranks - 1)
    call MPI_Bcast(number, 1, MPI_INTEGER, 0, comm, ierror)
    call check(number == 42, 'bcast on the next communicator')
    call MPI_Comm_free(comm, ierror)
  end subroutine

  subroutine test_types
    double precision :: d(n), dsum(n)
    real :: r(n), rmax(n)
    complex :: z(n), zsum(n)
    logical :: l(n), lall(n), lany(n)
    integer :: pair(2), least(2)
    d = rank + 1
    call MPI_Allreduce(d, dsum, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(dsum == ranks * (ranks + 1) / 2), 'sum of double precision')
    r = rank
    call MPI_Allreduce(r, rmax, n, MPI_REAL, MPI_MAX, MPI_COMM_WORLD, ierror)
    call check(all(rmax == ranks - 1), 'maximum of real')
    z = cmplx(1, rank)
    call MPI_Allreduce(z, zsum, n, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(zsum == cmplx(ranks, ranks * (ranks - 1) / 2)), 'sum of complex')
    l = rank == 0
    call MPI_Allreduce(l, lall, n, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
    call MPI_Allreduce(l, lany, n, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierror)
    call check(all(lall .eqv. ranks == 1) .and. all(lany), 'logical')
    pair = [ranks - rank, rank]
    call MPI_Allreduce(pair, least, 1, MPI_2INTEGER, MPI_MINLOC, MPI_COMM_WORLD, ierror)
    call check(all(least == [1, ranks - 1]), 'minloc')
  end subroutine

  subroutine test_reductions
    integer :: from(n), to(n), expected(n), i, root
    expected = [(ranks * i + ranks * (ranks - 1) / 2, i = 1, n)]
    from = [(i + rank, i = 1, n)]
    to = from
    call MPI_Allreduce(MPI_IN_PLACE, to, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(to == expected), 'allreduce in place')
    root = ranks - 1
    to = -1
    call MPI_Reduce(from, to, n, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, ierror)
    call check(all(to == merge(expected, -1, rank == root)), 'reduce')
    to = from
    if (rank == root) then
      call MPI_Reduce(MPI_IN_PLACE, to, n, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, ierror)
    else
      call MPI_Reduce(from, to, n, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, ierror)
    end if
    call check(all(to == merge(expected, from, rank == root)), 'reduce in place')
  end subroutine

  subroutine test_scans
    integer :: from(n), to(n), i
    from = [(i + rank, i = 1, n)]
    call MPI_Scan(from, to, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(to == [((rank + 1) * i + rank * (rank + 1) / 2, i = 1, n)]), 'scan')
    to = from
    call MPI_Exscan(MPI_IN_PLACE, to, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (rank > 0) from = [(rank * i + rank * (rank - 1) / 2, i = 1, n)]
    call check(all(to == from), 'exscan in place')
  end subroutine

  subroutine test_scatters
    integer :: from(n * ranks), to(n * ranks), counts(ranks), i, first
    from = [(i + rank, i = 1, n * ranks)]
    to = -1
    call MPI_Reduce_scatter_block(from, to, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(to(:n) == [(ranks * (rank * n + i) + ranks * (ranks - 1) / 2, i = 1, n)]), &
               'reduce_scatter_block')
    call check(all(to(n + 1:) == -1), 'reduce_scatter_block, behind')
    to = from
    call MPI_Reduce_scatter_block(MPI_IN_PLACE, to, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(to(:n) == [(ranks * (rank * n + i) + ranks * (ranks - 1) / 2, i = 1, n)]), &
               'reduce_scatter_block in place')
    counts = [(i, i = 1, ranks)]
    first = rank * (rank + 1) / 2
    to = from
    call MPI_Reduce_scatter(MPI_IN_PLACE, to, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(to(:rank + 1) == [(ranks * (first + i) + ranks * (ranks - 1) / 2, &
                                      i = 1, rank + 1)]), 'reduce_scatter in place')
  end subroutine

  subroutine test_bcast
    integer :: matrix(n, 3), i
    HANDLE(MPI_Datatype) :: row
    matrix = -1
    if (rank == 0) matrix(2, :) = [7, 8, 9]
    call MPI_Type_vector(3, 1, n, MPI_INTEGER, row, ierror)
    call MPI_Type_commit(row, ierror)
    call MPI_Bcast(matrix(2, 1), 1, row, 0, MPI_COMM_WORLD, ierror)
    call check(all(matrix(2, :) == [7, 8, 9]), 'bcast of a row')
    call check(all(matrix(1, :) == -1) .and. all(matrix(3:, :) == -1), 'bcast beside a row')
    call MPI_Type_free(row, ierror)
    if (rank == ranks - 1) matrix(:, 1) = [(i, i = 1, n)]
    call MPI_Bcast(matrix, n, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, ierror)
    call check(all(matrix(:, 1) == [(i, i = 1, n)]), 'bcast')
  end subroutine

  subroutine test_gathers
    integer :: mine(n), all_of(n, 0:ranks - 1), counts(ranks), places(ranks), r
    mine = rank
    call MPI_Allgather(mine, n, MPI_INTEGER, all_of, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call check(all([(all(all_of(:, r) == r), r = 0, ranks - 1)]), 'allgather')
    all_of = -1
    all_of(:, rank) = rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_of, n, MPI_INTEGER, MPI_COMM_WORLD, &
                       ierror)
    call check(all([(all(all_of(:, r) == r), r = 0, ranks - 1)]), 'allgather in place')
    counts = [(r, r = 1, ranks)]
    places = [((r - 1) * n, r = 1, ranks)]
    all_of = -1
    call MPI_Allgatherv(mine, rank + 1, MPI_INTEGER, all_of, counts, places, MPI_INTEGER, &
                        MPI_COMM_WORLD, ierror)
    call check(all([(all(all_of(:r + 1, r) == r) .and. all(all_of(r + 2:, r) == -1), &
                     r = 0, ranks - 1)]), 'allgatherv')
    all_of = -1
    all_of(:rank + 1, rank) = rank
    call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_of, counts, places, MPI_INTEGER, &
                        MPI_COMM_WORLD, ierror)
    call check(all([(all(all_of(:r + 1, r) == r) .and. all(all_of(r + 2:, r) == -1), &
                     r = 0, ranks - 1)]), 'allgatherv in place')
  end subroutine

  ! Gathers and scatters. What means nothing, because this rank is not the root, makes no sense.
  subroutine test_rooted
    integer :: mine(n), all_of(n, 0:ranks - 1), counts(ranks), places(ranks), r, root
    root = ranks - 1
    mine = rank
    all_of = -1
    call MPI_Gather(mine, n, MPI_INTEGER, all_of, merge(n, -1, rank == root), MPI_INTEGER, root, &
                    MPI_COMM_WORLD, ierror)
    call check(all([(all(all_of(:, r) == merge(r, -1, rank == root)), r = 0, ranks - 1)]), 'gather')
    counts = [(r, r = 1, ranks)]
    places = [((r - 1) * n, r = 1, ranks)]
    all_of = -1
    if (rank == root) then
      all_of(:rank + 1, rank) = rank
      call MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_of, counts, places, MPI_INTEGER, &
                       root, MPI_COMM_WORLD, ierror)
      call check(all([(all(all_of(:r + 1, r) == r) .and. all(all_of(r + 2:, r) == -1), &
                       r = 0, ranks - 1)]), 'gatherv in place')
    else
      call MPI_Gatherv(mine, rank + 1, MPI_INTEGER, all_of, -counts, places, MPI_DATATYPE_NULL, &
                       root, MPI_COMM_WORLD, ierror)
      call check(all(all_of == -1), 'gatherv in place, elsewhere')
    end if
    do r = 0, ranks - 1
      all_of(:, r) = 100 * rank + r
    end do
    mine = -1
    call MPI_Scatter(all_of, merge(n, -1, rank == root), MPI_INTEGER, mine, n, MPI_INTEGER, root, &
                     MPI_COMM_WORLD, ierror)
    call check(all(mine == 100 * root + rank), 'scatter')
    mine = -1
    call MPI_Scatterv(all_of, counts, places, MPI_INTEGER, mine, rank + 1, MPI_INTEGER, root, &
                      MPI_COMM_WORLD, ierror)
    call check(all(mine(:rank + 1) == 100 * root + rank) .and. all(mine(rank + 2:) == -1), &
               'scatterv')
    mine = -1
    if (rank == root) then
      call MPI_Scatter(all_of, n, MPI_INTEGER, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, root, &
                       MPI_COMM_WORLD, ierror)
      call check(all(mine == -1), 'scatter in place, at the root')
    else
      call MPI_Scatter(MPI_BOTTOM, -1, MPI_DATATYPE_NULL, mine, n, MPI_INTEGER, root, &
                       MPI_COMM_WORLD, ierror)
      call check(all(mine == 100 * root + rank), 'scatter in place')
    end if
  end subroutine

  subroutine test_exchanges
    integer :: from(n, 0:ranks - 1), to(n, 0:ranks - 1), counts(ranks), places(ranks), r
    do r = 0, ranks - 1
      from(:, r) = 100 * rank + r
    end do
    to = -1
    call MPI_Alltoall(from, n, MPI_INTEGER, to, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call check(all([(all(to(:, r) == 100 * r + rank), r = 0, ranks - 1)]), 'alltoall')
    to = from
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, n, MPI_INTEGER, MPI_COMM_WORLD, &
                      ierror)
    call check(all([(all(to(:, r) == 100 * r + rank), r = 0, ranks - 1)]), 'alltoall in place')
    counts = n
    places = [((r - 1) * n, r = 1, ranks)]
    to = -1
    call MPI_Alltoallv(from, counts, places, MPI_INTEGER, to, counts, places, MPI_INTEGER, &
                       MPI_COMM_WORLD, ierror)
    call check(all([(all(to(:, r) == 100 * r + rank), r = 0, ranks - 1)]), 'alltoallv')
    to = from
    call MPI_Alltoallv(MPI_IN_PLACE, counts, places, MPI_INTEGER, to, counts, places, MPI_INTEGER, &
                       MPI_COMM_WORLD, ierror)
    call check(all([(all(to(:, r) == 100 * r + rank), r = 0, ranks - 1)]), 'alltoallv in place')
  end subroutine

  subroutine test_bottom
    integer, target :: number(2)
    integer :: lengths(1)
    HANDLE(MPI_Datatype) :: absolute, types(1)
    integer(kind=MPI_ADDRESS_KIND) :: places(1)
    number = -1
    if (rank == 0) number = [3, 4]
    call MPI_Get_address(number, places(1), ierror)
    lengths = 2
    types = MPI_INTEGER
    call MPI_Type_create_struct(1, lengths, places, types, absolute, ierror)
    call MPI_Type_commit(absolute, ierror)
    call MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, MPI_COMM_WORLD, ierror)
    call MPI_Type_free(absolute, ierror)
    call check(all(number == [3, 4]), 'bcast from MPI_BOTTOM')
  end subroutine

  ! Types that are asked for by their precision.
  subroutine test_precisions
    integer, parameter :: long = selected_int_kind(12), exact = selected_real_kind(12, 100)
    integer(long) :: i, isum
    integer, parameter :: quad = selected_real_kind(30)
    real(exact) :: r, rmax
    real(quad) :: q, qsum, expected
    complex(quad) :: z, zprod
    integer :: k
    HANDLE(MPI_Datatype) :: type
    call MPI_Type_create_f90_integer(12, type, ierror)
    i = 10_long**12
    call MPI_Allreduce(i, isum, 1, type, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(isum == ranks * 10_long**12, 'sum of an integer of 12 digits')
    call MPI_Type_create_f90_real(12, 100, type, ierror)
    r = rank
    call MPI_Allreduce(r, rmax, 1, type, MPI_MAX, MPI_COMM_WORLD, ierror)
    call check(rmax == ranks - 1, 'maximum of a real of 12 digits')
    q = 1 / real(rank + 3, quad)
    expected = 0
    do k = 0, ranks - 1
      expected = expected + 1 / real(k + 3, quad)
    end do
    call MPI_Allreduce(q, qsum, 1, MPI_REAL16, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(abs(qsum - expected) <= 8 * epsilon(expected) * expected, 'sum of real(16)')
    z = cmplx(0, 1, quad)
    call MPI_Allreduce(z, zprod, 1, MPI_COMPLEX32, MPI_PROD, MPI_COMM_WORLD, ierror)
    call check(zprod == cmplx(0, 1, quad)**ranks, 'product of complex(16)')
  end subroutine

  subroutine test_operation
    integer :: from(n), to(n)
    HANDLE(MPI_Op) :: first
    call MPI_Op_create(keep_left, .false., first, ierror)
    from = rank + 7
    to = -1
    call MPI_Allreduce(from, to, n, MPI_INTEGER, first, MPI_COMM_WORLD, ierror)
    call check(all(to == 7), 'an operation of the program')
    call MPI_Op_free(first, ierror)
  end subroutine

end program
