# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks with the OSU Micro-Benchmarks' options: noinst_PROGRAMS.
