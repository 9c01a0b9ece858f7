// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/meeting.h"

#include <algorithm>
#include <iterator>

namespace sluice {
namespace {

using Side = Meeting::Side;
using State = Meeting::State;
using Event = Meeting::Event;
using Action = Meeting::Action;

struct Row {
  Side side;
  State state;
  Event event;
  Meeting::Step step;
};

constexpr Row table[] = {
    {Side::asks, State::apart, Event::needed, {State::dials, Action::dial}},
    {Side::asks, State::apart, Event::urged, {State::dials, Action::dial}},
    {Side::asks, State::apart, Event::invited, {State::dials, Action::adopt}},
    {Side::asks, State::dials, Event::invited, {State::dials, Action::adopt}},
    {Side::asks, State::dials, Event::connected, {State::met, Action::greet}},
    {Side::asks, State::dials, Event::short_of, {State::apart, Action::stop}},
    {Side::asks, State::met, Event::broke, {State::apart, Action::nothing}},
    {Side::asks, State::over, Event::invited, {State::over, Action::refuse}},

    {Side::answers, State::apart, Event::needed, {State::waits, Action::wait}},
    {Side::answers, State::apart, Event::urged, {State::dials, Action::dial}},
    {Side::answers, State::apart, Event::greeted, {State::met, Action::accept}},
    {Side::answers, State::waits, Event::idle, {State::apart, Action::nothing}},
    {Side::answers, State::waits, Event::urged, {State::dials, Action::dial}},
    {Side::answers, State::waits, Event::overdue, {State::dials, Action::dial}},
    {Side::answers, State::waits, Event::greeted, {State::met, Action::accept}},
    {Side::answers, State::dials, Event::idle, {State::apart, Action::stop}},
    {Side::answers, State::dials, Event::connected, {State::invites, Action::invite}},
    {Side::answers, State::dials, Event::greeted, {State::met, Action::accept}},
    {Side::answers, State::dials, Event::short_of, {State::waits, Action::wait}},
    {Side::answers, State::invites, Event::overdue, {State::dials, Action::dial}},
    {Side::answers, State::invites, Event::uninvited, {State::waits, Action::wait}},
    {Side::answers, State::invites, Event::greeted, {State::met, Action::accept}},
    {Side::answers, State::met, Event::broke, {State::apart, Action::nothing}},
    {Side::answers, State::over, Event::greeted, {State::over, Action::refuse}},
};

}  // namespace

Meeting::Step Meeting::step(Side side, State state, Event event) {
  if (event == Event::ended) return {State::over, Action::nothing};
  const auto* const row = std::ranges::find_if(table, [&](const Row& each) {
    return each.side == side && each.state == state && each.event == event;
  });
  if (row != std::end(table)) return row->step;
  const bool brings_connection = event == Event::invited || event == Event::greeted;
  return {state, brings_connection ? Action::close : Action::nothing};
}

}  // namespace sluice
