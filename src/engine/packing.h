// SPDX-License-Identifier: BSD-3-Clause
//
// Packing of a whole call, before its algorithm runs.
#pragma once

#include "src/engine/call.h"

namespace sluice {

// Packs what a call's views have sources for. (Shared-memory algorithms need everything packed, and
// leave all unpacking to the caller.)
Status pack_all(const Call& call, Rank ranks);

// The failure of a source, if one has failed.
Status why_not_packed(const Call& call);

}  // namespace sluice
