// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/status.h"

#include <cstddef>
#include <new>

namespace sluice {

const char* to_string(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid:
      return "invalid";
    case Code::unavailable:
      return "unavailable";
    case Code::memory:
      return "out of memory";
    case Code::timeout:
      return "timeout";
    case Code::peer_lost:
      return "peer lost";
    case Code::aborted:
      return "aborted";
    case Code::mismatch:
      return "mismatch";
    case Code::internal:
      return "internal error";
  }
  return "unknown";
}

// The empty string is placed in static storage: no allocation, never destroyed.
const std::string& Status::message() const {
  alignas(std::string) static std::byte room[sizeof(std::string)];
  static const std::string* const none = new (room) std::string();
  return detail_ ? detail_->message : *none;
}

Status Status::with(const std::string& context) const {
  if (ok()) return {};
  return {code(), context + ": " + message(), error()};
}

}  // namespace sluice
