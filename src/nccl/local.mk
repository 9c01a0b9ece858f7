# SPDX-License-Identifier: BSD-3-Clause
# Calls on devices by NCCL: the stages, the groups, the executor: core_sources.
core_sources += \
	src/nccl/device_group.cc src/nccl/device_group.h \
	src/nccl/device_job.cc src/nccl/device_job.h \
	src/nccl/nccl_executor.cc src/nccl/nccl_executor.h \
	src/nccl/offload.cc src/nccl/offload.h \
	src/nccl/stages.cc src/nccl/stages.h
