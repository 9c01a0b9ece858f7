// SPDX-License-Identifier: BSD-3-Clause
//
// The probe of an accepted upgrade, which passes or fails on either side at any time: both sides
// decide alike.
#include <memory>
#include <string>
#include <utility>

#include "tests/unit/transports/upgrade_rig.h"

namespace sluice {
namespace {

enum class Probe { awaited, passed, failed };

// What the two sides' probes say. 0: the connecting side.
struct Probes {
  Probe side[2] = {Probe::awaited, Probe::awaited};
  int asked[2] = {};
};

// Shared memory, whose probe says what a test wants.
class TriedUpgrade final : public Upgrade {
 public:
  TriedUpgrade(std::unique_ptr<Upgrade> real, Probes& probes, size_t side)
      : real_(std::move(real)), probes_(probes), side_(side) {}
  const char* name() const override { return real_->name(); }
  Status accepted(std::span<const std::byte> answer) override { return real_->accepted(answer); }
  Result<bool> tried() override {
    ++probes_.asked[side_];
    const Probe probe = probes_.side[side_];
    if (probe == Probe::failed) return Status(Code::unavailable, "probe of side failed");
    return probe == Probe::passed;
  }
  void take_base() override { real_->take_base(); }
  Moved write(std::span<const iovec> runs) override { return real_->write(runs); }
  Moved read(std::span<const iovec> runs) override { return real_->read(runs); }
  std::string problem() const override { return real_->problem(); }
  bool may_sleep(bool reads, bool writes) override { return real_->may_sleep(reads, writes); }
  void awake(bool any) override { real_->awake(any); }
  bool hear() override { return real_->hear(); }

 private:
  const std::unique_ptr<Upgrade> real_;
  Probes& probes_;
  const size_t side_;
};

class TriedMaker final : public UpgradeMaker {
 public:
  TriedMaker(Probes& probes, uint8_t id) : probes_(probes), id_(id) {}
  uint8_t id() const override { return id_; }
  bool serves(bool same_host) const override { return same_host; }
  bool exposes() const override { return false; }
  Result<Made> make(Conduit& base, size_t choice) override {
    return with_probe(real_->make(base, choice), 0);
  }
  Result<Made> attach(std::span<const std::byte> offer, Conduit& base) override {
    return with_probe(real_->attach(offer, base), 1);
  }

 private:
  Result<Made> with_probe(Result<Made> made, size_t side) {
    if (made.ok()) {
      made->upgrade = std::make_unique<TriedUpgrade>(std::move(made->upgrade), probes_, side);
    }
    return made;
  }

  const std::shared_ptr<UpgradeMaker> real_ = make_shm_upgrades();
  Probes& probes_;
  const uint8_t id_;
};

class UpgradeProbe : public testing::Test {
 protected:
  MakeEndpoint tried(bool another = false) {
    TcpOptions options;
    options.upgrades = {std::make_shared<TriedMaker>(first_, uint8_t{9})};
    if (another) options.upgrades.push_back(std::make_shared<TriedMaker>(second_, uint8_t{10}));
    return tcp(options);
  }
  static std::string carriers(Ranks& ranks) {
    return ranks.channel(0, 1).carrier() + std::string(" ") + ranks.channel(1, 0).carrier();
  }
  static bool exchange_some(Ranks& ranks, int times) {
    bool good = true;
    for (int i = 0; i < times; ++i) good &= exchange(ranks, 1, 3000);
    return good;
  }

  Probes first_, second_;
};

// Each side's probe passes or fails after a number of exchanges, before which nothing is decided.
// (The probe of the connecting side passes by the other's answer, thus long before or never.)
TEST_F(UpgradeProbe, BothSidesDecideAlikeInEveryOrder) {
  const Probe ends[] = {Probe::passed, Probe::failed};
  for (const Probe here : ends) {
    for (const Probe there : ends) {
      for (int order = 0; order < 36; ++order) {
        const int when[] = {order / 6, order % 6};
        if (here == Probe::passed && there == Probe::failed && when[0] < when[1] + 3) continue;
        first_ = {};
        Ranks ranks(tried(), 2);
        for (int i = 0; i < 6; ++i) {
          ASSERT_TRUE(exchange(ranks, 1, 3000));
          if (i == when[0]) first_.side[0] = here;
          if (i == when[1]) first_.side[1] = there;
        }
        ASSERT_TRUE(exchange_some(ranks, 20));
        const bool moves = here == Probe::passed && there == Probe::passed;
        EXPECT_EQ(carriers(ranks), moves ? "shm shm" : "tcp tcp") << order;
      }
    }
  }
}

TEST_F(UpgradeProbe, WithoutAnEndTheLinkGoesOnOverItsSocket) {
  Ranks ranks(tried(), 2);
  ASSERT_TRUE(exchange_some(ranks, 100));
  EXPECT_EQ(carriers(ranks), "tcp tcp");
  EXPECT_GT(first_.asked[0], 10);
  EXPECT_GT(first_.asked[1], 10);
}

TEST_F(UpgradeProbe, AfterAFailureTheNextMakerIsOffered) {
  for (const size_t side : {0, 1}) {
    first_ = second_ = {};
    first_.side[side] = Probe::failed;
    second_.side[0] = second_.side[1] = Probe::passed;
    Ranks ranks(tried(true), 2);
    ASSERT_TRUE(exchange_some(ranks, 20));
    EXPECT_EQ(carriers(ranks), "shm shm") << side;
    EXPECT_GT(second_.asked[0], 0);
  }
}

// The accepting side says that its probe failed while the connecting side withdraws or shifts.
TEST_F(UpgradeProbe, WhatBothSayAtOnceIsNoConfusion) {
  for (const Probe here : {Probe::failed, Probe::passed}) {
    for (const bool another : {false, true}) {
      first_ = second_ = {};
      second_.side[0] = second_.side[1] = Probe::passed;
      Ranks ranks(tried(another), 2);
      ASSERT_TRUE(exchange_some(ranks, 6));
      ASSERT_GT(first_.asked[0], 0);
      first_.side[0] = here;
      first_.side[1] = Probe::failed;
      Messages messages;
      for (uint32_t i = 0; i < 20; ++i) {
        for (const size_t rank : {0, 1}) {
          add(messages, {100 + i, 0, 0, 0}, 50).fill().send(ranks.channel(rank, 1 - rank));
          add(messages, {100 + i, 0, 0, 0}, 50).receive(ranks.channel(1 - rank, rank));
        }
      }
      ASSERT_TRUE(ranks.drive(messages));
      if (here == Probe::failed) {
        for (auto& message : messages) EXPECT_TRUE(message->ok()) << message->why();
        ASSERT_TRUE(exchange_some(ranks, 20));
        EXPECT_EQ(carriers(ranks), another ? "shm shm" : "tcp tcp");
      } else if (!messages.back()->ok()) {  // else the failure came first
        EXPECT_EQ(messages.back()->code(), Code::peer_lost) << messages.back()->why();
      }
    }
  }
}

}  // namespace
}  // namespace sluice
