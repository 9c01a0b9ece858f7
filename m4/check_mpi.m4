# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_MPI: the MPI that benchmarks and tests are built with. (The library serves any: src/mpi/abi.)
#
# --with-mpi=WRAPPER names its C compiler wrapper; without it the first of mpicc.openmpi, mpicc and mpicc.mpich that
# works. MPICXX, MPIFORT and MPIRUN are its companions, found by its name (mpicc.openmpi: mpirun.openmpi; mpicc_abi:
# mpicxx_abi, but mpirun) and beside it. Sets MPICC MPICXX MPIFORT MPIRUN (absolute), MPI_CPPFLAGS to compile with <mpi.h>, MPI_LIBS to link
# programs with (libsluice.so is never linked with it), MPI_FLAVOUR (openmpi, mpich,
# abi: MPI 5's) and MPI_LIBRARY.
AC_DEFUN([SLUICE_CHECK_MPI], [
  AC_ARG_VAR([MPICXX], [MPI C++ compiler wrapper])
  AC_ARG_VAR([MPIFORT], [MPI Fortran compiler wrapper])
  AC_ARG_VAR([MPIRUN], [the command that starts MPI programs])
  AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--with-mpi=WRAPPER],
      [the MPI C compiler wrapper, such as mpicc.mpich or /opt/mpi/bin/mpicc])],
    [], [with_mpi=])
  AS_CASE([$with_mpi],
    [yes|''], [sluice_wrappers="mpicc.openmpi mpicc mpicc.mpich"],
    [no], [AC_MSG_ERROR([Sluice is nothing without an MPI])],
    [sluice_wrappers=$with_mpi])
  MPICC=
  for sluice_wrapper in $sluice_wrappers; do
    AS_UNSET([ac_cv_path_sluice_mpicc])
    AS_UNSET([sluice_mpicc])
    AS_CASE([$sluice_wrapper],
      [/*], [sluice_mpicc=$sluice_wrapper],
      [AC_PATH_PROG([sluice_mpicc], [$sluice_wrapper])])
    AS_IF([test -n "$sluice_mpicc"], [SLUICE_TRY_MPI([$sluice_mpicc])])
    AS_IF([test -n "$MPICC"], [break])
  done
  AS_IF([test -z "$MPICC"],
    [AC_MSG_ERROR([no working MPI compiler wrapper among: $sluice_wrappers.
On Debian and Ubuntu: apt-get install openmpi-bin libopenmpi-dev; else name one with --with-mpi=WRAPPER])])
  AC_SUBST([MPICC])
  SLUICE_MPI_COMPANION([MPICXX], [mpicxx mpic++])
  SLUICE_MPI_COMPANION([MPIFORT], [mpifort mpif90])
  SLUICE_MPI_COMPANION([MPIRUN], [mpirun mpiexec])
  SLUICE_MPI_KIND
  SLUICE_MPI_LARGE_COUNTS
  SLUICE_OTHER_MPI
  SLUICE_MPI_5
])

# SLUICE_TRY_MPI(WRAPPER): sets MPICC, MPI_CPPFLAGS and MPI_LIBS if a program compiles with what the wrapper says.
# Open MPI answers -showme:compile, MPICH and its kin -compile_info (the whole command: -I and -D count).
AC_DEFUN([SLUICE_TRY_MPI], [
  sluice_compile=`$1 -showme:compile 2>/dev/null || $1 -compile_info 2>/dev/null`
  sluice_link=`$1 -showme:link 2>/dev/null || $1 -link_info 2>/dev/null`
  # The C++ bindings of old have no place here; MPI's headers are not ours to warn about.
  MPI_CPPFLAGS="-DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX"
  for sluice_flag in $sluice_compile; do
    AS_CASE([$sluice_flag],
      [-I*], [MPI_CPPFLAGS="$MPI_CPPFLAGS -isystem `AS_ECHO(["$sluice_flag"]) | sed 's/^-I//'`"],
      [-D*|-pthread], [MPI_CPPFLAGS="$MPI_CPPFLAGS $sluice_flag"])
  done
  MPI_LIBS=
  for sluice_flag in $sluice_link; do
    AS_CASE([$sluice_flag],
      [-L*|-l*|-Wl,-rpath*|-Wl,--enable-new-dtags|-pthread], [MPI_LIBS="$MPI_LIBS $sluice_flag"])
  done
  sluice_saved_CPPFLAGS=$CPPFLAGS
  sluice_saved_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS"
  LIBS="$LIBS $MPI_LIBS"
  AC_MSG_CHECKING([whether $1 is a working MPI])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[MPI_Init(nullptr, nullptr); MPI_Finalize();]])],
    [MPICC=$1
     AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])])
  CPPFLAGS=$sluice_saved_CPPFLAGS
  LIBS=$sluice_saved_LIBS
  AC_SUBST([MPI_CPPFLAGS])
  AC_SUBST([MPI_LIBS])
])

# SLUICE_MPI_COMPANION(VARIABLE, NAMES): MPICC's companion of one of these names, with MPICC's suffix and folder.
AC_DEFUN([SLUICE_MPI_COMPANION], [
  sluice_suffix=`basename "$MPICC" | sed 's/^[[^.]]*//'`
  # (Programs of both ABIs that a library has are started alike.)
  AS_CASE([$1:$MPICC], [MPIRUN:*_abi], [], [*_abi], [sluice_suffix=_abi])
  sluice_names=
  for sluice_name in $2; do
    sluice_names="$sluice_names $sluice_name$sluice_suffix"
  done
  AC_PATH_PROGS([$1], [$sluice_names], [], [`dirname "$MPICC"`$PATH_SEPARATOR$PATH])
])

# SLUICE_MPI_KIND: which MPI it is, and its version, from <mpi.h>.
AC_DEFUN([SLUICE_MPI_KIND], [
  AC_MSG_CHECKING([which MPI it is])
  sluice_saved_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS"
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <mpi.h>
#ifndef OPEN_MPI
#error no
#endif
]])], [MPI_FLAVOUR=openmpi], [MPI_FLAVOUR=other])
  AS_VAR_IF([MPI_FLAVOUR], [other], [
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <mpi.h>
#ifndef MPICH_VERSION
#error no
#endif
]])], [MPI_FLAVOUR=mpich])])
  AS_VAR_IF([MPI_FLAVOUR], [other], [
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <mpi.h>
#ifndef MPI_ABI_VERSION
#error no
#endif
]])], [MPI_FLAVOUR=abi])])
  # The compiler's preprocessor spells the version out; nothing is run.
  cat > conftest.h <<_ACEOF
#include <mpi.h>
#ifdef OPEN_MPI
version: "Open MPI" OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION
#elif defined(MPICH_VERSION)
version: "MPICH" MPICH_VERSION
#elif defined(MPI_ABI_VERSION)
version: "MPI ABI" MPI_ABI_VERSION.MPI_ABI_SUBVERSION
#else
version: "an MPI" MPI_VERSION.MPI_SUBVERSION
#endif
_ACEOF
  MPI_LIBRARY=`$CXX -E -P -x c++ $CPPFLAGS conftest.h 2>/dev/null |
    sed -n 's/"//g; s/ *\. */./g; s/^version: //p'`
  rm -f conftest.h
  CPPFLAGS=$sluice_saved_CPPFLAGS
  AC_MSG_RESULT([$MPI_LIBRARY])
  AC_SUBST([MPI_FLAVOUR])
  AC_SUBST([MPI_LIBRARY])
  AM_CONDITIONAL([OPEN_MPI], [test "$MPI_FLAVOUR" = openmpi])
  AC_DEFINE_UNQUOTED([SLUICE_MPI_LIBRARY], ["$MPI_LIBRARY"], [The MPI that benchmarks are built with])
  SLUICE_MPI_LIBRARY_NAME
])

# SLUICE_MPI_LARGE_COUNTS: adds -DSLUICE_LARGE_COUNTS to MPI_CPPFLAGS where there are MPI_Allreduce_c and its kin.
AC_DEFUN([SLUICE_MPI_LARGE_COUNTS], [
  AC_CACHE_CHECK([whether it has functions for large counts], [sluice_cv_mpi_large_counts], [
    sluice_saved_CPPFLAGS=$CPPFLAGS
    sluice_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS"
    LIBS="$LIBS $MPI_LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[
      MPI_Count count = 0;
      MPI_Aint place = 0;
      PMPI_Alltoallv_c(nullptr, &count, &place, MPI_INT, nullptr, &count, &place, MPI_INT, MPI_COMM_SELF);]])],
      [sluice_cv_mpi_large_counts=yes], [sluice_cv_mpi_large_counts=no])
    CPPFLAGS=$sluice_saved_CPPFLAGS
    LIBS=$sluice_saved_LIBS])
  AS_VAR_IF([sluice_cv_mpi_large_counts], [yes], [MPI_CPPFLAGS="$MPI_CPPFLAGS -DSLUICE_LARGE_COUNTS"])
])

# SLUICE_OTHER_MPI: OTHER_MPICC, Debian's wrapper of the MPI of the other kind, whose programs tests run, too;
# empty without one.
AC_DEFUN([SLUICE_OTHER_MPI], [
  AC_ARG_VAR([OTHER_MPICC], [wrapper of an MPI of the other kind, for tests])
  AS_VAR_IF([MPI_FLAVOUR], [openmpi], [sluice_other=mpicc.mpich], [sluice_other=mpicc.openmpi])
  AC_PATH_PROG([OTHER_MPICC], [$sluice_other])
])

# SLUICE_MPI_5: MPI5_MPICC, the wrapper of a library with MPI 5's ABI, whose programs a test runs; empty without one.
AC_DEFUN([SLUICE_MPI_5], [
  AC_ARG_VAR([MPI5_MPICC], [wrapper of an MPI library with the ABI of MPI 5 (mpicc_abi), for tests])
  AC_PATH_PROG([MPI5_MPICC], [mpicc_abi])
])

# SLUICE_MPI_LIBRARY_NAME: the name by which programs of this MPI load it, libmpi.so.40. `sluice --version --json'
# says it.
AC_DEFUN([SLUICE_MPI_LIBRARY_NAME], [
  AC_CACHE_CHECK([for the name of its library], [sluice_cv_mpi_soname], [
    sluice_cv_mpi_soname=
    sluice_saved_CPPFLAGS=$CPPFLAGS
    sluice_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS"
    LIBS="$LIBS $MPI_LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[MPI_Init(nullptr, nullptr);]])],
      [sluice_cv_mpi_soname=`readelf -d conftest$EXEEXT 2>/dev/null |
         sed -n 's/.*NEEDED.* \(@<:@^ @:>@*\)$/\1/p' | tr -d '@<:@@:>@' |
         sed -n '/^libmpi\(ch\|_abi\)*\.so/{p;q;}'`])
    CPPFLAGS=$sluice_saved_CPPFLAGS
    LIBS=$sluice_saved_LIBS])
  AC_DEFINE_UNQUOTED([SLUICE_MPI_SONAME], ["$sluice_cv_mpi_soname"],
    [What programs of that MPI are linked with])
])
