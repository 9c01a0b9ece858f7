// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the transport contract share: every transport, every mode of it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "tests/unit/transports/rig.h"

namespace sluice::conformance {

inline constexpr size_t kib = 1024;
inline constexpr size_t max_message = 64 * kib;
inline constexpr size_t small_window = 16 * kib;

struct Mode {
  const char* name;
  size_t window;  // per channel
  std::function<MakeEndpoint(uint64_t seed)> make;
};

// All that are possible here: without OpenSSL there is no encryption (tls_test.cc says so).
std::vector<Mode> possible_modes();

inline std::string name_of(const testing::TestParamInfo<Mode>& info) { return info.param.name; }

class Conformance : public testing::TestWithParam<Mode> {
 protected:
  Conformance()
      : seed_(static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()) + 1),
        random_(seed_) {}

  MakeEndpoint make() { return GetParam().make(seed_); }

  size_t some_size() {
    const size_t sizes[] = {0, 1, 8, 100, 4 * kib, 20 * kib, max_message};
    const size_t size = sizes[random_() % std::size(sizes)];
    return size < 2 ? size : size - random_() % (size / 2);
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
};

}  // namespace sluice::conformance
