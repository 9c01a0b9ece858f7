// SPDX-License-Identifier: BSD-3-Clause
#include "transports/pieces.h"

#include <algorithm>

#include "src/base/copy.h"

namespace sluice {
namespace {

// Calls `visit(bytes, size)` for each run of memory that holds the message's bytes [offset, offset
// + size).
template <typename Visit>
void for_each_run(ConstPieces pieces, size_t offset, size_t size, Visit visit) {
  for (const Bytes& piece : pieces) {
    if (size == 0) return;
    if (offset >= piece.size) {
      offset -= piece.size;
      continue;
    }
    const size_t run = std::min(piece.size - offset, size);
    visit(piece.data + offset, run);
    offset = 0;
    size -= run;
  }
}

}  // namespace

void scatter(ConstPieces to, size_t offset, const std::byte* from, size_t size) {
  for_each_run(to, offset, size, [&](std::byte* run, size_t length) {
    copy_bytes(run, from, length);
    from += length;
  });
}

void gather(std::byte* to, ConstPieces from, size_t offset, size_t size) {
  for_each_run(from, offset, size, [&](const std::byte* run, size_t length) {
    copy_bytes(to, run, length);
    to += length;
  });
}

}  // namespace sluice
