// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/nccl_job.h"

#include "cuda/nccl_library.h"

namespace sluice::cuda {
namespace {

// Bytes of an element, by SluiceNcclType.
constexpr size_t elements[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

constexpr size_t alignment = 256;
size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

size_t count_of(const SluiceNcclSide& side, size_t number) {
  return side.offsets ? side.counts[number] : side.count;
}

// Goes through an operand's blocks in order.
class BlockWalk {
 public:
  struct Block {
    size_t count;       // elements
    std::byte* memory;  // where the caller has it
    std::byte* at;      // where NCCL gets it, on the device
  };

  BlockWalk(const NcclOperand& operand, size_t element) : operand_(operand), element_(element) {}
  Block next() {
    const SluiceNcclSide& side = operand_.side;
    const size_t count = operand_.blocks == 1 ? side.count : count_of(side, number_);
    const bool is_placed = operand_.blocks > 1 && side.offsets;
    auto* const memory = static_cast<std::byte*>(side.memory) +
                         (is_placed ? side.offsets[number_] : before_) * element_;
    std::byte* const at = operand_.is_staged ? operand_.at + before_ * element_ : memory;
    ++number_;
    before_ += count;
    return {count, memory, at};
  }
  Block skip_to(size_t number) {
    while (number_ < number) (void)next();
    return next();
  }
  size_t elements_so_far() const { return before_; }

 private:
  const NcclOperand& operand_;
  const size_t element_;
  size_t number_ = 0, before_ = 0;
};

size_t bytes_of(const NcclOperand& operand, size_t element) {
  BlockWalk walk(operand, element);
  for (size_t i = 0; i < operand.blocks; ++i) (void)walk.next();
  return walk.elements_so_far() * element;
}

// Whether the blocks lie as NCCL's collectives want them.
bool is_consecutive(const NcclOperand& operand) {
  const SluiceNcclSide& side = operand.side;
  for (size_t i = 0; side.offsets && i < operand.blocks; ++i) {
    if (side.offsets[i] != i * side.counts[0]) return false;
  }
  return true;
}

// A run of blocks that is one copy.
struct Run {
  std::byte* device;  // in scratch
  std::byte* memory;
  size_t bytes;
};

bool copy_run(const Run& run, bool is_on_host, bool into_scratch, CUstream stream, char* why) {
  if (run.bytes == 0) return true;
  const Driver& cuda = driver();
  const CUdeviceptr device = address_of(run.device), other = address_of(run.memory);
  if (!is_on_host) {
    const CUdeviceptr to = into_scratch ? device : other, from = into_scratch ? other : device;
    const CUresult result = cuda.cuMemcpyDtoDAsync_v2(to, from, run.bytes, stream);
    return is_success("cuMemcpyDtoDAsync", result, why);
  }
  if (into_scratch) {
    const CUresult result = cuda.cuMemcpyHtoDAsync_v2(device, run.memory, run.bytes, stream);
    return is_success("cuMemcpyHtoDAsync", result, why);
  }
  const CUresult result = cuda.cuMemcpyDtoHAsync_v2(run.memory, device, run.bytes, stream);
  return is_success("cuMemcpyDtoHAsync", result, why);
}

}  // namespace

// Where NCCL works, and with what.
struct NcclJob::Target {
  ncclComm_t communicator;
  CUstream stream;
  ncclDataType_t type;
  ncclRedOp_t operation;
};

NcclJob::NcclJob(const SluiceNcclJob& job, int rank, int ranks)
    : job_(job),
      rank_(static_cast<size_t>(rank)),
      ranks_(static_cast<size_t>(ranks)),
      element_(elements[job.type]) {
  const bool has_in_blocks =
      job.collective == sluice_nccl_alltoall || job.collective == sluice_nccl_reduce_scatter;
  const bool has_out_blocks =
      job.collective == sluice_nccl_alltoall || job.collective == sluice_nccl_allgather;
  const bool is_received = job.collective != sluice_nccl_reduce || job.root == rank;
  is_in_place_ = !job.in.memory && job.out.memory && job.collective != sluice_nccl_broadcast;
  if (job.in.memory) in_ = {job.in, has_in_blocks ? ranks_ : 1};
  if (job.out.memory && is_received) out_ = {job.out, has_out_blocks ? ranks_ : 1};
  if (is_in_place_) describe_in_place();
  choose_scratch();
  in_bytes_ = in_.is_staged ? aligned(bytes_of(in_, element_)) : 0;
  out_bytes_ = out_.is_staged ? aligned(bytes_of(out_, element_)) : 0;
}

// The input in the output's memory, as an operand. (allgather's is a block of the output.)
void NcclJob::describe_in_place() {
  switch (job_.collective) {
    case sluice_nccl_alltoall:
      in_ = out_;
      break;
    case sluice_nccl_reduce_scatter:
      in_ = {job_.in, ranks_};
      in_.side.memory = out_.side.memory;
      in_.side.on_host = out_.side.on_host;
      break;
    default:
      break;
  }
}

// Whether a collective of NCCL serves, which wants equal and consecutive blocks, depends on what
// all ranks know, the counts. Where a rank has its blocks is its own affair: they go through
// scratch.
void NcclJob::choose_scratch() {
  const SluiceNcclCollective collective = job_.collective;
  in_.is_staged = in_.blocks > 0 && in_.side.on_host;
  out_.is_staged = out_.blocks > 0 && out_.side.on_host;
  if (collective == sluice_nccl_alltoall) {
    is_grouped_ = true;
    in_.is_staged = in_.is_staged || is_in_place_;
  } else if (collective == sluice_nccl_allgather) {
    is_grouped_ = !is_even(out_);
    out_.is_staged = out_.is_staged || (!is_grouped_ && !is_consecutive(out_));
  } else if (collective == sluice_nccl_reduce_scatter) {
    is_grouped_ = !is_even(in_);
    in_.is_staged = in_.is_staged || (!is_grouped_ && !is_consecutive(in_));
    out_.is_staged = out_.is_staged || is_in_place_;
  }
}

bool NcclJob::is_even(const NcclOperand& operand) const {
  const SluiceNcclSide& side = operand.side;
  for (size_t i = 1; side.offsets && i < operand.blocks; ++i) {
    if (side.counts[i] != side.counts[0]) return false;
  }
  return true;
}

void NcclJob::set_scratch(CUdeviceptr scratch) {
  auto* const start = reinterpret_cast<std::byte*>(static_cast<uintptr_t>(scratch));
  in_.at = in_.is_staged ? start : static_cast<std::byte*>(in_.side.memory);
  out_.at = out_.is_staged ? start + in_bytes_ : static_cast<std::byte*>(out_.side.memory);
}

bool NcclJob::copy_in(CUstream stream, char* why) const {
  if (in_.is_staged && !copy_blocks(in_, true, 0, in_.blocks, stream, why)) return false;
  if (!out_.is_staged) return true;
  switch (job_.collective) {
    case sluice_nccl_allreduce:
    case sluice_nccl_reduce:
      return !is_in_place_ || copy_blocks(out_, true, 0, 1, stream, why);
    case sluice_nccl_broadcast:
      return job_.root != static_cast<int>(rank_) || copy_blocks(out_, true, 0, 1, stream, why);
    case sluice_nccl_allgather:
      return !is_in_place_ || copy_blocks(out_, true, rank_, rank_ + 1, stream, why);
    default:
      return true;
  }
}

bool NcclJob::copy_out(CUstream stream, char* why) const {
  if (!out_.is_staged) return true;
  if (job_.collective == sluice_nccl_broadcast && job_.root == static_cast<int>(rank_)) return true;
  if (job_.collective == sluice_nccl_allgather && is_in_place_) {
    return copy_blocks(out_, false, 0, rank_, stream, why) &&
           copy_blocks(out_, false, rank_ + 1, ranks_, stream, why);
  }
  return copy_blocks(out_, false, 0, out_.blocks, stream, why);
}

// Copies the blocks from number `first` to before `last`.
bool NcclJob::copy_blocks(const NcclOperand& operand, bool into_scratch, size_t first, size_t last,
                          CUstream stream, char* why) const {
  const bool is_on_host = operand.side.on_host != 0;
  BlockWalk walk(operand, element_);
  Run run{nullptr, nullptr, 0};
  for (size_t number = 0; number < last; ++number) {
    const BlockWalk::Block block = walk.next();
    if (number < first || block.count == 0) continue;
    if (run.bytes > 0 && run.memory + run.bytes != block.memory) {
      if (!copy_run(run, is_on_host, into_scratch, stream, why)) return false;
      run.bytes = 0;
    }
    if (run.bytes == 0) run = {block.at, block.memory, 0};
    run.bytes += block.count * element_;
  }
  return copy_run(run, is_on_host, into_scratch, stream, why);
}

bool NcclJob::enqueue(ncclComm_t communicator, CUstream stream, char* why) const {
  const Target target{communicator, stream, job_.type, job_.operation};
  return is_grouped_ ? call_grouped(target, why) : call_once(target, why);
}

bool NcclJob::call_once(const Target& target, char* why) const {
  const auto [communicator, stream, type, operation] = target;
  const NcclFunctions& all = nccl();
  const std::byte* const from = is_in_place_ && in_.blocks == 0 ? out_.at : in_.at;
  switch (job_.collective) {
    case sluice_nccl_allreduce:
      return is_accepted(
          "ncclAllReduce",
          all.ncclAllReduce(from, out_.at, job_.out.count, type, operation, communicator, stream),
          why);
    case sluice_nccl_reduce: {
      const size_t count = is_in_place_ ? job_.out.count : job_.in.count;
      return is_accepted(
          "ncclReduce",
          all.ncclReduce(from, out_.at, count, type, operation, job_.root, communicator, stream),
          why);
    }
    case sluice_nccl_broadcast:
      return is_accepted("ncclBroadcast",
                         all.ncclBroadcast(out_.at, out_.at, job_.out.count, type, job_.root,
                                           communicator, stream),
                         why);
    case sluice_nccl_allgather: {
      const size_t count = count_of(job_.out, 0);
      const std::byte* const own = is_in_place_ ? out_.at + rank_ * count * element_ : in_.at;
      return is_accepted("ncclAllGather",
                         all.ncclAllGather(own, out_.at, count, type, communicator, stream), why);
    }
    default:
      return is_accepted("ncclReduceScatter",
                         all.ncclReduceScatter(in_.at, out_.at, count_of(in_.side, 0), type,
                                               operation, communicator, stream),
                         why);
  }
}

// (The group must be closed in any case.)
bool NcclJob::call_grouped(const Target& target, char* why) const {
  if (!is_accepted("ncclGroupStart", nccl().ncclGroupStart(), why)) return false;
  const bool is_reduction = job_.collective == sluice_nccl_reduce_scatter;
  const bool are_called = is_reduction ? reduce_blocks(target, why) : exchange_blocks(target, why);
  const ncclResult_t result = nccl().ncclGroupEnd();
  return are_called && is_accepted("ncclGroupEnd", result, why);
}

// alltoall, and allgather of blocks that differ: to and from each rank, also this one. In place,
// allgather has its own block already.
bool NcclJob::exchange_blocks(const Target& target, char* why) const {
  const NcclFunctions& all = nccl();
  const bool is_alltoall = job_.collective == sluice_nccl_alltoall;
  BlockWalk sent(in_, element_), received(out_, element_);
  BlockWalk::Block from{};
  if (!is_alltoall) {
    from = is_in_place_ ? BlockWalk(out_, element_).skip_to(rank_) : sent.next();
  }
  for (size_t rank = 0; rank < ranks_; ++rank) {
    const int peer = static_cast<int>(rank);
    if (is_alltoall) from = sent.next();
    const BlockWalk::Block to = received.next();
    if (!is_alltoall && is_in_place_ && rank == rank_) continue;
    if (from.count > 0 && !is_accepted("ncclSend",
                                       all.ncclSend(from.at, from.count, target.type, peer,
                                                    target.communicator, target.stream),
                                       why)) {
      return false;
    }
    if (to.count > 0 && !is_accepted("ncclRecv",
                                     all.ncclRecv(to.at, to.count, target.type, peer,
                                                  target.communicator, target.stream),
                                     why)) {
      return false;
    }
  }
  return true;
}

// reduce_scatter of blocks that differ: each to its rank.
bool NcclJob::reduce_blocks(const Target& target, char* why) const {
  BlockWalk walk(in_, element_);
  for (size_t rank = 0; rank < ranks_; ++rank) {
    const BlockWalk::Block block = walk.next();
    if (block.count == 0) continue;
    const ncclResult_t result = nccl().ncclReduce(
        block.at, rank == rank_ ? out_.at : nullptr, block.count, target.type, target.operation,
        static_cast<int>(rank), target.communicator, target.stream);
    if (!is_accepted("ncclReduce", result, why)) return false;
  }
  return true;
}

}  // namespace sluice::cuda
