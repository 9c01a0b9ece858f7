// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/call_counts.h"

#include <new>

namespace sluice {
namespace {

// Bytes that this rank sends to all ranks, itself included.
size_t bytes_sent(const Call& call, Rank ranks) {
  size_t elements = 0;
  for (Rank to = 0; to < ranks; ++to) elements += call.input.block(to).count;
  return elements * call.element;
}

uint64_t bytes_of(const Call& call, Rank ranks) {
  if (call.collective == Collective::alltoallv) return bytes_sent(call, ranks);
  return has_common_size(call.collective) ? call.bytes : call.weight;
}

}  // namespace

void CallCounts::add(const Algorithm& algorithm, const Call& call, Rank ranks,
                     Clock::time_point began) try {
  if (!delay_.empty()) delay_.prolong(algorithm.name);
  if (!are_told_) return;
  if (are_of_classes_) return classes_.add(algorithm, call, bytes_of(call, ranks), began);
  Tally& sum = tally(call.collective, &algorithm);
  ++sum.calls;
  sum.bytes += bytes_of(call, ranks);
  sum.nanoseconds += static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - began).count());
} catch (const std::bad_alloc&) {
}

Tally& CallCounts::tally(Collective collective, const Algorithm* algorithm) {
  for (Row& row : tallies_) {
    if (row.collective == collective && row.algorithm == algorithm) return row.tally;
  }
  return tallies_.emplace_back(Row{collective, algorithm, {}}).tally;
}

void CallCounts::hand_over(const CountedTeam& team, Statistics* statistics) {
  for (const Row& row : tallies_) {
    statistics->add(team.communicator, row.collective, row.algorithm->name,
                    carrier_of(*row.algorithm, team.links), row.tally);
  }
  tallies_.clear();
  classes_.hand_over(team, statistics);
}

}  // namespace sluice
