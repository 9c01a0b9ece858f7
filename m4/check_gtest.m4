# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_GTEST: GoogleTest, for `make check` alone. Sets GTEST_LIBS.
AC_DEFUN([SLUICE_CHECK_GTEST], [
  sluice_gtest=no
  sluice_saved_LIBS=$LIBS
  sluice_saved_CXXFLAGS=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS $CXX_STANDARD"
  LIBS="-lgtest -pthread $LIBS"
  AC_MSG_CHECKING([for GoogleTest])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <gtest/gtest.h>]], [[testing::InitGoogleTest();]])],
    [sluice_gtest=yes])
  AC_MSG_RESULT([$sluice_gtest])
  LIBS=$sluice_saved_LIBS
  CXXFLAGS=$sluice_saved_CXXFLAGS
  AC_SUBST([GTEST_LIBS], ["-lgtest -pthread"])
  AM_CONDITIONAL([HAVE_GTEST], [test "$sluice_gtest" = yes])
])
