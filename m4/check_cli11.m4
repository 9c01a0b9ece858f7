# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_CLI11: the command line parser of the sluice command and the benchmarks; headers only. (To
# compile them takes 3 seconds.)
AC_DEFUN([SLUICE_CHECK_CLI11], [
  AC_MSG_CHECKING([for CLI/CLI.hpp])
  AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <CLI/CLI.hpp>]])], [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([CLI11 is missing. On Debian and Ubuntu: apt-get install libcli11-dev])])
])
