// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <utility>

namespace sluice {

Inquiry::Answer Inquiry::ask(Clock::time_point now, const Connector& connector,
                             const Socket& silent) try {
  const Answer answer = read_answer();
  if (answer != Answer::awaited) return answer;
  if (begun_.empty()) since_ = now;
  if (now - since_ >= Vigil::time_to_ask) return Answer::none;
  auto fresh = connector.connect_beside(silent);
  if (fresh.ok()) begun_.push_back(std::move(*fresh));
  return begun_.empty() ? Answer::none : Answer::awaited;
} catch (const std::bad_alloc&) {
  return begun_.empty() ? Answer::none : Answer::awaited;
}

Inquiry::Answer Inquiry::read_answer() const {
  for (const Socket& each : begun_) {
    pollfd ready{each.fd(), POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) continue;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(each.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) return Answer::lives;
    if (error == ECONNREFUSED) return Answer::refused;
  }
  return Answer::awaited;
}

Diagnosis::Sign Watch::judge(const Connector& connector, const Socket& socket,
                             Vigil::Duration limit) {
  using Sign = Diagnosis::Sign;
  const Vigil::Clock::time_point now = Vigil::Clock::now();
  Vigil::Signs signs;
  const bool is_known = ask_kernel(socket, &signs);
  silence_ = is_known ? vigil_.silence_at(now, signs, limit) : Vigil::Duration(0);
  if (silence_ == Vigil::Duration(0)) {
    inquiry_.drop();
    return Sign::nothing;
  }
  if (vigil_.is_pardoned()) return Sign::broke;
  switch (inquiry_.ask(now, connector, socket)) {
    case Inquiry::Answer::awaited:
      return Sign::nothing;
    case Inquiry::Answer::none:
      return Sign::silent;
    case Inquiry::Answer::refused:
      return Sign::broke;
    case Inquiry::Answer::lives:
      vigil_.pardon(now, signs);
      inquiry_.drop();
      return Sign::nothing;
  }
  return Sign::nothing;
}

void Watch::rest() {
  vigil_.rest();
  inquiry_.drop();
}

}  // namespace sluice
