// SPDX-License-Identifier: BSD-3-Clause
//
// Where the engine finds a call's data: in the program's own memory where elements are dense there,
// else in staging memory, packed and unpacked piece by piece as the call goes on.
#pragma once

#include <memory>
#include <vector>

#include "src/base/status.h"
#include "src/mpi/exchange.h"

namespace sluice {

// Memory of one side of a communicator's calls, kept from call to call.
class Staging {
 public:
  // nullptr if there is not so much memory.
  std::byte* reserve(size_t bytes);
  // Gives large memory back.
  void trim();

  std::vector<size_t> counts, offsets;  // of View
  std::vector<uint32_t> left;           // of StagedSide

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_ = 0;
};

// One side that is in staging memory. It is moved by the grain, each once: packed when the first of
// its bytes is wanted, unpacked when the last of them is there. (As a plan writes no byte of the
// output before it has read that of an input in the same memory, neither comes too late or too
// early in place.)
class StagedSide final : public Packing {
 public:
  enum class Way { pack, unpack };

  // Takes staging memory, with the offsets of ragged blocks filled in. May throw std::bad_alloc.
  void begin(Way way, const Side& side, size_t element, std::byte* dense, Staging& staging);
  void move(size_t offset, size_t bytes) override;
  // All that is left.
  void finish();

 private:
  static constexpr size_t grain_bytes = 32 << 10;

  void move_grain(size_t grain);
  void move_within(uint32_t block, size_t block_begin, size_t begin, size_t end) const;

  Way way_ = Way::pack;
  const Side* side_ = nullptr;
  size_t element_ = 1;
  std::byte* dense_ = nullptr;
  Staging* staging_ = nullptr;
  size_t bytes_ = 0;
  uint32_t* left_ = nullptr;  // by grain: bytes not moved yet
};

// One call's. Everything that can fail fails in `begin`, before anything is sent.
class Placement {
 public:
  Placement(Exchange& exchange, Staging& input, Staging& output)
      : exchange_(exchange), input_(input), output_(output) {}

  // Sets the call's views. They, and so the call, point to this.
  Status begin();
  // Unpacks what is left of what was received.
  void end();

 private:
  Status begin_output();
  Status begin_input();
  void place_adjacent(const Side& side, View* view) const;
  void place_directly(const Side& side, Staging& staging, View* view) const;
  Status place_apart(const Side& side, Staging& staging, View* view) const;
  // The engine's elements in one of a side's.
  size_t scale(const Side& side) const {
    return exchange_.call.reduction.kernel ? 1 : side.type->size;
  }

  Exchange& exchange_;
  Staging& input_;
  Staging& output_;
  StagedSide staged_input_, staged_output_;
};

}  // namespace sluice
