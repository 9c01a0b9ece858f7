// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/reads.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include "src/base/log.h"
#include "src/base/random.h"
#include "src/base/system_call.h"

namespace sluice {
namespace {

constexpr uint8_t reads_at_once = 16;  // that the card has under way, if it can

size_t bytes_of(std::span<const Bytes> runs) {
  size_t bytes = 0;
  for (const Bytes& run : runs) bytes += run.size;
  return bytes;
}

uint64_t carrier(uint32_t number, uint32_t sequence) { return uint64_t{number} << 32 | sequence; }

}  // namespace

std::unique_ptr<VerbsReads> VerbsReads::make(const std::shared_ptr<VerbsDevice>& device,
                                             std::shared_ptr<ProgramMemory> memory, size_t least) {
  std::unique_ptr<VerbsReads> reads(new VerbsReads(device, std::move(memory), least));
  return reads->make_parts() ? std::move(reads) : nullptr;
}

bool VerbsReads::make_parts() {
  auto words = VerbsMemory::make(device_, most_gets * sizeof(uint64_t), false);
  if (!words.ok()) return false;
  words_ = std::move(*words);
  if (!draw_random(&sequence_, sizeof(sequence_)).ok()) return false;
  sequence_ &= 0xFFFFFF;
  SluiceVerbsQueue asked{
      device_->port().number, reads_at_once, most_gets * (most_reads + 1), 1, 0, nullptr, 0};
  if (table().make_queue(device_->handle(), &asked) != 0) return false;
  queue_ = asked;
  device_->add(queue_.number);
  return true;
}

VerbsReads::~VerbsReads() {
  if (queue_.handle == nullptr) return;
  device_->remove(queue_.number);
  table().drop_queue(queue_.handle);
}

VerbsAddress VerbsReads::address() const {
  VerbsAddress address = address_of(*device_, queue_.number, sequence_);
  address.reads = queue_.reads;
  return address;
}

bool VerbsReads::connect(const VerbsAddress& peer) {
  if (peer.reads == 0 || !reaches(device_->about(), peer).ok()) return false;
  SluiceVerbsWay way = way_to(*device_, peer, sequence_);
  way.reads = std::min(queue_.reads, peer.reads);
  theirs_ = carrier(peer.number, peer.sequence);
  if (table().connect(queue_.handle, &way) != 0) return false;
  state_ = State::connected;
  return true;
}

bool VerbsReads::lend(const Operation& send, Bytes words, LentMessage* lent) {
  if (!works() || bytes_of(send.within) < least_) return false;
  std::vector<Bytes> parts;
  if (!memory_->reach(device_, send, false, &parts) || parts.size() > most_reads) return false;
  if (loans_.hold == nullptr) loans_ = memory_->lend(device_, words);
  if (loans_.hold == nullptr) return false;
  lent->carrier = carrier(queue_.number, sequence_);
  lent->word_key = loans_.remote_key;
  for (const Bytes& part : parts) {
    const Registration* const in =
        send.registrations->find(device_.get(), part.data, part.size, false);
    lent->regions.push_back({reinterpret_cast<uintptr_t>(part.data), part.size, in->remote_key});
  }
  return true;
}

VerbsReads::Get VerbsReads::get(const LentMessage& lent, Operation* receive, Getter* getter) {
  Reading* const reading = find_free();
  if (!reads_for(lent) || reading == nullptr) return Get::refused;
  const auto at = static_cast<size_t>(reading - readings_.data());
  const Posted reads = plan(lent, *receive, at);
  if (reads.empty()) return Get::refused;
  const int error = table().read(queue_.handle, reads.data(), static_cast<int>(reads.size()));
  // (Of a list that fails, the first ones may have been posted.)
  if (error != 0) {
    break_up(error_text(error));
    return Get::refused;
  }
  *reading = {Reading::State::under_way, receive, getter, lent.value};
  return Get::under_way;
}

// Empty: it can't be read.
VerbsReads::Posted VerbsReads::plan(const LentMessage& lent, const Operation& receive, size_t at) {
  std::vector<Bytes> parts;
  if (!memory_->reach(device_, receive, true, &parts)) return {};
  Posted reads;
  const auto add = [&](const Region& from, const Bytes& to) {
    if (reads.size() == most_reads || to.size > device_->port().max_message) return false;
    const Registration* const in =
        receive.registrations->find(device_.get(), to.data, to.size, true);
    reads.push_back({to.data, in->local_key, static_cast<uint32_t>(to.size), from.address,
                     static_cast<uint32_t>(from.key), at, 0, 0});
    return true;
  };
  if (!visit_stretches(lent.regions, parts, add)) return {};
  reads.push_back({word(at), words_->local_key(), sizeof(uint64_t), lent.word,
                   static_cast<uint32_t>(lent.word_key), at, 1, 1});
  return reads;
}

bool VerbsReads::is_under_way() const {
  return std::ranges::any_of(
      readings_, [](const Reading& each) { return each.state == Reading::State::under_way; });
}

VerbsReads::Reading* VerbsReads::find_free() {
  const auto found = std::ranges::find(readings_, Reading::State::free, &Reading::state);
  return found == readings_.end() ? nullptr : &*found;
}

void VerbsReads::poll() {
  if (state_ == State::connected && !device_->reports(queue_.number)) {
    return break_up(device_->problem(queue_.number));
  }
  std::array<SluiceVerbsDone, 16> done;
  constexpr auto room = static_cast<int>(done.size());
  int count = room;
  while (count == room && state_ == State::connected) {
    count = table().poll(queue_.handle, done.data(), room);
    for (int i = 0; i < count; ++i) complete(done[static_cast<size_t>(i)]);
  }
  if (count < 0) break_up("its completions cannot be read");
}

// (After an error the queue pair is gone, and what else it has reported says nothing.)
void VerbsReads::complete(const SluiceVerbsDone& done) {
  if (state_ != State::connected) return;
  armed_ = false;
  if (done.status != 0) return break_up(table().status_text(done.status));
  if (done.id >= readings_.size()) return break_up("a completion of no request");
  Reading& reading = readings_[done.id];
  if (reading.state != Reading::State::under_way) return break_up("a completion of no request");
  const bool is_lent = *word(done.id) == reading.value;
  reading.state = is_lent ? Reading::State::right : Reading::State::wrong;
}

void VerbsReads::break_up(const std::string& why) {
  if (state_ == State::broken) return;
  state_ = State::broken;
  has_broken_ = true;
  device_->remove(queue_.number);
  table().drop_queue(std::exchange(queue_.handle, nullptr));
  for (Reading& each : readings_) {
    if (each.state == Reading::State::under_way) each.state = Reading::State::wrong;
  }
  log(Level::info,
      "RDMA (%s): a peer's memory is not read any more, and long messages are copied: "
      "%s",
      device_->label().c_str(), why.c_str());
}

bool VerbsReads::report() {
  if (is_under_way()) poll();
  bool any = false;
  for (Reading& each : readings_) {
    const auto state = each.state;
    if (state != Reading::State::wrong && state != Reading::State::right) continue;
    any = true;
    each.state = Reading::State::free;
    each.getter->end_get(each.receive, state == Reading::State::right);
  }
  return any;
}

// Until it has ended. (Where a card is late, others are: only the first one is waited for.)
void VerbsReads::wait_for(const Reading& reading) {
  const auto deadline = memory_->deadline_to_stop();
  while (reading.state == Reading::State::under_way) {
    poll();
    if (std::chrono::steady_clock::now() < deadline) continue;
    if (reading.state != Reading::State::under_way) return;
    memory_->note_late();
    return break_up("a read had to be stopped");
  }
}

void VerbsReads::stop(Operation* receive) {
  for (Reading& each : readings_) {
    if (each.state == Reading::State::free || each.receive != receive) continue;
    wait_for(each);
    each.state = Reading::State::free;
  }
}

// (Without memory to keep it, the peer's reads fail, and it has everything sent.)
void VerbsReads::keep(const Operation& send) try {
  if (send.registrations == nullptr) return;
  for (const Bytes& piece : send.pieces) {
    send.registrations->visit(device_.get(), piece.data, piece.size, [&](const Registration& each) {
      if (std::ranges::count(kept_, each.hold) == 0) kept_.push_back(each.hold);
    });
  }
} catch (const std::bad_alloc&) {
}

bool VerbsReads::may_sleep() {
  if (is_under_way()) poll();
  // (Another thread may begin a read while this one sleeps.)
  if (state_ == State::connected && !armed_) {
    device_->note_sleep();
    if (const int error = table().arm(queue_.handle); error != 0) break_up(error_text(error));
    armed_ = true;
    poll();
  }
  return std::ranges::all_of(readings_, [](const Reading& each) {
    return each.state == Reading::State::free || each.state == Reading::State::under_way;
  });
}

}  // namespace sluice
