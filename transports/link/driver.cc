// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/driver.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "src/base/log.h"
#include "src/base/random.h"
#include "src/base/system_call.h"

namespace sluice {
namespace {

// Up to this number, links are driven one by one; above it, one poll selects those to drive.
constexpr size_t few_links = 2;
constexpr std::chrono::microseconds longest_sleep{std::chrono::milliseconds(250)};
constexpr std::chrono::milliseconds check_every{500};  // a death is noticed within a second
constexpr std::chrono::milliseconds check_ends_every{100};
constexpr uint32_t turns_between_clocks = 4096;

// The driver that this thread drove last, and its completion count then. If that has changed,
// another thread may have completed this thread's operation, so this thread must not sleep.
struct Known {
  const Driver* driver = nullptr;
  uint64_t finished = 0;
};
thread_local Known known;

}  // namespace

// Holds the lock, and wakes sleeping threads if an operation completed or was posted.
class Driver::Section {
 public:
  explicit Section(Driver& driver) : driver_(driver) {
    driver_.lock_.lock();
    finished_before_ = driver_.shared_.completions.finished;
  }
  ~Section() {
    if (driver_.sleepers_ > 0 &&
        (posted_ || driver_.shared_.completions.finished != finished_before_)) {
      driver_.wake();
    }
    driver_.lock_.unlock();
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  // Sleeping threads must poll for more.
  void note_post() { posted_ = true; }

 private:
  Driver& driver_;
  uint64_t finished_before_ = 0;
  bool posted_ = false;
};

Driver::Driver(const TcpOptions& options)
    : acceptor_(
          shared_,
          [this](const ProcessId& process, bool invites) { return find_greeter(process, invites); },
          [this](const Greeting& said) { return link(said.from).prepare(said); },
          [this](const ProcessId& process, int error) { link(process).note_missed(error); },
          [this](const ProcessId& process, Acceptor::Reply reply, const std::string& address) {
            link(process).uninvited(reply, address);
          }) {
  shared_.options = options;
  shared_.make_room = [this] {
    const auto lets_go = [](const auto& each) { return each.second->let_go(); };
    return acceptor_.drop_one() || std::ranges::any_of(links_, lets_go);
  };
  shared_.await_greeting = [this](Socket socket, const Greeting& invitation) {
    acceptor_.await_greeting(std::move(socket), invitation);
  };
  shared_.is_invited = [this](const ProcessId& process) { return acceptor_.is_invited(process); };
  shared_.reaches = [this](const std::string& host) {
    return std::ranges::any_of(links_,
                               [&](const auto& each) { return each.second->reaches(host); });
  };
}

Driver::~Driver() { explicit_bzero(shared_.key.data(), shared_.key.size()); }

Status Driver::start() {
  if (!shared_.options.filter) {
    const Status drawn = draw_random(shared_.key.data(), shared_.key.size());
    if (!drawn.ok()) return drawn;
  }
  shared_.host = host_identity();
  auto all = local_interfaces();
  if (!all.ok()) return all.status();
  shared_.all = std::move(*all);
  auto chosen = choose_interfaces(shared_.all, shared_.options.interfaces, shared_.options.family);
  if (!chosen.ok()) return chosen.status();
  shared_.chosen = std::move(*chosen);
  note_unmatched_items();
  if (Status status = open_pipe(); !status.ok()) return status;
  return acceptor_.open();
}

Status Driver::open_pipe() {
  int ends[2];
  const int error = system_call([&] { return pipe2(ends, O_CLOEXEC | O_NONBLOCK); });
  if (error != 0) return system_error("no pipe", -error);
  wakeup_ = Descriptor(ends[0]);
  waker_ = Descriptor(ends[1]);
  const int lack = wakeup_ ? waker_.error() : wakeup_.error();
  return lack != 0 ? system_error("no pipe", lack) : Status();
}

// A list that excludes may be for hosts of several kinds.
void Driver::note_unmatched_items() const {
  const std::string& list = shared_.options.interfaces;
  const std::string unmatched = unmatched_items(shared_.all, list, shared_.options.family);
  const auto parsed = InterfaceList::parse(list);
  const bool excludes = parsed.ok() && parsed->excludes();
  const Level level = excludes ? Level::info : Level::warning;
  if (!unmatched.empty()) log(level, "%s", unmatched.c_str());
}

Traffic Driver::traffic() {
  const std::lock_guard lock(lock_);
  return shared_.traffic;
}

std::vector<std::byte> Driver::address() const {
  AddressBlob blob{shared_.host, shared_.key, acceptor_.entries()};
  if (const auto& prover = shared_.options.prover) {
    blob.proves = true;
    blob.public_key = prover->public_key();
  }
  return blob.encode();
}

void Driver::expect(std::span<const Peer> peers, std::vector<ProcessId>* met) {
  Section section(*this);
  for (const Peer& peer : peers) {
    peer_keys_.add(peer);
    met->push_back(peer.process);
  }
  acceptor_.expect(peer_keys_.size());
  section.note_post();  // a peer that waits to be known can be answered
}

void Driver::part(std::span<const ProcessId> met) noexcept {
  Section section(*this);
  for (const ProcessId& process : met) peer_keys_.remove(process);
  acceptor_.expect(peer_keys_.size());  // no more than before
}

Link& Driver::link(const ProcessId& process) {
  const auto found = links_.find(process);
  if (found != links_.end()) return *found->second;
  return *links_.emplace(process, std::make_unique<Link>(shared_, process)).first->second;
}

Result<Driver::Route> Driver::open(const TeamId& team, const Peer& peer) try {
  Section section(*this);
  if (peer.process == shared_.options.self) {
    return Status(Code::invalid, "a process has no link to itself");
  }
  if (!links_.contains(peer.process)) check_ends(Clock::now());
  Link& to = link(peer.process);
  const Result<Stream*> stream = to.open(team, peer);
  if (!stream.ok()) return stream.status();
  return Route{&to, *stream};
} catch (const std::bad_alloc&) {
  return shared_.no_memory_to_connect;
}

bool Driver::has_met(const ProcessId& process) {
  Section section(*this);
  const auto found = links_.find(process);
  return found != links_.end() && found->second->has_met();
}

void Driver::close(const Route& route) {
  Section section(*this);
  route.link->close(*route.stream);
  route.link->flush_now();
}

bool Driver::post_send(const Route& route, Operation* operation) {
  Section section(*this);
  section.note_post();
  shared_.completions.posting = operation;
  route.stream->post_send(operation);
  route.link->flush_now();
  return std::exchange(shared_.completions.posting, nullptr) == nullptr;
}

bool Driver::post_recv(const Route& route, Operation* operation) {
  Section section(*this);
  section.note_post();
  shared_.completions.posting = operation;
  route.stream->post_recv(operation);
  route.link->parse_received();
  route.link->flush_now();
  return std::exchange(shared_.completions.posting, nullptr) == nullptr;
}

void Driver::withdraw(const Route& route) {
  Section section(*this);
  route.stream->withdraw();
  route.link->flush_now();
}

void Driver::abort(const Route& route, const std::string& cause) {
  Section section(*this);
  route.stream->abort(cause);
  route.link->flush_now();
}

const char* Driver::carrier(const Route& route) {
  Section section(*this);
  return route.link->carrier();
}

bool Driver::abort_sent(const Route& route) {
  Section section(*this);
  return route.link->abort_sent();
}

Status Driver::aborted_by_peer(const Route& route) {
  Section section(*this);
  (void)route.link->read_unasked();
  return route.stream->aborted_by_peer();
}

Status Driver::failure(const Route& route) {
  Section section(*this);
  return route.link->read_unasked();
}

bool Driver::progress() {
  Section section(*this);
  shared_.completions.heard = shared_.completions.finished;
  if (++turns_ % turns_between_clocks == 0) check_links(Clock::now());
  bool moved = anything_awaited() && admit();
  const bool few = shared_.ready.links.size() <= few_links || shared_.ready.unfinished;
  shared_.ready.unfinished = false;
  moved |= few ? drive_all() : drive_ready();
  std::erase_if(shared_.ready.links, [](Link* link) { return !link->stays_listed(); });
  remember();
  return moved;
}

bool Driver::drive_all() {
  bool moved = false;
  for (Link* link : shared_.ready.links) moved |= link->drive();
  return moved;
}

bool Driver::drive_ready() {
  bool moved = false;
  polls_.clear();
  asked_.clear();
  for (Link* link : shared_.ready.links) {
    if (const auto events = link->poll_first()) {
      polls_.push_back(*events);
      asked_.push_back(link);
    } else {
      moved |= link->drive();
    }
  }
  if (asked_.empty() || poll(polls_.data(), polls_.size(), 0) < 0) return moved;
  for (size_t i = 0; i < polls_.size(); ++i) {
    if (polls_[i].revents != 0) moved |= asked_[i]->drive();
  }
  return moved;
}

bool Driver::anything_awaited() const {
  return std::any_of(shared_.ready.links.begin(), shared_.ready.links.end(),
                     [](const Link* link) { return link->awaits_peer(); });
}

// If there is no memory for a connection, that is closed, and the peer tries again.
bool Driver::admit() try {
  const auto any = acceptor_.admit([this](Socket socket, const Greeting& greeting) {
    link(greeting.from).accept(std::move(socket), greeting);
  });
  if (any.ok()) return *any;
  for (Link* each : shared_.ready.links) each->run_short(any.status());
  return true;
} catch (const std::bad_alloc&) {
  return true;
}

Acceptor::Greeter Driver::find_greeter(const ProcessId& process, bool invites) const {
  const auto found = links_.find(process);
  const auto brought = invites ? Meeting::Event::invited : Meeting::Event::greeted;
  const Meeting apart(Meeting::side_of(shared_.options.self, process));
  Acceptor::Greeter from = found == links_.end() ? Admission::greeter_of(apart.answer_to(brought))
                                                 : found->second->greeter(brought);
  if (from.known) return from;
  const std::optional<PublicKey>* const met = peer_keys_.find(process);
  from.in_team = met != nullptr;
  from.known = from.in_team && !invites;
  if (from.known) from.key = *met;
  return from;
}

void Driver::check_links(Clock::time_point now) {
  if (now - looked_after_ < check_every) return;
  looked_after_ = now;
  (void)admit();  // peers may connect although nothing is pending, or not know that a link failed
  for (Link* link : shared_.ready.links) link->check_peer();
  if (sleepers_ > 0) wake();  // check_links may have read their wake-up bytes
}

// For links that no operation waits for. Programs that spawn thousands of others would run out of
// descriptors without this.
void Driver::check_ends(Clock::time_point now) {
  if (now - looked_for_ends_ < check_ends_every) return;
  looked_for_ends_ = now;
  for (auto& [process, link] : links_) link->check_end();
  std::erase_if(links_, [](const auto& each) { return each.second->forgotten(); });
}

void Driver::wait(std::chrono::microseconds limit) {
  std::vector<pollfd> polls;
  size_t sockets = 0;
  {
    Section section(*this);
    const bool missed = woken_ || missed_anything();
    remember();
    if (missed || shared_.ready.unfinished || !may_sleep()) return check_links(Clock::now());
    polls.swap(polls_);
    sockets = collect_polls(polls);
    ++sleepers_;
  }
  limit = std::clamp(limit, std::chrono::microseconds(0), longest_sleep);
  const timespec time{limit.count() / 1000000, limit.count() % 1000000 * 1000};
  const bool any = ppoll(polls.data(), polls.size(), &time, nullptr) != 0;
  Section section(*this);
  if (--sleepers_ == 0 && woken_) {
    char byte;
    woken_ = wakeup_.is_taken() || read(wakeup_.fd(), &byte, 1) < 0;
  }
  const auto has_event = [](const pollfd& each) { return each.revents != 0; };
  const bool rings = std::any_of(polls.begin(), polls.begin() + ptrdiff_t(sockets), has_event);
  polls_.swap(polls);
  stop_sleeping({any, rings, sleepers_ == 0});
  const Clock::time_point now = Clock::now();
  check_links(now);
  check_ends(now);
}

bool Driver::may_sleep() {
  return std::all_of(shared_.ready.links.begin(), shared_.ready.links.end(),
                     [](Link* link) { return link->may_sleep(); });
}

// The wake-up that this thread read may have been for another thread too.
void Driver::stop_sleeping(const Link::Polled& polled) {
  bool heard = false;
  for (Link* link : shared_.ready.links) heard |= link->awake(polled);
  if (heard && sleepers_ > 0) wake();
}

size_t Driver::collect_polls(std::vector<pollfd>& polls) {
  polls.clear();
  beside_.clear();
  for (const Link* link : shared_.ready.links) link->add_to(polls, beside_);
  const size_t sockets = polls.size();
  for (const int descriptor : beside_) polls.push_back({descriptor, POLLIN, 0});
  if (anything_awaited()) acceptor_.add_to(polls);
  polls.push_back({wakeup_.fd(), POLLIN, 0});
  return sockets;
}

bool Driver::missed_anything() const {
  return known.driver != this || known.finished != shared_.completions.finished;
}

void Driver::remember() { known = {this, shared_.completions.finished}; }

void Driver::wake() {
  if (woken_ || wakeup_.is_taken() || waker_.is_taken()) return;
  const char byte = 1;
  woken_ = write(waker_.fd(), &byte, 1) > 0;
}

void Driver::say_bye() {
  Section section(*this);
  for (auto& [process, link] : links_) link->say_bye();
}

void Driver::close_all() {
  say_bye();
  const Clock::time_point until = Clock::now() + shared_.options.linger;
  while (!all_flushed() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  Section section(*this);
  acceptor_.close();
  for (auto& [process, link] : links_) {
    link->fail({Code::internal, "this process's endpoint is closed"});
    (void)link->let_go();
  }
  shared_.ready.links.clear();
}

bool Driver::all_flushed() {
  Section section(*this);
  bool flushed = true;
  for (auto& [process, link] : links_) {
    flushed &= link->finish();
  }
  return flushed;
}

}  // namespace sluice
