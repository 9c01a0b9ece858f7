// SPDX-License-Identifier: BSD-3-Clause
//
// The table of a dialer's attempts: every event in every state, and what must hold of all ways
// through it.
#include "transports/tcp/dialing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::dialings {
namespace {

using State = Dialing::State;
using Event = Dialing::Event;
using Action = Dialing::Action;
using Reasons = Dialing::Reasons;

constexpr State attempt_states[] = {State::connecting, State::asking, State::hearing,
                                    State::confirming};
constexpr Event attempt_events[] = {
    Event::nothing, Event::unanswered, Event::overdue,      Event::spurned,        Event::connected,
    Event::greeted, Event::invited,    Event::acknowledged, Event::unacknowledged, Event::part,
    Event::answer,  Event::refusal,    Event::noise,        Event::confirmed,      Event::absent,
    Event::closed,  Event::ended,      Event::failed,       Event::spent};

// A row for each state, a column for each event in the order above.
constexpr std::string_view expected_steps[] = {
    //                nothing     connected   unackn.     noise       ended
    //                   unanswered  greeted     part        confirmed   failed
    //                      overdue     invited     answer      absent      spent
    //                         spurned     ackn.       refusal     closed
    /* connecting */ ".  f  F  .  g  h  t  .  .  .  .  .  .  .  m  r  .  F  F",
    /* asking     */ ".  .  l  s  .  .  .  w  F  p  c  x  n  .  m  r  r  F  m",
    /* hearing    */ ".  .  l  s  .  .  .  w  F  .  c  x  n  .  m  m  m  F  .",
    /* confirming */ ".  .  .  .  .  .  .  .  .  .  .  .  .  t  .  r  .  F  m",
};

// What a letter stands for: the action, the state afterwards (none: the same as before), and what
// is said.
struct AttemptLetter {
  char letter;
  Action action;
  std::optional<State> next{};
  const char* why = nullptr;
};
constexpr AttemptLetter attempt_letters[] = {
    {'.', Action::wait},
    {'w', Action::wait_longer},
    {'f', Action::renew},
    {'g', Action::greet},
    {'h', Action::hear, State::asking},
    {'p', Action::wait, State::hearing},
    {'l', Action::look},
    {'c', Action::confirm, State::confirming},
    {'r', Action::retry},
    {'t', Action::take},
    {'x', Action::refuse},
    {'m', Action::miss},
    {'n', Action::miss, {}, Reasons::noise},
    {'s', Action::fail, {}, Reasons::spurned},
    {'F', Action::fail},
};

TEST(DialingTable, EveryEventInEveryStateIsAsExpected) {
  static_assert(std::size(attempt_states) == std::size(expected_steps));
  for (size_t i = 0; i < std::size(attempt_states); ++i) {
    ASSERT_EQ(expected_steps[i].size(), 3 * std::size(attempt_events) - 2);
    for (size_t k = 0; k < std::size(attempt_events); ++k) {
      const auto* const expected =
          std::ranges::find(attempt_letters, expected_steps[i][3 * k], &AttemptLetter::letter);
      ASSERT_NE(expected, std::end(attempt_letters));
      const Dialing::Step step = Dialing::step(attempt_states[i], attempt_events[k]);
      SCOPED_TRACE("state " + std::to_string(i) + " event " + std::to_string(k));
      EXPECT_EQ(step.action, expected->action);
      EXPECT_EQ(step.next, expected->next.value_or(attempt_states[i]));
      EXPECT_EQ(std::string_view(step.why == nullptr ? "" : step.why),
                expected->why == nullptr ? "" : expected->why);
    }
  }
}

// All that can come next, after an action and in a state, for a dialer that greets or invites.
std::vector<Event> events_after(Action action, State state, bool invites) {
  switch (action) {
    case Action::greet:
      return {invites ? Event::invited : Event::greeted, Event::closed, Event::failed};
    case Action::look:
      return {Event::acknowledged, Event::unacknowledged};
    case Action::confirm:
      return {Event::confirmed, Event::closed, Event::failed};
    case Action::retry:
      return {Event::spent};
    default:
      break;
  }
  if (state == State::connecting) {
    return {Event::nothing, Event::unanswered, Event::overdue, Event::connected,
            Event::absent,  Event::closed,     Event::failed};
  }
  return {Event::nothing, Event::overdue, Event::spurned, Event::part,
          Event::answer,  Event::refusal, Event::noise,   Event::absent,
          Event::closed,  Event::ended,   Event::failed};
}

bool is_the_end(Action action) {
  return action == Action::take || action == Action::refuse || action == Action::miss ||
         action == Action::fail;
}

// On random ways through the table: a connection is taken only with the right answer on it, or with
// an invitation; an attempt is tried again only if the peer has said nothing, or its answer could
// not be confirmed; whatever was asked for is acted on; and no event is left unanswered but those
// that change nothing.
TEST(DialingTable, OnlyWhatAnsweredIsTaken) {
  const auto seed = static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  std::mt19937_64 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  size_t taken = 0;
  for (int way = 0; way < 20000; ++way) {
    const bool invites = way % 2 != 0;
    State state = State::connecting;
    Action action = Action::wait;
    bool greeted = false, heard = false, answered = false, confirmed = false;
    while (!is_the_end(action)) {
      const auto events = events_after(action, state, invites);
      const Event event = events[random() % events.size()];
      greeted |= event == Event::greeted || event == Event::invited;
      heard |= event == Event::part || event == Event::answer;
      answered |= event == Event::answer;
      confirmed |= event == Event::confirmed;
      const Dialing::Step step = Dialing::step(state, event);
      if (step.action == Action::wait) {
        EXPECT_TRUE(event == Event::nothing || event == Event::part);
      }
      EXPECT_EQ(step.next != State::connecting, greeted && !invites);
      EXPECT_EQ(step.next == State::hearing || step.next == State::confirming, heard);
      if (step.action == Action::retry) {
        EXPECT_TRUE(!heard || answered);
      }
      if (step.action == Action::take) {
        EXPECT_TRUE(invites ? greeted : answered && confirmed);
        ++taken;
      }
      state = step.next;
      action = step.action;
    }
  }
  EXPECT_GT(taken, 0U);
}

}  // namespace
}  // namespace sluice::dialings
