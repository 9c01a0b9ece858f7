// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/diagnosis.h"

#include <algorithm>

namespace sluice {
namespace {

// What has become of the peer; the rest says how that showed. nullptr: nothing is known.
const char* fate_of(Diagnosis::Cause cause) {
  using Cause = Diagnosis::Cause;
  switch (cause) {
    case Cause::never_came:
      return "it ended before it connected";
    case Cause::unproved:
      return "its connection ended before it had proved itself";
    case Cause::rail_ended:
      return "a connection for large messages ended amid one";
    case Cause::absent_since:
      return "nobody answers as it did";
    case Cause::refused:
    case Cause::refused_since:
      return "it has given up its connection to this process";
    default:
      return nullptr;
  }
}

std::string join_words(const char* fate, const std::string& how) {
  if (fate == nullptr) return how;
  return fate + (how.empty() ? "" : ": " + how);
}

}  // namespace

std::span<const Diagnosis::Row> Diagnosis::rows() {
  using enum Meeting::Side;
  using enum Stage;
  using enum Remedy;
  using C = Cause;
  constexpr auto running = Limit::running, passed = Limit::passed;
  constexpr auto whole = Bytes::none, coming = Bytes::coming, missing = Bytes::lost;
  constexpr std::nullopt_t any = std::nullopt;
  static constexpr Row table[] = {
      {asks, unmet, Sign::nothing, any, any, dial},
      {answers, unmet, Sign::nothing, any, running, wait},
      {answers, unmet, Sign::nothing, any, passed, invite},
      {any, unmet, Sign::refused, any, any, give_up, C::refused},
      {any, unmet, Sign::silent, any, running, wait},
      {any, unmet, Sign::silent, any, passed, give_up, C::unreached},
      {any, unmet, Sign::absent, any, running, wait},
      {any, unmet, Sign::absent, any, passed, give_up, C::unreached},
      {answers, unmet, Sign::deserted, any, any, give_up, C::never_came},
      {answers, unmet, Sign::unproved, any, running, wait},
      {answers, unmet, Sign::unproved, any, passed, give_up, C::unproved},
      {answers, unmet, Sign::spurned, any, running, wait},
      {answers, unmet, Sign::spurned, any, passed, give_up, C::spurned},

      {any, opening, Sign::broke, any, any, give_up, C::broke_opening},
      {any, opening, Sign::stalled, any, any, give_up, C::stalled},
      {any, opening, Sign::ended, any, any, give_up, C::ended},
      {any, opening, Sign::silent, any, passed, give_up, C::silent},

      {any, open, Sign::broke, any, any, part},
      {any, open, Sign::stalled, any, any, part},
      {any, open, Sign::ended, any, any, give_up, C::ended},
      {any, open, Sign::silent, any, passed, give_up, C::silent},
      {any, open, Sign::back, whole, any, part},
      {any, open, Sign::back, coming, any, wait},
      {any, open, Sign::back, missing, any, part},

      {any, last, Sign::broke, any, any, give_up, C::broke_last},
      {any, last, Sign::stalled, any, any, give_up, C::broke_last},
      {any, last, Sign::ended, any, any, give_up, C::ended},
      {any, last, Sign::silent, any, passed, give_up, C::silent},

      {any, local, Sign::broke, any, any, give_up, C::ended},
      {any, local, Sign::ended, any, any, give_up, C::ended},

      {any, parted, Sign::nothing, any, running, wait},
      {any, parted, Sign::nothing, coming, passed, wait},
      {asks, parted, Sign::nothing, whole, passed, dial},
      {answers, parted, Sign::nothing, whole, passed, invite},
      {any, parted, Sign::silent, any, running, wait},
      {any, parted, Sign::silent, any, passed, give_up, C::silent_since},
      {any, parted, Sign::absent, coming, any, wait},
      {any, parted, Sign::absent, whole, any, give_up, C::absent_since},
      {any, parted, Sign::refused, coming, any, wait},
      {any, parted, Sign::refused, whole, any, give_up, C::refused_since},
      {any, parted, Sign::back, whole, any, resume},
      {any, parted, Sign::back, coming, any, wait},
      {any, parted, Sign::back, missing, any, give_up, C::lost},

      {any, rail, Sign::broke, whole, any, part},
      {any, rail, Sign::broke, missing, any, give_up, C::rail_broke},
      {any, rail, Sign::ended, whole, any, part},
      {any, rail, Sign::ended, missing, any, give_up, C::rail_ended},
      {any, rail, Sign::silent, whole, passed, part},
      {any, rail, Sign::silent, missing, passed, give_up, C::silent},
  };
  return table;
}

Diagnosis Diagnosis::of(const Symptoms& seen) {
  const auto row = std::ranges::find_if(rows(), [&](const Row& each) { return each.names(seen); });
  return row == rows().end() ? Diagnosis{} : Diagnosis{row->remedy, row->cause};
}

Status explain(Diagnosis::Cause cause, const std::string& peer, const std::string& broke,
               const Status& how) {
  using Cause = Diagnosis::Cause;
  const std::string what = join_words(fate_of(cause), how.message());
  const auto lost = [](const std::string& text) { return Status(Code::peer_lost, text); };
  switch (cause) {
    case Cause::none:
    case Cause::unreached:
    case Cause::spurned:
    case Cause::stalled:
      return how;
    case Cause::refused:
      return lost("cannot connect to " + peer + ": " + what);
    case Cause::broke_opening:
      return lost("the connection to " + peer + " broke (" + what +
                  ") while the two agreed on encryption");
    case Cause::broke_last:
      return lost("the connection to " + peer + " broke (" + what +
                  "), and no other can take its place");
    case Cause::lost:
      return lost("the connection to " + peer + " broke (" + broke + "), and " + what);
    case Cause::rail_broke:
      return lost("the connection to " + peer +
                  " broke: a connection for large messages ended amid one: " + what);
    case Cause::silent_since:
    case Cause::absent_since:
    case Cause::refused_since:
      return lost(peer + " is gone: " + broke + "; since then " + what);
    case Cause::never_came:
    case Cause::unproved:
    case Cause::ended:
    case Cause::silent:
    case Cause::rail_ended:
      return lost(peer + " is gone: " + what);
  }
  return how;
}

}  // namespace sluice
