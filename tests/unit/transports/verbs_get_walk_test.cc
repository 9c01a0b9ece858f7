// SPDX-License-Identifier: BSD-3-Clause
//
// Random schedules of all that can happen to messages that are read from the sender's memory: they
// are posted in any order, reads stand still amid a message, fail, or go on, a side gives its call
// up and uses its memory again, a connection breaks. Whatever happens, nothing is written to memory
// that was given back, nothing that a sender had taken back counts as a message, and everything
// ends.
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/transports/breaks.h"
#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/tcp_rig.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

constexpr size_t walked_bytes = 3000;
constexpr uint32_t walked_messages = 3;  // of a team in each direction
constexpr auto reused = std::byte{0x5A};

MakeEndpoint getting_endpoints() {
  VerbsOptions verbs;
  verbs.local = true;
  verbs.ring = 4096;
  verbs.table = &fake_verbs::table();
  verbs.get_least = 1;
  return [verbs](const ProcessId& self) {
    TcpOptions options;
    options.get_least = 1;
    options.linger = std::chrono::milliseconds(20);
    options.upgrades = {make_verbs_upgrades(verbs)};
    return tcp(options)(self);
  };
}

// One side of a team.
struct Party {
  Channel* channel = nullptr;
  std::vector<std::unique_ptr<Message>> sends, receives;
  size_t sent = 0, received = 0;  // posted so far
  bool has_given_up = false;
};

class GetWalk {
 public:
  GetWalk(Ranks& ranks, uint32_t team, uint64_t seed) : ranks_(ranks), random_(seed) {
    for (const size_t rank : {0, 1}) {
      Party& side = sides_[rank];
      side.channel = &ranks.channel(rank, 1 - rank, team);
      for (uint32_t i = 0; i < walked_messages; ++i) {
        side.sends.push_back(std::make_unique<Message>(Tag{2, i, 0, 0}, walked_bytes, pieces()));
        side.sends.back()->fill();
        side.receives.push_back(std::make_unique<Message>(Tag{2, i, 0, 0}, walked_bytes, pieces()));
      }
    }
  }

  void step() {
    const size_t rank = random_() % 2;
    Party& side = sides_[rank];
    switch (random_() % 16) {
      case 0:
      case 1:
      case 2:
        return send_next(side);
      case 3:
      case 4:
      case 5:
        return receive_next(side);
      case 6:
        return fake_verbs::set_read_steps(0);
      case 7:
        return fake_verbs::set_read_steps(static_cast<int>(1 + random_() % 3));
      case 8:
        return fake_verbs::set_read_steps(-1);
      case 9:
        if (random_() % 4 == 0) give_up(side);
        return;
      default:
        for (int i = 0; i < 5; ++i) ranks_.at(random_() % 2).progress();
        return check();
    }
  }

  void finish() {
    fake_verbs::set_read_steps(-1);
    for (Party& side : sides_) {
      for (uint32_t i = 0; i < walked_messages; ++i) send_next(side), receive_next(side);
    }
    ASSERT_TRUE(ranks_.drive([&] { return have_ended(); }));
    check();
    const bool both_stay = !sides_[0].has_given_up && !sides_[1].has_given_up;
    for (Party& side : sides_) {
      for (auto* list : {&side.sends, &side.receives}) {
        for (auto& each : *list) ASSERT_TRUE(!both_stay || each->ok()) << each->why();
      }
    }
  }

 private:
  size_t pieces() { return 1 + random_() % 4; }
  void send_next(Party& side) {
    if (side.has_given_up || side.sent == walked_messages) return;
    side.sends[side.sent++]->send(*side.channel);
  }
  void receive_next(Party& side) {
    if (side.has_given_up || side.received == walked_messages) return;
    side.receives[side.received++]->receive(*side.channel);
  }
  // What a failed call does: after it the program uses its memory for something else.
  void give_up(Party& side) {
    if (side.has_given_up) return;
    check();
    side.channel->withdraw();
    side.channel->abort("given up");
    side.has_given_up = true;
    for (auto* list : {&side.sends, &side.receives}) {
      for (auto& each : *list) each->overwrite(reused), each->operation.registrations->clear();
    }
  }
  void check() {
    for (Party& side : sides_) {
      for (auto& each : side.receives) {
        if (side.has_given_up) {
          ASSERT_TRUE(each->holds_only(reused)) << "written to after it was given back";
        } else if (each->ok()) {
          ASSERT_TRUE(each->holds_pattern()) << "not the message";
        }
      }
    }
  }
  bool have_ended() {
    for (Party& side : sides_) {
      if (side.has_given_up) continue;
      for (auto* list : {&side.sends, &side.receives}) {
        for (auto& each : *list) {
          if (!each->done()) return false;
        }
      }
    }
    return true;
  }

  Ranks& ranks_;
  std::mt19937_64 random_;
  std::array<Party, 2> sides_;
};

// Returns the bytes that were read.
uint64_t walk(uint64_t seed) {
  std::mt19937_64 random(seed);
  fake_verbs::Settings settings;
  settings.seed = seed;
  fake_verbs::reset(settings);
  Ranks ranks(getting_endpoints(), 2);
  Breaker breaker;
  EXPECT_TRUE(exchange_until(ranks, "verbs"));
  const bool fails = random() % 6 == 0, breaks = random() % 6 == 0;
  // (Two teams share the link and its reads.)
  for (uint32_t team = 2; team < 10 && !testing::Test::HasFatalFailure(); team += 2) {
    GetWalk one(ranks, team, random()), other(ranks, team + 1, random());
    const size_t when = random() % 60;
    for (size_t i = 0; i < 60 && !testing::Test::HasFatalFailure(); ++i) {
      (random() % 2 == 0 ? one : other).step();
      if (i == when && fails) fake_verbs::fail_next_read(10);
      if (i == when && breaks) (void)breaker.hit(ranks, random() % 2, Break::reset);
    }
    one.finish();
    other.finish();
  }
  EXPECT_EQ(fake_verbs::counts().overruns, 0);
  return ranks.at(0).traffic().got;
}

class VerbsGetWalk : public testing::TestWithParam<uint64_t> {};

TEST_P(VerbsGetWalk, NothingIsWrittenThatWasGivenBack) {
  uint64_t got = 0;
  for (uint64_t round = 0; round < 25 && !HasFatalFailure(); ++round) {
    got += walk(100 * GetParam() + round);
  }
  EXPECT_GT(got, 100 * walked_bytes);
}

INSTANTIATE_TEST_SUITE_P(Seeds, VerbsGetWalk, testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace sluice
