// SPDX-License-Identifier: BSD-3-Clause
//
// The table of how a link outlives its connection: every event in every state, and what must hold
// of all ways through it.
#include "transports/link/resumption.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

using State = Resumption::State;
using Event = Resumption::Event;
using Action = Resumption::Action;

constexpr State link_states[] = {State::fresh, State::whole, State::broken, State::seeking,
                                 State::over};
constexpr Event link_events[] = {Event::opened,   Event::broke,   Event::needed,
                                 Event::unneeded, Event::resumed, Event::ended};

// A row for each state, a column for each event in the order above.
constexpr std::string_view expected_steps[] = {
    //           opened broke needed unneeded resumed ended
    /* fresh   */ "w  .  .  .  .  o",
    /* whole   */ ".  p  .  .  .  o",
    /* broken  */ ".  .  s  .  g  o",
    /* seeking */ ".  .  .  r  g  o",
    /* over    */ ".  .  .  .  .  .",
};

// What a letter stands for, and the state afterwards; none: the same as before.
struct LinkLetter {
  char letter;
  Action action;
  std::optional<State> next;
};
constexpr LinkLetter link_letters[] = {
    {'.', Action::none, {}},
    {'w', Action::none, State::whole},
    {'o', Action::none, State::over},
    {'p', Action::part, State::broken},
    {'s', Action::seek, State::seeking},
    {'r', Action::rest, State::broken},
    {'g', Action::go_on, State::whole},
};

TEST(ResumptionTable, EveryEventInEveryStateIsAsExpected) {
  for (size_t i = 0; i < std::size(link_states); ++i) {
    for (size_t k = 0; k < std::size(link_events); ++k) {
      const auto& [letter, action, next] =
          *std::ranges::find(link_letters, expected_steps[i][3 * k], &LinkLetter::letter);
      const Resumption::Step step = Resumption::step(link_states[i], link_events[k]);
      const auto where = std::to_string(i) + " " + std::to_string(k);
      EXPECT_EQ(step.action, action) << where;
      EXPECT_EQ(step.next, next.value_or(link_states[i])) << where;
    }
  }
}

// What a side takes of a connection on which the other resumes. A column for each number that it
// says: older, the same, or newer than that of the connection in place.
TEST(ResumptionTable, OfEveryNumberInEveryStateIsAsExpected) {
  using Side = Meeting::Side;
  using Number = Resumption::Number;
  constexpr std::string_view asks[] = {"...", ".t.", "tt.", "tt.", "..."};  // as link_states
  constexpr std::string_view answers[] = {"...", "..t", "..t", "..t", "..."};
  for (size_t i = 0; i < std::size(link_states); ++i) {
    for (const Number number : {Number::older, Number::same, Number::newer}) {
      const auto column = static_cast<size_t>(number);
      EXPECT_EQ(Resumption::takes(Side::asks, link_states[i], number), asks[i][column] == 't') << i;
      EXPECT_EQ(Resumption::takes(Side::answers, link_states[i], number), answers[i][column] == 't')
          << i;
    }
  }
}

TEST(ResumptionTable, ANumberIsComparedWithThatOfTheConnectionInPlace) {
  Resumption link;
  (void)link.enter(Event::opened);
  EXPECT_TRUE(link.takes(Meeting::Side::asks, 0));
  EXPECT_FALSE(link.takes(Meeting::Side::answers, 0));
  link.bring(7);
  for (const uint64_t number : {0, 6, 7, 8, 100}) {
    EXPECT_EQ(link.takes(Meeting::Side::asks, number), number == 7) << number;
    EXPECT_EQ(link.takes(Meeting::Side::answers, number), number > 7) << number;
  }
  (void)link.enter(Event::broke);
  for (const uint64_t number : {0, 6, 7, 8, 100}) {
    EXPECT_EQ(link.takes(Meeting::Side::asks, number), number <= 7) << number;
    EXPECT_EQ(link.takes(Meeting::Side::answers, number), number > 7) << number;
  }
}

// What this side has, after any events: a connection, or an attempt to get one, or neither.
TEST(ResumptionTable, OnAllWaysALinkHasOneConnectionAtMost) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int way = 0; way < 2000; ++way) {
    Resumption link;
    bool connected = true, connects = false, ended = false;
    for (int i = 0; i < 40; ++i) {
      const Event event = link_events[random() % std::size(link_events)];
      switch (link.enter(event)) {
        case Action::part:
          EXPECT_TRUE(connected && !connects);
          connected = false;
          break;
        case Action::seek:
          EXPECT_TRUE(!connected && !connects);
          connects = true;
          break;
        case Action::rest:
          EXPECT_TRUE(connects);
          connects = false;
          break;
        case Action::go_on:
          EXPECT_FALSE(connected);
          connected = true;
          connects = false;
          break;
        case Action::none:
          break;
      }
      ended = link.state() == State::over;
      EXPECT_EQ(link.seeks(), connects && !ended);
    }
  }
}

}  // namespace
}  // namespace sluice
