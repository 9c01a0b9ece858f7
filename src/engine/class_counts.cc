// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/class_counts.h"

#include <bit>
#include <utility>

namespace sluice {
namespace {

uint8_t size_class(const Call& call) {
  if (!has_common_size(call.collective)) return CountedClass::varied;
  return static_cast<uint8_t>(std::bit_width(call.bytes));
}

uint64_t identify(const TeamId& id) {
  return scramble(id.leader.high ^ scramble(id.leader.low ^ scramble(id.number)));
}

}  // namespace

std::string carrier_of(const Algorithm& algorithm, const std::string& links) {
  switch (algorithm.means()) {
    case Means::shared_memory:
      return "shm";
    case Means::plan:
    case Means::cells:
      return links;
    case Means::outside:
      break;
  }
  return algorithm.name;
}

std::string path_of(const Algorithm& algorithm) {
  switch (algorithm.means()) {
    case Means::shared_memory:
      return "arena";
    case Means::plan:
      return "links";
    case Means::cells:
      return "cells";
    case Means::outside:
      break;
  }
  return algorithm.name;
}

bool ClassCounts::is_short(const Algorithm& algorithm, const Call& call) const {
  return kind_ == Kind::blocking && algorithm.means() == Means::shared_memory &&
         call.bytes <= most_short && has_common_size(call.collective);
}

size_t ClassCounts::find(const Algorithm& algorithm, const Call& call) {
  const uint8_t size = size_class(call);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.algorithm == &algorithm && row.collective == call.collective && row.size == size) {
      return i;
    }
  }
  rows_.push_back({call.collective, &algorithm, size, {}});
  return rows_.size() - 1;
}

// (Where nothing is left, the last of them is timed.)
void ClassCounts::settle_last() {
  if (!last_.algorithm) return;
  const uint64_t passed = last_.first - (last_.left == 0 ? 1 : last_.left);
  rows_[last_.row].counter.pass(passed, last_.bytes);
  last_.algorithm = nullptr;
}

void ClassCounts::settle_wait() {
  if (!std::exchange(waits_, false)) return;
  const auto waited = static_cast<uint64_t>(waiter_.waited().count());
  if (waited >= ClassCounter::long_call) rows_[last_.row].counter.add_long(waited);
}

void ClassCounts::add(const Algorithm& algorithm, const Call& call, uint64_t bytes,
                      Clock::time_point began) {
  const auto lasted = Clock::now() - began;
  end();
  settle_last();
  const size_t at = find(algorithm, call);
  ClassCounter& counter = rows_[at].counter;
  counter.add({.entered = began.time_since_epoch().count(),
               .lasted = static_cast<float>(std::chrono::nanoseconds(lasted).count()),
               .root = call.root},
              bytes, sample_);
  if (!is_short(algorithm, call)) return;
  const uint64_t left = counter.next() - counter.calls();
  last_ = {&algorithm, call.bytes, left, left, at};
}

void ClassCounts::hand_over(const CountedTeam& team, Statistics* statistics) {
  settle_wait();
  settle_last();
  const uint64_t id = identify(team.id);
  ++handed_over_;
  for (Row& row : rows_) {
    CountedClass of{.communicator = team.communicator,
                    .group = team.group,
                    .collective = row.collective,
                    .algorithm = row.algorithm->name,
                    .carrier = carrier_of(*row.algorithm, team.links),
                    .path = path_of(*row.algorithm),
                    .size = row.size,
                    .nonblocking = kind_ == Kind::nonblocking};
    uint64_t salt = scramble(id ^ handed_over_);
    for (const char c : of.algorithm) salt = scramble(salt ^ static_cast<unsigned char>(c));
    salt = scramble(salt ^ (uint64_t{row.size} << 8 | static_cast<uint64_t>(row.collective)));
    ClassRecord record = row.counter.record(salt);
    if (of.nonblocking) record.sample.clear();  // (calls in flight end in any order)
    statistics->add(std::move(of), team.rank, team.size, record, sample_);
  }
  rows_.clear();
  last_.row = ~size_t{0};
}

}  // namespace sluice
