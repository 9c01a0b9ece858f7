// SPDX-License-Identifier: BSD-3-Clause
//
// The proof: runs every algorithm of the registry in the model, for all shapes that it accepts.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "collectives/algorithm.h"
#include "collectives/model/model.h"
#include "tests/proof/cases.h"

namespace sluice {
namespace {

std::string in_words(const Shape& shape, const Counts& counts, const Faults& faults) {
  std::string words = std::to_string(shape.size) + " ranks, root " + std::to_string(shape.root) +
                      ", radix " + std::to_string(shape.radix);
  if (!shape.hosts.empty()) words += ", hosts " + host_list(shape.hosts);
  words += ", elements";
  for (const size_t count : counts) words += " " + std::to_string(count);
  for (const std::string& fault : faults) words += "\n  " + fault;
  return words;
}

struct Case {
  const Algorithm* algorithm;
  Sizes sizes;
};

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const Sizes& sizes : size_groups()) {
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.plan) cases.push_back({&algorithm, sizes});
    }
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const auto& [algorithm, sizes] = info.param;
  return std::string(to_string(algorithm->collective)) + "_" + algorithm->name + "_" +
         std::to_string(sizes.first) + "_to_" + std::to_string(sizes.last);
}

class Proof : public testing::TestWithParam<Case> {
 protected:
  Proof() : seed_(static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed())) {
    random_.seed(seed_);
    std::printf("seed %llu (--gtest_random_seed)\n", static_cast<unsigned long long>(seed_));
  }

  const Algorithm& algorithm() const { return *GetParam().algorithm; }

  void prove() {
    for (const Rank size : GetParam().sizes.all) {
      for (const auto& hosts : placements(algorithm(), size, random_)) {
        if (!can_serve(algorithm(), size, false, false, hosts)) continue;
        prove_roots(size, hosts);
        if (HasFailure()) return;
      }
    }
  }

 private:
  void prove_roots(Rank size, std::span<const uint32_t> hosts) {
    for (const Rank root : roots(algorithm(), size, random_)) {
      Shape shape{.size = size, .root = root, .radix = 2, .hosts = hosts};
      for (const uint32_t radix : radixes(algorithm(), shape)) {
        shape.radix = radix;
        prove(shape);
        if (HasFailure()) return;
      }
    }
  }

  void prove(const Shape& shape) {
    const Model model(all_plans(algorithm(), shape));
    ASSERT_TRUE(model.faults().empty()) << in_words(shape, {}, model.faults());
    expect_cost(model, shape, {model.even_count()});
    for (const Counts& counts : equal_counts(algorithm().collective, shape.size)) {
      prove(model, shape, counts);
    }
    for (const Counts& counts : ragged_counts(algorithm(), shape.size, random_)) {
      prove(model, shape, counts);
    }
  }

  void prove(const Model& model, const Shape& shape, const Counts& counts) {
    const Faults lengths = model.check_lengths(counts);
    ASSERT_TRUE(lengths.empty()) << in_words(shape, counts, lengths);
    expect_cost(model, shape, counts);
    for (const RunOptions& options : runs(shape)) {
      const Faults faults = model.run(counts, options).faults;
      ASSERT_TRUE(faults.empty()) << in_words(shape, counts, faults)
                                  << (options.aliased ? "\n  in place" : "") << "\n  segments of "
                                  << options.segment << ", seed " << options.seed;
    }
  }

  void expect_cost(const Model& model, const Shape& shape, const Counts& counts) {
    const Faults faults = model.check_cost(counts, algorithm().cost(shape));
    EXPECT_TRUE(faults.empty()) << in_words(shape, counts, faults);
  }

  std::vector<RunOptions> runs(const Shape& shape) {
    const bool in_place = alias_of(algorithm().collective, 0).possible;
    std::vector<RunOptions> runs{{.aliased = false}};
    if (in_place) runs.push_back({.aliased = true});
    if (shape.size > 64) return runs;
    const int shuffles = long_check() ? 3 : shape.size <= 17 ? 2 : 1;
    for (int i = 0; i < shuffles; ++i) {
      const uint64_t dice = random_();
      runs.push_back({.aliased = in_place && i % 2 == 0, .segment = 1 + dice % 2, .seed = dice});
    }
    return runs;
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
};

TEST_P(Proof, Holds) { prove(); }

INSTANTIATE_TEST_SUITE_P(Every, Proof, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace sluice
