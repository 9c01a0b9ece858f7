// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/rail.h"
#include "src/base/system_call.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "transports/pieces.h"

namespace sluice {
namespace {

constexpr int most_turns = 16;              // reads or writes in one turn
constexpr size_t spare_bytes = 16 << 10;    // on the stack, for what is not read into place
constexpr size_t least_straight = 8 << 10;  // that one read should place, else it is copied

}  // namespace

// Memory for one write or read.
class Rail::Runs {
 public:
  static constexpr size_t most = 64;

  bool add(std::byte* data, size_t size) {
    if (count_ == most) return false;
    runs_[count_++] = {data, size};
    bytes_ += size;
    return true;
  }
  // Those bytes of the pieces. False if they did not all find room.
  bool add(std::span<const Bytes> pieces, size_t offset, size_t bytes) {
    for (const Bytes& each : pieces) {
      const size_t skipped = std::min(offset, each.size),
                   size = std::min(each.size - skipped, bytes);
      offset -= skipped;
      if (size > 0 && !add(each.data + skipped, size)) return false;
      bytes -= size;
      if (bytes == 0) return true;
    }
    return true;
  }
  void clear() { count_ = bytes_ = 0; }
  size_t bytes() const { return bytes_; }
  std::span<const iovec> all() const { return {runs_.data(), count_}; }

 private:
  std::array<iovec, most> runs_;
  size_t count_ = 0, bytes_ = 0;
};

void Rail::connect(Socket socket, bool within_host, bool filters, Vigil::Duration peer_timeout) {
  dialer_.reset();
  conduits_.connect(std::move(socket), within_host, false, filters);
  keep_alive(conduits_.socket(), peer_timeout);
}

void Rail::push(Operation* send, const TeamId& team, size_t offset, size_t bytes) {
  out_.push_back({send, team, offset, bytes});
}

void Rail::expect(SpreadReceive* receive, size_t offset, size_t bytes) {
  due_.push_back({receive, offset, bytes});
}

std::optional<Load> Rail::load(Vigil::Duration limit) {
  if (!may_send() || doubt_.forbids(conduits_.socket(), limit)) return std::nullopt;
  out_.reserve(out_.size() + 1);
  return Load{number_, queued()};
}

size_t Rail::queued() const {
  int left = 0;
  if (is_open() && ioctl(conduits_.socket().fd(), SIOCOUTQ, &left) != 0) left = 0;
  size_t bytes = static_cast<size_t>(left);
  for (size_t i = first_; i < out_.size(); ++i) bytes += out_[i].bytes - out_[i].taken;
  return bytes;
}

// How they are sent.

void Rail::fill(Runs& runs) const {
  for (size_t i = first_; i < out_.size(); ++i) {
    const Outgoing& each = out_[i];
    const size_t left = each.bytes - each.taken;
    const bool all = each.copy ? runs.add(each.copy.get() + each.taken - each.copied_from, left)
                               : runs.add(each.send->pieces, each.offset + each.taken, left);
    if (!all) return;
  }
}

void Rail::note_taken(size_t bytes) {
  while (bytes > 0) {
    Outgoing& front = out_[first_];
    const size_t some = std::min(bytes, front.bytes - front.taken);
    front.taken += some;
    taken_ += some;
    bytes -= some;
    if (front.taken < front.bytes) return;
    front.end = taken_;
    ++first_;
  }
}

// Drops the parts that have left, of which the conduit holds nothing any more.
void Rail::complete(Outcome& outcome) {
  const uint64_t gone = taken_ - std::min<uint64_t>(conduits_.way_out().unsent(), taken_);
  size_t count = 0;
  for (; count < first_ && out_[count].end <= gone; ++count) {
    Operation* const send = out_[count].send;
    if (send != nullptr && send->note_left()) send->next = std::exchange(outcome.done, send);
  }
  out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(count));
  first_ -= count;
}

void Rail::end(const Conduit& conduit, const Conduit::Moved& moved, Outcome& outcome) const {
  outcome.ended = true;
  outcome.ran_short = moved.ran_short();
  outcome.sign = moved.error != 0 ? Diagnosis::Sign::broke : Diagnosis::Sign::ended;
  outcome.how = conduit.problem();
  if (outcome.how.empty())
    outcome.how = moved.error != 0 ? error_text(moved.error) : "it was closed";
}

// Nothing has been sent now.
void Rail::stop(const Conduit& conduit, const Conduit::Moved& moved,
                Shortage::Clock::duration most_shortage, Outcome& outcome) {
  if (moved.result == Conduit::Moved::Result::nothing) return;
  if (!moved.ran_short() || !shortage_.is_young(most_shortage)) end(conduit, moved, outcome);
}

Rail::Outcome Rail::flush(Shortage::Clock::duration most_shortage) {
  using Result = Conduit::Moved::Result;
  Outcome outcome;
  if (!is_open()) return outcome;
  Conduit& conduit = conduits_.way_out();
  if (conduits_.filter_waits()) {
    const Conduit::Moved moved = conduit.flush();
    if (moved.result != Result::some) stop(conduit, moved, most_shortage, outcome);
    if (outcome.ended) return outcome;
    outcome.moved = moved.result == Result::some;
    complete(outcome);
  }
  is_full_ = false;
  for (int i = 0; i < most_turns && first_ < out_.size() && !is_full_; ++i) {
    Runs runs;
    fill(runs);
    const Conduit::Moved moved = conduit.write(runs.all());
    is_full_ = moved.bytes < runs.bytes();
    if (moved.result != Result::some) {
      stop(conduit, moved, most_shortage, outcome);
      break;
    }
    outcome.moved = true;
    note_taken(moved.bytes);
    complete(outcome);
  }
  if (outcome.moved) shortage_.end();
  return outcome;
}

// How they are received.

// Where the next bytes belong. copies: they are read into the spare memory, and copied from there.
void Rail::place(Runs& runs, std::span<std::byte> spare, bool* copies) const {
  *copies = false;
  for (const Due& each : due_) {
    const ReceiveInProgress& at = each.receive->at;
    std::byte* aside = each.receive->aside.get();
    if (aside == nullptr && at.unexpected != nullptr) aside = at.unexpected->data.get();
    if (aside != nullptr) {
      if (!runs.add(aside + each.offset, each.bytes)) return;
    } else if (at.receive != nullptr) {
      if (runs.add(at.receive->pieces, each.offset, each.bytes)) continue;
      *copies = &each == &due_.front() && runs.bytes() < least_straight;
      if (*copies) runs.clear(), runs.add(spare.data(), std::min(spare.size(), each.bytes));
      return;
    } else {  // dropped
      if (runs.bytes() == 0) runs.add(spare.data(), std::min(spare.size(), each.bytes));
      return;
    }
  }
}

void Rail::note_received(size_t bytes, const std::byte* copied) {
  received_ += bytes;
  if (copied != nullptr) {
    const Due& front = due_.front();
    scatter(front.receive->at.receive->pieces, front.offset, copied, bytes);
  }
  while (bytes > 0) {
    Due& front = due_.front();
    const size_t some = std::min(bytes, front.bytes);
    front.offset += some;
    front.bytes -= some;
    front.receive->missing -= some;
    bytes -= some;
    if (front.bytes == 0) due_.pop_front();
  }
}

Rail::Outcome Rail::read() {
  using Result = Conduit::Moved::Result;
  Outcome outcome;
  if (!is_open()) return outcome;
  Conduit& conduit = conduits_.way_in();
  std::array<std::byte, spare_bytes> spare;
  for (int i = 0; !due_.empty(); ++i) {
    if (i == most_turns) {
      outcome.unfinished = true;
      break;
    }
    Runs runs;
    bool copies;
    place(runs, spare, &copies);
    const Conduit::Moved moved = conduit.read(runs.all());
    if (moved.result == Result::nothing) break;
    if (moved.result != Result::some) {
      end(conduit, moved, outcome);
      break;
    }
    outcome.moved = true;
    note_received(moved.bytes, copies ? spare.data() : nullptr);
    if (moved.bytes < runs.bytes() && !conduit.buffered()) break;
  }
  return outcome;
}

// (Nobody may have needed the filter yet, so that the peer's handshake is there to be read.)
bool Rail::has_ended() {
  if (!is_open() || !sluice::has_ended(conduits_.socket())) return false;
  if (conduits_.filter() != nullptr) {
    using Result = Conduit::Moved::Result;
    const Result shaken = conduits_.way_in().read({}).result;
    if (shaken == Result::closed || shaken == Result::failed) return true;
    if (conduits_.way_in().buffered()) return false;
  }
  char byte;
  const ssize_t got = receive(conduits_.socket(), &byte, 1, MSG_PEEK);
  return got <= 0 && got != -EAGAIN;
}

Diagnosis::Sign Rail::judge(const Connector& connector, Vigil::Duration limit) {
  return is_open() ? watch_.judge(connector, conduits_.socket(), limit) : Diagnosis::Sign::nothing;
}

pollfd Rail::poll_for(bool reads) const {
  if (!is_open()) return {-1, 0, 0};
  int events = conduits_.way_in().interest(reads && is_due(), false) |
               conduits_.way_out().interest(false, !out_.empty());
  if (conduits_.filter_waits()) events |= conduits_.filter()->interest(false, true);
  return {conduits_.socket().fd(), static_cast<short>(events), 0};
}

bool Rail::is_delivered() {
  int left = 0;
  if (!is_open()) return true;
  return !sends() &&
         (ioctl(conduits_.socket().fd(), SIOCOUTQ, &left) != 0 || left <= 0 || has_ended());
}

// How they are given up.

Rail::GivenUp Rail::withdraw(const TeamId& team, std::optional<uint32_t> call) {
  GivenUp given;
  for (Outgoing& each : out_) {
    Operation* const send = each.send;
    if (send == nullptr || each.team != team || (call && *call != send->tag.call)) continue;
    each.send = nullptr;
    if (send->note_left()) send->next = std::exchange(given.sends, send);
    const size_t left = each.bytes - each.taken;
    if (left == 0) continue;
    each.copied_from = each.taken;
    each.copy.reset(new (std::nothrow) std::byte[left]);
    if (each.copy != nullptr) {
      gather(each.copy.get(), send->pieces, each.offset + each.taken, left);
    } else {
      given.torn = true;
    }
  }
  return given;
}

}  // namespace sluice
