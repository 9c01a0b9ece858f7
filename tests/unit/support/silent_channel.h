// SPDX-License-Identifier: BSD-3-Clause
//
// A channel that moves nothing: the test completes its operations. A journal says what was posted.
#pragma once

#include <string>
#include <vector>

#include "transports/transport.h"

namespace sluice {

// The events in order: "pack 0", "send 0", "unpack 2", by segment.
using Journal = std::vector<std::string>;

class SilentChannel final : public Channel {
 public:
  explicit SilentChannel(Journal& journal) : journal_(journal) {}
  bool post_send(Operation* operation) override { return post("send", operation); }
  bool post_recv(Operation* operation) override { return post("recv", operation); }
  const char* carrier() const override { return "silent"; }
  void withdraw() override { posted_.clear(); }
  void abort(const std::string&) override {}
  Status aborted_by_peer() override { return {}; }

  // Completes the oldest posted operation; false if there is none.
  bool finish_one() {
    if (posted_.empty()) return false;
    Operation* const operation = posted_.front();
    posted_.erase(posted_.begin());
    operation->queue->push(operation);
    return true;
  }

 private:
  bool post(const char* what, Operation* operation) {
    journal_.push_back(what + (" " + std::to_string(operation->tag.segment)));
    posted_.push_back(operation);
    return false;
  }
  Journal& journal_;
  std::vector<Operation*> posted_;
};

}  // namespace sluice
