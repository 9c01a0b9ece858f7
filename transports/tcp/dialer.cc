// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/dialer.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "src/base/system_call.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/local_socket.h"
#include "transports/tcp/proofs.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds longest_between_starts{250};
// So that a host which answers again within a second or two of a limit is heard.
constexpr std::chrono::milliseconds between_fresh{500};
constexpr size_t descriptors_for_others = 8;
constexpr std::chrono::milliseconds between_retries{100};
constexpr int most_retries = 100;
// That one address is given to answer, before others are tried.
constexpr std::chrono::milliseconds time_to_answer{1000};
constexpr std::chrono::seconds between_rounds{1};
constexpr size_t most_adopted = 8;
// After the deadline.
constexpr std::chrono::milliseconds longest_silence{1000}, longest_between_looks{500};

bool shows_absence(int error) {
  return error == ECONNREFUSED || error == ECONNRESET || error == EPIPE;
}

}  // namespace

const char* hint_of(int error) {
  if (shows_absence(error)) return "it is gone, or a firewall is between";
  switch (error) {
    case ETIMEDOUT:
      return "is a firewall between? or is net.core.somaxconn of its host less than the number of "
             "ranks?";
    case EHOSTUNREACH:
    case EPERM:  // says a firewall of this host
      return "is a firewall between?";
    case ENETUNREACH:
      return "no route leads there: choose networks with SLUICE_TCP_INTERFACES";
    case EMFILE:
      return "raise this process's limit of descriptors (ulimit -n)";
    case ENFILE:
      return "raise this host's limit of open files (sysctl fs.file-max)";
    default:
      return "";
  }
}

Dialer::Dialer(const TcpContext& context, std::span<const Candidate> candidates,
               const Greeting& greeting, const PairKey& pair_key)
    : context_(context),
      greeting_(greeting),
      pair_key_(pair_key),
      deadline_(Clock::now() + context.options.connect_timeout),
      between_starts_(std::min<Clock::duration>(
          longest_between_starts,
          context.options.connect_timeout / std::max<size_t>(candidates.size(), 1))),
      addresses_(candidates.size()),
      heard_(greeting.rail == 0 ? Clock::time_point{} : Clock::time_point::max()) {
  for (const Candidate& each : candidates) targets_.push_back({each});
}

// Whoever has only recorded an invitation may send it again, and gets no answer but a greeting. So
// few are kept, and with proofs none keeps this side from dialing.
void Dialer::adopt(Socket socket) {
  const auto is_adopted = [](const Attempt& each) { return each.adopted; };
  if (std::ranges::count_if(attempts_, is_adopted) >= ptrdiff_t{most_adopted}) {
    attempts_.erase(std::ranges::find_if(attempts_, is_adopted));
  }
  reset_when_closed(socket, greeting_.resumes);
  Candidate candidate{};
  candidate.certain = !greeting_.proves;
  attempts_.push_back({candidate, {}, std::move(socket), deadline_, true});
  next_start_ = Clock::now() + between_starts_;
}

void Dialer::drop_all() {
  for (const Attempt& each : attempts_) reset_if_unacknowledged(each.socket);
  attempts_.clear();
}

Dialer::State Dialer::advance() {
  while (true) {
    for (size_t i = 0; i < attempts_.size();) {
      const Action action = advance_attempt(attempts_[i]);
      if (action == Action::wait) {
        ++i;
        continue;
      }
      if (action == Action::take) connected_ = std::move(attempts_[i].socket);
      if (action == Action::take || refused_ || gone_) {
        drop_all();
        return connected_ ? State::connected : State::failed;
      }
      const bool again = action == Action::retry;
      next_start_ = again ? Clock::now() + between_retries : Clock::time_point{};
      if (again) targets_.push_back({attempts_[i].candidate, attempts_[i].closed});
      reset_if_unacknowledged(attempts_[i].socket);
      attempts_.erase(attempts_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (next_ == targets_.size()) {
      if (!attempts_.empty() && !greeting_.resumes) return State::dialing;
      if (!begin_round()) return attempts_.empty() ? State::failed : State::dialing;
    }
    if (awaits_certain() || Clock::now() < next_start_) return State::dialing;
    start_next();
  }
}

bool Dialer::is_held(std::chrono::milliseconds time) const {
  return std::ranges::any_of(attempts_, [&](const Attempt& each) {
    return each.asks() && !each.adopted && each.candidate.answered &&
           Clock::now() - each.asks_since >= time && has_acknowledged(each.socket);
  });
}

// After all have failed, or for one that resumes, been tried. False if it is not worth while to try
// again, or too late.
bool Dialer::begin_round() {
  const auto leads_away = [](const Target& each) { return each.candidate.leads_away(); };
  const bool lasts = greeting_.invites || std::ranges::any_of(targets_, leads_away);
  const Clock::time_point next = Clock::now() + between_rounds;
  if (!lasts || ran_short() || next >= deadline_) return false;
  absence_ = attempts_.empty() && absent_ ? failures() + hints() : std::string();
  targets_.resize(addresses_);
  next_ = 0;
  next_start_ = next;
  return true;
}

bool Dialer::is_under_way(const Candidate& candidate) const {
  return std::ranges::any_of(attempts_, [&](const Attempt& each) {
    return !each.adopted && each.candidate.address == candidate.address &&
           each.candidate.port == candidate.port;
  });
}

// An address that is certain to be the peer's has had this side's greeting for a short time.
bool Dialer::awaits_certain() const {
  const auto time = std::min(time_to_answer, context_.options.connect_timeout / 3);
  const Clock::time_point now = Clock::now();
  return std::ranges::any_of(attempts_, [&](const Attempt& each) {
    return each.asks() && each.candidate.certain && now - std::max(each.asks_since, heard_) < time;
  });
}

void Dialer::add_to(std::vector<pollfd>& polls) const {
  for (const Attempt& attempt : attempts_) {
    const int events = attempt.asks() ? POLLIN : POLLOUT;
    polls.push_back({attempt.socket.fd(), static_cast<short>(events), 0});
    if (attempt.fresh) polls.push_back({attempt.fresh.fd(), POLLOUT, 0});
  }
}

// Where none of this process's interfaces is on the way, routes decide, among those that the user
// has chosen, if any.
std::optional<IpAddress> Dialer::source_for(const Candidate& candidate) const {
  if (candidate.source || candidate.here || context_.options.interfaces.empty()) {
    return candidate.source;
  }
  const auto routed = source_to(candidate.address);
  std::optional<IpAddress> first;
  for (const Interface& each : context_.chosen) {
    const bool fits = each.address.family == candidate.address.family;
    if (!fits || each.address.is_loopback()) continue;
    if (routed && each.address == *routed) return routed;
    if (!first) first = each.address;
  }
  return first;
}

Result<Socket> Dialer::make_socket_for(const Candidate& candidate) const {
  if (candidate.local) return make_local_socket(context_.options);
  auto made = make_socket(candidate.address, context_.options);
  const auto source = source_for(candidate);
  const int error = made.ok() && source ? connect_from(*made, *source) : 0;
  if (error != 0 && !context_.options.interfaces.empty()) {
    return system_error("cannot connect from " + source->text(), error);
  }
  return made;
}

// Begins to. 0, or an errno value if that is not possible.
int Dialer::begin_to_connect(const Socket& socket, const Candidate& candidate) const {
  if (greeting_.resumes) reset_when_closed(socket, true);
  const SocketAddress to = candidate.local ? local_address(greeting_.to, candidate.port)
                                           : to_socket_address(candidate.address, candidate.port);
  const auto* const address = reinterpret_cast<const sockaddr*>(&to.storage);
  const int error = -system_call([&] { return connect(socket.fd(), address, to.size); });
  return error == EINPROGRESS || error == EALREADY || error == EISCONN ? 0 : error;
}

void Dialer::start_next() {
  if (next_ == 0) {
    failures_.clear();
    absent_ = true;
  }
  const auto [candidate, closed] = targets_[next_++];
  if (greeting_.resumes && is_under_way(candidate)) return;
  next_start_ = Clock::now() + between_starts_;
  auto made = make_socket_for(candidate);
  while (!made.ok() && !has_descriptors(1) && context_.make_room && context_.make_room()) {
    made = make_socket_for(candidate);
  }
  if (!made.ok()) {
    absent_ = false;
    failures_.push_back({made.status().message(), made.status().error()});
    return;
  }
  Attempt attempt{candidate, closed, std::move(*made), std::max(deadline_, next_start_)};
  if (!candidate.local) attempt.renews_at = Clock::now() + between_fresh;
  attempt.error = begin_to_connect(attempt.socket, candidate);
  if (attempt.error != 0) {
    // The queue of the peer's local socket is full, so the peer is there, and late.
    const bool is_late = attempt.error == EAGAIN && candidate.local;
    if (!is_late) {
      note_end(attempt, attempt.error == ECONNREFUSED, nullptr);
      return;
    }
    --next_;
    next_start_ = Clock::now() + between_retries;
    return;
  }
  attempts_.push_back(std::move(attempt));
}

// Acts by the table until there is nothing to do now, or the attempt is over.
Dialer::Action Dialer::advance_attempt(Attempt& attempt) {
  Event event = attempt.asks() ? hear(attempt) : connect_further(attempt);
  for (;;) {
    const Dialing::Step step = Dialing::step(attempt.state, event);
    attempt.state = step.next;
    switch (step.action) {
      case Action::greet:
        event = greet(attempt);
        break;
      case Action::renew:
        renew(attempt);
        return Action::wait;
      case Action::hear:
        attempt.asks_since = Clock::now();
        event = hear(attempt);
        break;
      case Action::look:
        event = poll_attempt(attempt);
        break;
      case Action::wait_longer:
        attempt.until = Clock::now() + std::min<Clock::duration>(context_.options.connect_timeout,
                                                                 longest_between_looks);
        return Action::wait;
      case Action::confirm:
        event = confirm(attempt);
        break;
      case Action::retry:
        if (may_retry(attempt)) return step.action;
        event = Event::spent;
        break;
      case Action::miss:
      case Action::fail:
        note_end(attempt, step.action == Action::miss, step.why);
        return step.action;
      case Action::refuse:
        refused_ = true;
        return step.action;
      case Action::wait:
      case Action::take:
        return step.action;
    }
  }
}

// If both sockets are ready, the host has answered both.
Dialer::Event Dialer::connect_further(Attempt& attempt) const {
  pollfd ready[] = {{attempt.socket.fd(), POLLOUT, 0}, {attempt.fresh.fd(), POLLOUT, 0}};
  if (poll(ready, std::size(ready), 0) <= 0) {
    const Clock::time_point now = Clock::now();
    if (now < attempt.until) return now < attempt.renews_at ? Event::nothing : Event::unanswered;
    attempt.error = ETIMEDOUT;
    return Event::overdue;
  }
  if (ready[0].revents == 0) std::swap(attempt.socket, attempt.fresh);
  attempt.fresh.close();
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(attempt.socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0 && attempt.candidate.local && !is_of_this_user(attempt.socket)) error = EACCES;
  return error == 0 ? Event::connected : attempt.fails(error);
}

// Without another socket the first goes on.
void Dialer::renew(Attempt& attempt) const {
  attempt.renews_at = Clock::now() + between_fresh;
  attempt.fresh.close();
  if (!has_descriptors(descriptors_for_others)) return;
  auto made = make_socket_for(attempt.candidate);
  if (made.ok() && begin_to_connect(*made, attempt.candidate) == 0)
    attempt.fresh = std::move(*made);
}

// (A new socket has room for the greeting.)
Dialer::Event Dialer::greet(Attempt& attempt) const {
  std::byte bytes[Greeting::most_bytes];
  greeting_.encode(bytes);
  const int error = send_all(attempt.socket, {bytes, greeting_.size()});
  if (error != 0) return attempt.fails(error);
  return greeting_.invites ? Event::invited : Event::greeted;
}

Dialer::Event Dialer::hear(Attempt& attempt) {
  const size_t size = greeting_.size();
  const ssize_t got =
      receive(attempt.socket, attempt.bytes.data() + attempt.got, size - attempt.got);
  if (got == -EAGAIN) return wait_further(attempt);
  if (got < 0) return attempt.fails(static_cast<int>(-got));
  if (got == 0) return Event::ended;
  attempt.got += static_cast<size_t>(got);
  if (!Greeting::may_begin(attempt.bytes.data(), attempt.got)) return Event::noise;
  if (attempt.got < size) return Event::part;
  Greeting answer;
  if (Greeting::size_of(attempt.bytes.data()) != size || !answer.decode(attempt.bytes.data()) ||
      !is_answer(context_, answer, greeting_, pair_key_)) {
    return Event::noise;
  }
  answer_ = answer;
  return answer.refuses ? Event::refusal : Event::answer;
}

Dialer::Event Dialer::wait_further(const Attempt& attempt) const {
  if (is_spurned(attempt)) return Event::spurned;
  return Clock::now() < attempt.until ? Event::nothing : Event::overdue;
}

Dialer::Event Dialer::poll_attempt(Attempt& attempt) const {
  const auto limit = std::min(context_.options.connect_timeout, longest_silence);
  if (!is_unacknowledged(attempt.socket, limit)) return Event::acknowledged;
  attempt.error = ETIMEDOUT;
  return Event::unacknowledged;
}

// Sends the last proof, if one is due. EPIPE: the other side has closed, because it has waited for
// the proof too long.
Dialer::Event Dialer::confirm(Attempt& attempt) const {
  if (!greeting_.proves && !greeting_.resumes) return Event::confirmed;
  const Result<Key> proof =
      greeting_.proves ? last_proof(*context_.options.prover, pair_key_, greeting_, *answer_)
                       : greeting_.key;
  if (!proof.ok()) return attempt.fails(ENOMEM);
  std::byte next;
  if (receive(attempt.socket, &next, 1, MSG_PEEK) == 0) return attempt.fails(EPIPE);
  const int error = send_all(attempt.socket, *proof);
  return error == 0 ? Event::confirmed : attempt.fails(error);
}

Dialer::Event Dialer::Attempt::fails(int why) {
  error = why;
  if (error == ECONNREFUSED) return Event::absent;
  return error == ECONNRESET || error == EPIPE ? Event::closed : Event::failed;
}

// (One that resumes has rounds instead.)
bool Dialer::may_retry(Attempt& attempt) {
  if (!attempt.candidate.certain || attempt.adopted || greeting_.resumes) return false;
  if (attempt.closed == Clock::time_point{}) attempt.closed = Clock::now();
  return !is_spurned(attempt) && ++retries_ <= most_retries;
}

bool Dialer::is_spurned(const Attempt& attempt) const {
  return attempt.closed != Clock::time_point{} &&
         Clock::now() - attempt.closed >= context_.options.connect_timeout;
}

// absent: nobody, or another process, is there. why: nullptr: by its error. (The process that
// closes a connection may be the peer, and one that resumes ends by time: link/search.h.)
void Dialer::note_end(const Attempt& attempt, bool absent, const char* why) {
  const Candidate& candidate = attempt.candidate;
  const int error = attempt.error;
  const bool closed = why == nullptr && error != ECONNREFUSED;
  absent_ &= absent && !(closed && greeting_.resumes);
  gone_ |= greeting_.resumes && error == ECONNREFUSED && candidate.carried;
  std::string text = "the connection that it made";
  if (!attempt.adopted) {
    text = candidate.local ? "its local socket" : endpoint_text(candidate.address, candidate.port);
    if (!candidate.interface.empty()) text += " over " + candidate.interface;
  }
  using Reasons = Dialing::Reasons;
  if (why == nullptr && error == 0) why = attempt.got > 0 ? Reasons::cut_off : Reasons::closed;
  failures_.push_back({text + ": " + (why == nullptr ? error_text(error) : why), error});
}

std::string Dialer::failures() const {
  std::string texts;
  for (const Failure& each : failures_) texts += (texts.empty() ? "" : "; ") + each.text;
  return texts;
}

// That nobody listens at one address says nothing if another could not be tried.
std::string Dialer::hints() const {
  std::string hints;
  for (const Failure& each : failures_) {
    const std::string hint = hint_of(each.error);
    const bool tells = absent_ || !shows_absence(each.error);
    if (!hint.empty() && tells && hints.find(hint) == std::string::npos) hints += "; " + hint;
  }
  return hints;
}

bool Dialer::ran_short() const {
  return std::ranges::any_of(failures_, is_shortage, &Failure::error);
}

Code Dialer::code() const {
  if (absent_ || gone_) return Code::peer_lost;
  const bool timed_out =
      std::ranges::find(failures_, ETIMEDOUT, &Failure::error) != failures_.end();
  return timed_out ? Code::timeout : Code::unavailable;
}

}  // namespace sluice
