// SPDX-License-Identifier: BSD-3-Clause
//
// Links with rails, for tests.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/unit/transports/breaks.h"

namespace sluice {

constexpr size_t kib = 1024;

inline TcpOptions with(unsigned streams, size_t window = size_t{4} << 20, size_t buffer = 0) {
  TcpOptions options;
  options.streams = streams;
  options.window = window;
  options.socket_buffer = buffer;
  return options;
}

inline std::string carrier_of(unsigned streams) {
  return streams > 1 ? "tcp*" + std::to_string(streams) : "tcp";
}

// Exchanges until both sides have all rails. False if that never comes.
inline bool make_rails(Ranks& ranks, unsigned streams, uint32_t team = 1) {
  for (int i = 0; i < 2000; ++i) {
    const std::string here = ranks.channel(0, 1, team).carrier();
    const std::string there = ranks.channel(1, 0, team).carrier();
    if (here == there && here.ends_with("*" + std::to_string(streams))) return true;
    if (!exchange(ranks, team, 64 * kib)) return false;
  }
  return false;
}

// Two ranks with rails, and their descriptors.
class RailsThatEnd : public testing::Test {
 protected:
  static constexpr unsigned streams = 3;
  explicit RailsThatEnd(const TcpOptions& options = with(streams, size_t{32} << 20))
      : ranks_(tcp(options), 2) {}
  void SetUp() override {
    ASSERT_TRUE(exchange(ranks_));
    const std::set<int> before = descriptors();
    ASSERT_TRUE(make_rails(ranks_, streams));
    for (const int each : descriptors()) {
      if (!before.contains(each)) rails_.push_back(each);
    }
    ASSERT_EQ(rails_.size(), 2 * streams);
  }
  static void cut(int rail) { (void)shutdown(rail, SHUT_RDWR); }  // may have been closed
  static Tag tag(uint32_t ordinal) { return {50, ordinal, 0, 0}; }

  Ranks ranks_;
  std::vector<int> rails_;  // descriptors of both sides
};

}  // namespace sluice
