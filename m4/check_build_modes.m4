# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_BUILD_MODES: --enable-sanitizer, --enable-coverage, --enable-debug and --enable-werror. They reach our own
# AM_CXXFLAGS and AM_LDFLAGS through MODE_FLAGS, DEBUG_FLAGS and WERROR_FLAGS; the user's CXXFLAGS stay the user's.
AC_DEFUN([SLUICE_CHECK_BUILD_MODES], [
  MODE_FLAGS=
  AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer=LIST],
      [build everything with these sanitizers: "address,undefined" (what plain yes means) or "thread"])],
    [], [enable_sanitizer=no])
  AS_CASE([$enable_sanitizer],
    [no], [sluice_sanitizer=],
    [yes], [sluice_sanitizer=address,undefined],
    [sluice_sanitizer=$enable_sanitizer])
  AS_IF([test -n "$sluice_sanitizer"],
    [MODE_FLAGS="-fsanitize=$sluice_sanitizer -fno-sanitize-recover=all -fno-omit-frame-pointer"])

  AC_ARG_ENABLE([coverage],
    [AS_HELP_STRING([--enable-coverage], [count executed lines, for gcov])], [], [enable_coverage=no])
  # Threads count at once, and gcov stumbles over counts that do not add up.
  AS_VAR_IF([enable_coverage], [no], [], [MODE_FLAGS="$MODE_FLAGS --coverage -fprofile-update=atomic"])
  AC_SUBST([MODE_FLAGS])
  AC_DEFINE_UNQUOTED([SLUICE_MODE_FLAGS], ["${MODE_FLAGS:+ $MODE_FLAGS}"], [What instruments the build, for sluice info])

  # (A sanitizer's reports name lines.)
  AC_ARG_ENABLE([debug],
    [AS_HELP_STRING([--enable-debug], [add debug information])], [], [enable_debug=$enable_sanitizer])
  AS_VAR_IF([enable_debug], [no], [DEBUG_FLAGS=], [DEBUG_FLAGS=-g])
  AC_SUBST([DEBUG_FLAGS])

  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])], [], [enable_werror=no])
  AS_VAR_IF([enable_werror], [no], [WERROR_FLAGS=], [WERROR_FLAGS=-Werror])
  AC_SUBST([WERROR_FLAGS])

  AM_CONDITIONAL([PLAIN_BUILD], [test -z "$MODE_FLAGS"])
  SLUICE_CHECK_SANITIZER([address,undefined], [ADDRESS_SANITIZER])
  SLUICE_CHECK_SANITIZER([thread], [THREAD_SANITIZER])
])

# SLUICE_CHECK_SANITIZER(LIST, CONDITIONAL): whether `make check` can build the unit tests with these too.
AC_DEFUN([SLUICE_CHECK_SANITIZER], [
  AS_VAR_PUSHDEF([result], [sluice_cv_sanitizer_$1])
  AC_CACHE_CHECK([whether $CXX links with -fsanitize=$1], [result], [
    sluice_saved_CXXFLAGS=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS -fsanitize=$1"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AS_VAR_SET([result], [yes])], [AS_VAR_SET([result], [no])])
    CXXFLAGS=$sluice_saved_CXXFLAGS
  ])
  AM_CONDITIONAL([$2], [test -z "$MODE_FLAGS" && test "AS_VAR_GET([result])" = yes])
  AS_VAR_POPDEF([result])
])
