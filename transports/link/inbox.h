// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes that have been read from a connection and not been parsed yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transports/conduit.h"
#include "transports/pieces.h"

namespace sluice {

class Inbox {
 public:
  bool empty() const { return begin_ == end_; }
  size_t size() const { return end_ - begin_; }
  const std::byte* data() const { return buffer_.get() + begin_; }
  void consume(size_t bytes) { begin_ += bytes; }

  void clear() { begin_ = end_ = 0; }
  // All bytes read so far, but for those that were none of a frame.
  uint64_t received() const { return received_; }
  // So many that were read are none of a frame.
  void discount(size_t bytes) { received_ -= bytes; }

  struct Read {
    Conduit::Moved::Result result;
    int error = 0;         // errno if it failed
    size_t straight = 0;   // bytes read directly into `due`
    bool drained = false;  // the conduit had fewer bytes than asked for
  };
  // Reads once. The next bytes go directly to `due`, from its byte `offset` on. Bytes after those
  // are kept here, at most `ahead` of them. If there is a `due`, the inbox must be empty before the
  // call.
  Read read(Conduit& conduit, ConstPieces due, size_t offset, size_t ahead);

  static constexpr size_t capacity = size_t{32} << 10;
  static constexpr size_t max_runs = 64;  // of memory in one read, the inbox's own included

 private:
  std::unique_ptr<std::byte[]> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t received_ = 0;
};

}  // namespace sluice
