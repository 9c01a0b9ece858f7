# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_CUDA: the CUDA toolkit's <cuda.h> and NCCL's <nccl.h>, which only tests need: they compare the
# declarations that the CUDA module is built with. Sets CUDA_CPPFLAGS and NCCL_CPPFLAGS.
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
  SLUICE_CHECK_NCCL
])

# In the toolkit, unless --with-nccl names another folder. It includes <cuda_runtime.h>, so there is no use for it
# without that.
AC_DEFUN([SLUICE_CHECK_NCCL], [
  AC_ARG_WITH([nccl],
    [AS_HELP_STRING([--with-nccl=FOLDER], [where NCCL is, whose header a test uses; no: leave that test out])],
    [], [with_nccl=yes])
  sluice_nccl=no
  AS_CASE([$with_nccl],
    [no], [sluice_places=],
    [yes], [sluice_places="$sluice_cuda /usr"],
    [sluice_places=$with_nccl])
  AC_MSG_CHECKING([for nccl.h])
  for sluice_place in $sluice_places; do
    AS_IF([test "$sluice_nccl" = no && test -r "$sluice_place/include/nccl.h"], [sluice_nccl=$sluice_place])
  done
  AC_MSG_RESULT([$sluice_nccl])
  AS_CASE([$with_nccl/$sluice_nccl], [yes/no|no/no], [],
    [*/no], [AC_MSG_ERROR([there is no include/nccl.h in $with_nccl])])
  AC_SUBST([NCCL_CPPFLAGS], ["-isystem $sluice_nccl/include"])
  AM_CONDITIONAL([HAVE_NCCL_H],
    [test "$sluice_nccl" != no && test -r "$sluice_cuda/include/cuda_runtime.h"])
])
