# SPDX-License-Identifier: BSD-3-Clause
# The sluice command: tool_sources.
tool_sources += \
  src/tool/audit.cc \
  src/tool/audit.h \
  src/tool/build.cc \
  src/tool/build.h \
  src/tool/cuda.cc \
  src/tool/cuda.h \
  src/tool/drawing.cc \
  src/tool/drawing.h \
  src/tool/explain.cc \
  src/tool/explain.h \
  src/tool/info.cc \
  src/tool/info.h \
  src/tool/main.cc \
  src/tool/preload.cc \
  src/tool/preload.h \
  src/tool/program.cc \
  src/tool/program.h \
  src/tool/report.cc \
  src/tool/report.h \
  src/tool/run.cc \
  src/tool/run.h \
  src/tool/study.cc \
  src/tool/study.h \
  src/tool/svg.cc \
  src/tool/svg.h \
  src/tool/text.cc \
  src/tool/text.h \
  src/tool/tune.cc \
  src/tool/tune.h \
  src/tool/winners.cc \
  src/tool/winners.h

# What unit tests link of it.
offline_sources += src/tool/tuning.cc src/tool/tuning.h
