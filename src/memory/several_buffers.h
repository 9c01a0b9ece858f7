// SPDX-License-Identifier: BSD-3-Clause
//
// The placement of a call that has several buffers on this rank, each with the vector's type and
// count (sluice_allreduce_multi, sluice_bcast_multi): on the host, on devices, in any mix. The
// engine sees one vector. An allreduce combines the buffers piece by piece, when a piece is first
// read, and copies each piece of the result to all of them when it is final. Both run beside the
// messages of other pieces. Where the first buffer lies on a device, others on devices get the
// result from it in the end, without the host. (The shape of gloo's allreduces and broadcasts of
// several pointers, where local reductions and copies are pipelined with the steps.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/status.h"
#include "src/engine/copy_wait.h"
#include "src/memory/side.h"
#include "src/memory/staged_side.h"
#include "src/memory/staging.h"

namespace sluice {

class SeveralBuffers {
 public:
  // unplaced: an allreduce in place, or a broadcast, with `others`. memory: for the vector, unless
  // `begin` finds it in the first buffer. All must outlive this.
  SeveralBuffers(UnplacedCall& unplaced, Staging& memory, CopyWait& wait);
  // Returns when nothing is copied any more, or memory was left to what is.
  ~SeveralBuffers();
  SeveralBuffers(const SeveralBuffers&) = delete;
  SeveralBuffers& operator=(const SeveralBuffers&) = delete;

  // Sets the call's views, which point to this object. is_apart: the vector is in memory of its
  // own. May throw std::bad_alloc.
  Status begin(bool is_apart);
  // Reads all operands that have not been read, so that the vector holds their combination.
  Status gather();
  // Gives all buffers what they have not got of the vector, which is final.
  Status finish();

  // The vector: elements of the call, dense, in host memory.
  std::byte* vector() const { return vector_; }

 private:
  struct Buffer {
    // memory: nullptr: its own.
    Buffer(const Side& its_side, Staging* memory, CopyWait& wait)
        : side(its_side), staging(memory ? *memory : own), packed(wait), unpacked(wait) {}

    const Side& side;
    Staging own;
    Staging& staging;
    std::byte* dense = nullptr;    // its operand
    bool is_direct = false;        // that is the program's memory
    bool is_fed_by_first = false;  // it gets its result from the first one's device
    Staging unpacking;
    StagedSide packed, unpacked;
  };
  class Operands final : public Packing {
   public:
    explicit Operands(SeveralBuffers& of) : of_(of) {}
    void move(size_t offset, size_t bytes) override { of_.gather(offset, bytes); }
    Status failure() const override { return of_.failure(); }

   private:
    SeveralBuffers& of_;
  };
  class Results final : public Packing {
   public:
    explicit Results(SeveralBuffers& of) : of_(of) {}
    void move(size_t offset, size_t bytes) override { of_.scatter(offset, bytes); }
    Status failure() const override { return of_.failure(); }

   private:
    SeveralBuffers& of_;
  };

  bool reduces() const { return unplaced_.call.reduction.kernel != nullptr; }
  Status place(Buffer& buffer, bool may_be_direct);
  void set_views();
  void gather(size_t offset, size_t bytes);
  void gather_grain(size_t grain);
  void scatter(size_t offset, size_t bytes);
  void scatter_grain(size_t grain);
  bool is_fed_by_first(const Side& other) const;
  Status feed_others();
  size_t grain_size(size_t grain) const { return std::min(grain_, bytes_ - grain * grain_); }
  Status failure() const;

  UnplacedCall& unplaced_;
  CopyWait& wait_;
  std::vector<std::unique_ptr<Buffer>> buffers_;  // the first one's memory holds the vector
  Operands operands_{*this};
  Results results_{*this};
  std::byte* vector_ = nullptr;
  size_t bytes_ = 0, grain_ = 1;
  std::vector<bool> gathered_;     // by grain
  std::vector<uint32_t> awaited_;  // by grain: bytes that are not final yet
};

}  // namespace sluice
