// SPDX-License-Identifier: BSD-3-Clause
//
// Between two processes of a test: passes on what goes over their connections, and keeps a copy. It
// may reset one at any byte.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tests/unit/transports/tcp_rig.h"

namespace sluice {

class Wiretap {
 public:
  // Where the tapped process listens.
  explicit Wiretap(const AddressBlob::Entry& to) : to_(to) {}
  AddressBlob::Entry entry() const { return {loopback(), 8, listener_.port}; }

  // Resets the next connection, in place of passing on more than so many of the connecting side's
  // bytes.
  void reset_after(size_t bytes) { most_ = bytes; }
  // To be called again and again.
  void pass_on() {
    auto accepted = accept_from(listener_.socket);
    if (accepted.ok() && *accepted) connect_on(std::move(*accepted));
    for (const auto& line : lines_) {
      pass(line->from, line->to, line->forth, most_);
      pass(line->to, line->from, line->back);
      if (line->forth.said.size() > most_) reset(*line);
    }
  }
  // (Searched as text, which is quick.)
  bool has_heard(std::span<const std::byte> what) const {
    const auto text_of = [](std::span<const std::byte> bytes) {
      return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    const auto is_in = [&](const std::vector<std::byte>& said) {
      return text_of(said).find(text_of(what)) != std::string_view::npos;
    };
    return std::ranges::any_of(lines_, [&](const auto& line) {
      return is_in(line->forth.said) || is_in(line->back.said);
    });
  }

 private:
  static constexpr size_t no_limit = std::numeric_limits<size_t>::max();
  struct Way {
    std::vector<std::byte> said;
    size_t passed = 0;  // bytes of it
    bool ended = false;
  };
  struct Line {
    Socket from, to;
    Way forth, back;
  };

  void connect_on(Socket from) {
    Socket to = std::move(*make_socket(to_.address, {}));
    const SocketAddress at = to_socket_address(to_.address, to_.port);
    (void)!connect(to.fd(), reinterpret_cast<const sockaddr*>(&at.storage), at.size);
    lines_.push_back(std::make_unique<Line>(std::move(from), std::move(to)));
  }
  void reset(Line& line) {
    most_ = no_limit;
    for (Socket* each : {&line.from, &line.to}) {
      reset_when_closed(*each, true);
      each->close();
    }
  }
  static void pass(const Socket& from, const Socket& to, Way& way, size_t most = no_limit) {
    std::byte bytes[1 << 14];
    const ssize_t got = way.ended ? -1 : recv(from.fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0) way.said.insert(way.said.end(), bytes, bytes + got);
    const bool ends = got == 0 && !std::exchange(way.ended, true);
    const size_t until = std::min(way.said.size(), most);
    if (way.passed < until) {
      const ssize_t sent = send(to.fd(), way.said.data() + way.passed, until - way.passed,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
      way.passed += sent > 0 ? static_cast<size_t>(sent) : 0;
    }
    if (ends) (void)shutdown(to.fd(), SHUT_WR);
  }

  const AddressBlob::Entry to_;
  const Listener listener_ = std::move(*listen_on(loopback(), {}));
  std::vector<std::unique_ptr<Line>> lines_;
  size_t most_ = no_limit;
};

}  // namespace sluice
