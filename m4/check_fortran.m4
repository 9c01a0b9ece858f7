# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_FORTRAN: whether MPIFORT compiles a program with `use mpi_f08`. Only tests need it.
AC_DEFUN([SLUICE_CHECK_FORTRAN], [
  AC_REQUIRE([SLUICE_CHECK_MPI])
  sluice_fortran=no
  AS_IF([test -n "$MPIFORT"], [
    AC_MSG_CHECKING([whether $MPIFORT compiles use mpi_f08])
    mkdir -p conftest.dir
    cat > conftest.dir/conftest.f90 <<_ACEOF
program conftest
  use mpi_f08
  call MPI_Init()
  call MPI_Finalize()
end program
_ACEOF
    AS_IF([(cd conftest.dir && $MPIFORT conftest.f90 -o conftest) >&AS_MESSAGE_LOG_FD 2>&1],
      [sluice_fortran=yes])
    rm -rf conftest.dir
    AC_MSG_RESULT([$sluice_fortran])
  ])
  AM_CONDITIONAL([HAVE_FORTRAN], [test "$sluice_fortran" = yes])
])
