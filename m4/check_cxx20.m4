# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_CXX20: a C++20 compiler, GCC 11 or later (or one that is as good). Sets CXX_STANDARD.
AC_DEFUN([SLUICE_CHECK_CXX20], [
  AC_SUBST([CXX_STANDARD], [-std=c++20])
  sluice_saved_CXXFLAGS=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS $CXX_STANDARD"
  AC_CACHE_CHECK([whether $CXX speaks C++20], [sluice_cv_cxx20],
    [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 11
#error GCC is too old
#endif
#include <concepts>
#include <memory>
#include <span>
template <std::unsigned_integral T> consteval T twice(T x) { return x + x; }
struct Point { int x = 0, y = 0; };
]], [[
  static_assert(twice(2u) == 4);
  int v[] = {1, 2};
  Point p{.x = 1, .y = static_cast<int>(std::span<const int>(v).size())};
  return p.y - 2;
]])], [sluice_cv_cxx20=yes], [sluice_cv_cxx20=no])])
  CXXFLAGS=$sluice_saved_CXXFLAGS
  AS_VAR_IF([sluice_cv_cxx20], [yes], [],
    [AC_MSG_ERROR([Sluice needs a C++20 compiler, GCC 11 or later; set CXX to one])])
  AC_CACHE_CHECK([for the version of $CXX], [sluice_cv_cxx_version],
    [sluice_cv_cxx_version=`$CXX --version 2>/dev/null | sed 1q`])
  AC_DEFINE_UNQUOTED([SLUICE_COMPILER], ["$sluice_cv_cxx_version"], [The compiler, for sluice info])
  AC_DEFINE_UNQUOTED([SLUICE_CXXFLAGS], ["$CXXFLAGS"], [Whoever builds chose these, for sluice info])
])
