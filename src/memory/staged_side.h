// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "src/base/status.h"
#include "src/engine/call.h"
#include "src/memory/devices.h"
#include "src/memory/side.h"
#include "src/memory/staging.h"

namespace sluice {

// The error for a side whose place is unknown.
Status describe_unknown(const Side& side);

// A side that is in staging memory. It is moved in grains of 32 KB, each once: packed when the
// first of its bytes is needed, unpacked when the last of them has its final value. (This is safe
// in place, too: a plan writes no byte of the output before it has read that byte of the input.)
//
// A side on a device is moved in grains of 256 KB, or a 32nd of it up to 4 MB if that is more, by
// asynchronous copies on a stream of its own. When bytes are needed, the copies of the next grains
// are begun too, so that they run while the first ones are sent or reduced. Only `finish` waits for
// copies to the device. A short message is one grain.
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

}  // namespace sluice
