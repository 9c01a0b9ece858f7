// SPDX-License-Identifier: BSD-3-Clause
//
// Where the engine finds a call's data: in the program's own memory if elements are dense there,
// else in staging memory, which is packed and unpacked piece by piece during the call. Data on a
// device counts as not dense.
#pragma once

#include <memory>

#include "src/base/status.h"
#include "src/engine/copy_wait.h"
#include "src/memory/several_buffers.h"
#include "src/memory/side.h"
#include "src/memory/staged_side.h"
#include "src/memory/staging.h"

namespace sluice {

// Whether each block of a side is dense, wherever it lies. reduces: its blocks must also lie a
// whole number of elements apart.
bool has_dense_blocks(const Side& side, bool reduces);
// The view of such a side in its own memory. units: engine elements of `element` bytes in one of
// the side's. The view points into `staging`, which holds counts and offsets, if blocks are not
// consecutive. May throw std::bad_alloc.
void view_in_place(const Side& side, size_t units, size_t element, Staging& staging, View* view);
// The root's block in a scatter in place, where the root lacks an output: it is that block of the
// input.
void place_staying_block(const UnplacedCall& unplaced, Call* call);
// Those of both sides; the sides that a rank lacks keep theirs. *call: their views are set.
void view_in_place(const UnplacedCall& unplaced, StagingPair& staging, Call* call);
// Engine elements in one element of a side.
inline size_t units_of(const Side& side, const Call& call) {
  return call.reduction.kernel ? 1 : side.type->size;
}

// The placement of one call. Everything that can fail fails in `begin`, before anything is sent.
class Placement {
 public:
  // Which data goes through staging memory.
  enum class Staged : uint8_t { where_needed, all };

  // wait: waits for copies.
  Placement(UnplacedCall& unplaced, StagingPair& staging, CopyWait& wait,
            Staged staged = Staged::where_needed)
      : unplaced_(unplaced),
        stages_all_(staged == Staged::all),
        input_(staging.input),
        output_(staging.output),
        wait_(wait),
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
  Status begin_several();
  Status begin_output();
  Status begin_input();
  void place_in_buffer(const Side& side, Staging& staging, View* view) const {
    view_in_place(side, units_of(side, unplaced_.call), unplaced_.call.element, staging, view);
  }
  Status place_apart(const Side& side, Staging& staging, View* view) const;

  bool is_dense(const Side& side) const;

  UnplacedCall& unplaced_;
  const bool stages_all_;
  Staging& input_;
  Staging& output_;
  CopyWait& wait_;
  StagedSide staged_input_, staged_output_;
  std::unique_ptr<SeveralBuffers> several_;  // if there are several
};

}  // namespace sluice
