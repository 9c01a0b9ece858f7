// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/reception.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "src/base/log.h"
#include "src/base/random.h"
#include "transports/tcp/local_socket.h"
#include "transports/tcp/proofs.h"

namespace sluice {
namespace {

constexpr size_t max_guests = 32;
constexpr size_t descriptors_to_spare = 8;
constexpr std::chrono::milliseconds time_to_greet{100}, time_to_prove{2000};
constexpr uint64_t times_as_many = 10;      // from one report to the next
constexpr size_t greeting_head_bytes = 16;  // of a greeting: they say how long it is

// What a connection did that is turned away, for the log. (A peer's bytes may have been damaged.)
constexpr const char* no_greeting = "sent an invalid greeting";
constexpr const char* no_key = "sent a greeting without a valid key";
constexpr const char* no_proof = "sent a greeting, but no valid proof after it";
constexpr const char* unknown = "sent the greeting of a process of no team";
constexpr const char* not_expected = "repeated the greeting of a connected peer";
constexpr const char* no_room = "had not proved itself when others waited";
constexpr const char* other_user = "was another user's";
constexpr const char* no_means = "could not be examined for lack of memory or of random numbers";

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
    AddressBlob blob{0, {}, entries_, bool(shared_.options.prover)};
    const size_t before = blob.encode().size();
    blob.entries.push_back(entry);
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
  guests_.reserve(max_guests);
  if (listeners_.empty()) return trouble;
  if (shared_.proves_host()) open_local();
  return {};
}

// Without it, connections within this host count as connections between hosts.
void Reception::open_local() {
  const uint16_t port = entries_.front().port;
  auto made = listen_locally(shared_.options.self, port, shared_.options);
  if (made.ok()) {
    listeners_.push_back({std::move(*made), port});
  } else {
    log(Level::info, "%s", made.status().message().c_str());
  }
}

void Reception::close() {
  if (turned_away_ > std::exchange(reported_, turned_away_)) {
    log(Level::warning, "turned away %llu connections in all",
        static_cast<unsigned long long>(turned_away_));
  }
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
    if (accepted.ok() && is_local(*accepted) && !is_of_this_user(*accepted)) {
      count_turned_away(peer_text(accepted->fd()), other_user);
      continue;
    }
    if (accepted.ok()) {
      const Clock::time_point since = Clock::now() - silence_of(*accepted);
      std::string from = peer_text(accepted->fd());
      guests_.push_back({std::move(*accepted), std::move(from), since});
    }
    full_ =
        !accepted.ok() || guests_.size() >= max_guests || !has_descriptors(descriptors_to_spare);
  }
}

// Passes on connections that have greeted before it closes any.
bool Reception::make_room(const Welcome& welcome) {
  hear_all(welcome);
  if (!full_) return true;
  const auto guest = least();
  const auto time = guest->answered ? time_to_prove : time_to_greet;
  if (Clock::now() - guest->since >= time) {
    count_turned_away(guest->from, no_room);
    drop_one();
  }
  return !full_;
}

// The first to go: those that have not greeted before those that have, then the oldest.
std::vector<Reception::Guest>::iterator Reception::least() {
  return std::ranges::min_element(
      guests_, {}, [](const Guest& each) { return std::pair(each.answered, each.since); });
}

bool Reception::drop_one() {
  if (guests_.empty()) return false;
  guests_.erase(least());
  full_ = false;
  return true;
}

void Reception::hear_all(const Welcome& welcome) {
  for (size_t i = 0; i < guests_.size();) {
    const Verdict verdict = try_to_hear(guests_[i]);
    if (verdict == Verdict::wait) {
      ++i;
      continue;
    }
    Guest guest = std::move(guests_[i]);
    guests_.erase(guests_.begin() + static_cast<ptrdiff_t>(i));
    full_ = false;
    if (verdict == Verdict::away) {
      count_turned_away(guest.from, guest.fault);
    } else if (verdict == Verdict::welcome) {
      welcome(std::move(guest.socket), guest.greeting);
    } else if (guest.answered && verdict == Verdict::left) {
      left_(guest.greeting.from);
    }
  }
}

Reception::Verdict Reception::turn_away(Guest& guest, const char* fault) {
  guest.fault = fault;
  return Verdict::away;
}

void Reception::count_turned_away(const std::string& from, const char* what_it_did) {
  if (++turned_away_ < reported_ * times_as_many) return;
  reported_ = turned_away_;
  log(Level::warning, "the connection from %s %s, and was turned away; %llu so far", from.c_str(),
      what_it_did, static_cast<unsigned long long>(turned_away_));
}

// Bytes that are expected next, in all.
size_t Reception::Guest::due() const {
  if (answered) return proof_bytes;
  return got < greeting_head_bytes ? greeting_head_bytes : Greeting::size_of(bytes.data());
}

// If there is no memory, it waits for the next turn.
Reception::Verdict Reception::try_to_hear(Guest& guest) const try {
  return hear(guest);
} catch (const std::bad_alloc&) {
  return may_stay(guest) ? Verdict::wait : turn_away(guest, no_means);
}

Reception::Verdict Reception::hear(Guest& guest) const {
  while (guest.got < guest.due()) {
    const Verdict verdict = receive(guest);
    if (verdict != Verdict::welcome) return verdict;
  }
  if (guest.answered) {
    Key proof;
    std::copy_n(guest.bytes.begin(), proof.size(), proof.begin());
    return are_equal(proof, guest.proof) ? Verdict::welcome : turn_away(guest, no_proof);
  }
  const bool good =
      guest.greeting.decode(guest.bytes.data()) && guest.greeting.to == shared_.options.self;
  return good ? judge(guest) : turn_away(guest, no_greeting);
}

bool Reception::may_stay(const Guest& guest) const {
  return Clock::now() - guest.since < shared_.options.connect_timeout;
}

// Whoever has greeted as a process.
Reception::Verdict Reception::judge(Guest& guest) const {
  const Greeter from = knows_(guest.greeting.from);
  if (!from.expected && !from.failed) return turn_away(guest, not_expected);
  const bool proves = guest.greeting.proves;
  if (proves ? !shared_.options.prover : !shared_.knows_key(guest.greeting)) {
    return turn_away(guest, no_key);
  }
  // Until it is known, nobody can say whether it has to prove more than the key.
  guest.waits = shared_.options.prover && !from.known;
  if (guest.waits) return may_stay(guest) ? Verdict::wait : turn_away(guest, unknown);
  const bool can_prove = shared_.options.prover && from.key;
  if (proves && can_prove) return answer(guest, *from.key, from.failed);
  if (proves || can_prove || from.failed) return turn_away(guest, no_key);
  prepare_(guest.greeting.from);
  return Verdict::welcome;
}

// Reads what is due. Verdict `welcome`: some has come, and may be of a peer.
Reception::Verdict Reception::receive(Guest& guest) const {
  ssize_t got;
  do {
    got = recv(guest.socket.fd(), guest.bytes.data() + guest.got, guest.due() - guest.got,
               MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  const char* const lacks = guest.answered ? no_proof : no_greeting;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return may_stay(guest) ? Verdict::wait : turn_away(guest, lacks);
  }
  // A peer that has connected at another address too closes this connection.
  if (got <= 0 && (guest.got == 0 || guest.answered)) return Verdict::left;
  if (got <= 0) return turn_away(guest, no_greeting);
  guest.got += static_cast<size_t>(got);
  const bool foreign = !guest.answered && !Greeting::may_begin(guest.bytes.data(), guest.got);
  return foreign ? turn_away(guest, no_greeting) : Verdict::welcome;
}

// Checks the first proof. Answers with the second, and a nonce that makes the last one new.
Reception::Verdict Reception::answer(Guest& guest, const PublicKey& peer_key, bool refuses) const {
  const Greeting& asked = guest.greeting;
  const Prover& prover = *shared_.options.prover;
  const auto key = prover.agree(shared_.options.self, asked.from, peer_key);
  if (!key.ok() && key.status().code() == Code::memory) return turn_away(guest, no_means);
  if (!key.ok()) return turn_away(guest, no_key);
  const auto first = first_proof(prover, *key, asked);
  if (!first.ok()) return turn_away(guest, no_means);
  if (!are_equal(asked.key, *first)) return turn_away(guest, no_key);
  Greeting made{wire_version, asked.to, asked.from, {}, shared_.options.window};
  made.proves = true;
  made.refuses = refuses;
  made.filters = asked.filters && shared_.options.filter;
  if (!draw_random(made.nonce.data(), made.nonce.size()).ok()) return turn_away(guest, no_means);
  const auto second = second_proof(prover, *key, asked, made);
  const auto last = last_proof(prover, *key, asked, made);
  if (!second.ok() || !last.ok()) return turn_away(guest, no_means);
  prepare_(asked.from);
  made.key = *second;
  guest.proof = *last;
  guest.answered = !refuses;
  guest.since = Clock::now();  // it may have waited long for this answer
  guest.got = 0;
  std::byte bytes[Greeting::bytes_with_proof];
  made.encode(bytes);
  const bool sent = send_all(guest.socket, bytes);
  if (refuses) return Verdict::told;
  return sent ? hear(guest) : Verdict::left;
}

void Reception::add_to(std::vector<pollfd>& polls) const {
  for (const Listener& listener : listeners_) {
    if (!full_) polls.push_back({listener.socket.fd(), POLLIN, 0});
  }
  for (const Guest& guest : guests_) {
    if (!guest.waits) polls.push_back({guest.socket.fd(), POLLIN, 0});
  }
}

}  // namespace sluice
