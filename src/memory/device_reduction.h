// SPDX-License-Identifier: BSD-3-Clause
//
// A reduction by the CUDA device that holds the data (src/engine/device_work.h). It takes the place
// of Placement in a call whose input and output are dense on one device, and whose algorithm has a
// plan: only segments on their way are staged.
//
// If the rank has several buffers (UnplacedCall::others), all on devices, the device combines them
// in the first one before the call, and copies the result to the others after it. So only one
// vector crosses to the host. (gloo's cuda_allreduce_ring_chunked does the same.)
//
// Other ranks see the same messages in any case, so each rank decides by itself. If there is no
// stream or memory, the host reduces.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/engine/copy_wait.h"
#include "src/engine/device_work.h"
#include "src/memory/side.h"
#include "src/memory/staging.h"
#include "src/memory/whereabouts.h"

namespace sluice {

class DeviceReduction final : public DeviceWork {
 public:
  // Of one call; both must outlive this.
  DeviceReduction(UnplacedCall& unplaced, CopyWait& wait) : unplaced_(unplaced), wait_(wait) {}
  // Gives all memory back, when the device does nothing more for the call. If the wait for that
  // fails, what it may still use stays for good. The call has no device from then on.
  ~DeviceReduction() override;
  DeviceReduction(const DeviceReduction&) = delete;
  DeviceReduction& operator=(const DeviceReduction&) = delete;

  // Whether the device could do the call, of `least` bytes or more. To be called first.
  bool suits(size_t least);
  // Sets the call's device, and its views: the data, where it lies. The stagings hold counts and
  // offsets. May throw std::bad_alloc.
  void describe(StagingPair& staging);
  // Takes a stream and memory, and begins to combine the buffers if there are several. False if
  // something is lacking; then the call has no device, and no views. May wait until the driver has
  // compiled a kernel.
  bool begin(const DeviceNeeds& needs);
  // Once the call has run: the other buffers have got the result, or that has failed. Waits.
  Status finish();

  std::byte* scratch(size_t bytes) override { return bytes <= needs_.scratch ? scratch_ : nullptr; }
  std::byte* bounce(size_t bytes) override { return bytes <= needs_.bounce ? bounce_ : nullptr; }
  void reduce(const std::byte* left, const std::byte* right, std::byte* out,
              size_t elements) override;
  void copy(std::byte* to, const std::byte* from, size_t bytes) override;
  void copy_out(std::byte* host, const std::byte* device, size_t bytes) override {
    collect(const_cast<std::byte*>(device), host, bytes, false);
  }
  void copy_in(std::byte* device, const std::byte* host, size_t bytes) override {
    collect(device, const_cast<std::byte*>(host), bytes, true);
  }
  uint32_t ticket() override;
  bool reached(uint32_t ticket) override;
  const Status& failure() const override { return failure_; }
  std::string name() const override { return "CUDA device " + std::to_string(place_.device); }

 private:
  bool acquire(const DeviceNeeds& needs, char* why);
  bool can_reach(const Side& other) const;
  bool is_near(const Side& other) const { return are_together(place_, other.place); }
  size_t piece_of_far() const;
  void combine_buffers();
  void combine_far(const std::byte* operand);
  void reduce(std::span<const void* const> operands, std::byte* out, size_t elements);
  void collect(std::byte* device, std::byte* host, size_t bytes, bool to_device);
  void begin_collected();
  void set_mark();
  void check(int result, const char* what, const char* why);
  bool await_stream();
  void give_back();

  UnplacedCall& unplaced_;
  CopyWait& wait_;
  DevicePlace place_;
  SluiceCudaStream* stream_ = nullptr;
  std::byte* scratch_ = nullptr;
  std::byte* bounce_ = nullptr;
  DeviceNeeds needs_;
  std::byte* far_ = nullptr;  // in the scratch: room for a piece of a buffer that is not near

  SluiceCudaRuns copies_[16];  // collected, all in one direction
  unsigned collected_ = 0;
  bool to_device_ = false;

  // A ticket is given without a mark if none is free. The next mark stands for it, too.
  uint32_t given_ = 0, done_ = 0;        // tickets
  bool has_more_ = false;                // work behind the last ticket
  uint32_t set_ = 0, passed_ = 0;        // marks, counted
  uint32_t tickets_[sluice_cuda_marks];  // the last one that a mark stands for
  Status failure_;
};

}  // namespace sluice
