// SPDX-License-Identifier: BSD-3-Clause
//
// A stand-in for NCCL over the stand-in driver: libnccl.so.2 exports the functions of
// cuda/nccl_api.h. The ranks of a communicator are processes or threads of one host; each has a
// device of its own. They meet in a file in shared memory, which the unique id names.
//
// It is as hard to please as NCCL:
// - Init runs in a thread of the library and ends only when all ranks have come. Equal uuids of
//   devices and different versions are refused.
// - After init, after each call that enqueues and after finalize, ncclCommGetAsyncError says
//   ncclInProgress for a while. Only then is the kernel on the stream: an event recorded before is
//   reached early. The calls themselves return ncclSuccess or ncclInProgress in turn.
// - A kernel waits for the other ranks' kernels. Meanwhile it has the device's only slot, so ranks
//   that start the jobs of two communicators in different orders wait for ever. So do ranks whose
//   operations differ in kind, count, type, operation or root.
// - ncclCommAbort ends this rank's kernels, and returns once all ranks that have called init have
//   called it too (or have finalized).
//
// A misuse is told and counted as the driver's (standin/cuda_driver.h): a call while the state is
// ncclInProgress, another context current than at init, a stream or a buffer of another device,
// host memory that the driver does not know, a buffer that ends too early, buffers that overlap
// (also those of the operations of one group, which run at the same time), a communicator that is
// gone or of another process (fork), destroy before finalize has ended.
//
// Not imitated: init within a group, a group with several streams of one communicator, more than
// most_ranks ranks. These are told as misuses. Jobs of one communicator in several streams start as
// their streams come to them; NCCL keeps their order. A rank that dies is not noticed.
//
// Environment. All but the version is read by each ncclCommInitRankConfig, in the calling thread:
//   NCCL_STANDIN_VERSION=N    ncclGetVersion's answer (22809)
//   NCCL_STANDIN_INIT=WHAT[,WHAT...]   of the init of rank R:  fail:R  it fails,  hang:R  it never
//                             ends,  delay:R:MS  it starts so many milliseconds later
//   NCCL_STANDIN_POLLS=N      how often ncclCommGetAsyncError says ncclInProgress (3)
//   NCCL_STANDIN_ERROR=N[:R]  the communicator's Nth job (from 1) on rank R (on all) is an error:
//                             its kernel spins until abort, and ncclCommGetAsyncError tells
//   NCCL_STANDIN_JOB=WHAT:N:R   of the Nth job on rank R:  stuck  its kernel spins until abort, and
//                             no error tells,  kill  the call that enqueues it kills the process
//   NCCL_STANDIN_FINALIZE=R   finalize of rank R fails
//   NCCL_STANDIN_FOLDER=PATH  where the shared file is made (/dev/shm)
//
// Counters of the driver: "nccl_communicators" (alive), "nccl_jobs" (kernels that have ended well),
// "nccl_running" (kernels that have started and not ended), "nccl_mismatches" (kernels that hang
// because another rank calls something else), "nccl_aborts" (calls of ncclCommAbort that have ended
// this rank's part).
#pragma once

#include <cstddef>

#include "cuda/nccl_api.h"
#include "tests/cuda/standin/cuda_driver.h"

namespace standin_nccl {

// Named one by one: the driver's names are those of the stand-in driver here.
using sluice::cuda::ncclComm_t;
using sluice::cuda::ncclConfig_t;
using sluice::cuda::ncclDataType_t;
using sluice::cuda::ncclRedOp_t;
using sluice::cuda::ncclResult_t;
using sluice::cuda::ncclUniqueId;
#define STANDIN_NCCL_USE(name, ...) using sluice::cuda::name;
SLUICE_NCCL_CONSTANTS(STANDIN_NCCL_USE)
#undef STANDIN_NCCL_USE

inline constexpr int most_ranks = 32;

}  // namespace standin_nccl

#pragma GCC visibility push(default)
extern "C" {
#define STANDIN_NCCL_DECLARE(name, ...) sluice::cuda::NcclFunctions::name##_type name;
SLUICE_NCCL_FUNCTIONS(STANDIN_NCCL_DECLARE)
#undef STANDIN_NCCL_DECLARE
}
#pragma GCC visibility pop
