// SPDX-License-Identifier: BSD-3-Clause
#include "tests/proof/cases.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string_view>

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
  if (!long_check()) return {run_of_sizes(1, 33), {64, 256, {64, 100, 127, 128, 200, 256}}};
  std::vector<Sizes> groups{run_of_sizes(1, 12), run_of_sizes(13, 17), run_of_sizes(18, 25),
                            run_of_sizes(26, 33)};
  for (Rank first = 34; first < 130; first += 8) groups.push_back(run_of_sizes(first, first + 7));
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

// By a few ranks, as the rest would differ too.
bool same(const Algorithm& algorithm, Shape a, Shape b) {
  for (const Rank rank : {0u, a.size / 2, a.size - 1}) {
    a.rank = b.rank = rank;
    if (!same(algorithm.plan(a), algorithm.plan(b))) return false;
  }
  return true;
}

}  // namespace

std::vector<uint32_t> radixes(const Algorithm& algorithm, Rank size, Rank root) {
  std::vector<uint32_t> found{2};
  for (const uint32_t radix : {3u, 4u, 8u}) {
    const bool known = std::any_of(found.begin(), found.end(), [&](uint32_t other) {
      return same(algorithm, {.size = size, .root = root, .radix = other},
                  {.size = size, .root = root, .radix = radix});
    });
    if (!known) found.push_back(radix);
  }
  return found;
}

namespace {

bool is_by_block(Collective collective) {
  return collective != Collective::allreduce && collective != Collective::reduce &&
         collective != Collective::broadcast && collective != Collective::barrier;
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
                      algorithm.collective == Collective::alltoallv;
  if (!ragged || algorithm.needs.uniform) return {};
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
