// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/inbox.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

struct Runs {
  std::array<iovec, Inbox::max_runs> runs;
  size_t count = 0;
  size_t bytes = 0;

  void add(std::byte* data, size_t size) {
    runs[count++] = {data, size};
    bytes += size;
  }
};

// True if all of `due` found room.
bool add_due(Runs& runs, ConstPieces due, size_t offset) {
  for (const Bytes& piece : due) {
    if (offset >= piece.size) {
      offset -= piece.size;
      continue;
    }
    if (runs.count == Inbox::max_runs - 1) return false;
    runs.add(piece.data + offset, piece.size - offset);
    offset = 0;
  }
  return true;
}

}  // namespace

Inbox::Read Inbox::read(Conduit& conduit, ConstPieces due, size_t offset, size_t ahead) {
  if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<std::byte[]>(capacity);
  if (begin_ > 0) {
    std::memmove(buffer_.get(), data(), size());
    end_ -= std::exchange(begin_, 0);
  }
  Runs runs;
  bool follows = add_due(runs, due, offset);
  if (!follows && runs.bytes < capacity / 2) {  // many tiny pieces: copying is cheaper
    runs.count = runs.bytes = 0;
    follows = true;
    ahead = capacity;
  }
  const size_t due_bytes = runs.bytes;
  if (follows) runs.add(buffer_.get() + end_, std::min(ahead, capacity - end_));
  const Conduit::Moved got = conduit.read({runs.runs.data(), runs.count});
  if (got.result != Conduit::Moved::Result::some) return {got.result, got.error};
  received_ += got.bytes;
  const size_t straight = std::min(got.bytes, due_bytes);
  end_ += got.bytes - straight;
  return {got.result, 0, straight, got.bytes < runs.bytes};
}

}  // namespace sluice
