// SPDX-License-Identifier: BSD-3-Clause
//
// What has been read from a connection and not been looked at yet.
#pragma once

#include <cstddef>
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

  struct Read {
    Conduit::Moved::Result result;
    int error = 0;         // errno if it failed
    size_t straight = 0;   // bytes that went to `due`
    bool drained = false;  // there was less than was asked for
  };
  // One read. The bytes that come next go straight to `due`, from its byte `offset` on, and what
  // follows them is kept here: at most `ahead` bytes. With a `due`, nothing is kept here when it is
  // called.
  Read read(Conduit& conduit, ConstPieces due, size_t offset, size_t ahead);

  static constexpr size_t capacity = size_t{32} << 10;
  static constexpr size_t max_runs = 64;  // of memory in one read, the inbox's own among them

 private:
  std::unique_ptr<std::byte[]> buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace sluice
