// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "src/base/log.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/local_socket.h"
#include "transports/tcp/proofs.h"

namespace sluice {
namespace {

constexpr size_t max_pending = 32;
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
constexpr const char* unread =
    "takes the place of one that broke, and more was sent over that than came";
constexpr const char* no_room = "had not proved itself when others waited";
constexpr const char* other_user = "was another user's";
constexpr const char* no_means =
    "could not be examined for lack of memory, random numbers or OpenSSL";

void add_to_list(std::string& list, const char* separator, const std::string& item) {
  list += (list.empty() ? "" : separator) + item;
}

// How long the other side of a new connection has sent nothing.
std::chrono::milliseconds silence_of(const Socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &size);
  return std::chrono::milliseconds(info.tcpi_last_data_recv);
}

}  // namespace

Status Acceptor::open() {
  std::string without_room, troubles;
  for (const Interface& interface : context_.chosen) {
    if (!has_room_for(interface)) {
      add_to_list(without_room, ", ", interface.name + " " + interface.address.text());
      continue;
    }
    auto listener = listen_on(interface.address, context_.options);
    if (!listener.ok()) {
      const Status trouble = listener.status().with("interface " + interface.name);
      add_to_list(troubles, "; ", trouble.message());
      continue;
    }
    entries_.push_back({interface.address, interface.prefix, listener->port});
    listeners_.push_back(std::move(*listener));
  }
  if (!without_room.empty()) {
    log(Level::warning,
        "other processes learn no more than %zu addresses of this one, and not of %s; choose "
        "others with SLUICE_TCP_INTERFACES",
        entries_.size(), without_room.c_str());
  }
  pending_.reserve(max_pending);
  if (!is_reachable()) return {Code::unavailable, troubles};
  if (!troubles.empty()) {
    log(chooses() ? Level::warning : Level::info,
        "other processes can't connect to each address of this one: %s", troubles.c_str());
  }
  if (context_.proves_host()) open_local();
  return {};
}

bool Acceptor::has_room_for(const Interface& interface) const {
  AddressBlob blob{0, {}, entries_, bool(context_.options.prover)};
  const size_t before = blob.encode().size();
  blob.entries.push_back({interface.address, interface.prefix, 0});
  return blob.encode().size() > before;
}

// The user has said where to listen. (Else an address may not be ready yet.)
bool Acceptor::chooses() const {
  return !context_.options.interfaces.empty() || context_.options.ports.first != 0;
}

// Where the user has chosen, loopback alone does not do instead of what leads to other hosts.
bool Acceptor::is_reachable() const {
  const auto leads_away = [](const auto& each) { return !each.address.is_loopback(); };
  const bool must = chooses() && std::ranges::any_of(context_.chosen, leads_away);
  return must ? std::ranges::any_of(entries_, leads_away) : !entries_.empty();
}

// Without it, connections within this host count as connections between hosts.
void Acceptor::open_local() {
  const uint16_t port = entries_.front().port;
  auto made = listen_locally(context_.options.self, port, context_.options);
  if (made.ok()) {
    listeners_.push_back({std::move(*made), port});
  } else {
    log(Level::info, "%s", made.status().message().c_str());
  }
}

void Acceptor::close() {
  if (turned_away_ > std::exchange(reported_, turned_away_)) {
    log(Level::warning, "turned away %llu connections in all",
        static_cast<unsigned long long>(turned_away_));
  }
  listeners_.clear();
  pending_.clear();
  invited_.clear();
}

Result<bool> Acceptor::admit(const Welcome& welcome) {
  bool any = false;
  for (const Listener& listener : listeners_) {
    const auto admitted = admit_from(listener, welcome);
    if (!admitted.ok()) return admitted;
    any |= *admitted;
  }
  hear_all(welcome);
  return any;
}

Result<bool> Acceptor::admit_from(const Listener& listener, const Welcome& welcome) {
  for (bool any = false;; any = true) {
    if (full_ && !(is_waited_at(listener.socket) && make_room(welcome))) return any;
    auto accepted = accept_from(listener.socket);
    if (!accepted.ok() && drop_invitation()) continue;
    if (!accepted.ok() && pending_.empty()) return accepted.status();
    if (accepted.ok() && !*accepted) return any;
    if (accepted.ok() && is_local(*accepted) && !is_of_this_user(*accepted)) {
      count_turned_away(peer_text(accepted->fd()), other_user);
      continue;
    }
    if (accepted.ok()) {
      look_for_overflow(listener);
      const Clock::time_point since = Clock::now() - silence_of(*accepted);
      std::string from = peer_text(accepted->fd());
      pending_.push_back({std::move(*accepted), std::move(from), since});
    }
    full_ =
        !accepted.ok() || pending_.size() >= max_pending || !has_descriptors(descriptors_to_spare);
  }
}

// What finds the queue full is made again a second or more later, by its kernel, or not in time.
void Acceptor::look_for_overflow(const Listener& listener) {
  if (has_overflowed_) return;
  const auto room = room_of_full_queue(listener.socket);
  if (!room) return;
  has_overflowed_ = true;
  log(Level::warning,
      "as many connections waited for this process as its host keeps, %u (sysctl "
      "net.core.somaxconn); others may have failed: let it be no less than the number of ranks",
      *room);
}

// Passes on connections that have greeted before it closes any.
bool Acceptor::make_room(const Welcome& welcome) {
  hear_all(welcome);
  if (!full_) return true;
  const auto pending = least();
  const auto time = pending->proves() ? time_to_prove : time_to_greet;
  if (Clock::now() - pending->since >= time) {
    count_turned_away(pending->from, no_room);
    drop_one();
  }
  return !full_;
}

// The first to go: those that have not greeted before those that have, then the oldest.
std::vector<Acceptor::PendingConnection>::iterator Acceptor::least() {
  return std::ranges::min_element(pending_, {}, [](const PendingConnection& each) {
    return std::pair(each.proves(), each.since);
  });
}

bool Acceptor::drop_one() {
  if (pending_.empty()) return drop_invitation();
  pending_.erase(least());
  full_ = false;
  return true;
}

bool Acceptor::drop_invitation() {
  if (invited_.empty()) return false;
  const PendingConnection dropped = std::move(invited_.back());
  invited_.pop_back();
  uninvited_(dropped.invitation->to, Reply::dropped, dropped.from);
  return true;
}

void Acceptor::await_greeting(Socket socket, const Greeting& invitation) {
  std::string from = peer_text(socket.fd());
  invited_.push_back({std::move(socket), std::move(from), Clock::now(), invitation});
}

void Acceptor::hear_all(const Welcome& welcome) {
  hear_each(pending_, welcome);
  hear_each(invited_, welcome);
}

void Acceptor::hear_each(std::vector<PendingConnection>& all, const Welcome& welcome) {
  for (size_t i = 0; i < all.size();) {
    const Progress progress = try_to_hear(all[i]);
    if (progress == Progress::wait) {
      ++i;
      continue;
    }
    PendingConnection pending = std::move(all[i]);
    all.erase(all.begin() + static_cast<ptrdiff_t>(i));
    if (!pending.invitation) full_ = false;
    if (progress == Progress::welcome) {
      welcome(std::move(pending.socket), pending.greeting);
    } else {
      end(pending, progress);
    }
  }
}

void Acceptor::end(const PendingConnection& pending, Progress progress) {
  if (progress == Progress::away) count_turned_away(pending.from, pending.fault);
  reset_if_unacknowledged(pending.socket);
  if (pending.invitation) {
    const Reply reply = progress == Progress::refused  ? Reply::refused
                        : progress == Progress::silent ? Reply::unacknowledged
                                                       : Reply::none;
    uninvited_(pending.invitation->to, reply, pending.from);
  } else if (pending.proves() && progress == Progress::left && pending.greeting.rail == 0) {
    left_(pending.greeting.from);
  }
}

Acceptor::Progress Acceptor::turn_away(PendingConnection& pending, const char* fault) {
  pending.fault = fault;
  return Progress::away;
}

void Acceptor::count_turned_away(const std::string& from, const char* what_it_did) {
  if (++turned_away_ < reported_ * times_as_many) return;
  reported_ = turned_away_;
  log(Level::warning, "the connection from %s %s, and was turned away; %llu so far", from.c_str(),
      what_it_did, static_cast<unsigned long long>(turned_away_));
}

// Bytes that are expected next, in all.
size_t Acceptor::PendingConnection::due() const {
  if (proves()) return proof_bytes;
  return got < greeting_head_bytes ? greeting_head_bytes : Greeting::size_of(bytes.data());
}

// If there is no memory, it waits for the next turn.
Acceptor::Progress Acceptor::try_to_hear(PendingConnection& pending) const try {
  const bool is_over = pending.invitation && !knows_(pending.invitation->to, false).expected;
  return is_over ? Progress::left : hear(pending);
} catch (const std::bad_alloc&) {
  return may_stay(pending) ? Progress::wait : turn_away(pending, no_means);
}

Acceptor::Progress Acceptor::hear(PendingConnection& pending) const {
  while (pending.got < pending.due()) {
    const Progress progress = receive(pending);
    if (progress != Progress::welcome) return progress;
  }
  if (pending.proves()) {
    Key proof;
    std::copy_n(pending.bytes.begin(), proof.size(), proof.begin());
    return are_equal(proof, pending.proof) ? Progress::welcome : turn_away(pending, no_proof);
  }
  const auto& invitation = pending.invitation;
  const bool good = pending.greeting.decode(pending.bytes.data()) &&
                    pending.greeting.to == context_.options.self &&
                    (!invitation || pending.greeting.from == invitation->to);
  return good ? judge(pending) : turn_away(pending, no_greeting);
}

bool Acceptor::may_stay(const PendingConnection& pending) const {
  return pending.invitation || Clock::now() - pending.since < context_.options.connect_timeout;
}

// Whoever has greeted as a process, or invited.
Acceptor::Progress Acceptor::judge(PendingConnection& pending) const {
  const Greeting& said = pending.greeting;
  if (said.refuses) return judge_refusal(pending);
  const Greeter from = knows_(said.from, said.invites);
  if (said.rail != 0) return judge_rail(pending, from);
  const bool late = said.invites || pending.since <= from.met;  // they have met in the meantime
  const bool expected = said.resumes ? from.resumes : from.expected && !from.parted;
  if (!expected && !from.failed) {
    return late ? Progress::left : turn_away(pending, not_expected);
  }
  if (said.proves ? !context_.options.prover : !context_.knows_key(said)) {
    return turn_away(pending, no_key);
  }
  // Until it is known, nobody can say whether it has to prove more than the key.
  const bool needs_known = context_.options.prover || said.invites;
  pending.state = needs_known && !from.known ? PendingConnection::State::unknown : pending.state;
  if (needs_known && !from.known) {
    if (may_stay(pending)) return Progress::wait;
    return said.invites ? Progress::left : turn_away(pending, unknown);
  }
  const bool can_prove = context_.options.prover && from.key;
  if (said.proves && can_prove) return answer(pending, *from.key, from.failed);
  if (said.proves || can_prove) return turn_away(pending, no_key);
  return answer(pending, from, from.failed ? Response{Response::Kind::refuse} : prepare_(said));
}

// A peer that resumes before this side has read all that it sent; or one that has no need to.
Acceptor::Progress Acceptor::defer(PendingConnection& pending, const Response& reply) const {
  if (reply.kind == Response::Kind::close) return Progress::left;
  return may_stay(pending) ? Progress::wait : turn_away(pending, unread);
}

// The link decides further.
Acceptor::Progress Acceptor::judge_rail(PendingConnection& pending, const Greeter& from) const {
  const Greeting& said = pending.greeting;
  const bool can_prove = context_.options.prover && from.key;
  if (said.invites || said.resumes || pending.invitation) return turn_away(pending, no_greeting);
  if (said.proves != can_prove || !(said.proves || context_.knows_key(said))) {
    return turn_away(pending, no_key);
  }
  if (from.rails == Greeter::Rails::none) return turn_away(pending, not_expected);
  if (from.rails == Greeter::Rails::later)
    return may_stay(pending) ? Progress::wait : Progress::left;
  return said.proves ? answer(pending, *from.key, false) : Progress::welcome;
}

// What came may be the answer to an invitation.
Acceptor::Progress Acceptor::judge_refusal(PendingConnection& pending) const {
  if (!pending.invitation) return turn_away(pending, no_greeting);
  PairKey pair_key;
  if (pending.invitation->proves) {
    const Greeter from = knows_(pending.greeting.from, false);
    if (!from.key) return turn_away(pending, no_key);
    const auto key =
        context_.options.prover->agree(context_.options.self, pending.greeting.from, *from.key);
    if (!key.ok()) return turn_away(pending, no_means);
    pair_key = *key;
  }
  const bool good = is_answer(context_, pending.greeting, *pending.invitation, pair_key);
  return good ? Progress::refused : turn_away(pending, no_key);
}

// Without proofs. (The link of one that does not resume answers itself.)
Acceptor::Progress Acceptor::answer(PendingConnection& pending, const Greeter& from,
                                    const Response& reply) const {
  const Greeting& asked = pending.greeting;
  const bool refuses = reply.kind == Response::Kind::refuse;
  const bool welcome = reply.kind == Response::Kind::welcome;
  if (!refuses && !welcome) return defer(pending, reply);
  if (welcome && (asked.invites || !asked.resumes)) return Progress::welcome;
  if (!from.said_key) return turn_away(pending, no_key);
  return tell(pending, make_answer(context_, asked, *from.said_key, refuses, reply.counts));
}

// Sends the answer. The last proof must follow, unless it refuses.
Acceptor::Progress Acceptor::tell(PendingConnection& pending, const GreetingAnswer& made) const {
  const bool refuses = made.greeting.refuses;
  pending.proof = made.last;
  if (!refuses) pending.state = PendingConnection::State::proving;
  if (!refuses && made.greeting.resumes) reset_when_closed(pending.socket, true);
  pending.since = Clock::now();  // it may have waited long for this answer
  pending.got = 0;
  std::byte bytes[Greeting::most_bytes];
  made.greeting.encode(bytes);
  const bool sent = send_all(pending.socket, {bytes, made.greeting.size()});
  if (refuses) return Progress::told;
  return sent ? hear(pending) : Progress::left;
}

// Reads what is due. Progress `welcome`: some has come, and may be of a peer.
Acceptor::Progress Acceptor::receive(PendingConnection& pending) const {
  ssize_t got;
  do {
    got = recv(pending.socket.fd(), pending.bytes.data() + pending.got, pending.due() - pending.got,
               MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  const char* const lacks = pending.proves() ? no_proof : no_greeting;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return may_stay(pending) ? wait_further(pending) : turn_away(pending, lacks);
  }
  // A peer that has connected at another address too closes this connection.
  if (got <= 0 && (pending.got == 0 || pending.proves())) return Progress::left;
  if (got <= 0) return turn_away(pending, no_greeting);
  pending.got += static_cast<size_t>(got);
  const bool foreign = !pending.proves() && !Greeting::may_begin(pending.bytes.data(), pending.got);
  return foreign ? turn_away(pending, no_greeting) : Progress::welcome;
}

// Looks at a connection with an invitation once in a deadline.
Acceptor::Progress Acceptor::wait_further(PendingConnection& pending) const {
  const auto limit = context_.options.connect_timeout;
  if (!pending.invitation || Clock::now() - pending.since < limit) return Progress::wait;
  if (is_unacknowledged(pending.socket, limit)) return Progress::silent;
  pending.since = Clock::now();
  return Progress::wait;
}

// Checks the first proof. Answers with the second, and a nonce that makes the last one new; an
// invitation only if it refuses.
Acceptor::Progress Acceptor::answer(PendingConnection& pending, const PublicKey& peer_key,
                                    bool refuses) const {
  const Greeting& asked = pending.greeting;
  const Prover& prover = *context_.options.prover;
  const auto key = prover.agree(context_.options.self, asked.from, peer_key);
  if (!key.ok()) {
    return turn_away(pending, key.status().code() == Code::invalid ? no_key : no_means);
  }
  const auto first = first_proof(prover, *key, asked);
  if (!first.ok()) return turn_away(pending, no_means);
  if (!are_equal(asked.key, *first)) return turn_away(pending, no_key);
  const Response reply = refuses ? Response{Response::Kind::refuse} : prepare_(asked);
  refuses = reply.kind == Response::Kind::refuse;
  const bool welcome = reply.kind == Response::Kind::welcome;
  if (!refuses && !welcome) return defer(pending, reply);
  if (asked.invites && welcome) return Progress::welcome;
  const auto made = make_answer(context_, asked, *key, refuses, reply.counts);
  return made.ok() ? tell(pending, *made) : turn_away(pending, no_means);
}

void Acceptor::add_to(std::vector<pollfd>& polls) const {
  for (const Listener& listener : listeners_) {
    if (!full_) polls.push_back({listener.socket.fd(), POLLIN, 0});
  }
  for (const auto* const all : {&pending_, &invited_}) {
    for (const PendingConnection& pending : *all) {
      if (pending.state == PendingConnection::State::unknown) continue;
      polls.push_back({pending.socket.fd(), POLLIN, 0});
    }
  }
}

}  // namespace sluice
