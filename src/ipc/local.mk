# SPDX-License-Identifier: BSD-3-Clause
# Calls from device to device by CUDA IPC: the calls, the slabs, the phases: core_sources.
core_sources += \
  src/ipc/ipc_calls.cc src/ipc/ipc_calls.h \
  src/ipc/device_slabs.cc src/ipc/device_slabs.h \
  src/ipc/slab_offer.cc src/ipc/slab_offer.h \
  src/ipc/slab_phases.cc src/ipc/slab_phases.h
