// SPDX-License-Identifier: BSD-3-Clause
//
// What a program asks of one communicator, by MPI's info (MPI_Comm_set_info and the like):
//
//   sluice               on, off: off leaves the communicator to MPI
//   sluice_COLLECTIVE    how to do it, before the knob of that name (sluice_bcast before
//                        SLUICE_BCAST): an algorithm, mpi, or auto (as if there were no hint)
//
// Ranks may give different hints. What counts is what all gave alike, and is found when the team is
// set up (team.h).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/rules.h"

namespace sluice {

// Values by key.
using Hints = std::map<std::string, std::string>;

// Whether a key of an info is meant for Sluice, be there such a hint or not.
bool is_hint(std::string_view key);

// One "KEY=value" a line.
std::string to_text(const Hints& hints);

// The hints that all ranks gave alike. *differences: what else they gave, in words
// ("sluice_bcast is unset on rank 0, 'chain' on rank 1"); empty if there is nothing else.
Hints common_hints(std::span<const std::string> texts, std::string* differences);

// Drops what makes no sense; says of each why, and what would.
std::vector<std::string> drop_nonsense(Hints* hints);

// Of hints that make sense: whether MPI keeps the communicator, and what they force.
bool asks_for_mpi(const Hints& hints);
void heed(const Hints& hints, Selector* selector);

}  // namespace sluice
