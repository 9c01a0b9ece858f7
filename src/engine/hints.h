// SPDX-License-Identifier: BSD-3-Clause
//
// Hints: a program's requests for one communicator, in MPI info objects (MPI_Comm_set_info etc.):
//
//   sluice               on, off: off leaves the communicator to MPI
//   sluice_nccl          off, auto, on, as SLUICE_NCCL, which it overrides
//   sluice_nonblocking   off leaves them to MPI; auto (as if there were no hint)
//   sluice_COLLECTIVE    an algorithm, mpi, or auto (as if there were no hint). Overrides the knob
//                        of that name (sluice_bcast overrides SLUICE_BCAST)
//
// Ranks may give different hints. Only hints that all ranks gave alike apply; ranks compare them
// when the team is set up (team.h).
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

// Whether an info key is addressed to Sluice, even if no such hint exists.
bool is_hint(std::string_view key);

// One "KEY=value" a line.
std::string to_text(const Hints& hints);

// The hints that all ranks gave alike. texts: each rank's, as from to_text. *differences: describes
// the others ("sluice_bcast is unset on rank 0, 'chain' on rank 1"); empty if there are none.
Hints common_hints(std::span<const std::string> texts, std::string* differences);

// Drops unknown hints and invalid values. Returns a message for each: the reason, and what exists.
std::vector<std::string> drop_nonsense(Hints* hints);

// Both take valid hints: whether MPI keeps the communicator; applies the rest to the selector.
bool asks_for_mpi(const Hints& hints);
// The value of sluice_nccl; empty if there is none.
std::string nccl_hint(const Hints& hints);
// Whether MPI keeps the non-blocking and persistent collectives.
bool leaves_nonblocking(const Hints& hints);
void apply(const Hints& hints, Selector* selector);

}  // namespace sluice
