// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/resumption.h"

#include <algorithm>
#include <iterator>

namespace sluice {

Resumption::Step Resumption::step(State state, Event event) {
  struct Row {
    State state;
    Event event;
    State next;
    Action action;
  };
  // What is not here changes nothing.
  static constexpr Row rows[] = {
      {State::fresh, Event::opened, State::whole, Action::none},
      {State::fresh, Event::ended, State::over, Action::none},

      {State::whole, Event::broke, State::broken, Action::part},
      {State::whole, Event::ended, State::over, Action::none},

      {State::broken, Event::needed, State::seeking, Action::seek},
      {State::broken, Event::resumed, State::whole, Action::go_on},
      {State::broken, Event::ended, State::over, Action::none},

      {State::seeking, Event::unneeded, State::broken, Action::rest},
      {State::seeking, Event::resumed, State::whole, Action::go_on},
      {State::seeking, Event::ended, State::over, Action::none},
  };
  const auto* const row = std::ranges::find_if(
      rows, [&](const Row& each) { return each.state == state && each.event == event; });
  return row == std::end(rows) ? Step{state, Action::none} : Step{row->next, row->action};
}

// A greeting of the search that brought the connection in place is one of its other attempts, and
// has been dropped.
bool Resumption::takes(Meeting::Side side, State state, Number number) {
  switch (state) {
    case State::fresh:
    case State::over:
      return false;
    case State::whole:
      return number == (side == Meeting::Side::asks ? Number::same : Number::newer);
    case State::broken:
    case State::seeking:
      return (side == Meeting::Side::asks) != (number == Number::newer);
  }
  return false;
}

bool Resumption::takes(Meeting::Side side, uint64_t number) const {
  const Number beside = number < number_   ? Number::older
                        : number > number_ ? Number::newer
                                           : Number::same;
  return takes(side, state_, beside);
}

}  // namespace sluice
