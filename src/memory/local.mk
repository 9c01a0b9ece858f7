# SPDX-License-Identifier: BSD-3-Clause
# Where a call's data lies, and how it is moved between the program's memory and the engine's: core_sources.
core_sources += \
  src/memory/device_reduction.cc src/memory/device_reduction.h \
  src/memory/device_stream.cc src/memory/device_stream.h \
  src/memory/devices.cc src/memory/devices.h \
  src/memory/element_type.h \
  src/memory/layout.cc src/memory/layout.h \
  src/memory/numbers.h \
  src/memory/placement.cc src/memory/placement.h \
  src/memory/several_buffers.cc src/memory/several_buffers.h \
  src/memory/side.h \
  src/memory/staged_side.cc src/memory/staged_side.h \
  src/memory/staging.cc src/memory/staging.h \
  src/memory/whereabouts.cc src/memory/whereabouts.h
