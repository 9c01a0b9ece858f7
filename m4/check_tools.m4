# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_CHECK_TOOLS: programs that tests and benchmarks run; each test says what it misses.
AC_DEFUN([SLUICE_CHECK_TOOLS], [
  # (The distribution's, for which its packages are, before others of the user's.)
  AC_PATH_PROG([PYTHON3], [python3], [], [/usr/bin$PATH_SEPARATOR$PATH])
  AC_PATH_PROG([PKG_CONFIG], [pkg-config])
  AC_PATH_PROG([CMAKE], [cmake])
  AC_PATH_PROGS([LUA], [lua lua5.4 lua5.3])
  AC_PATH_PROG([TCLSH], [tclsh])
])
