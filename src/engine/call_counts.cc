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

}  // namespace

void CallCounts::add(const Algorithm& algorithm, const Call& call, Rank ranks,
                     Clock::time_point began) try {
  if (!delay_.empty()) delay_.prolong(algorithm.name);
  if (!are_told_) return;
  Tally& sum = tally(call.collective, &algorithm);
  ++sum.calls;
  sum.bytes += call.collective == Collective::alltoallv ? bytes_sent(call, ranks)
               : has_common_size(call.collective)       ? call.bytes
                                                        : call.weight;
  sum.nanoseconds += static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - began).count());
} catch (const std::bad_alloc&) {
}

Tally& CallCounts::tally(Collective collective, const Algorithm* algorithm) {
  for (Row& row : tallies_) {
    if (row.collective == collective && row.algorithm == algorithm) return row.tally;
  }
  return tallies_.emplace_back(Row{collective, algorithm, {}}).tally;
}

void CallCounts::hand_over(const std::string& communicator, const std::string& links,
                           Statistics* statistics) {
  for (const Row& row : tallies_) {
    statistics->add(communicator, row.collective, row.algorithm->name,
                    carrier_of(*row.algorithm, links), row.tally);
  }
  tallies_.clear();
}

}  // namespace sluice
