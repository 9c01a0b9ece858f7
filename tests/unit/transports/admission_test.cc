// SPDX-License-Identifier: BSD-3-Clause
//
// The table of the acceptor's pending connections: every event in every state, with everything that
// this side may know. What must come of it is written here once more, as the rules of a peer and of
// a stranger.
#include "transports/tcp/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::admissions {
namespace {

using State = Admission::State;
using Event = Admission::Event;
using Fact = Admission::Fact;
using Action = Admission::Action;
using Faults = Admission::Faults;
using Greeter = Admission::Greeter;

constexpr State pending_states[] = {State::silent, State::unknown, State::proving};
constexpr Event pending_events[] = {
    Event::nothing,    Event::end,  Event::noise,   Event::greeting,   Event::resumption,
    Event::invitation, Event::rail, Event::refusal, Event::last_proof, Event::no_memory};
// none: neither.
constexpr std::optional<Fact> deadlines[] = {{}, Fact::overdue, Fact::unanswered};
constexpr Fact standings[] = {Fact::unexpected, Fact::met, Fact::undecided, Fact::failed,
                              Fact::expected};
constexpr Fact credentials[] = {Fact::wrong,     Fact::uncheckable, Fact::unidentified,
                                Fact::unchecked, Fact::key,         Fact::proof};
constexpr std::optional<Fact> replies[] = {
    {}, Fact::welcomed, Fact::deferred, Fact::refused, Fact::dropped};

struct Case {
  State state;
  Event event;
  std::optional<Fact> deadline;
  Fact standing, credential;
  std::optional<Fact> reply;

  bool overdue() const { return deadline == Fact::overdue; }
  bool is(Event is) const { return event == is; }
  bool greets() const {
    return is(Event::greeting) || is(Event::resumption) || is(Event::invitation);
  }
  bool speaks() const { return greets() || is(Event::rail) || is(Event::refusal); }
  // A greeting comes before the answer, the last proof after it.
  bool in_turn() const {
    const bool answered = state == State::proving;
    return speaks() ? !answered : is(Event::last_proof) ? answered : true;
  }
  bool identified() const { return credential == Fact::key || credential == Fact::proof; }
  Admission::Step step() const {
    Admission::Facts facts{standing, credential};
    if (deadline) facts.add(*deadline);
    if (reply) facts.add(*reply);
    return Admission::step(state, event, facts);
  }
  std::string text() const {
    std::string text = "state " + std::to_string(int(state)) + " event " +
                       std::to_string(int(event)) + " facts " + std::to_string(int(standing)) +
                       " " + std::to_string(int(credential));
    if (deadline) text += " " + std::to_string(int(*deadline));
    if (reply) text += " " + std::to_string(int(*reply));
    return text;
  }
};

template <typename Check>
size_t for_all(const Check& check) {
  size_t count = 0;
  for (const State state : pending_states) {
    for (const Event event : pending_events) {
      for (const auto& deadline : deadlines) {
        for (const Fact standing : standings) {
          for (const Fact credential : credentials) {
            for (const auto& reply : replies) {
              check(Case{state, event, deadline, standing, credential, reply});
              ++count;
            }
          }
        }
      }
    }
  }
  return count;
}

// What is expected: an action; what is said of one that is turned away; the next state.
struct Expected {
  Action action;
  const char* fault = nullptr;
  std::optional<State> next{};  // none: the same
};
Expected away(const char* fault) { return {Action::turn_away, fault}; }

// Of one who may do what he says, or is told that he may not.
Expected expected_of_peer(const Case& each) {
  if (each.is(Event::refusal)) {
    return each.credential == Fact::proof ? Expected{Action::give_up} : away(Faults::no_greeting);
  }
  const bool may =
      each.standing == Fact::expected || (each.standing == Fact::failed && !each.is(Event::rail));
  if (!may) return away(Faults::no_greeting);
  if (each.standing == Fact::failed) return {Action::refuse};
  if (each.is(Event::rail) && each.credential == Fact::key) return {Action::welcome};
  if (!each.reply) return {Action::ask};
  switch (*each.reply) {
    case Fact::refused:
      return {Action::refuse};
    case Fact::dropped:
      return {Action::leave};
    case Fact::deferred:
      return each.overdue() ? away(Faults::unread) : Expected{Action::wait};
    default:
      break;
  }
  const bool answers_itself =
      each.is(Event::invitation) || (each.is(Event::greeting) && each.credential == Fact::key);
  return answers_itself ? Expected{Action::welcome}
                        : Expected{Action::answer, nullptr, State::proving};
}

// Of a greeting, an invitation, a rail or a refusal that comes in its turn.
Expected expected_of_words(const Case& each) {
  const bool rail = each.is(Event::rail), refusal = each.is(Event::refusal);
  if (!refusal && each.standing == Fact::met) return {Action::leave};
  if (each.greets() && each.standing == Fact::unexpected) return away(Faults::not_expected);
  if (each.credential == Fact::wrong) return away(Faults::no_key);
  if (rail && each.standing == Fact::unexpected) return away(Faults::not_expected);
  if (rail && each.standing == Fact::undecided) {
    return {each.overdue() ? Action::leave : Action::wait};
  }
  switch (each.credential) {
    case Fact::uncheckable:
      return away(Faults::no_means);
    case Fact::unchecked:
      return {Action::check};
    case Fact::unidentified:
      if (rail || refusal) return away(Faults::no_greeting);  // (never: they are not asked for it)
      if (!each.overdue()) return {Action::wait, nullptr, State::unknown};
      return each.is(Event::invitation) ? Expected{Action::leave} : away(Faults::no_team);
    default:
      return expected_of_peer(each);
  }
}

Expected expected_of(const Case& each) {
  const bool answered = each.state == State::proving;
  if (!each.in_turn()) return away(Faults::no_greeting);
  switch (each.event) {
    case Event::nothing:
      if (each.deadline == Fact::unanswered) return {Action::look};
      if (!each.overdue()) return {Action::wait};
      return away(answered ? Faults::no_proof : Faults::no_greeting);
    case Event::no_memory:
      return each.overdue() ? away(Faults::no_means) : Expected{Action::wait};
    case Event::end:
      return {Action::leave};
    case Event::noise:
      return away(Faults::no_greeting);
    case Event::last_proof:
      return each.credential == Fact::proof ? Expected{Action::welcome} : away(Faults::no_proof);
    default:
      return expected_of_words(each);
  }
}

// The link is asked before it replies.
bool happens(Case each) {
  if (!each.reply) return true;
  each.reply.reset();
  return expected_of(each).action == Action::ask;
}

TEST(AdmissionTable, EveryEventInEveryStateIsAsExpected) {
  const size_t count = for_all([](const Case& each) {
    if (!happens(each)) return;
    const Admission::Step step = each.step();
    const Expected expected = expected_of(each);
    EXPECT_EQ(step.action, expected.action) << each.text();
    EXPECT_EQ(std::string_view(step.fault == nullptr ? "" : step.fault),
              expected.fault == nullptr ? "" : expected.fault)
        << each.text();
    EXPECT_EQ(step.next, expected.next.value_or(each.state)) << each.text();
  });
  EXPECT_EQ(count, 3U * 10 * 3 * 5 * 6 * 5);
}

// What is done for whoever connects, whatever the table's rows say.
TEST(AdmissionTable, AStrangerGetsNothing) {
  for_all([](const Case& each) {
    if (!happens(each)) return;
    const Action action = each.step().action;
    const bool may = each.standing == Fact::expected ||
                     (each.greets() && each.standing == Fact::failed) || each.is(Event::last_proof);
    const bool shown = each.is(Event::last_proof) || each.is(Event::refusal)
                           ? each.credential == Fact::proof
                           : each.identified();
    switch (action) {
      case Action::ask:
      case Action::answer:
      case Action::welcome:
      case Action::refuse:
        EXPECT_TRUE(may && shown && each.in_turn()) << each.text();
        break;
      case Action::give_up:
        EXPECT_TRUE(each.is(Event::refusal) && shown && each.in_turn()) << each.text();
        break;
      case Action::check:
        EXPECT_TRUE(each.speaks() && each.in_turn()) << each.text();
        EXPECT_TRUE(each.is(Event::refusal) || each.standing != Fact::unexpected) << each.text();
        break;
      default:
        EXPECT_TRUE(action == Action::wait || action == Action::look || action == Action::leave ||
                    action == Action::turn_away)
            << each.text();
    }
  });
}

TEST(AdmissionTable, NothingStaysPastTheDeadlineUnlessInvited) {
  for_all([](Case each) {
    if (!happens(each)) return;
    const Admission::Step step = each.step();
    EXPECT_EQ(step.fault != nullptr, step.action == Action::turn_away) << each.text();
    if (each.overdue()) {
      EXPECT_NE(step.action, Action::wait) << each.text();
    }
    if (each.deadline != Fact::unanswered || each.is(Event::nothing)) return;
    each.deadline.reset();
    EXPECT_EQ(step.action, each.step().action) << each.text();
  });
}

// Calls check(bits, bit) for all values of so many bits, where bit(i) is that bit.
template <typename Check>
void for_all_bits(int count, const Check& check) {
  for (unsigned bits = 0; bits < 1U << count; ++bits) {
    SCOPED_TRACE(bits);
    check([&](int i) { return (bits >> i & 1) != 0; });
  }
}

TEST(AdmissionTable, OfEveryGreetingTheEventIsAsExpected) {
  for_all_bits(5, [](const auto& bit) {
    Greeting said;
    said.refuses = bit(0);
    said.rail = bit(1) ? 3 : 0;
    said.invites = bit(2);
    said.resumes = bit(3);
    const bool invited = bit(4);
    Event expected = said.resumes ? Event::resumption : Event::greeting;
    if (said.invites) expected = Event::invitation;
    if (said.rail != 0) expected = Event::rail;
    if (said.rail != 0 && (said.invites || said.resumes || invited)) expected = Event::noise;
    if (said.refuses) expected = invited ? Event::refusal : Event::noise;
    EXPECT_EQ(Admission::event_of(said, invited), expected);
  });
}

TEST(AdmissionTable, OfEveryGreeterTheStandingIsAsExpected) {
  using Rails = Greeter::Rails;
  const std::chrono::steady_clock::time_point met{std::chrono::seconds(10)};
  for_all_bits(7, [&](const auto& bit) {
    Greeting said;
    said.invites = bit(0);
    said.resumes = bit(1);
    Greeter from{.met = met};
    from.expected = bit(2);
    from.failed = bit(3);
    from.parted = bit(4);
    from.resumes = bit(5);
    const auto since = met + std::chrono::seconds(bit(6) ? 1 : 0);  // after the two have met
    const bool may = said.resumes ? bit(5) : bit(2) && !bit(4);
    const bool replays = !said.invites && bit(6);
    const Fact otherwise = replays ? Fact::unexpected : Fact::met;
    const std::pair<Rails, Fact> of_rails[] = {{Rails::none, Fact::unexpected},
                                               {Rails::later, Fact::undecided},
                                               {Rails::some, Fact::expected},
                                               {Rails::past, Fact::met}};
    for (const auto& [rails, standing] : of_rails) {
      from.rails = rails;
      EXPECT_EQ(Admission::standing_of(from, said, since), bit(3) ? Fact::failed
                                                           : may  ? Fact::expected
                                                                  : otherwise);
      Greeting rail = said;
      rail.rail = 1;
      EXPECT_EQ(Admission::standing_of(from, rail, since), standing);
    }
  });
}

TEST(AdmissionTable, OfEveryGreeterTheCredentialIsAsExpected) {
  for_all_bits(8, [](const auto& bit) {
    Greeting said;
    said.refuses = bit(0);
    said.proves = bit(1);
    said.invites = bit(2);
    said.rail = bit(3) ? 1 : 0;
    Greeter from;
    from.known = bit(4);
    if (bit(5) && from.known) from.key.emplace();
    const bool can_prove = bit(6), has_key = bit(7) && !said.proves;
    const bool both_prove = can_prove && from.key;
    const bool waits = !from.known && said.rail == 0 && (can_prove || said.invites);
    // Who can prove itself has to, and who says the key, has to say the right one.
    Fact expected = said.proves ? Fact::unchecked : Fact::key;
    if (said.proves != both_prove) expected = Fact::wrong;
    if (waits) expected = Fact::unidentified;
    if (!said.proves && !has_key) expected = Fact::wrong;
    if (said.proves && !can_prove) expected = Fact::wrong;
    if (said.refuses) expected = Fact::unchecked;
    EXPECT_EQ(Admission::credential_of(from, said, can_prove, has_key), expected);
  });
}

}  // namespace
}  // namespace sluice::admissions
