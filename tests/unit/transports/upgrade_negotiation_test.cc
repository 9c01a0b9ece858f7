// SPDX-License-Identifier: BSD-3-Clause
//
// The table of an upgrade's negotiation: every message in every state of either side.
#include "transports/link/upgrade_negotiation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

using Negotiation = UpgradeNegotiation;

constexpr Negotiation::State upgrade_states[] = {
    Negotiation::State::idle,   Negotiation::State::offered,  Negotiation::State::trial,
    Negotiation::State::failed, Negotiation::State::shifting, Negotiation::State::done,
    Negotiation::State::settled};
constexpr Negotiation::Message upgrade_messages[] = {
    Negotiation::Message::offer,       Negotiation::Message::accept,
    Negotiation::Message::decline,     Negotiation::Message::trial_failed,
    Negotiation::Message::try_another, Negotiation::Message::no_more_offers,
    Negotiation::Message::shift};

// A row for each state, a column for each message in the order above.
struct UpgradeTableOfSide {
  Negotiation::Side side;
  std::string_view rows[std::size(upgrade_states)];
};
constexpr UpgradeTableOfSide expected_tables[] = {
    {Negotiation::Side::connecting,
     {
         //           OFFER ACCEPT decline failed another no-more SHIFT
         /* idle     */ ".  .  .  .  .  .  .",
         /* offered  */ ".  b  n  i  a  n  .",
         /* trial    */ ".  .  .  w  .  .  .",
         /* failed   */ ".  .  .  .  .  .  .",
         /* shifting */ ".  .  .  g  .  .  t",
         /* done     */ ".  .  .  g  .  .  .",
         /* settled  */ ".  .  .  i  .  .  .",
     }},
    {Negotiation::Side::accepting,
     {
         /* idle     */ "o  .  .  .  .  s  .",
         /* offered  */ ".  .  .  .  .  .  .",
         /* trial    */ ".  .  d  .  d  s  t",
         /* failed   */ ".  .  d  .  d  s  g",
         /* shifting */ ".  .  .  .  .  .  .",
         /* done     */ ".  .  .  .  .  .  .",
         /* settled  */ ".  .  .  .  .  .  .",
     }}};

// What a letter stands for, and the state afterwards; none: the same as before. (On the connecting
// side an offer that follows makes more of "idle".)
struct UpgradeLetter {
  char letter;
  Negotiation::Action action;
  std::optional<Negotiation::State> next;
};
constexpr UpgradeLetter upgrade_letters[] = {
    {'.', Negotiation::Action::reject, {}},
    {'i', Negotiation::Action::ignore, {}},
    {'g', Negotiation::Action::give_up, {}},
    {'b', Negotiation::Action::begin_trial, Negotiation::State::trial},
    {'o', Negotiation::Action::attach, Negotiation::State::trial},
    {'n', Negotiation::Action::offer_next, Negotiation::State::idle},
    {'a', Negotiation::Action::offer_again, Negotiation::State::idle},
    {'w', Negotiation::Action::withdraw, Negotiation::State::idle},
    {'d', Negotiation::Action::drop, Negotiation::State::idle},
    {'s', Negotiation::Action::settle, Negotiation::State::settled},
    {'t', Negotiation::Action::take_over, Negotiation::State::done},
};

TEST(UpgradeTable, EveryMessageInEveryStateIsAsExpected) {
  for (const auto& [side, rows] : expected_tables) {
    for (size_t i = 0; i < std::size(upgrade_states); ++i) {
      for (size_t k = 0; k < std::size(upgrade_messages); ++k) {
        const auto& [letter, action, next] =
            *std::ranges::find(upgrade_letters, rows[i][3 * k], &UpgradeLetter::letter);
        const Negotiation::Step step =
            Negotiation::step(side, upgrade_states[i], upgrade_messages[k]);
        const auto where =
            std::to_string(int(side)) + " " + std::to_string(i) + " " + std::to_string(k);
        EXPECT_EQ(step.action, action) << where;
        EXPECT_EQ(step.next, next.value_or(upgrade_states[i])) << where;
      }
    }
  }
}

// A maker whose upgrades do what a test says.
class ToldUpgrade final : public Upgrade {
 public:
  explicit ToldUpgrade(const Result<bool>& trial) : trial_(trial) {}
  const char* name() const override { return "told"; }
  Status accepted(std::span<const std::byte>) override { return {}; }
  Result<bool> tried() override { return trial_; }
  void take_base() override {}
  Moved write(std::span<const iovec>) override { return {Moved::Result::nothing}; }
  Moved read(std::span<const iovec>) override { return {Moved::Result::nothing}; }
  bool may_sleep(bool, bool) override { return true; }
  void awake(bool) override {}
  bool hear() override { return false; }

 private:
  const Result<bool>& trial_;
};

class ToldMaker final : public UpgradeMaker {
 public:
  uint8_t id() const override { return 9; }
  bool serves(bool) const override { return true; }
  bool exposes() const override { return false; }
  size_t choices() override { return 2; }
  Result<Made> make(Conduit&, size_t choice) override {
    chosen += std::to_string(choice);
    return Made{std::make_unique<ToldUpgrade>(trial), {}};
  }
  Result<Made> attach(std::span<const std::byte>, Conduit&) override {
    if (!attaches.ok()) return attaches;
    return Made{std::make_unique<ToldUpgrade>(trial), {}};
  }

  Result<bool> trial = false;
  Status attaches;
  std::string chosen;
};

// One side, and what it sends.
class Negotiator {
 public:
  explicit Negotiator(Negotiation::Side side)
      : negotiation_(shared_, conduits_, out_, label_, side) {
    shared_.context.options.upgrades = {maker_};
  }
  // Two sides exchange their frames until neither has any.
  static void settle(Negotiator& one, Negotiator& other) {
    while (one.pass_to(other) || other.pass_to(one)) {
    }
  }
  Negotiation& negotiation() { return negotiation_; }
  ToldMaker& maker() { return *maker_; }
  const ConduitStack& conduits() const { return conduits_; }
  const Status& status() const { return status_; }
  void note(const Status& status) {
    if (status_.ok()) status_ = status;
  }

 private:
  // Hands the frames to the other side, as a conduit would.
  class Wire final : public Conduit {
   public:
    const char* name() const override { return "wire"; }
    Moved write(std::span<const iovec> runs) override {
      size_t before = bytes.size();
      for (const iovec& run : runs)
        bytes.append(static_cast<const char*>(run.iov_base), run.iov_len);
      return {Moved::Result::some, bytes.size() - before};
    }
    Moved read(std::span<const iovec>) override { return {Moved::Result::nothing}; }
    std::string bytes;
  };

  bool pass_to(Negotiator& other) {
    Wire wire;
    if (out_.flush(wire).result == Outbox::Result::shifted) conduits_.send_upgraded();
    for (size_t at = 0; at < wire.bytes.size();) {
      Frame frame;
      EXPECT_TRUE(frame.decode(reinterpret_cast<const std::byte*>(wire.bytes.data()) + at));
      other.note(
          other.negotiation_.take(frame.type, wire.bytes.substr(at + Frame::bytes, frame.length)));
      at += Frame::bytes + frame.length;
    }
    note(negotiation_.try_upgrade());
    return !wire.bytes.empty();
  }

  std::shared_ptr<ToldMaker> maker_ = std::make_shared<ToldMaker>();
  LinkShared shared_;
  ConduitStack conduits_;
  Outbox out_;
  const std::string label_ = "the other";
  Negotiation negotiation_;
  Status status_;
};

class UpgradeSides : public testing::Test {
 protected:
  void negotiate() {
    here_.note(here_.negotiation().offer());
    Negotiator::settle(here_, there_);
  }

  Negotiator here_{Negotiation::Side::connecting}, there_{Negotiation::Side::accepting};
};

TEST_F(UpgradeSides, ShiftOnceTheTrialHasPassed) {
  here_.maker().trial = there_.maker().trial = true;
  negotiate();
  EXPECT_STREQ(here_.conduits().carrier(), "told");
  EXPECT_STREQ(there_.conduits().carrier(), "told");
  EXPECT_EQ(here_.maker().chosen, "0");
}

TEST_F(UpgradeSides, TryEveryChoiceThatTheOtherSideCallsAMismatch) {
  there_.maker().attaches = {Code::mismatch, "another port"};
  negotiate();
  EXPECT_EQ(here_.maker().chosen, "01");
  EXPECT_FALSE(here_.conduits().uses_upgrade() || there_.conduits().uses_upgrade());
}

TEST_F(UpgradeSides, LeaveAMakerThatTheOtherSideDeclines) {
  there_.maker().attaches = {Code::unavailable, "no such thing"};
  negotiate();
  EXPECT_EQ(here_.maker().chosen, "0");
  EXPECT_FALSE(here_.negotiation().must_look() || there_.negotiation().must_look());
}

TEST_F(UpgradeSides, WithdrawWhatFailedHere) {
  here_.maker().trial = Status(Code::unavailable, "lost");
  negotiate();
  EXPECT_EQ(here_.maker().chosen, "01");
  EXPECT_FALSE(here_.conduits().uses_upgrade() || there_.conduits().uses_upgrade());
  EXPECT_TRUE(here_.status().ok() && there_.status().ok());
}

TEST_F(UpgradeSides, WithdrawWhatFailedThere) {
  there_.maker().trial = Status(Code::unavailable, "lost");
  negotiate();
  EXPECT_EQ(here_.maker().chosen, "01");
  EXPECT_FALSE(here_.conduits().uses_upgrade() || there_.conduits().uses_upgrade());
  EXPECT_TRUE(here_.status().ok() && there_.status().ok());
}

}  // namespace
}  // namespace sluice
