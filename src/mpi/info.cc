// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/info.h"

#include <algorithm>

namespace sluice {
namespace {

std::string value_of(MPI_Info info, const char* key) {
  char value[info_value_room] = "";
  int found = 0, room = sizeof value;
  if (real().Info_get_string) {
    real().Info_get_string(info, key, &room, value, &found);
  } else {
    real().Info_get(info, key, info_value_room - 1, value, &found);
  }
  return found ? value : "";
}

}  // namespace

Hints read_hints(MPI_Info info) {
  Hints hints;
  int keys = 0;
  if (info == real().info_null || real().Info_get_nkeys(info, &keys)) return hints;
  for (int i = 0; i < keys; ++i) {
    char key[info_key_room] = "";
    if (real().Info_get_nthkey(info, i, key) || !is_hint(key)) continue;
    std::string value = value_of(info, key);
    std::ranges::replace(value, '\n', ' ');  // hints are sent as lines of text
    hints[key] = value;
  }
  return hints;
}

void write_hints(const Hints& hints, MPI_Info info) {
  for (const auto& [key, value] : read_hints(info)) {
    if (!hints.contains(key)) real().Info_delete(info, key.c_str());
  }
  for (const auto& [key, value] : hints) real().Info_set(info, key.c_str(), value.c_str());
}

}  // namespace sluice
