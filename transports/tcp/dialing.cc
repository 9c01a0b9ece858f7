// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/dialing.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace sluice {

Dialing::Step Dialing::step(State state, Event event) {
  using enum State;
  using enum Action;
  struct Row {
    State state;
    Event event;
    Action action;
    std::optional<State> next{};  // none: the same
    const char* why = nullptr;
  };
  static constexpr Row rows[] = {
      {connecting, Event::unanswered, renew},
      {connecting, Event::overdue, fail},
      {connecting, Event::connected, greet},
      {connecting, Event::greeted, hear, asking},
      {connecting, Event::invited, take},
      {connecting, Event::absent, miss},
      {connecting, Event::closed, retry},
      {connecting, Event::failed, fail},
      {connecting, Event::spent, fail},

      {asking, Event::overdue, look},
      {asking, Event::spurned, fail, {}, Reasons::spurned},
      {asking, Event::acknowledged, wait_longer},
      {asking, Event::unacknowledged, fail},
      {asking, Event::part, wait, hearing},
      {asking, Event::answer, confirm, confirming},
      {asking, Event::refusal, refuse},
      {asking, Event::noise, miss, {}, Reasons::noise},
      {asking, Event::absent, miss},
      {asking, Event::closed, retry},
      {asking, Event::ended, retry},
      {asking, Event::failed, fail},
      {asking, Event::spent, miss},

      {hearing, Event::overdue, look},
      {hearing, Event::spurned, fail, {}, Reasons::spurned},
      {hearing, Event::acknowledged, wait_longer},
      {hearing, Event::unacknowledged, fail},
      {hearing, Event::answer, confirm, confirming},
      {hearing, Event::refusal, refuse},
      {hearing, Event::noise, miss, {}, Reasons::noise},
      {hearing, Event::absent, miss},
      {hearing, Event::closed, miss},
      {hearing, Event::ended, miss},
      {hearing, Event::failed, fail},

      {confirming, Event::confirmed, take},
      {confirming, Event::closed, retry},
      {confirming, Event::failed, fail},
      {confirming, Event::spent, miss},
  };
  const auto* const row = std::ranges::find_if(
      rows, [&](const Row& each) { return each.state == state && each.event == event; });
  if (row == std::end(rows)) return {state, wait, nullptr};
  return {row->next.value_or(state), row->action, row->why};
}

}  // namespace sluice
