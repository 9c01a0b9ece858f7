# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_VERBS: libibverbs, for the module that sends over InfiniBand and RoCE. Without it links between hosts stay
# on TCP. Sets VERBS_CFLAGS, VERBS_LIBS.
AC_DEFUN([SLUICE_CHECK_VERBS], [
  AC_ARG_WITH([verbs],
    [AS_HELP_STRING([--with-verbs=FOLDER], [where libibverbs is installed; no: build without it])],
    [], [with_verbs=yes])
  VERBS_CFLAGS=
  VERBS_LIBS=-libverbs
  AS_CASE([$with_verbs], [yes|no], [],
    [VERBS_CFLAGS="-isystem $with_verbs/include"
     VERBS_LIBS="-L$with_verbs/lib -Wl,-rpath,$with_verbs/lib -libverbs"])
  sluice_verbs=no
  AS_VAR_IF([with_verbs], [no], [], [
    sluice_saved_CPPFLAGS=$CPPFLAGS
    sluice_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $VERBS_CFLAGS"
    LIBS="$VERBS_LIBS $LIBS"
    AC_MSG_CHECKING([for libibverbs])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <infiniband/verbs.h>]], [[
      return static_cast<int>(ibv_query_gid_table(nullptr, nullptr, 0, 0));]])],
      [sluice_verbs=yes])
    AC_MSG_RESULT([$sluice_verbs])
    CPPFLAGS=$sluice_saved_CPPFLAGS
    LIBS=$sluice_saved_LIBS
    AS_CASE([$with_verbs/$sluice_verbs], [yes/no], [],
      [*/no], [AC_MSG_ERROR([there is no libibverbs in $with_verbs])])
  ])
  AC_SUBST([VERBS_CFLAGS])
  AC_SUBST([VERBS_LIBS])
  AC_SUBST([have_verbs], [$sluice_verbs])
  AM_CONDITIONAL([HAVE_VERBS], [test "$sluice_verbs" = yes])
])
