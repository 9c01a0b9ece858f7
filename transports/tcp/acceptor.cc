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
#include "src/base/system_call.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/local_socket.h"
#include "transports/tcp/proofs.h"

namespace sluice {
namespace {

// Connections on which each peer may have said something, on average, and all.
constexpr size_t for_each_peer = 2, most_of_peers = 1024;
constexpr size_t descriptors_to_spare = 8;
constexpr std::chrono::milliseconds time_to_greet{100}, time_to_prove{2000};
constexpr uint64_t times_as_many = 10;      // from one report to the next
constexpr size_t greeting_head_bytes = 16;  // of a greeting: they say how long it is

// For the log, beside Admission::Faults.
constexpr const char* no_room = "had not proved itself when others waited";
constexpr const char* other_user = "was another user's";

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
      if (interface.state == Interface::State::running) {
        add_to_list(without_room, ", ", interface.name + " " + interface.address.text());
      }
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
  pending_.reserve(room_);
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

void Acceptor::expect(size_t peers) {
  const size_t room = most_silent + std::min(for_each_peer * peers, most_of_peers);
  if (room > room_) pending_.reserve(room);
  room_ = room;
}

bool Acceptor::is_full() const {
  const auto silent =
      std::ranges::count(pending_, Admission::State::silent, &PendingConnection::state);
  return lacks_ || pending_.size() >= room_ || silent >= ptrdiff_t{most_silent};
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

// In a turn it takes no more than it has room for, however many come.
Result<bool> Acceptor::admit_from(const Listener& listener, const Welcome& welcome) {
  for (size_t taken = 0; taken < room_; ++taken) {
    if (is_full() && !(is_waited_at(listener.socket) && make_room(welcome))) return taken > 0;
    auto accepted = accept_from(listener.socket);
    if (!accepted.ok() && drop_invitation()) continue;
    if (!accepted.ok() && pending_.empty()) return accepted.status();
    if (accepted.ok() && !*accepted) return taken > 0;
    if (accepted.ok() && is_local(*accepted) && !is_of_this_user(*accepted)) {
      count_turned_away(peer_text(accepted->fd()), other_user);
      continue;
    }
    if (accepted.ok()) {
      warn_of_overflow(listener);
      const Clock::time_point since = Clock::now() - silence_of(*accepted);
      std::string from = peer_text(accepted->fd());
      pending_.push_back({std::move(*accepted), std::move(from), since});
    }
    lacks_ = !accepted.ok() || !has_descriptors(descriptors_to_spare);
  }
  return true;
}

// What finds the queue full is made again a second or more later, by its kernel, or not in time.
void Acceptor::warn_of_overflow(const Listener& listener) {
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
  if (!is_full()) return true;
  const auto pending = least();
  const auto time = pending->proves() ? time_to_prove : time_to_greet;
  if (Clock::now() - pending->since >= time) {
    count_turned_away(pending->from, no_room);
    drop_one();
  }
  return !is_full();
}

// The first to go: those that have not greeted before those that have, then the oldest.
std::vector<Acceptor::PendingConnection>::iterator Acceptor::least() {
  return std::ranges::min_element(pending_, {}, [](const PendingConnection& each) {
    return std::pair(each.state, each.since);
  });
}

bool Acceptor::drop_one() {
  if (pending_.empty()) return drop_invitation();
  pending_.erase(least());
  lacks_ = false;
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

bool Acceptor::is_invited(const ProcessId& process) const {
  return std::ranges::any_of(invited_, [&](const PendingConnection& each) {
    return each.invitation->to == process && has_acknowledged(each.socket);
  });
}

void Acceptor::hear_all(const Welcome& welcome) {
  hear_each(pending_, welcome);
  hear_each(invited_, welcome);
}

void Acceptor::hear_each(std::vector<PendingConnection>& all, const Welcome& welcome) {
  for (size_t i = 0; i < all.size();) {
    const Action action = hear(all[i]);
    if (action == Action::wait) {
      ++i;
      continue;
    }
    PendingConnection pending = std::move(all[i]);
    all.erase(all.begin() + static_cast<ptrdiff_t>(i));
    if (!pending.invitation) lacks_ = false;
    if (action == Action::welcome) {
      welcome(std::move(pending.socket), pending.greeting);
    } else {
      end(pending, action);
    }
  }
}

void Acceptor::end(const PendingConnection& pending, Action action) {
  if (action == Action::turn_away) count_turned_away(pending.from, pending.fault);
  reset_if_unacknowledged(pending.socket);
  if (pending.invitation) {
    const Reply reply = action == Action::give_up ? Reply::refused
                        : action == Action::lose  ? Reply::unacknowledged
                                                  : Reply::none;
    uninvited_(pending.invitation->to, reply, pending.from);
  } else if (pending.proves() && action == Action::leave && pending.greeting.rail == 0 &&
             !has_another(pending.greeting.from)) {
    left_(pending.greeting.from, pending.error);
  }
}

// A peer connects at several addresses, and keeps one of them.
bool Acceptor::has_another(const ProcessId& process) const {
  const auto is_its = [&](const PendingConnection& each) {
    return each.proves() && each.greeting.from == process;
  };
  return std::ranges::any_of(pending_, is_its) || std::ranges::any_of(invited_, is_its);
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
Acceptor::Action Acceptor::hear(PendingConnection& pending) const try {
  const bool needed = !pending.invitation || knows_(pending.invitation->to, false).expected;
  Action action = needed ? Action::answer : Action::leave;
  // The last proof may have come when this side has answered.
  while (action == Action::answer) {
    const bool late = is_late(pending);  // what comes after this look is read
    action = decide(pending, receive(pending), late);
  }
  return action;
} catch (const std::bad_alloc&) {
  return decide(pending, Event::no_memory, is_late(pending));
}

bool Acceptor::is_late(const PendingConnection& pending) const {
  const bool owes_proof = pending.proves() && !pending.invitation;
  const auto limit = context_.options.connect_timeout * (owes_proof ? deadlines_to_prove : 1);
  return Clock::now() - pending.since >= limit;
}

// Reads what is due, and says what it is.
Acceptor::Event Acceptor::receive(PendingConnection& pending) const {
  while (pending.got < pending.due()) {
    int first = 0;  // (A socket says once what broke its connection.)
    const ssize_t got = system_call(
        [&] {
          return recv(pending.socket.fd(), pending.bytes.data() + pending.got,
                      pending.due() - pending.got, MSG_DONTWAIT);
        },
        &first);
    if (got == -EAGAIN) return Event::nothing;
    pending.error = got <= 0 ? first : 0;
    if (got <= 0) return pending.got == 0 || pending.proves() ? Event::end : Event::noise;
    pending.got += static_cast<size_t>(got);
    if (!pending.proves() && !Greeting::may_begin(pending.bytes.data(), pending.got)) {
      return Event::noise;
    }
  }
  if (pending.proves()) return Event::last_proof;
  const auto& invitation = pending.invitation;
  const bool good = pending.greeting.decode(pending.bytes.data()) &&
                    pending.greeting.to == context_.options.self &&
                    (!invitation || pending.greeting.from == invitation->to);
  return good ? Admission::event_of(pending.greeting, bool(invitation)) : Event::noise;
}

// Does what the table says, until that is how the connection goes on.
Acceptor::Action Acceptor::decide(PendingConnection& pending, Event event, bool late) const {
  constexpr Fact replies[] = {Fact::welcomed, Fact::deferred, Fact::refused, Fact::dropped};
  Greeter from;
  Admission::Facts facts = learn(pending, event, late, from);
  PairKey key;
  Response reply;
  for (;;) {
    const Admission::Step step = Admission::step(pending.state, event, facts);
    switch (step.action) {
      case Action::look:
        if (is_unacknowledged(pending.socket, context_.options.connect_timeout))
          return Action::lose;
        pending.since = Clock::now();
        return Action::wait;
      case Action::check:
        facts.remove(Fact::unchecked);
        facts.add(check(pending, from, key));
        break;
      case Action::ask:
        reply = prepare_(pending.greeting);
        facts.add(replies[static_cast<size_t>(reply.kind)]);
        break;
      case Action::answer:
      case Action::refuse:
        return tell(pending, step, from, key, reply.counts);
      default:
        pending.state = step.next;
        pending.fault = step.fault;
        return step.action;
    }
  }
}

// What this side knows of the connection and, if the event is the word of one, of a process.
Admission::Facts Acceptor::learn(const PendingConnection& pending, Event event, bool late,
                                 Greeter& from) const {
  const Greeting& said = pending.greeting;
  Admission::Facts facts{};
  if (late) facts.add(pending.invitation ? Fact::unanswered : Fact::overdue);
  if (event == Event::last_proof) {
    Key proof;
    std::copy_n(pending.bytes.begin(), proof.size(), proof.begin());
    facts.add(are_equal(proof, pending.proof) ? Fact::proof : Fact::wrong);
  } else if (Admission::names_process(event)) {
    from = knows_(said.from, event == Event::invitation);
    // It waits for a call in which this process needs it, too.
    if (event == Event::invitation && from.in_team) facts.remove(Fact::overdue);
    const bool can_prove = bool(context_.options.prover);
    facts.add(Admission::standing_of(from, said, pending.since));
    facts.add(Admission::credential_of(from, said, can_prove, context_.knows_key(said)));
  }
  return facts;
}

// The first proof of a greeting, or whatever shows that it refuses this side's invitation.
Acceptor::Fact Acceptor::check(const PendingConnection& pending, const Greeter& from,
                               PairKey& key) const {
  const Greeting& said = pending.greeting;
  if (said.refuses ? pending.invitation->proves : said.proves) {
    if (!from.key) return Fact::wrong;
    const auto agreed = context_.options.prover->agree(context_.options.self, said.from, *from.key);
    if (!agreed.ok()) {
      const bool wrong = agreed.status().code() == Code::invalid && !said.refuses;
      return wrong ? Fact::wrong : Fact::uncheckable;
    }
    key = *agreed;
  }
  if (said.refuses) {
    const bool right = is_answer(context_, said, *pending.invitation, key);
    return right ? Fact::proof : Fact::wrong;
  }
  const auto first = first_proof(*context_.options.prover, key, said);
  if (!first.ok()) return Fact::uncheckable;
  return are_equal(said.key, *first) ? Fact::proof : Fact::wrong;
}

// Answers a first proof with the second, and a nonce that makes the last one new. The last proof
// must follow, unless this side refuses.
Acceptor::Action Acceptor::tell(PendingConnection& pending, const Admission::Step& step,
                                const Greeter& from, const PairKey& key,
                                const ByteCounts& counts) const {
  const Greeting& asked = pending.greeting;
  const bool refuses = step.action == Action::refuse;
  pending.fault = asked.proves ? Admission::Faults::no_means : Admission::Faults::no_key;
  if (!asked.proves && !from.said_key) return Action::turn_away;
  const Result<GreetingAnswer> made =
      asked.proves ? make_answer(context_, asked, key, refuses, counts)
                   : make_answer(context_, asked, *from.said_key, refuses, counts);
  if (!made.ok()) return Action::turn_away;
  pending.proof = made->last;
  pending.state = step.next;
  if (!refuses && made->greeting.resumes) reset_when_closed(pending.socket, true);
  pending.since = Clock::now();  // it may have waited long for this answer
  pending.got = 0;
  std::byte bytes[Greeting::most_bytes];
  made->greeting.encode(bytes);
  const bool sent = send_all(pending.socket, {bytes, made->greeting.size()}) == 0;
  return sent || refuses ? step.action : Action::leave;
}

void Acceptor::add_to(std::vector<pollfd>& polls) const {
  const bool full = is_full();
  for (const Listener& listener : listeners_) {
    if (!full) polls.push_back({listener.socket.fd(), POLLIN, 0});
  }
  for (const auto* const all : {&pending_, &invited_}) {
    for (const PendingConnection& pending : *all) {
      if (pending.state == Admission::State::unknown) continue;
      polls.push_back({pending.socket.fd(), POLLIN, 0});
    }
  }
}

}  // namespace sluice
