// SPDX-License-Identifier: BSD-3-Clause
//
// A plan's slices in the memory of a call: where each byte lies, and local work on them. A slice is
// a list of runs. Work goes segment by segment: `offset` counts from the slice's first byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "src/engine/call.h"
#include "src/engine/device_work.h"
#include "transports/transport.h"

namespace sluice {

// Memory that only grows and is kept from call to call; 64-byte aligned.
class Scratch {
 public:
  static size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
  // May lose the contents. False if there is not enough memory.
  bool reserve(size_t bytes);
  std::byte* data() const { return data_.get(); }
  // All of it, as one run.
  std::span<const Bytes> whole() const { return {&whole_, 1}; }
  // Frees the memory if it is larger than `bytes`.
  void trim(size_t bytes) {
    if (whole_.size > bytes) *this = Scratch();
  }

 private:
  static constexpr size_t alignment = 64;
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  Bytes whole_;  // what data_ owns
};

class PlanMemory {
 public:
  // A position in memory that is read or written run by run: a slice's runs, or one buffer.
  struct Cursor {
    const Bytes* run;
    size_t offset;
    std::byte* data() const { return run->data + offset; }
  };

  // What `call` points to must stay valid. segment: bytes; rounded down to whole elements.
  void set_call(const Plan& plan, const Call& call, size_t segment);
  const Call& call() const { return call_; }
  DeviceWork* device() const { return call_.device; }
  size_t segment_bytes() const { return segment_; }

  // Finds scratch, on the host or the device, and resolves the slices. May throw std::bad_alloc.
  Status place();
  // In place of it: resolves slices to tell their sizes. Returns the bytes of scratch.
  size_t measure();
  // Whether the call is like the last one that was placed, and on the same memory.
  bool is_placed_for(const Call& call) const;
  void trim(size_t bytes) { scratch_.trim(bytes); }
  // What of it a network card may access. Ends with the call.
  Registrations& registrations() { return registrations_; }

  size_t bytes_of(const Slice& slice) const;
  // Whether a recv_reduce's result takes its operand's place. If not, it receives into that place.
  bool overwrites_operand(const Step& step) const {
    return step.kind == Kind::recv_reduce && step.to.count > 0 &&
           runs_[step.from.first].data == runs_[step.to.first].data;
  }
  // The device's room for a segment that is received into its own operand.
  std::byte* operand() const { return operand_; }
  // Whether any view has a Packing.
  bool is_packed() const { return is_packed_; }
  // Whether the slice lies in a view that has this Packing (View::source, View::sink).
  bool has(const Slice& slice, Packing* View::*way) const;

  Cursor seek(const Slice& slice, size_t offset) const;
  // visit(cursor, bytes) for each run of these bytes.
  template <typename Visit>
  static void visit_runs(Cursor at, size_t bytes, const Visit& visit) {
    for (; bytes > 0; ++at.run, at.offset = 0) {
      const size_t size = std::min(at.run->size - at.offset, bytes);
      if (size > 0) visit(at, size);
      bytes -= size;
    }
  }
  // The slice's runs, which its pieces lie in.
  std::span<const Bytes> runs_of(const Slice& slice) const {
    return {runs_.data() + slice.first, slice.count};
  }
  std::span<const Bytes> gather(const Slice& slice, size_t offset, size_t bytes, Bytes* into) const;

  // out = left (op) right, run by run; a copy where there is no right. On a device, tells it to.
  void combine(Cursor left, Cursor right, Cursor out, size_t bytes) const;
  // Packs or unpacks these bytes of a slice, where its views have a Packing. The first failure.
  Status pack(const Slice& slice, size_t offset, size_t bytes, Packing* View::*way) const;

 private:
  const View& view(Area area) const { return area == Area::input ? call_.input : call_.output; }
  size_t size_scratch();
  void resolve(std::byte* scratch);
  void combine_run(const std::byte* left, const std::byte* right, std::byte* out,
                   size_t bytes) const;

  const Plan* plan_ = nullptr;
  Call call_;
  size_t segment_ = 0;
  bool is_packed_ = false;     // a view has a source or a sink
  std::vector<size_t> slots_;  // offset of each scratch slot
  std::vector<Bytes> runs_;    // the plan's pieces, resolved to memory
  Scratch scratch_;
  Registrations registrations_;
  std::byte* operand_ = nullptr;
};

}  // namespace sluice
