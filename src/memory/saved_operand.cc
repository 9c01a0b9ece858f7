// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/saved_operand.h"

#include <string>

#include "src/memory/staged_side.h"

namespace sluice {

Status SavedOperand::save(const Side& side, CopyWait& wait) {
  data_ = staging_.reserve(side.bytes(), side.place);
  if (!data_) return {Code::memory, "no memory to save " + std::to_string(side.bytes()) + " bytes"};
  if (side.counts) set_packed_blocks(side, side.type->size, staging_);
  StagedSide staged(wait);
  Status status = staged.begin(StagedSide::Way::pack, side, 1, data_, staging_);
  return status.ok() ? staged.finish() : status;
}

Status SavedOperand::put_back(const Side& side, CopyWait& wait) {
  StagedSide staged(wait);
  Status status = staged.begin(StagedSide::Way::unpack, side, 1, data_, staging_);
  return status.ok() ? staged.finish() : status;
}

Status SavedOperand::restore(const Side& side, CopyWait& wait) {
  Status status = put_back(side, wait);
  staging_.trim();
  return status;
}

}  // namespace sluice
