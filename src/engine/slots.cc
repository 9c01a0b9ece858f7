// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/slots.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr uint32_t far_ahead = uint32_t{1} << 30;  // call numbers wrap around
// Marks these rounds, so that they are not mistaken for a call's: ranks that disagree about a
// call's size may disagree about whether it needs slots.
constexpr size_t mark = size_t{1} << 31;

bool has_come(uint32_t number, uint32_t due) { return static_cast<int32_t>(number - due) >= 0; }

}  // namespace

Slots::Answer Slots::prepare(bool needs, uint32_t number, uint32_t signature, size_t bytes,
                             WaitPolicy& wait_policy) {
  if (needs && !held_) {
    const bool waits = lack_ && !has_come(number, retry_);
    return waits ? Answer::lack : reserve(number, signature, bytes, wait_policy);
  }
  if (needs) {
    due_ = number + idle_;
  } else if (has_come(number, due_)) {
    if (held_) give_back();
    due_ = number + far_ahead;
  }
  return Answer::go;
}

Slots::Answer Slots::reserve(uint32_t number, uint32_t signature, size_t bytes,
                             WaitPolicy& wait_policy) {
  Rounds& rounds = arena_.rounds();
  rounds.begin(signature, bytes, &wait_policy);
  uint64_t round = 0;
  // Wait until all ranks have given their old slots back: the last one to do so frees all of them.
  const auto meet = [](uint32_t, bool) {};
  if (had_ && !rounds.exchange(++round, true, meet, mark)) return Answer::failed;
  why_ = arena_.reserve_slots();
  uint32_t first_without = rounds.size();
  const auto hear = [&](uint32_t rank, bool theirs) {
    if (!theirs) first_without = std::min(first_without, rank);
  };
  if (!rounds.exchange(++round, why_.ok(), hear, mark)) return Answer::failed;
  const bool all = first_without == rounds.size();
  if (first_without != rounds.rank()) why_ = {};
  rounds.end(round);
  lack_ = !all;
  held_ = all;
  if (all && had_) idle_ = std::min(2 * idle_, most_idle);
  had_ = true;
  due_ = number + idle_;
  retry_ = number + before_retry;
  if (!all) arena_.give_slots_back();
  return all ? Answer::go : Answer::lack;
}

void Slots::give_back() {
  if (!held_) return;
  held_ = false;
  arena_.give_slots_back();
}

}  // namespace sluice
