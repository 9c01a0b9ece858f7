// SPDX-License-Identifier: BSD-3-Clause
//
// Where the engine finds a call's data: in the program's own memory if elements are dense there,
// else in staging memory, which is packed and unpacked piece by piece during the call. Data on a
// device counts as not dense.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "src/memory/devices.h"
#include "src/mpi/exchange.h"

namespace sluice {

// Staging memory for one side (input or output) of a communicator's calls, kept between calls.
class Staging {
 public:
  Staging() = default;
  ~Staging() { unpin(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // At least so many bytes; nullptr if out of memory. The contents are undefined. For a place on a
  // device it is pinned memory if there is some to spare.
  std::byte* reserve(size_t bytes, const DevicePlace& place);
  // Gives the memory back if it is more than 256 KB: to the process's spares, or to the heap.
  void trim();
  // Gives pinned memory back.
  void unpin() {
    if (pinned_) give_back_pinned(std::exchange(pinned_, nullptr));
  }
  // Leaves the memory to copies that may still run, for good.
  void abandon() {
    pinned_ = nullptr;
    (void)data_.release();
    bytes_ = 0;
  }

  std::vector<size_t> counts, offsets;  // of View
  std::vector<uint32_t> left, tickets;  // of StagedSide

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::byte* reserve(size_t bytes);

  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_ = 0;
  std::byte* pinned_ = nullptr;
};

// A side that is in staging memory. It is moved in grains of 32 KB, each once: packed when the
// first of its bytes is needed, unpacked when the last of them has its final value. (This is safe
// in place, too: a plan writes no byte of the output before it has read that byte of the input.)
//
// A side on a device is moved in grains of 256 KB, or a 32nd of it up to 4 MB if that is more, by
// asynchronous copies on a stream of its own.
// When bytes are needed, the copies of the next grains are begun too, so that they run while the
// first ones are sent or reduced. Nobody waits for the copies to the device before `finish`. One
// grain does for a short message.
class StagedSide final : public Packing {
 public:
  enum class Way { pack, unpack };

  explicit StagedSide(CopyWait& wait) : copier_(wait) {}
  ~StagedSide() override { stop(); }
  StagedSide(const StagedSide&) = delete;
  StagedSide& operator=(const StagedSide&) = delete;

  // dense: the memory in `staging`, where the offsets of ragged blocks are set. element: bytes of
  // an engine element. May throw std::bad_alloc.
  Status begin(Way way, const Side& side, size_t element, std::byte* dense, Staging& staging);
  void move(size_t offset, size_t bytes) override;
  Status failure() const override { return copier_.failure(); }
  // Moves all that has not been moved. Then all copies are done, unless the wait for them failed.
  Status finish();
  // Returns when nothing is copied any more, or has the staging memory stay.
  void stop() {
    if (copier_.is_open()) stop_copies();
  }

 private:
  static constexpr size_t host_grain = size_t{32} << 10;
  static constexpr size_t ahead = 2;  // grains whose copies from a device are begun early

  static size_t device_grain(size_t bytes);
  void stop_copies();
  void move_from_device(size_t first, size_t end);
  void move_grain(size_t grain);
  void move_within(uint32_t block, size_t block_begin, size_t begin, size_t end);
  void move_run(std::byte* user, std::byte* dense, size_t bytes);

  Way way_ = Way::pack;
  const Side* side_ = nullptr;
  size_t element_ = 1;
  std::byte* dense_ = nullptr;
  Staging* staging_ = nullptr;
  size_t bytes_ = 0, grain_bytes_ = host_grain;
  uint32_t* left_ = nullptr;     // bytes of each grain that are not moved yet
  uint32_t* tickets_ = nullptr;  // of each grain's copy from a device; 0: not begun
  DeviceCopier copier_;          // open if the side is on a device
};

// Sets the counts and offsets of a ragged side's blocks in packed memory. units: engine elements in
// an element of the side. May throw std::bad_alloc.
void set_packed_blocks(const Side& side, size_t units, Staging& staging);

// The placement of one call. Everything that can fail fails in `begin`, before anything is sent.
class Placement {
 public:
  // wait: waits for copies.
  Placement(Exchange& exchange, Staging& input, Staging& output, CopyWait& wait)
      : exchange_(exchange),
        input_(input),
        output_(output),
        staged_input_(wait),
        staged_output_(wait) {}
  // Returns when nothing is copied any more, or memory was left to what is.
  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  // Sets the call's views. They point to this object, which must outlive the call.
  Status begin();
  // Unpacks the rest of the received data, and gives large staging memory back. Fails if a copy to
  // or from a device has failed.
  Status end();

 private:
  Status begin_output();
  Status begin_input();
  void place_adjacent(const Side& side, View* view) const;
  void place_in_buffer(const Side& side, Staging& staging, View* view) const;
  Status place_apart(const Side& side, Staging& staging, View* view) const;
  // The number of engine elements in one element of a side.
  size_t scale(const Side& side) const {
    return exchange_.call.reduction.kernel ? 1 : side.type->size;
  }

  Exchange& exchange_;
  Staging& input_;
  Staging& output_;
  StagedSide staged_input_, staged_output_;
};

}  // namespace sluice
