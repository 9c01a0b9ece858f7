# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_CLANG: clang 14 with its PTX target, which makes the CUDA module's kernels (cuda/kernels/compile). Other
# versions make other PTX, which nothing has tested; without clang 14 the PTX that comes with the source serves. Sets
# PTX_CLANG. And PTXAS, the CUDA toolkit's assembler: a test tries what a driver would make of the PTX.
AC_DEFUN([SLUICE_CHECK_CLANG], [
  AC_ARG_WITH([clang],
    [AS_HELP_STRING([--with-clang=PATH],
      [clang 14, which makes the kernels for CUDA devices; no: use those that come with the source])],
    [], [with_clang=yes])
  AS_CASE([$with_clang],
    [no], [sluice_clangs=],
    [yes], [sluice_clangs="clang-14 clang"],
    [sluice_clangs=$with_clang])
  sluice_ptx_clang=no
  AC_MSG_CHECKING([for clang 14 with a PTX target])
  for sluice_clang in $sluice_clangs; do
    AS_IF([test "$sluice_ptx_clang" = no &&
      $sluice_clang --version 2>/dev/null | grep 'clang version 14\.' >/dev/null &&
      $sluice_clang --print-targets 2>/dev/null | grep -w nvptx64 >/dev/null], [sluice_ptx_clang=$sluice_clang])
  done
  AC_MSG_RESULT([$sluice_ptx_clang])
  AS_CASE([$with_clang/$sluice_ptx_clang], [yes/no|no/no], [],
    [*/no], [AC_MSG_ERROR([$with_clang is no clang 14 with a PTX target])])
  AC_SUBST([PTX_CLANG], [$sluice_ptx_clang])
  AM_CONDITIONAL([HAVE_PTX_CLANG], [test "$sluice_ptx_clang" != no])
  AC_PATH_PROG([PTXAS], [ptxas], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])
])
