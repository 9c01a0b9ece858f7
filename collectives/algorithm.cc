// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/algorithm.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

#include "collectives/patterns/hosts.h"

namespace sluice {

namespace {

constexpr std::string_view names[collective_count] = {
    "allreduce",      "reduce",   "broadcast", "allgather", "allgatherv",
    "reduce_scatter", "scan",     "exscan",    "gather",    "gatherv",
    "scatter",        "scatterv", "alltoall",  "alltoallv", "barrier",
};

}  // namespace

std::string_view to_string(Collective collective) {
  return names[static_cast<uint32_t>(collective)];
}

bool parse(std::string_view name, Collective* collective) {
  if (name == "bcast") name = "broadcast";  // as MPI and SLUICE_BCAST call it
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return false;
  *collective = static_cast<Collective>(found - std::begin(names));
  return true;
}

bool is_rooted(Collective collective) {
  switch (collective) {
    case Collective::reduce:
    case Collective::broadcast:
    case Collective::gather:
    case Collective::gatherv:
    case Collective::scatter:
    case Collective::scatterv:
      return true;
    default:
      return false;
  }
}

bool is_reducing(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::exscan:
      return true;
    default:
      return false;
  }
}

Rank operands_of(Collective collective, Rank rank, Rank size) {
  if (collective == Collective::scan) return rank + 1;
  return collective == Collective::exscan ? rank : size;
}

std::span<const Algorithm> algorithms(Collective collective) {
  const auto all = algorithms();
  const auto of_it = [&](const Algorithm& a) { return a.collective == collective; };
  const auto first = std::find_if(all.begin(), all.end(), of_it);
  return {first, std::find_if_not(first, all.end(), of_it)};
}

const Algorithm* find_algorithm(Collective collective, std::string_view name) {
  const auto some = algorithms(collective);
  const auto found =
      std::find_if(some.begin(), some.end(), [&](const Algorithm& a) { return a.name == name; });
  return found == some.end() ? nullptr : &*found;
}

uint32_t count_hosts(std::span<const uint32_t> hosts) {
  return hosts.empty() ? 1 : *std::max_element(hosts.begin(), hosts.end()) + 1;
}

Rank most_per_host(std::span<const uint32_t> hosts) {
  std::vector<Rank> sizes(count_hosts(hosts), 0);
  for (const uint32_t host : hosts) ++sizes[host];
  return *std::max_element(sizes.begin(), sizes.end());
}

bool can_serve(const Algorithm& algorithm, Rank size, bool ordered, bool ragged,
               std::span<const uint32_t> hosts, std::span<const uint32_t> groups) {
  const Needs& needs = algorithm.needs;
  const bool by_rank = ordered || is_prefix(algorithm.collective);
  return !(needs.power_of_two && !std::has_single_bit(size)) && !(needs.commutative && ordered) &&
         !(needs.uniform && ragged) &&
         !(needs.hosts && (!has_levels(hosts) || (by_rank && !has_consecutive_ranks(hosts)))) &&
         !(needs.groups &&
           (count_hosts(groups) < 2 || (by_rank && !has_consecutive_ranks(groups))));
}

bool is_balanced(const Algorithm& algorithm, Rank size) {
  return algorithm.bracketing == Bracketing::balanced ||
         (algorithm.bracketing == Bracketing::balanced_on_powers_of_two &&
          std::has_single_bit(size));
}

bool is_left_to_right(const Algorithm& algorithm, Rank size) {
  return algorithm.bracketing == Bracketing::left || (size == 2 && is_balanced(algorithm, size));
}

PlanBuilder::Alias alias_of(Collective collective, Rank rank) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan:
      return {true, whole};
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::gather:
    case Collective::gatherv:
      return {true, rank};
    default:
      return {};
  }
}

}  // namespace sluice
