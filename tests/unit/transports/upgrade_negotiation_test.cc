// SPDX-License-Identifier: BSD-3-Clause
//
// The table of an upgrade's negotiation: every message in every state of either side.
#include "transports/link/upgrade_negotiation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {
namespace {

using Negotiation = UpgradeNegotiation;

constexpr Negotiation::State upgrade_states[] = {
    Negotiation::State::idle,   Negotiation::State::offered,  Negotiation::State::probing,
    Negotiation::State::failed, Negotiation::State::shifting, Negotiation::State::done,
    Negotiation::State::settled};
constexpr Negotiation::Message upgrade_messages[] = {
    Negotiation::Message::offer,       Negotiation::Message::accept,
    Negotiation::Message::decline,     Negotiation::Message::probe_failed,
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
         /* probe    */ ".  .  .  w  .  .  .",
         /* failed   */ ".  .  .  .  .  .  .",
         /* shifting */ ".  .  .  g  .  .  t",
         /* done     */ ".  .  .  g  .  .  .",
         /* settled  */ ".  .  .  i  .  .  .",
     }},
    {Negotiation::Side::accepting,
     {
         /* idle     */ "o  .  .  .  .  s  .",
         /* offered  */ ".  .  .  .  .  .  .",
         /* probe    */ ".  .  d  .  d  s  t",
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
    {'b', Negotiation::Action::begin_probe, Negotiation::State::probing},
    {'o', Negotiation::Action::attach, Negotiation::State::probing},
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

}  // namespace
}  // namespace sluice
