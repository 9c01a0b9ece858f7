# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_CLI11: the command line parser of the sluice command and the benchmarks; headers only.
AC_DEFUN([SLUICE_CHECK_CLI11], [
  AC_CHECK_HEADER([CLI/CLI.hpp], [],
    [AC_MSG_ERROR([CLI11 is missing. On Debian and Ubuntu: apt-get install libcli11-dev])])
])
