# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_HWLOC: hwloc 2, for the module that tells which ranks share caches and NUMA nodes. Without it Sluice does
# all the same, in groups of that kind only where SLUICE_GROUPS says how large they are. Sets HWLOC_CFLAGS, HWLOC_LIBS.
AC_DEFUN([SLUICE_CHECK_HWLOC], [
  AC_ARG_WITH([hwloc],
    [AS_HELP_STRING([--with-hwloc=FOLDER], [where hwloc is installed; no: build without it])],
    [], [with_hwloc=yes])
  HWLOC_CFLAGS=
  HWLOC_LIBS=-lhwloc
  AS_CASE([$with_hwloc], [yes|no], [],
    [HWLOC_CFLAGS="-isystem $with_hwloc/include"
     HWLOC_LIBS="-L$with_hwloc/lib -Wl,-rpath,$with_hwloc/lib -lhwloc"])
  sluice_hwloc=no
  AS_VAR_IF([with_hwloc], [no], [], [
    sluice_saved_CPPFLAGS=$CPPFLAGS
    sluice_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $HWLOC_CFLAGS"
    LIBS="$HWLOC_LIBS $LIBS"
    AC_MSG_CHECKING([for hwloc 2])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hwloc.h>]], [[
      hwloc_topology_t topology;
      hwloc_topology_init(&topology);
      return hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);]])],
      [sluice_hwloc=yes])
    AC_MSG_RESULT([$sluice_hwloc])
    CPPFLAGS=$sluice_saved_CPPFLAGS
    LIBS=$sluice_saved_LIBS
    AS_CASE([$with_hwloc/$sluice_hwloc], [yes/no], [],
      [*/no], [AC_MSG_ERROR([there is no hwloc 2 in $with_hwloc])])
  ])
  AC_SUBST([HWLOC_CFLAGS])
  AC_SUBST([HWLOC_LIBS])
  AC_SUBST([have_hwloc], [$sluice_hwloc])
  AM_CONDITIONAL([HAVE_HWLOC], [test "$sluice_hwloc" = yes])
])
