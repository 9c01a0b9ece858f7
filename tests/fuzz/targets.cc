// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/targets.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sluice::fuzz {
namespace {

constexpr Target all[] = {
    {"rules", "SLUICE_RULES and SLUICE_CHOICE_FILE", fuzz_rules},
    {"tuning_log", "what sluice tune reads again", fuzz_tuning_log},
    {"settings", "sluice.conf", fuzz_settings},
    {"values", "lists of interfaces, sizes, switches, SLUICE_DELAY", fuzz_values},
    {"address", "the record that a process publishes", fuzz_address},
    {"greeting", "the first bytes of a connection, decoded alone", fuzz_greeting},
    {"spread", "which parts of a message come over which connection", fuzz_spread},
    {"strangers", "a program that connects and is no peer", fuzz_strangers},
    {"frames", "a peer that sends anything after its greeting", fuzz_frames},
    {"offers", "a peer's offer to go by shared memory or verbs, and its answer", fuzz_offers},
    {"tls", "records of TLS", fuzz_tls},
};

}  // namespace

std::span<const Target> targets() { return all; }

const Target* find_target(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(all, [&](const Target& target) { return target.name == name; });
  return found == std::end(all) ? nullptr : found;
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

uint8_t Input::byte() {
  if (bytes_.empty()) return 0;
  const auto value = std::to_integer<uint8_t>(bytes_.front());
  bytes_ = bytes_.subspan(1);
  return value;
}

std::span<const std::byte> Input::take(size_t most) {
  const auto taken = bytes_.first(std::min(most, bytes_.size()));
  bytes_ = bytes_.subspan(taken.size());
  return taken;
}

}  // namespace sluice::fuzz
