// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "transports/link/flow.h"

namespace sluice::flows {
namespace {

uint64_t sent(std::string text) {
  const std::unique_ptr<FILE, int (*)(FILE*)> table(fmemopen(text.data(), text.size(), "r"),
                                                    fclose);
  return sent_by_interfaces(table.get());
}

constexpr const char* titles =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n";

TEST(Interfaces, WhatTheyHaveSent) {
  EXPECT_EQ(sent(titles), 0u);
  EXPECT_EQ(sent(std::string(titles) + "    lo: 111 2 0 0 0 0 0 0 111 2 0 0 0 0 0 0\n"
                                       "  eth0: 5000000000 7 0 0 0 0 0 9 6000000000 8 0 0 0 0 0 0\n"
                                       "lower7:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                                       "  bad0: 1 2 3\n"),
            6'000'000'009u);
}

TEST(Interfaces, OfThisHost) {
  const uint64_t before = sent_by_interfaces();
  EXPECT_GE(sent_by_interfaces(), before);
}

}  // namespace
}  // namespace sluice::flows
