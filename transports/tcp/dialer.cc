// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/dialer.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace sluice {

Dialer::Dialer(const TcpOptions& options, std::vector<Candidate> candidates)
    : options_(options),
      candidates_(std::move(candidates)),
      deadline_(Clock::now() + options.connect_timeout) {}

Dialer::State Dialer::advance() {
  while (true) {
    if (socket_ && waits()) return State::dialing;
    if (established_) return State::connected;
    if (next_ == candidates_.size()) return State::failed;
    try_next();
  }
}

// Begins to connect to the next address.
bool Dialer::try_next() {
  const size_t left = candidates_.size() - next_;
  const Candidate& candidate = candidates_[next_++];
  const Clock::time_point now = Clock::now();
  give_up_at_ = now + (deadline_ - now) / left;
  auto made = make_socket(candidate.address, options_);
  if (!made.ok()) {
    failures_ += (failures_.empty() ? "" : "; ") + made.status().message();
    refused_ = false;
    return false;
  }
  socket_ = std::move(*made);
  const SocketAddress to = to_socket_address(candidate.address, candidate.port);
  if (connect(socket_.fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0) {
    established_ = true;
  } else if (errno != EINPROGRESS && errno != EINTR) {
    note(errno);
  }
  return bool(socket_);
}

// True if the attempt that is under way is so still.
bool Dialer::waits() {
  if (established_) return false;
  pollfd ready{socket_.fd(), POLLOUT, 0};
  if (poll(&ready, 1, 0) <= 0) {
    if (Clock::now() < give_up_at_) return true;
    note(ETIMEDOUT);
    return false;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) {
    established_ = true;
  } else {
    note(error);
  }
  return false;
}

// The attempt has failed.
void Dialer::note(int error) {
  const Candidate& candidate = candidates_[next_ - 1];
  socket_.close();
  refused_ &= error == ECONNREFUSED;
  failures_ += (failures_.empty() ? "" : "; ") + endpoint_text(candidate.address, candidate.port);
  if (!candidate.interface.empty()) failures_ += " over " + candidate.interface;
  failures_ += ": " + error_text(error);
}

}  // namespace sluice
