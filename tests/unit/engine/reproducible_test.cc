// SPDX-License-Identifier: BSD-3-Clause
//
// SLUICE_REPRODUCIBLE with real floating-point numbers: every algorithm that may serve must give
// the bits of one serial program, for all numbers of elements, alignments, segments, roots, and in
// place or not. The proof (tests/proof) shows the same with symbols.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/ranks.h"
#include "tests/unit/support/sweep.h"

namespace sluice::testing {
namespace {

// Numbers of very different magnitude, so that different bracketings round differently.
float operand(Rank rank, size_t index) {
  uint64_t bits = (rank * 1000003 + index + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  const auto exponent = static_cast<int>(bits >> 60) - 8;
  return std::ldexp(static_cast<float>(static_cast<int32_t>(bits >> 20)), exponent);
}

// The balanced tree over ranks [first, last), by its definition.
float combined(Rank first, Rank last, size_t index) {
  if (last - first == 1) return operand(first, index);
  const Rank middle = first + std::bit_ceil(last - first) / 2;
  return combined(first, middle, index) + combined(middle, last, index);
}

float in_rank_order(Rank ranks, size_t index) {
  float sum = operand(0, index);
  for (Rank rank = 1; rank < ranks; ++rank) sum += operand(rank, index);
  return sum;
}

// Floats that begin `shift` bytes after an aligned address.
class Floats {
 public:
  Floats(size_t n, size_t shift) : n_(n), shift_(shift), bytes_(n * sizeof(float) + shift) {}
  std::byte* data() { return bytes_.data() + shift_; }
  void set(size_t i, float value) { memcpy(data() + i * sizeof value, &value, sizeof value); }
  uint32_t bits(size_t i) {
    uint32_t value;
    memcpy(&value, data() + i * sizeof value, sizeof value);
    return value;
  }
  size_t size() const { return n_; }

 private:
  size_t n_, shift_;
  std::vector<std::byte> bytes_;
};

struct Arrangement {
  Collective collective;
  Rank root;
  size_t count;
  size_t shift;
  bool in_place;
};

// The number of elements with wrong bits on this rank in one call.
size_t wrong_after(Team& team, const Arrangement& setting) {
  const bool scatters = setting.collective == Collective::reduce_scatter;
  const Rank operands = operands_of(setting.collective, team.rank(), team.size());
  const bool gets =
      operands > 0 && (setting.collective != Collective::reduce || team.rank() == setting.root);
  const size_t own = scatters ? setting.count / team.size() : setting.count;
  const size_t all = scatters ? own * team.size() : own, first = scatters ? team.rank() * own : 0;
  Floats input(all, setting.shift), output(gets ? own : 0, setting.shift);
  for (size_t i = 0; i < all; ++i) input.set(i, operand(team.rank(), i));
  Call call;
  call.collective = setting.collective;
  call.root = setting.root;
  call.element = sizeof(float);
  call.reduction.kernel = find_kernel(Op::sum, Type::float32);
  call.bytes = all * sizeof(float);
  call.input.base = input.data();
  call.input.count = call.output.count = own;
  Floats& result = setting.in_place && gets && !scatters ? input : output;
  call.output.base = result.data();
  const Status status = team.run(call);
  EXPECT_TRUE(status.ok()) << status.message();
  size_t wrong = 0;
  for (size_t i = 0; gets && i < own; ++i) {
    wrong += result.bits(i) != std::bit_cast<uint32_t>(combined(0, operands, first + i));
  }
  return wrong;
}

Rank most_ranks() { return sweep<Rank>(8, 8, 3); }
std::vector<size_t> tested_counts() {
  return sweep<size_t>({1, 5, 1023, 4099}, {1, 5, 1023, 4099}, {5, 4099});
}

// Runs one algorithm, or what the rules choose if `name` is empty.
void run_all(Collective collective, const std::string& name, Rank ranks) {
  LoopbackHub hub;
  const auto endpoints = [&](Rank, const ProcessId& id) { return hub.endpoint(id); };
  const auto force = [&](Rank, Process& process) {
    process.knobs.algorithm[static_cast<uint32_t>(collective)] = name;
    process.knobs.reproducible = true;
    process.knobs.segment = 4096;
  };
  on_ranks(ranks, endpoints, force, [&](Member& member) {
    ASSERT_TRUE(member.team) << member.formed.message();
    for (const size_t count : tested_counts()) {
      for (Rank root = 0; root < (is_rooted(collective) ? ranks : 1); ++root) {
        for (const size_t shift : {0, 4, 20}) {
          for (const bool in_place : {false, true}) {
            EXPECT_EQ(wrong_after(*member.team, {collective, root, count, shift, in_place}), 0U)
                << to_string(collective) << " '" << name << "' on " << ranks << " ranks, root "
                << root << ", " << count << " elements";
          }
        }
      }
    }
  });
}

constexpr Collective reductions[] = {Collective::allreduce, Collective::reduce,
                                     Collective::reduce_scatter, Collective::scan,
                                     Collective::exscan};

TEST(Reproducible, EveryAlgorithmThatMayServeGivesTheSameBits) {
  size_t served[collective_count] = {};
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_reducing(algorithm.collective)) continue;
    for (Rank ranks = 1; ranks <= most_ranks(); ++ranks) {
      if (!can_serve(algorithm, ranks, false, false) || !is_balanced(algorithm, ranks)) continue;
      run_all(algorithm.collective, algorithm.name, ranks);
      served[static_cast<uint32_t>(algorithm.collective)] += ranks == 3;
      if (HasFailure()) return;
    }
  }
  for (const auto each : reductions) {
    EXPECT_GT(served[static_cast<uint32_t>(each)], 0U) << to_string(each) << " on three ranks";
  }
}

TEST(Reproducible, SoDoesWhateverTheRulesChoose) {
  for (const auto each : reductions) {
    for (Rank ranks = 1; ranks <= most_ranks(); ++ranks) run_all(each, "", ranks);
  }
}

TEST(Reproducible, AnAlgorithmThatMayNotServeIsPassedOver) {
  run_all(Collective::allreduce, "ring", most_ranks());
}

// Otherwise these tests would show nothing.
TEST(Reproducible, OtherBracketingsRoundDifferently) {
  size_t different = 0;
  for (size_t i = 0; i < 1000; ++i) different += combined(0, 4, i) != in_rank_order(4, i);
  EXPECT_GT(different, 100U);
}

}  // namespace
}  // namespace sluice::testing
