// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/transport.h"

namespace sluice {

inline bool same_message(const Tag& a, const Tag& b) {
  return a.call == b.call && a.ordinal == b.ordinal && a.segment == b.segment;
}

// A hash table of posted receives or unexpected messages, found by the tag fields that messages
// match on. Items are chained through `T::next` and found by `T::tag`. The table does not own them,
// and allocates memory only when it grows. Not locked.
template <typename T>
class TagTable {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  void insert(T* item) {
    if (size_ >= buckets_.size()) grow();
    put(item);
    ++size_;
  }

  T* find(const Tag& tag) const { return size_ == 0 ? nullptr : *slot(tag); }

  // Removes the item and returns it; nullptr if there is none.
  T* remove(const Tag& tag) {
    if (size_ == 0) return nullptr;
    T** place = slot(tag);
    T* item = *place;
    if (item == nullptr) return nullptr;
    *place = item->next;
    --size_;
    return item;
  }

  // Removes all items for which `matches` is true, linked by `next`, in no particular order.
  template <typename Predicate>
  T* remove_if(Predicate matches) {
    T* removed = nullptr;
    for (T*& bucket : buckets_) {
      T** place = &bucket;
      while (T* item = *place) {
        if (!matches(*item)) {
          place = &item->next;
          continue;
        }
        *place = item->next;
        item->next = removed;
        removed = item;
        --size_;
      }
    }
    return removed;
  }

  T* remove_all() {
    return remove_if([](const T&) { return true; });
  }

 private:
  // Odd factors keep consecutive ordinals and segments in different buckets.
  T*& bucket(const Tag& tag) const {
    const uint32_t hash =
        tag.call * 0x9E3779B1U ^ tag.ordinal * 0x85EBCA77U ^ tag.segment * 0xC2B2AE3DU;
    return buckets_[hash & (buckets_.size() - 1)];
  }

  T** slot(const Tag& tag) const {
    T** place = &bucket(tag);
    while (*place != nullptr && !same_message((*place)->tag, tag)) place = &(*place)->next;
    return place;
  }

  void put(T* item) {
    T*& head = bucket(item->tag);
    item->next = head;
    head = item;
  }

  void grow() {
    std::vector<T*> old(buckets_.empty() ? 8 : 2 * buckets_.size());
    old.swap(buckets_);
    for (T* item : old) {
      while (item != nullptr) {
        T* next = item->next;
        put(item);
        item = next;
      }
    }
  }

  mutable std::vector<T*> buckets_;  // a power of two, or none yet
  size_t size_ = 0;
};

}  // namespace sluice
