// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/localities.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>

#include "src/engine/agreement.h"

namespace sluice {
namespace {

using Processors = decltype(Locality::processors);

bool is_within(const Processors& few, const Processors& many) {
  for (size_t i = 0; i < few.size(); ++i) {
    if ((few[i] & ~many[i]) != 0) return false;
  }
  return true;
}

size_t count(const Processors& processors) {
  size_t sum = 0;
  for (const uint64_t word : processors) sum += static_cast<size_t>(std::popcount(word));
  return sum;
}

using Domain = std::pair<uint64_t, uint64_t>;

// Ranks with the same key are one group.
template <typename KeyOf>
std::vector<uint32_t> group_by(std::span<const Locality> localities, const KeyOf& key_of) {
  std::map<Domain, uint32_t> numbers;
  std::vector<uint32_t> groups;
  for (const Locality& locality : localities) {
    const auto next = static_cast<uint32_t>(numbers.size());
    groups.push_back(numbers.emplace(key_of(locality), next).first->second);
  }
  return groups;
}

std::vector<uint32_t> sizes_of(std::span<const uint32_t> groups) {
  std::vector<uint32_t> sizes;
  for (const uint32_t group : groups) {
    sizes.resize(std::max<size_t>(sizes.size(), group + 1));
    ++sizes[group];
  }
  return sizes;
}

// So many flags the busiest rank looks at.
size_t flags_of(std::span<const uint32_t> groups) {
  const std::vector<uint32_t> sizes = sizes_of(groups);
  return sizes.size() + *std::ranges::max_element(sizes);
}

std::vector<uint32_t> unless_one(std::vector<uint32_t> groups) {
  if (std::ranges::all_of(groups, [](uint32_t group) { return group == 0; })) groups.clear();
  return groups;
}

std::vector<uint32_t> equal_groups(size_t ranks, uint32_t each) {
  std::vector<uint32_t> groups;
  for (uint32_t rank = 0; rank < ranks; ++rank) groups.push_back(rank / each);
  return groups;
}

// By caches or by nodes: whichever leaves the busiest rank less to look at; nodes if that is equal,
// as what goes between nodes takes longest.
std::vector<uint32_t> natural_groups(std::span<const Locality> localities) {
  const auto all_know = [&](uint64_t Locality::*domain) {
    return std::ranges::all_of(localities,
                               [&](const Locality& locality) { return locality.*domain != 0; });
  };
  std::vector<uint32_t> best;
  if (all_know(&Locality::node)) {
    best = group_by(localities, [](const Locality& locality) { return Domain{locality.node, 0}; });
  }
  if (all_know(&Locality::cache)) {
    auto by_cache = group_by(localities, [](const Locality& locality) {
      return Domain{locality.node, locality.cache};
    });
    const bool is_first = best.empty() || unless_one(best).empty();
    if (is_first || flags_of(by_cache) < flags_of(best)) best = std::move(by_cache);
  }
  return best;
}

}  // namespace

uint32_t RoundTrips::find(const ProcessId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(id);
  return found == known_.end() ? 0 : found->second;
}

void RoundTrips::learn(const ProcessId& id, uint32_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  known_[id] = nanoseconds;
}

bool measure_round_trip(Rounds& rounds, WaitPolicy& wait_policy, uint32_t* nanoseconds) {
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t trips = 32;
  const uint32_t me = rounds.rank();
  uint64_t least = std::numeric_limits<uint32_t>::max();
  rounds.begin(~uint32_t{0}, 0, &wait_policy);
  for (uint64_t k = 1; k <= trips; ++k) {
    const auto begun = Clock::now();
    if (!rounds.open(k, 0)) return false;
    if (me == 0) rounds.publish(k, 0);
    if (!rounds.await(1 - me, k, 0)) return false;
    if (me == 1) rounds.publish(k, 0);
    least = std::min(least, static_cast<uint64_t>((Clock::now() - begun).count()));
    rounds.mark_taken(k);
  }
  constexpr uint64_t told = trips + 1;
  if (me == 0) {
    if (!rounds.open(told, sizeof(least))) return false;
    std::memcpy(rounds.data(0, told, sizeof(least)), &least, sizeof(least));
    rounds.publish(told, sizeof(least));
  }
  if (!rounds.await(0, told, sizeof(least))) return false;
  std::memcpy(&least, rounds.data(0, told, sizeof(least)), sizeof(least));
  rounds.mark_taken(told);
  rounds.end(told);
  *nanoseconds = static_cast<uint32_t>(least);
  return true;
}

uint32_t ranks_per_processor(std::span<const Locality> localities, uint32_t rank) {
  const Locality& mine = localities[rank];
  uint64_t beside = 0, paid = 0;
  for (const Locality& locality : localities) {
    const bool is_known = count(locality.processors) > 0;
    beside += is_known && is_within(locality.processors, mine.processors);
    paid += locality.budget_holder == mine.budget_holder;
  }
  const auto rounded_up = [](uint64_t ranks, uint64_t thousandths) {
    return thousandths == 0 ? 1
                            : static_cast<uint32_t>((ranks * 1000 + thousandths - 1) / thousandths);
  };
  return std::max({rounded_up(beside, count(mine.processors) * 1000), rounded_up(paid, mine.budget),
                   static_cast<uint32_t>(mine.known_per_processor)});
}

uint32_t most_per_processor(std::span<const Locality> localities) {
  uint32_t most = 1;
  for (uint32_t rank = 0; rank < localities.size(); ++rank) {
    most = std::max(most, ranks_per_processor(localities, rank));
  }
  return most;
}

std::vector<uint32_t> make_groups(const std::string& how, std::span<const Locality> localities) {
  uint32_t each = 0;
  const char* const end = how.data() + how.size();
  if (std::from_chars(how.data(), end, each).ptr == end && each > 0) {
    return unless_one(equal_groups(localities.size(), each));
  }
  if (how != "auto" || localities.size() < least_for_groups) return {};
  if (most_per_processor(localities) > 1) return {};
  return unless_one(natural_groups(localities));
}

std::string describe_groups(std::span<const uint32_t> groups) {
  std::string text;
  for (uint32_t group = 0; group < sizes_of(groups).size(); ++group) {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < groups.size(); ++rank) {
      if (groups[rank] == group) ranks.push_back(rank);
    }
    const std::string each = describe_ranks(ranks);
    text += (group > 0 ? "; " : "") + each.substr(each.find(' ') + 1);
  }
  return text;
}

}  // namespace sluice
