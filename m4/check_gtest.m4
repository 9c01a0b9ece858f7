# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_GTEST: GoogleTest, for `make check` alone. Sets GTEST_LIBS. (To compile its header
# takes 2 seconds.)
AC_DEFUN([SLUICE_CHECK_GTEST], [
  sluice_gtest=no
  sluice_saved_LIBS=$LIBS
  LIBS="-lgtest -pthread $LIBS"
  AC_MSG_CHECKING([for GoogleTest])
  AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <gtest/gtest.h>]])],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM([[namespace testing { void InitGoogleTest(); }]], [[testing::InitGoogleTest();]])],
      [sluice_gtest=yes])])
  AC_MSG_RESULT([$sluice_gtest])
  LIBS=$sluice_saved_LIBS
  AC_SUBST([GTEST_LIBS], ["-lgtest -pthread"])
  AM_CONDITIONAL([HAVE_GTEST], [test "$sluice_gtest" = yes])
])
