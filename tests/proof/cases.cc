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

std::vector<Rank> small_sizes() {
  std::vector<Rank> sizes(33);
  std::iota(sizes.begin(), sizes.end(), 1);
  return sizes;
}

std::vector<Rank> large_sizes() {
  if (!long_check()) return {64, 100, 127, 128, 200, 256};
  std::vector<Rank> sizes;
  for (Rank size = 34; size <= 130; ++size) sizes.push_back(size);
  sizes.insert(sizes.end(), {200, 243, 255, 256, 257, 360, 500, 512});
  return sizes;
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

bool same(const Algorithm& algorithm, Shape a, Shape b) {
  for (Rank rank = 0; rank < a.size; ++rank) {
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
  if (!long_check()) return {0, 1, 2, p - 1, p, p + 1, 2 * p + 1, 3 * p - 1};
  std::vector<size_t> all(4 * p + 2);
  std::iota(all.begin(), all.end(), 0);
  all.push_back(10 * p + 7);
  return all;
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
