// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/window.h"

#include "transports/tag_table.h"

namespace sluice {

void OperationList::push_back(Operation* operation) {
  operation->next = nullptr;
  *end_ = operation;
  end_ = &operation->next;
}

Operation* OperationList::unlink(Operation** place) {
  Operation* operation = *place;
  *place = operation->next;
  if (end_ == &operation->next) end_ = place;
  return operation;
}

Operation* OperationList::remove(const Tag& tag) {
  for (Operation** place = &first_; *place != nullptr; place = &(*place)->next) {
    if (same_message((*place)->tag, tag)) return unlink(place);
  }
  return nullptr;
}

Operation* OperationList::remove_all(std::optional<uint32_t> call) {
  Operation* removed = nullptr;
  for (Operation** place = &first_; *place != nullptr;) {
    if (call && (*place)->tag.call != *call) {
      place = &(*place)->next;
      continue;
    }
    Operation* operation = unlink(place);
    operation->next = std::exchange(removed, operation);
  }
  return removed;
}

}  // namespace sluice
