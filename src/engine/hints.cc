// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/hints.h"

#include <algorithm>
#include <optional>

#include "src/base/knobs.h"
#include "src/base/plain_text.h"
#include "src/base/spelling.h"
#include "src/engine/agreement.h"

namespace sluice {
namespace {

constexpr const char* enabling = "sluice";
constexpr const char* prefix = "sluice_";
constexpr const char* nccl = "sluice_nccl";
constexpr const char* nonblocking = "sluice_nonblocking";
constexpr const char* no_hint = "auto";

// SLUICE_BCAST -> sluice_bcast.
std::string key_of(const Knob& knob) { return lower(knob.name); }

// The keys of the hints for a collective, with that collective.
std::map<std::string, Collective> collective_keys() {
  std::map<std::string, Collective> keys;
  for (const Knob& knob : knob_table()) {
    const auto* index = std::get_if<uint32_t>(&knob.field);
    if (index) keys[key_of(knob)] = static_cast<Collective>(*index);
  }
  return keys;
}

std::string unknown_hint(const std::string& key) {
  std::vector<std::string> keys{enabling, nccl, nonblocking};
  for (const auto& [known, collective] : collective_keys()) keys.push_back(known);
  const std::string nearest = nearest_name(key, prefix, keys);
  return key + " is not a hint of Sluice; " +
         (nearest.empty() ? "sluice(7) lists those that exist" : "did you mean " + nearest + "?");
}

// Why a hint is not accepted; empty if it is.
std::string complain(const std::string& key, const std::string& value) {
  if (key == enabling) {
    bool on = false;
    if (parse_switch(value, &on)) return "";
    return key + "=" + value + " is not accepted: it takes a switch (on, off)";
  }
  if (key == nccl) {
    if (value == "on" || value == "auto" || value == "off") return "";
    return key + "=" + value + " is not accepted: it takes off, auto or on";
  }
  if (key == nonblocking) {
    if (value == no_hint || value == "off") return "";
    return key + "=" + value + " is not accepted: it takes off or auto";
  }
  const auto keys = collective_keys();
  const auto found = keys.find(key);
  if (found == keys.end()) return unknown_hint(key);
  if (value == no_hint) return "";
  const Status status = Selector().force(found->second, value);
  return status.ok() ? "" : key + ": " + status.message();
}

}  // namespace

bool is_hint(std::string_view key) { return key == enabling || key.starts_with(prefix); }

std::string to_text(const Hints& hints) {
  std::string text;
  for (const auto& [key, value] : hints) text += key + "=" + value + "\n";
  return text;
}

Hints common_hints(std::span<const std::string> texts, std::string* differences) {
  std::vector<Hints> given;
  Hints common, others;
  for (const std::string& text : texts) {
    given.push_back(values_of(text));
    for (const auto& [key, value] : given.back()) others[key];
  }
  for (const auto& [key, value] : given.front()) {
    const auto has_it = [&, pair = std::pair(key, value)](const Hints& hints) {
      const auto found = hints.find(pair.first);
      return found != hints.end() && found->second == pair.second;
    };
    if (std::ranges::all_of(given, has_it)) common[key] = value;
  }
  for (const auto& [key, value] : common) others.erase(key);
  std::vector<std::string> rest;
  for (Hints& hints : given) {
    std::erase_if(hints, [&](const auto& hint) { return !others.contains(hint.first); });
    hints.insert(others.begin(), others.end());
    rest.push_back(to_text(hints));
  }
  *differences = describe_differences(rest);
  return common;
}

std::vector<std::string> drop_nonsense(Hints* hints) {
  std::vector<std::string> complaints;
  std::erase_if(*hints, [&](const auto& hint) {
    const std::string complaint = complain(hint.first, hint.second);
    if (!complaint.empty()) complaints.push_back(complaint);
    return !complaint.empty();
  });
  return complaints;
}

bool asks_for_mpi(const Hints& hints) {
  const auto found = hints.find(enabling);
  bool on = true;
  return found != hints.end() && parse_switch(found->second, &on) && !on;
}

std::string nccl_hint(const Hints& hints) {
  const auto found = hints.find(nccl);
  return found != hints.end() ? found->second : "";
}

bool leaves_nonblocking(const Hints& hints) {
  const auto found = hints.find(nonblocking);
  return found != hints.end() && found->second == "off";
}

void apply(const Hints& hints, Selector* selector) {
  const auto keys = collective_keys();
  for (const auto& [key, value] : hints) {
    const auto found = keys.find(key);
    if (found != keys.end() && value != no_hint) (void)selector->force(found->second, value);
  }
}

}  // namespace sluice
