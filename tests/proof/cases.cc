// SPDX-License-Identifier: BSD-3-Clause
#include "tests/proof/cases.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <utility>

namespace sluice {

bool long_check() {
  const char* value = std::getenv("CHECK_LONG");
  return value && std::string_view(value) == "1";
}

namespace {

Sizes run_of_sizes(Rank first, Rank last) {
  Sizes sizes{first, last, std::vector<Rank>(last - first + 1)};
  std::iota(sizes.all.begin(), sizes.all.end(), first);
  return sizes;
}

}  // namespace

std::vector<Sizes> size_groups() {
  if (!long_check()) {
    Sizes few = run_of_sizes(1, 17);
    few.last = 33;
    few.all.insert(few.all.end(), {24, 27, 31, 32, 33});
    return {few, {64, 127, {64, 100, 127}}};
  }
  std::vector<Sizes> groups{run_of_sizes(1, 12), run_of_sizes(13, 17), run_of_sizes(18, 25),
                            run_of_sizes(26, 33)};
  groups.push_back({34, 65, {34, 39, 45, 48, 53, 60, 63, 64, 65}});
  groups.push_back({66, 129, {72, 81, 96, 100, 111, 127, 128, 129}});
  for (const Rank size : {200u, 243u, 255u, 256u, 257u, 360u}) {
    groups.push_back(run_of_sizes(size, size));
  }
  return groups;
}

std::vector<Rank> roots(const Algorithm& algorithm, Rank size, std::mt19937_64& random) {
  if (!is_rooted(algorithm.collective)) return {0};
  const Rank all = long_check() ? 33 : 9;
  std::vector<Rank> roots(size);
  std::iota(roots.begin(), roots.end(), 0);
  if (size <= all) return roots;
  const auto any = static_cast<Rank>(random() % size);
  return size <= 33 ? std::vector<Rank>{0, 1, any, size - 1} : std::vector<Rank>{0, any};
}

namespace {

bool same(const Plan& a, const Plan& b) {
  const auto same_slice = [](const Slice& x, const Slice& y) {
    return x.first == y.first && x.count == y.count;
  };
  const auto same_step = [&](const Step& x, const Step& y) {
    return x.kind == y.kind && x.peer == y.peer && x.received_first == y.received_first &&
           same_slice(x.from, y.from) && same_slice(x.with, y.with) && same_slice(x.to, y.to);
  };
  return a.pieces == b.pieces &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), same_step);
}

// Compares the plans of three ranks only: if plans differ, they differ there, too.
bool same(const Algorithm& algorithm, Shape a, Shape b) {
  for (const Rank rank : {0u, a.size / 2, a.size - 1}) {
    a.rank = b.rank = rank;
    if (!same(algorithm.plan(a), algorithm.plan(b))) return false;
  }
  return true;
}

}  // namespace

std::vector<uint32_t> radixes(const Algorithm& algorithm, Shape shape) {
  std::vector<uint32_t> found{2};
  for (const uint32_t radix : {3u, 4u, 8u}) {
    const bool known = std::any_of(found.begin(), found.end(), [&](uint32_t other) {
      Shape one = shape, two = shape;
      one.radix = other;
      two.radix = radix;
      return same(algorithm, one, two);
    });
    if (!known) found.push_back(radix);
  }
  return found;
}

namespace {

using HostNumbers = std::vector<uint32_t>;

// Consecutive ranks on each host, next() per host; the last host gets the rest.
template <typename Next>  // Rank()
HostNumbers filled(Rank size, Next next) {
  HostNumbers hosts;
  for (uint32_t host = 0; hosts.size() < size; ++host) {
    hosts.resize(std::min<size_t>(hosts.size() + next(), size), host);
  }
  return hosts;
}

// The same hosts in random rank order, renumbered by their lowest ranks.
HostNumbers shuffled(HostNumbers hosts, std::mt19937_64& random) {
  std::shuffle(hosts.begin(), hosts.end(), random);
  HostNumbers numbers(hosts.size(), ~0u);
  uint32_t count = 0;
  for (uint32_t& host : hosts) {
    if (numbers[host] == ~0u) numbers[host] = count++;
    host = numbers[host];
  }
  return hosts;
}

HostNumbers round_robin(Rank size, uint32_t hosts) {
  HostNumbers placement(size);
  for (Rank rank = 0; rank < size; ++rank) placement[rank] = rank % hosts;
  return placement;
}

}  // namespace

std::vector<std::vector<uint32_t>> placements(const Algorithm& algorithm, Rank size,
                                              std::mt19937_64& random) {
  if (!algorithm.needs.hosts) return {{}};
  std::vector<HostNumbers> all;
  const auto up_to_five = [&] { return static_cast<Rank>(1 + random() % 5); };
  all.push_back(filled(size, [&] { return (size + 1) / 2; }));
  all.push_back(filled(size, up_to_five));
  all.push_back(round_robin(size, size % 3 == 0 ? 3 : 2));
  if (size <= 33) {
    for (Rank each = 2; each <= (long_check() ? 8 : 4); ++each) {
      if (size % each == 0) all.push_back(filled(size, [&] { return each; }));
    }
    all.push_back(shuffled(filled(size, up_to_five), random));
    all.push_back(filled(size, [&] { return std::max<Rank>(size - 1, 1); }));
    // One host with two ranks, the others with one.
    all.push_back(
        filled(size, [two = true]() mutable { return std::exchange(two, false) ? 2 : 1; }));
  }
  std::erase_if(all, [&](const HostNumbers& hosts) {
    return !can_serve(algorithm, size, false, false, hosts);
  });
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string host_list(std::span<const uint32_t> hosts) {
  std::string words;
  for (const uint32_t host : hosts) words += (words.empty() ? "" : " ") + std::to_string(host);
  return words;
}

namespace {

bool is_by_block(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan:
    case Collective::broadcast:
    case Collective::barrier:
      return false;
    default:
      return true;
  }
}

std::vector<size_t> equal_figures(Collective collective, Rank size) {
  const size_t p = size;
  if (collective == Collective::barrier) return {0};
  if (is_by_block(collective)) {
    if (size > 33) return {1};
    return long_check() ? std::vector<size_t>{0, 1, 2, 3, 4, 5, p - 1, p, p + 1, 13}
                        : std::vector<size_t>{0, 1, 2, 3, 7};
  }
  if (size > 33) return {1, p + 1};
  std::vector<size_t> figures{0, 1, 2, p - 1, p, p + 1, 2 * p + 1, 3 * p - 1};
  if (long_check()) {
    figures.resize(size <= 17 ? 3 * p + 2 : p + 2);
    std::iota(figures.begin(), figures.end(), 0);
    figures.insert(figures.end(), {2 * p - 1, 2 * p, 3 * p + 1, 10 * p + 7});
  }
  return figures;
}

}  // namespace

std::vector<Counts> equal_counts(Collective collective, Rank size) {
  std::vector<size_t> figures = equal_figures(collective, size);
  std::sort(figures.begin(), figures.end());
  figures.erase(std::unique(figures.begin(), figures.end()), figures.end());
  std::vector<Counts> counts;
  for (const size_t figure : figures) counts.push_back({figure});
  return counts;
}

std::vector<Counts> ragged_counts(const Algorithm& algorithm, Rank size, std::mt19937_64& random) {
  const bool ragged = algorithm.collective == Collective::allgatherv ||
                      algorithm.collective == Collective::reduce_scatter ||
                      !has_common_size(algorithm.collective);
  if (!ragged || algorithm.needs.uniform || algorithm.cell > 0) return {};
  const bool pairs = algorithm.collective == Collective::alltoallv;
  const size_t blocks = pairs ? size_t{size} * size : size;
  Counts mixed(blocks), one(blocks, 0), rising(blocks);
  for (size_t& count : mixed) count = random() % 2 ? random() % 6 : 0;
  one[random() % blocks] = 5;
  for (size_t i = 0; i < blocks; ++i) rising[i] = i % 4;
  if (size > 33) return {mixed};
  return {mixed, one, rising, Counts(blocks, 0)};
}

}  // namespace sluice
