// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/rails.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "src/base/log.h"
#include "transports/link/connection.h"
#include "transports/link/flow.h"
#include "transports/pieces.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds between_makings{10};
constexpr std::chrono::microseconds between_dialings{100};
constexpr std::chrono::seconds awaited{2};
constexpr size_t descriptors_to_spare = 32;

}  // namespace

Rail* Rails::find(uint32_t number) {
  const auto is_it = [&](const auto& each) { return each->number() == number; };
  const auto found = std::ranges::find_if(rails_, is_it);
  return found == rails_.end() ? nullptr : found->get();
}

bool Rails::asks() const {
  return Meeting::side_of(shared_.options.self, peer_.process) == Meeting::Side::asks;
}

size_t Rails::open() const {
  return static_cast<size_t>(
      std::ranges::count_if(rails_, [](const auto& each) { return each->may_send(); }));
}

// How they are made.

void Rails::begin_to_dial() {
  if (std::exchange(wanted_, true)) return;
  awaited_until_ = Clock::now() + awaited;
}

bool Rails::awaits() const {
  return wanted_ && has_room() && !asks() && Clock::now() < awaited_until_;
}

Rail& Rails::add(std::unique_ptr<Rail> rail) {
  seen_.set(rail->number());
  rails_.push_back(std::move(rail));
  return *rails_.back();
}

// Starts to dial as many as are missing.
void Rails::make() {
  if (!wanted_ || !has_room() || !asks() || !connection_.is_settled()) return;
  const auto now = Clock::now();
  if (now < make_at_) return;
  make_at_ = now + between_makings;
  if (!has_descriptors(descriptors_to_spare + shared_.options.streams)) {
    return note_short("this process has few descriptors left");
  }
  heard_ = connection_.reader().inbox().received();
  while (has_room() && next_number_ <= last_number) {
    auto dialer = connector_.dial_rail(next_number_);
    if (!dialer.ok()) return note_short(dialer.status().message());
    add(std::make_unique<Rail>(next_number_++, std::move(*dialer)));
  }
}

void Rails::note_short(const std::string& why) {
  if (std::exchange(told_, true)) return;
  log(Level::info, "to %s there are %zu of %u connections for large messages: %s",
      peer_.label.c_str(), open(), shared_.options.streams, why.c_str());
}

void Rails::note_heard() {
  const uint64_t received = connection_.reader().inbox().received();
  if (received == std::exchange(heard_, received)) return;
  for (const auto& each : rails_) {
    if (each->dialer() != nullptr) each->dialer()->note_heard();
  }
}

// Whether to look at those that dial: each takes a system call or two, perhaps for minutes.
bool Rails::is_dialing_due() {
  if (std::ranges::all_of(rails_, [](const auto& each) { return each->is_open(); })) return false;
  const auto now = Clock::now();
  if (now < dial_at_) return false;
  dial_at_ = now + between_dialings;
  return true;
}

// Goes on dialing.
void Rails::dial() try {
  make();
  note_heard();
  if (is_dialing_due()) {
    (void)move([](Rail& each) { return !each.is_open(); },
               [this](Rail& each) { return go_on(each); });
  }
} catch (const std::bad_alloc&) {
  make_at_ = Clock::now() + between_makings;
}

// With one that is not open.
bool Rails::go_on(Rail& rail) {
  if (rail.dialer() == nullptr) return drop(rail, Sign::broke, "no memory for its filter");
  const auto state = rail.dialer()->advance();
  if (state == Dialer::State::dialing) return false;
  if (state == Dialer::State::failed) {
    return drop(rail, Sign::broke, rail.dialer()->failures());
  }
  const Status taken = take_dialed(rail);
  return taken.ok() || drop(rail, Sign::broke, taken.message());
}

Status Rails::take_dialed(Rail& rail) {
  const Greeting answer = *rail.dialer()->answer();
  const bool within_host = connector_.counts_as_within_host();
  Status agreed = check(answer, within_host);
  if (!agreed.ok()) return agreed;
  rail.connect(rail.dialer()->take_socket(), within_host, is_filtered(shared_, within_host),
               shared_.options.peer_timeout);
  if (!answer.proves) rail.confirm();
  return open_filter(rail);
}

Status Rails::check(const Greeting& theirs, bool within_host) const {
  Status same = check_settings(shared_, peer_, theirs);
  return same.ok() ? check_terms(shared_, peer_, theirs, within_host) : same;
}

void Rails::accept(Socket socket, const Greeting& theirs) {
  drop_ended();
  const bool is_new = theirs.rail > 0 && theirs.rail <= last_number && !seen_[theirs.rail];
  if (!is_new || asks() || !has_room() || !connection_.is_settled()) return;
  const bool within_host = connector_.counts_as_within_host();
  if (!check(theirs, within_host).ok() || !has_descriptors(descriptors_to_spare)) return;
  seen_.set(theirs.rail);  // it may come by several addresses, and is answered once
  if (!theirs.proves && !answer(socket, theirs)) return;
  auto rail =
      std::make_unique<Rail>(theirs.rail, std::move(socket), within_host,
                             is_filtered(shared_, within_host), shared_.options.peer_timeout);
  if (!open_filter(*rail).ok()) return;
  add(std::move(rail));
  if (!theirs.proves) return;
  Frame frame{FrameType::rail};
  frame.number = theirs.rail;
  connection_.out().push({frame});
}

bool Rails::confirm(uint32_t number) {
  Rail* const rail = find(number);
  if (rail != nullptr) rail->confirm();
  return rail != nullptr || (number < next_number_ && asks());
}

// Without proofs. (A new socket has room for it.)
bool Rails::answer(const Socket& socket, const Greeting& theirs) const {
  const auto words =
      make_greeting(shared_, peer_, {}, false, FirstWords::greeting, {}, theirs.rail);
  std::byte bytes[Greeting::bytes];
  if (!words.ok() || words->size() != sizeof(bytes)) return false;
  words->encode(bytes);
  return send_all(socket, bytes) == 0;
}

Status Rails::open_filter(Rail& rail) const {
  Status added = add_filter(shared_, peer_, rail.conduits());
  // Begins the handshake, as nobody else would.
  if (added.ok() && rail.conduits().filter()) (void)rail.conduits().way_in().read({});
  return added;
}

// How they end.

// It ended when it was to be moved on.
void Rails::end(Rail& rail, const Rail::Outcome& outcome, const char* shortage) {
  if (!outcome.ran_short) return (void)drop(rail, outcome.sign, outcome.how);
  link_.fail({Code::memory, shortage + peer_.label + ": " + outcome.how});
}

// That was noticed of a rail with such parts. False if the link fails.
bool Rails::may_drop(Sign sign, Diagnosis::Bytes parts, const std::string& how) {
  const auto side = asks() ? Diagnosis::Side::asks : Diagnosis::Side::answers;
  const Diagnosis found =
      Diagnosis::of({side, Diagnosis::Stage::rail, sign, parts, Diagnosis::Limit::passed});
  if (found.remedy != Diagnosis::Remedy::give_up) return true;
  link_.fail(explain(found.cause, peer_.label, {}, {Code::peer_lost, how}));
  return false;
}

// The rail has ended, or never began. False if the link fails, because something is on its way.
bool Rails::drop(Rail& rail, Sign sign, const std::string& how) {
  const bool is_amid = rail.is_due() || rail.has_parts();
  if (!may_drop(sign, is_amid ? Diagnosis::Bytes::lost : Diagnosis::Bytes::none, how)) return false;
  carried_ += rail.carried();
  std::erase_if(rails_, [&](const auto& each) { return each.get() == &rail; });
  note_short(how);
  return true;
}

void Rails::drop_ended() {
  for (size_t i = 0; i < rails_.size();) {
    const bool idle = !rails_[i]->is_due() && !rails_[i]->has_parts();
    if (!idle || !rails_[i]->has_ended()) {
      ++i;
    } else {
      (void)drop(*rails_[i], Sign::ended, "it was closed");
    }
  }
}

// One that carries nothing is not waited for: the peer's host may answer on the other network.
void Rails::check_rails() {
  drop_ended();
  (void)move([](Rail& each) { return each.is_due() || each.sends(); },
             [this](Rail& each) { return drop_silent(each); });
}

bool Rails::drop_silent(Rail& rail) {
  const Sign sign = rail.judge(connector_, shared_.options.peer_timeout);
  if (sign == Sign::nothing) return false;
  const std::string how = "its host has not answered for " +
                          std::to_string(rail.silence().count() / 1000) +
                          " s on a connection for large messages";
  return drop(rail, sign, how + (sign == Sign::broke ? ", though it does on others" : ""));
}

void Rails::rest() {
  for (const auto& each : rails_) each->rest();
}

bool Rails::flushed() const {
  return std::ranges::all_of(rails_, [](const auto& each) { return each->is_delivered(); });
}

void Rails::close() {
  uint64_t bytes = std::exchange(carried_, 0);
  std::string each_carried;
  for (const auto& each : rails_) {
    bytes += each->carried();
    each_carried += (each_carried.empty() ? "" : ", ") + std::to_string(each->carried());
  }
  if (bytes > 0) {
    log(Level::info, "to and from %s large messages had %llu bytes over %zu connections: %s",
        peer_.label.c_str(), static_cast<unsigned long long>(bytes), open(), each_carried.c_str());
  }
  rails_.clear();
  coming_.clear();
  has_bye_ = false;
}

// Whether they are to be used.

void Rails::note_expected(size_t bytes) {
  choice_.note_expected(bytes);
  want();
}

// What the probe has found.
void Rails::tell() {
  const auto news = choice_.news();
  if (!news) return;
  log(Level::info, "to %s %s", peer_.label.c_str(), news->data());
  if (choice_.has_chosen_several()) ++shared_.spreading;
}

bool Rails::add_flow(const Rail& rail, SpreadProbe::Sample& sample) {
  Flow flow;
  if (!ask_flow(rail.conduits().socket(), &flow)) return false;
  sample.spread.acknowledged += flow.acknowledged;
  sample.spread.outstanding += flow.outstanding;
  sample.spread.shut += flow.shut;
  sample.spread_waits |= rail.has_parts();
  return true;
}

void Rails::watch(bool will_write) {
  if (!choice_.measures()) return;
  const auto now = Clock::now();
  if (!connection_.is_settled() || !choice_.is_due(now, will_write)) return;
  SpreadProbe::Sample sample;
  sample.from = now.time_since_epoch();
  bool knows = ask_flow(connection_.conduits().socket(), &sample.alone);
  for (const auto& each : rails_) knows &= !each->is_open() || add_flow(*each, sample);
  sample.to = Clock::now().time_since_epoch();
  sample.neighbours = shared_.spreading > 0;  // this link still tries
  if (!knows) return;
  choice_.observe(sample, [] { return sent_by_interfaces(); });
  tell();
}

size_t Rails::in_use() const { return choice_.is_in_use() ? open() : 0; }

// How messages go over them.

bool Rails::spreads(const Operation& send) {
  if (send.pieces.size() > most_pieces) return false;
  const bool spreads = choice_.spreads(send.bytes, open());
  want();
  tell();
  if (spreads) drop_ended();
  return spreads;
}

// Empty: there is no rail to send on. Otherwise there is memory to push the parts.
std::vector<Share> Rails::plan(const Operation& send) {
  std::vector<Load> loads;
  for (size_t i = 0; i < rails_.size(); ++i) {
    const auto load = rails_[(turn_ + i) % rails_.size()]->load(shared_.options.peer_timeout);
    if (load) loads.push_back(*load);
  }
  return cut(send.bytes, std::move(loads));
}

bool Rails::send(Operation* send, const TeamId& team, bool charged) try {
  const std::vector<Share> parts = plan(*send);
  if (parts.empty()) return false;
  Frame frame{FrameType::spread, charged, 0, team, send->tag};
  frame.number = static_cast<uint32_t>(send->bytes);
  connection_.out().push(frame, encode(parts), false, send);
  send->parts = parts.size() + 1;  // with the SPREAD
  turn_ += parts.size();
  size_t offset = 0;
  for (const Share& each : parts) {
    find(each.rail)->push(send, team, offset, each.bytes);
    offset += each.bytes;
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

SpreadReceive* Rails::expect(size_t bytes, const std::vector<Share>& parts) {
  choice_.note_received(true);
  coming_.push_back(std::make_unique<SpreadReceive>());
  SpreadReceive* const made = coming_.back().get();
  made->missing = bytes;
  size_t offset = 0;
  for (const Share& each : parts) {
    Rail* const rail = find(each.rail);
    if (rail == nullptr) {
      (void)may_drop(Sign::broke, Diagnosis::Bytes::lost, "what was on its way is lost");
      return nullptr;
    }
    rail->expect(made, offset, each.bytes);
    offset += each.bytes;
  }
  return made;
}

bool Rails::drive() try {
  if (wanted_) dial();
  if (!link_.status().ok() || !is_busy()) return false;
  std::array<pollfd, most_rails> polls;
  const size_t count = rails_.size();
  for (size_t i = 0; i < count; ++i) polls[i] = rails_[i]->poll_for(link_.wanted());
  if (poll(polls.data(), count, 0) < 0) return false;
  for (size_t i = 0; i < count; ++i) rails_[i]->note_events(polls[i].revents);
  const bool sent = move([](Rail& each) { return each.is_ready() && each.sends(); },
                         [this](Rail& each) { return flush(each); });
  if (!link_.status().ok() || !link_.wanted()) return sent;
  return receive([](Rail& each) { return each.is_ready() || each.is_buffered(); }) || sent;
} catch (const std::bad_alloc&) {
  link_.fail(shared_.no_memory);
  return true;
}

bool Rails::read() try {
  return receive([](Rail&) { return true; });
} catch (const std::bad_alloc&) {
  link_.fail(shared_.no_memory);
  return true;
}

// From the rails that are so, and have parts due.
bool Rails::receive(auto is_so) {
  const bool moved = move([&](Rail& each) { return each.is_due() && is_so(each); },
                          [this](Rail& each) { return read_from(each); });
  if (link_.status().ok()) finish_receives();
  return moved;
}

// Does that with each rail that is so; it may drop the rail, or fail the link.
bool Rails::move(auto is_so, auto act) {
  bool moved = false;
  for (size_t i = 0; i < rails_.size();) {
    const size_t before = rails_.size();
    if (is_so(*rails_[i])) moved |= act(*rails_[i]);
    if (rails_.size() == before) ++i;
  }
  return moved;
}

bool Rails::read_from(Rail& rail) {
  const Rail::Outcome outcome = rail.read();
  shared_.ready.unfinished |= outcome.unfinished;
  if (outcome.ended) end(rail, outcome, "no memory to receive from ");
  return outcome.moved || outcome.ended;
}

bool Rails::flush(Rail& rail) {
  if (torn_) {
    link_.fail({Code::memory, "no memory for the rest of a message to " + peer_.label});
    return true;
  }
  const Rail::Outcome outcome = rail.flush(shared_.options.connect_timeout);
  finish_sends(outcome.done);
  if (outcome.ended) end(rail, outcome, "no memory to send to ");
  return outcome.moved || outcome.ended;
}

void Rails::flush_now() {
  (void)move([](Rail& each) { return each.may_flush(); },
             [this](Rail& each) { return flush(each); });
  if (link_.wanted() && is_buffered()) shared_.ready.unfinished = true;
}

void Rails::finish_sends(Operation* sent) {
  while (sent != nullptr) {
    Operation* const each = std::exchange(sent, sent->next);
    --link_.demand.sends;
    shared_.completions.finish(each);
  }
}

// Ends the receives of messages of which all parts have come.
void Rails::finish_receives() {
  for (size_t i = 0; i < coming_.size();) {
    if (coming_[i]->missing > 0) {
      ++i;
      continue;
    }
    const std::unique_ptr<SpreadReceive> done = std::move(coming_[i]);
    coming_.erase(coming_.begin() + static_cast<ptrdiff_t>(i));
    const ReceiveInProgress& at = done->at;
    if (done->aside != nullptr && at.receive != nullptr) {
      scatter(at.receive->pieces, 0, done->aside.get(), at.frame.length);
    }
    if (at.stream != nullptr) at.stream->end_receive(at);
  }
  if (has_bye_ && coming_.empty()) link_.fail_for_bye();
}

bool Rails::has_to_send() const {
  return std::ranges::any_of(rails_, [](const auto& each) { return each->sends(); });
}

bool Rails::is_busy() const {
  return std::ranges::any_of(rails_, [](const auto& each) {
    return each->sends() || each->is_due() || each->dialer() != nullptr;
  });
}

void Rails::add_to(std::vector<pollfd>& polls) const {
  for (const auto& each : rails_) {
    if (each->dialer() != nullptr) {
      each->dialer()->add_to(polls);
    } else if (each->is_due() || each->sends()) {
      polls.push_back(each->poll_for(link_.wanted()));
    }
  }
}

bool Rails::is_buffered() const {
  return std::ranges::any_of(rails_, [](const auto& each) { return each->is_buffered(); });
}

bool Rails::may_sleep() const { return !link_.wanted() || !is_buffered(); }

SpreadReceive* Rails::find(const UnexpectedMessage& unexpected) {
  const auto is_it = [&](const auto& each) { return each->at.unexpected == &unexpected; };
  const auto found = std::ranges::find_if(coming_, is_it);
  return found == coming_.end() ? nullptr : found->get();
}

void Rails::forget(const Stream& stream) {
  visit(stream, [](SpreadReceive& each) {
    each.at.stream = nullptr;
    each.at.unexpected = nullptr;
  });
}

Operation* Rails::withdraw(const TeamId& team, std::optional<uint32_t> call) {
  Operation* all = nullptr;
  for (const auto& each : rails_) {
    const Rail::GivenUp given = each->withdraw(team, call);
    torn_ |= given.torn;
    for (Operation* send = given.sends; send != nullptr;) {
      Operation* const next = send->next;
      send->next = std::exchange(all, send);
      send = next;
    }
  }
  return all;
}

Rails& LazyRails::make() {
  if (!rails_) {
    rails_ = std::make_unique<Rails>(link_, connection_, shared_, peer_, connector_);
  }
  rails_->want();
  return *rails_;
}

bool LazyRails::want(size_t bytes) {
  if (shared_.options.streams < 2 || bytes < least_spread) return false;
  const bool within_host =
      connection_ ? connection_.conduits().within_host() : connector_.may_be_within_host();
  if (shared_.options.tries_streams && within_host) return false;
  make();
  return true;
}

}  // namespace sluice
