# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_CUDA: the CUDA toolkit's <cuda.h>, which only a test needs: it compares the declarations that the CUDA
# module is built with. Sets CUDA_CPPFLAGS.
AC_DEFUN([SLUICE_CHECK_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=FOLDER], [where the CUDA toolkit is, which a test uses; no: leave that test out])],
    [], [with_cuda=yes])
  sluice_cuda=no
  AS_CASE([$with_cuda],
    [no], [sluice_places=],
    [yes], [sluice_nvcc=`command -v nvcc 2>/dev/null`
      sluice_places="${sluice_nvcc:+`dirname "$sluice_nvcc"`/..} /usr/local/cuda /usr"],
    [sluice_places=$with_cuda])
  AC_MSG_CHECKING([for cuda.h])
  for sluice_place in $sluice_places; do
    AS_IF([test "$sluice_cuda" = no && test -r "$sluice_place/include/cuda.h"], [sluice_cuda=$sluice_place])
  done
  AC_MSG_RESULT([$sluice_cuda])
  AS_CASE([$with_cuda/$sluice_cuda], [yes/no|no/no], [],
    [*/no], [AC_MSG_ERROR([there is no include/cuda.h in $with_cuda])])
  AC_SUBST([CUDA_CPPFLAGS], ["-isystem $sluice_cuda/include"])
  AM_CONDITIONAL([HAVE_CUDA_H], [test "$sluice_cuda" != no])
])
