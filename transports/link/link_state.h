// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of a link know of it: the name of its peer, what waits on it, and whether it has
// failed. Each part can fail it.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/status.h"

namespace sluice {

// What waits on a link.
struct Demand {
  size_t receives = 0;     // posted, or in progress
  size_t sends = 0;        // not yet in the kernel's hands
  size_t gets = 0;         // receives whose messages are being read from the peer's memory
  size_t large = 0;        // posted receives of Stream::large bytes or more
  size_t announced = 0;    // messages that the peer has announced, and no receive awaits
  bool poll_idle = false;  // the link is read although nothing is pending
};

class LinkState {
 public:
  // label: what messages call the peer. It may change.
  explicit LinkState(const std::string& label) : label_(label) {}
  LinkState(const LinkState&) = delete;
  LinkState& operator=(const LinkState&) = delete;

  const std::string& label() const { return label_; }
  // Why the link has failed; ok: it has not.
  const Status& status() const { return status_; }
  // Ends all pending and later operations with this status, and the connection. Does nothing if the
  // link has failed before.
  virtual void fail(const Status& status) = 0;
  // Fails it, because the peer has sent what it may not.
  void fail_for_sent(const std::string& what) { fail({Code::internal, label_ + " sent " + what}); }
  // The same, because the peer has said BYE, and all that it sent before has come.
  void fail_for_bye() {
    fail({Code::peer_lost, label_ + " finished (MPI_Finalize) while it was still expected"});
  }

  // Whether anything is to be moved.
  bool wanted() const {
    return demand.receives > 0 || demand.sends > 0 || (demand.poll_idle && status_.ok());
  }

  Demand demand;

 protected:
  ~LinkState() = default;

  Status status_;

 private:
  const std::string& label_;
};

}  // namespace sluice
