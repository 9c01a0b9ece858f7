// SPDX-License-Identifier: BSD-3-Clause
//
// A job as calls of NCCL. NCCL reads and writes device memory of certain shapes; where a side's
// memory is not such, NCCL gets scratch in its place: copy_in fills it, copy_out empties it.
#pragma once

#include <cstddef>

#include "cuda/driver.h"
#include "cuda/nccl_api.h"
#include "cuda/nccl_module.h"

namespace sluice::cuda {

// One side of a job: what the caller gave, and what NCCL gets.
struct NcclOperand {
  SluiceNcclSide side{};
  size_t blocks = 0;        // 0: the rank has no such side
  bool is_staged = false;   // NCCL gets scratch, where the blocks are consecutive
  std::byte* at = nullptr;  // on the device
};

class NcclJob {
 public:
  NcclJob() = default;
  NcclJob(const SluiceNcclJob& job, int rank, int ranks);

  // Bytes of scratch, and where they are. To be called before what follows.
  size_t scratch_bytes() const { return in_bytes_ + out_bytes_; }
  void set_scratch(CUdeviceptr scratch);

  // Each puts its work into the stream, in the current context, and returns. Copies from and to
  // pageable host memory may return only when the stream has reached and done them. enqueue: the
  // work is in the stream when ncclCommGetAsyncError says so.
  bool copy_in(CUstream stream, char* why) const;
  bool enqueue(ncclComm_t communicator, CUstream stream, char* why) const;
  bool copy_out(CUstream stream, char* why) const;
  bool copies_to_host() const { return out_.is_staged && out_.side.on_host; }

 private:
  struct Target;
  void describe_in_place();
  void choose_scratch();
  bool is_even(const NcclOperand& operand) const;
  bool copy_blocks(const NcclOperand& operand, bool into_scratch, size_t first, size_t last,
                   CUstream stream, char* why) const;
  bool call_once(const Target& target, char* why) const;
  bool call_grouped(const Target& target, char* why) const;
  bool exchange_blocks(const Target& target, char* why) const;
  bool reduce_blocks(const Target& target, char* why) const;

  SluiceNcclJob job_{};
  size_t rank_ = 0, ranks_ = 0, element_ = 0;
  bool is_in_place_ = false, is_grouped_ = false;
  NcclOperand in_, out_;
  size_t in_bytes_ = 0, out_bytes_ = 0;  // of scratch
};

}  // namespace sluice::cuda
