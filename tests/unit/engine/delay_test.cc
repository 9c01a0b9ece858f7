// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/delay.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(Delay, takes_lists_of_algorithms) {
  for (const char* text :
       {"flat:3", "mpi:2.5", "flat:0", "flat:1e3", "flat:3,mpi:2.5:1000-1999", "flat:3:7-7",
        "flat:3:7-", "flat:3:-7", "flat:3:7-18446744073709551615", "flat:1,flat:2:5-6,ring:0.1"}) {
    const Result<Delay> delay = Delay::parse(text);
    ASSERT_TRUE(delay.ok()) << text << ": " << delay.status().message();
    EXPECT_FALSE(delay->empty()) << text;
  }
  const Result<Delay> none = Delay::parse("");
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
}

TEST(Delay, names_what_is_wrong) {
  for (const char* wrong :
       {"flat", "flat:", "flat:x", "flat:-1", "flat:3us", "flat: 3", ":3", "flat:3:x-7",
        "flat:3:7-x", "flat:3:7-9-11", "flat:3:1.5-2", "flat:3:18446744073709551616-", "flat:nan",
        "flat:inf", "flat:1e999", "flat:3:9-7", ":", "flat:3:7-9:11"}) {
    for (const std::string& text :
         {std::string(wrong), "mpi:1," + std::string(wrong), std::string(wrong) + ",mpi:1"}) {
      const Result<Delay> delay = Delay::parse(text);
      ASSERT_FALSE(delay.ok()) << text;
      EXPECT_EQ(delay.status().code(), Code::invalid);
      EXPECT_EQ(delay.status().message(),
                "SLUICE_DELAY: '" + std::string(wrong) +
                    "' is not ALGORITHM:MICROSECONDS or ALGORITHM:MICROSECONDS:FIRST-LAST");
    }
  }
  for (const char* text : {",", "mpi:1,,flat:3"}) EXPECT_FALSE(Delay::parse(text).ok()) << text;
}

TEST(Delay, is_of_an_algorithm) {
  const Result<Delay> delay = Delay::parse("ring:1,rings:1");
  ASSERT_FALSE(delay.ok());
  EXPECT_EQ(delay.status().message(), "SLUICE_DELAY: no collective has an algorithm 'rings'");
}

TEST(Delay, is_of_an_hour_at_most) {
  for (const char* longest : {"flat:3600000000", "flat:3.6e9:1-2"}) {
    const Result<Delay> delay = Delay::parse("pretend," + std::string(longest));
    ASSERT_TRUE(delay.ok()) << delay.status().message();
    EXPECT_EQ(delay->pretended("flat"), std::chrono::hours(1));
  }
  for (const char* longer : {"flat:3600000000.1", "flat:1e16", "flat:1e300:1-2"}) {
    const Result<Delay> delay = Delay::parse("mpi:1," + std::string(longer));
    ASSERT_FALSE(delay.ok()) << longer;
    EXPECT_EQ(delay.status().code(), Code::invalid);
    EXPECT_EQ(delay.status().message(), "SLUICE_DELAY: '" + std::string(longer) +
                                            "' is more than 3600000000 microseconds, an hour");
  }
}

// Seconds that a call by the algorithm is prolonged.
double prolong(Delay& delay, const char* algorithm) {
  const auto began = Delay::Clock::now();
  delay.prolong(algorithm);
  return std::chrono::duration<double>(Delay::Clock::now() - began).count();
}

// (At least so long; how much longer, depends on the machine. Who is not to wait has a delay of an
// hour, which the test's watchdog would notice.)
TEST(Delay, prolongs_calls_by_number_and_algorithm) {
  Result<Delay> delay = Delay::parse("flat:20000:3-4,flat:3600000000:6-,ring:3600000000:-4");
  ASSERT_TRUE(delay.ok()) << delay.status().message();
  (void)prolong(*delay, "flat");
  (void)prolong(*delay, "mpi");
  EXPECT_GE(prolong(*delay, "flat"), 0.02);
  EXPECT_GE(prolong(*delay, "flat"), 0.02);
  (void)prolong(*delay, "ring");
  (void)prolong(*delay, "fla");
  (void)prolong(*delay, "flat2");
  (void)prolong(*delay, "");
}

}  // namespace
}  // namespace sluice
