// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/connector.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>

#include "src/base/log.h"
#include "src/base/system_call.h"
#include "transports/tcp/local_socket.h"

namespace sluice {

// Hosts that have other names are other hosts. (Two virtual machines that were resumed from one
// snapshot say the same of their kernels.)
void Connector::learn(const AddressBlob& address) {
  const bool proves_host = context_.proves_host();
  same_host_ =
      is_same_host(address, context_.host) && (!proves_host || peer_.host == context_.options.host);
  candidates_ = candidates(address, context_.host, context_.all, context_.chosen);
  if (!same_host_ || !proves_host || address.entries.empty()) return;
  Candidate local;
  local.port = address.entries.front().port;
  local.certain = local.local = local.here = true;
  candidates_.insert(candidates_.begin(), local);
}

Dialer::State Connector::advance() {
  if (!set_up().ok()) return Dialer::State::failed;
  const Dialer::State state = dialer_->advance();
  return state == Dialer::State::failed ? fail() : state;
}

// Makes sure that there is a dialer.
Status Connector::set_up() {
  if (dialer_) return {};
  failure_ = begin();
  ran_short_ = failure_.code() == Code::memory;
  if (ran_short_) failure_ = context_.no_memory_to_connect;
  return failure_;
}

// What it greets with says whether the connection is within this host.
void Connector::adopt(Socket socket) {
  if (!set_up().ok()) return;
  if (context_.proves_host() && is_local(socket) != dials_locally()) return;
  dialer_->adopt(std::move(socket));
}

bool Connector::leads_away() const {
  return std::ranges::any_of(candidates_, &Candidate::leads_away);
}

// (A connection that the peer made comes from another port. Through a network that translates
// addresses none of them may be known.)
void Connector::note_met(const Socket& socket) {
  const auto end = far_end(socket.fd());
  if (!end) return;
  for (Candidate& each : candidates_) {
    const bool is_there = each.address == end->address;
    each.answered |= is_there;
    each.carried = is_there && each.port == end->port;
  }
}

Result<Socket> Connector::connect_beside(const Socket& connected) const {
  const auto far = far_end(connected.fd()), near = near_end(connected.fd());
  const auto there = std::ranges::find_if(
      candidates_, [&](const Candidate& each) { return far && each.address == far->address; });
  if (!near || there == candidates_.end())
    return Status(Code::unavailable, "it is not known where");
  auto made = make_socket(there->address, context_.options);
  if (!made.ok()) return made;
  if (const int error = connect_from(*made, near->address); error != 0) {
    return system_error("cannot connect from " + near->address.text(), error);
  }
  const SocketAddress to = to_socket_address(there->address, there->port);
  const auto* const address = reinterpret_cast<const sockaddr*>(&to.storage);
  const int error = -system_call([&] { return connect(made->fd(), address, to.size); });
  if (error == 0 || error == EINPROGRESS) return made;
  return system_error("cannot connect to " + there->address.text(), error);
}

bool Connector::has_answered(const std::string& address) const {
  return std::ranges::any_of(candidates_, [&](const Candidate& each) {
    return each.answered && each.address.text() == address;
  });
}

void Connector::try_another() {
  if (dials_locally() || candidates_.empty()) return;
  std::rotate(candidates_.begin(), candidates_.begin() + 1, candidates_.end());
}

Dialer::State Connector::fail() {
  ran_short_ = dialer_->ran_short();
  if (!ran_short_ && dials_locally() && !dialer_->refused()) return dial_between_hosts();
  failure_ = unreachable();
  return Dialer::State::failed;
}

// The peer has no local socket here, so it is on another host whatever it says, or in another
// container, or runs as another user.
Dialer::State Connector::dial_between_hosts() {
  log(Level::debug, "%s is taken to be on another host: %s", peer_.label.c_str(),
      dialer_->failures().c_str());
  same_host_ = false;
  candidates_.erase(candidates_.begin());
  stop();
  return advance();
}

Status Connector::begin() {
  const auto key = are_proved(context_, peer_) ? agree(context_, peer_) : PairKey{};
  if (!key.ok()) return key.status();
  const bool filters = is_filtered(context_, same_host_);
  if (resuming_ && words_ == FirstWords::greeting) resuming_->search = ++searches_;
  const auto greeting = make_greeting(context_, peer_, *key, filters, words_, resuming_);
  if (!greeting.ok()) return greeting.status();
  const size_t count = dials_locally() ? 1 : candidates_.size();
  dialer_ =
      std::make_unique<Dialer>(context_, std::span(candidates_).first(count), *greeting, *key);
  return {};
}

Result<std::unique_ptr<Dialer>> Connector::dial_rail(uint32_t number) const {
  const auto key = are_proved(context_, peer_) ? agree(context_, peer_) : PairKey{};
  if (!key.ok()) return key.status();
  const bool filters = is_filtered(context_, counts_as_within_host());
  const auto greeting =
      make_greeting(context_, peer_, *key, filters, FirstWords::greeting, {}, number);
  if (!greeting.ok()) return greeting.status();
  std::vector<Candidate> ways = candidates_;
  std::erase_if(ways, &Candidate::local);
  const auto is_direct = [](const Candidate& each) { return each.source && each.leads_away(); };
  const auto others = std::stable_partition(ways.begin(), ways.end(), is_direct);
  const auto direct = others - ways.begin();
  if (direct > 1) std::rotate(ways.begin(), ways.begin() + number % direct, others);
  return std::make_unique<Dialer>(context_, ways, *greeting, *key);
}

Connector::Connected Connector::take_connected() {
  Connected connected{dialer_->take_socket(), dialer_->answer(), dialer_->words()};
  stop();
  return connected;
}

std::string Connector::lead() const {
  if (words_ == FirstWords::greeting) return "cannot connect to " + peer_.label + ": ";
  return peer_.label + " has not connected, and this process cannot connect to it: ";
}

Status Connector::unreachable() const {
  const std::string who = lead();
  if (candidates_.empty()) {
    return {Code::unavailable,
            who + "it has no address that this process may use; see SLUICE_TCP_INTERFACES of both"};
  }
  if (dialer_->refused()) {
    return {Code::peer_lost, who + "it has given up its connection to this process"};
  }
  const bool loops = !leads_away() && !same_host_;
  const char* const hint =
      loops ? "; it offers only addresses that do not leave a host: see its SLUICE_TCP_INTERFACES"
            : "";
  return {dialer_->code(), who + dialer_->failures() + dialer_->hints() + hint};
}

Status Connector::failure() const {
  if (!failure_.ok() || !dialer_ || dialer_->absence().empty()) return failure_;
  return {Code::peer_lost, lead() + dialer_->absence()};
}

bool Connector::is_deserted() const {
  return same_host_ && !candidates_.empty() &&
         std::ranges::all_of(candidates_, [](const Candidate& each) {
           return each.local || is_free(each.address, each.port);
         });
}

}  // namespace sluice
