// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/reception.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sluice {
namespace {

constexpr size_t max_guests = 32;
constexpr size_t descriptors_to_spare = 8;
constexpr std::chrono::milliseconds time_to_greet{100};

// How long the other side of a new connection has sent nothing.
std::chrono::milliseconds silence_of(const Socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &size);
  return std::chrono::milliseconds(info.tcpi_last_data_recv);
}

}  // namespace

Status Reception::open() {
  Status trouble;
  for (const Interface& interface : shared_.chosen) {
    AddressBlob::Entry entry{interface.address, interface.prefix, 0};
    AddressBlob blob{0, {}, entries_};
    blob.entries.push_back(entry);
    const size_t before = AddressBlob{0, {}, entries_}.encode().size();
    if (blob.encode().size() == before) continue;  // no room
    auto listener = listen_on(interface.address, shared_.options);
    if (!listener.ok()) {  // an error if the user named it, else perhaps not ready yet
      trouble = listener.status().with("interface " + interface.name);
      if (!shared_.options.interfaces.empty()) return trouble;
      continue;
    }
    entry.port = listener->port;
    entries_.push_back(entry);
    listeners_.push_back(std::move(*listener));
  }
  return listeners_.empty() ? trouble : Status();
}

void Reception::close() {
  listeners_.clear();
  guests_.clear();
}

Result<bool> Reception::admit(const Welcome& welcome) {
  bool any = false;
  for (const Listener& listener : listeners_) {
    const auto admitted = admit_from(listener, welcome);
    if (!admitted.ok()) return admitted;
    any |= *admitted;
  }
  hear_all(welcome);
  return any;
}

Result<bool> Reception::admit_from(const Listener& listener, const Welcome& welcome) {
  for (bool any = false;; any = true) {
    if (full_ && !(is_waited_at(listener.socket) && make_room(welcome))) return any;
    auto accepted = accept_from(listener.socket);
    if (!accepted.ok() && guests_.empty()) return accepted.status();
    if (accepted.ok() && !*accepted) return any;
    if (accepted.ok()) {
      const Clock::time_point since = Clock::now() - silence_of(*accepted);
      guests_.push_back({std::move(*accepted), since, 0, {}});
    }
    full_ =
        !accepted.ok() || guests_.size() >= max_guests || !has_descriptors(descriptors_to_spare);
  }
}

// Passes on connections that have greeted before it closes any.
bool Reception::make_room(const Welcome& welcome) {
  hear_all(welcome);
  if (full_ && Clock::now() - oldest()->since >= time_to_greet) drop_oldest();
  return !full_;
}

std::vector<Reception::Guest>::iterator Reception::oldest() {
  return std::ranges::min_element(guests_, {}, &Guest::since);
}

bool Reception::drop_oldest() {
  if (guests_.empty()) return false;
  guests_.erase(oldest());
  full_ = false;
  return true;
}

void Reception::hear_all(const Welcome& welcome) {
  for (size_t i = 0; i < guests_.size();) {
    const Verdict verdict = hear(guests_[i]);
    if (verdict == Verdict::wait) {
      ++i;
      continue;
    }
    Guest guest = std::move(guests_[i]);
    guests_.erase(guests_.begin() + static_cast<ptrdiff_t>(i));
    full_ = false;
    Greeting greeting;
    if (verdict == Verdict::welcome && greeting.decode(guest.bytes.data())) {
      welcome(std::move(guest.socket), greeting);
    }
  }
}

Reception::Verdict Reception::hear(Guest& guest) const {
  ssize_t got;
  do {
    got = recv(guest.socket.fd(), guest.bytes.data() + guest.got, guest.bytes.size() - guest.got,
               MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    const bool may_stay = Clock::now() - guest.since < shared_.options.connect_timeout;
    return may_stay ? Verdict::wait : Verdict::away;
  }
  if (got <= 0) return Verdict::away;
  guest.got += static_cast<size_t>(got);
  if (!Greeting::may_begin(guest.bytes.data(), guest.got)) return Verdict::away;
  if (guest.got < guest.bytes.size()) return Verdict::wait;
  Greeting greeting;
  const bool welcome =
      greeting.decode(guest.bytes.data()) && shared_.sign_of(greeting) != TcpShared::Sign::none;
  return welcome ? Verdict::welcome : Verdict::away;
}

void Reception::add_to(std::vector<pollfd>& polls) const {
  for (const Listener& listener : listeners_) {
    if (!full_) polls.push_back({listener.socket.fd(), POLLIN, 0});
  }
  for (const Guest& guest : guests_) polls.push_back({guest.socket.fd(), POLLIN, 0});
}

}  // namespace sluice
