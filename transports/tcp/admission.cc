// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/admission.h"

#include <algorithm>
#include <iterator>

namespace sluice {
namespace admission {
namespace {

using enum Admission::State;
using enum Admission::Event;
using enum Admission::Fact;
using enum Admission::Action;
using States = Admission::SetOf<Admission::State>;
using Events = Admission::SetOf<Admission::Event>;
using Faults = Admission::Faults;

struct Row {
  States states;
  Events events;
  Admission::Facts facts;  // all of these
  Admission::Action action;
  const char* fault = nullptr;
  std::optional<Admission::State> next{};  // none: the same
};

constexpr States any{silent, unknown, proving}, owing{silent, unknown};
constexpr Events greets{greeting, resumption, invitation};
constexpr Events joins{greeting, resumption, invitation, rail};
constexpr Events speaks{greeting, resumption, invitation, rail, refusal};

// The first that applies decides.
constexpr Row table[] = {
    {any, {nothing}, {unanswered}, look},
    {owing, {nothing}, {overdue}, turn_away, Faults::no_greeting},
    {any, {nothing}, {overdue}, turn_away, Faults::no_proof},
    {any, {no_memory}, {overdue}, turn_away, Faults::no_means},
    {any, {nothing, no_memory}, {}, wait},
    {any, {end}, {}, leave},  // a peer that has connected at another address, too, ends this one
    {{proving}, {last_proof}, {proof}, welcome},
    {{proving}, {last_proof}, {}, turn_away, Faults::no_proof},

    // What the process may not do costs no proof, and gets no answer.
    {owing, joins, {met}, leave},
    {owing, greets, {unexpected}, turn_away, Faults::not_expected},
    {owing, speaks, {wrong}, turn_away, Faults::no_key},
    {owing, {rail}, {unexpected}, turn_away, Faults::not_expected},
    {owing, {rail}, {undecided, overdue}, leave},
    {owing, {rail}, {undecided}, wait},

    {owing, {invitation}, {unidentified, overdue}, leave},
    {owing, greets, {unidentified, overdue}, turn_away, Faults::no_team},
    {owing, greets, {unidentified}, wait, nullptr, unknown},
    {owing, speaks, {unchecked}, check},
    {owing, speaks, {uncheckable}, turn_away, Faults::no_means},

    // It is the process.
    {owing, {refusal}, {proof}, give_up},
    {owing, greets, {failed, key}, refuse},
    {owing, greets, {failed, proof}, refuse},
    {owing, {rail}, {expected, key}, welcome},
    {owing, joins, {refused}, refuse},
    {owing, joins, {dropped}, leave},
    // It resumes before this side has read all that it sent.
    {owing, joins, {deferred, overdue}, turn_away, Faults::unread},
    {owing, joins, {deferred}, wait},
    {owing, {invitation}, {welcomed}, welcome},
    {owing, {greeting}, {welcomed, key}, welcome},  // its link answers
    {owing, joins, {welcomed}, answer, nullptr, proving},
    {owing, joins, {expected, key}, ask},
    {owing, joins, {expected, proof}, ask},
};

}  // namespace
}  // namespace admission

Admission::Step Admission::step(State state, Event event, const Facts& facts) {
  using admission::table;
  const auto* const row = std::ranges::find_if(table, [&](const auto& each) {
    return each.states.has(state) && each.events.has(event) && facts.has_all(each.facts);
  });
  if (row == std::end(table)) return {state, Action::turn_away, Faults::no_greeting};
  return {row->next.value_or(state), row->action, row->fault};
}

bool Admission::names_process(Event event) { return admission::speaks.has(event); }

Admission::Event Admission::event_of(const Greeting& said, bool invited) {
  using enum Event;
  if (said.refuses) return invited ? refusal : noise;
  if (said.rail != 0) return said.invites || said.resumes || invited ? noise : rail;
  if (said.invites) return invitation;
  return said.resumes ? resumption : greeting;
}

Admission::Fact Admission::standing_of(const Greeter& from, const Greeting& said,
                                       std::chrono::steady_clock::time_point since) {
  using enum Fact;
  if (said.rail != 0) {
    constexpr Fact answers[] = {unexpected, undecided, expected, met};  // none, later, some, past
    return answers[static_cast<size_t>(from.rails)];
  }
  if (from.failed) return failed;
  if (said.resumes ? from.resumes : from.expected && !from.parted) return expected;
  return said.invites || since <= from.met ? met : unexpected;
}

Admission::Fact Admission::credential_of(const Greeter& from, const Greeting& said, bool can_prove,
                                         bool has_key) {
  using enum Fact;
  if (said.refuses) return unchecked;
  if (said.proves ? !can_prove : !has_key) return wrong;
  const bool needs_known = said.rail == 0 && (can_prove || said.invites);
  if (needs_known && !from.known) return unidentified;
  if (said.proves != (can_prove && from.key)) return wrong;
  return said.proves ? unchecked : key;
}

}  // namespace sluice
