// SPDX-License-Identifier: BSD-3-Clause
//
// A copy of a side's data, kept while somebody overwrites it. On the host, whatever the memory that
// the side lies in.
#pragma once

#include "src/base/status.h"
#include "src/engine/copy_wait.h"
#include "src/memory/side.h"
#include "src/memory/staging.h"

namespace sluice {

class SavedOperand {
 public:
  // Copies the side's data. May throw std::bad_alloc.
  Status save(const Side& side, CopyWait& wait);
  // Copies it back, and keeps it.
  Status put_back(const Side& side, CopyWait& wait);
  // Copies it back, and gives the memory back.
  Status restore(const Side& side, CopyWait& wait);

 private:
  Staging staging_;
  std::byte* data_ = nullptr;
};

}  // namespace sluice
