// SPDX-License-Identifier: BSD-3-Clause
//
// Operations in order of posting, linked by themselves.
#pragma once

#include <cstdint>
#include <optional>

#include "transports/transport.h"

namespace sluice {

class OperationList {
 public:
  Operation* front() const { return first_; }
  void push_back(Operation* operation);
  // Remove the first, the one with that tag (nullptr if none), or all (of a call), and return them.
  Operation* pop_front() { return take(&first_); }
  Operation* remove(const Tag& tag);
  Operation* remove_all(std::optional<uint32_t> call);

 private:
  Operation* take(Operation** place);

  Operation* first_ = nullptr;
  Operation** end_ = &first_;
};

}  // namespace sluice
