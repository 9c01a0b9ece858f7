# SPDX-License-Identifier: BSD-3-Clause
#
# SLUICE_LIBTOOL_CXX: let the C++ compiler driver link shared C++ libraries.
#
# Libtool links them with -nostdlib and names the start files, -lstdc++ and -lgcc_s itself, so that
# -static-libstdc++ has no effect. libsluice.so is preloaded into programs that bring a C++
# library of their own, of any version, and must not bring a second shared one.
AC_DEFUN([SLUICE_LIBTOOL_CXX], [
  AC_REQUIRE([LT_INIT])
  predep_objects_CXX=
  postdep_objects_CXX=
  predeps_CXX=
  postdeps_CXX=
  archive_cmds_CXX=`AS_ECHO(["$archive_cmds_CXX"]) | sed 's/ -nostdlib / /g'`
  archive_expsym_cmds_CXX=`AS_ECHO(["$archive_expsym_cmds_CXX"]) | sed 's/ -nostdlib / /g'`
])
