// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/shm/cuts.h"

namespace sluice {
namespace {

enum class Own : bool { excluded, included };  // a rank's own operand, in its result

bool await_lower(Rounds& rounds, uint64_t k, size_t bytes) {
  for (Rank rank = 0; rank < rounds.rank(); ++rank) {
    if (!rounds.await(rank, k, bytes)) return false;
  }
  return true;
}

// Every rank combines the operands before it, in rank order: rank r reads r V bytes.
template <Own own>
bool run_flat(Rounds& rounds, const ShmCall& call) {
  const Bytes input = call.all(call.input);
  const Cuts pieces{input.size, whole_elements(slot_piece(rounds, call), call.element)};
  const Rank me = rounds.rank();
  const Rank operands = own == Own::included ? me + 1 : me;
  const auto put = [&](uint64_t k) {
    const size_t bytes = pieces.size(k);
    if (!rounds.open(k, bytes)) return false;
    copy_bytes(rounds.data(me, k, bytes), input.data + pieces.begin(k), bytes);
    rounds.publish(k, bytes);
    return true;
  };
  const uint64_t last = pieces.count();
  if (last > 0 && !put(1)) return false;
  for (uint64_t k = 1; k <= last; ++k) {
    if (k < last && !put(k + 1)) return false;
    const size_t bytes = pieces.size(k);
    if (!await_lower(rounds, k, bytes)) return false;
    const auto operand = [&](Rank rank) { return rounds.data(rank, k, bytes); };
    if (operands > 0) {
      combine_in_order(call, operands, operand, call.output.base + pieces.begin(k), bytes);
    }
    rounds.mark_taken(k);
  }
  rounds.end(last);
  return true;
}

// Every rank combines its operand with the result that the rank before it has published, and
// publishes that: each reads and writes V bytes.
template <Own own>
bool run_prefixes(Rounds& rounds, const ShmCall& call) {
  const Bytes input = call.all(call.input);
  const Cuts pieces{input.size, whole_elements(slot_piece(rounds, call), call.element)};
  const Rank me = rounds.rank();
  const bool is_last = me + 1 == rounds.size();
  for (uint64_t k = 1; k <= pieces.count(); ++k) {
    const size_t bytes = pieces.size(k);
    const std::byte* const operand = input.data + pieces.begin(k);
    // (Rank 0 has no result of exscan.)
    std::byte* const out =
        own == Own::included || me > 0 ? call.output.base + pieces.begin(k) : nullptr;
    const std::byte* before = nullptr;
    const std::byte* sum = operand;
    if (me > 0) {
      if (!rounds.await(me - 1, k, bytes)) return false;
      before = rounds.data(me - 1, k, bytes);
    }
    if (!is_last) {
      if (!rounds.open(k, bytes)) return false;
      std::byte* const place = rounds.data(me, k, bytes);
      if (before) {
        call.combine(before, operand, place, bytes);
      } else {
        copy_bytes(place, operand, bytes);
      }
      sum = place;
      rounds.publish(k, bytes);
    } else if (before && own == Own::included) {
      call.combine(before, operand, out, bytes);
      sum = out;
    }
    if (own == Own::included) {
      move_bytes(out, sum, bytes);
    } else if (before) {
      move_bytes(out, before, bytes);
    }
    rounds.mark_taken(k);
  }
  rounds.end(pieces.count());
  return true;
}

constexpr const char flat_help[] =
    "shared memory; every rank combines all before it: small messages";
constexpr const char prefixes_help[] =
    "shared memory; every rank adds to the result before it: large messages";

}  // namespace

constexpr Algorithm shm_scan = {
    .collective = Collective::scan,
    .name = "flat",
    .help = flat_help,
    .bracketing = Bracketing::left,
    .shm = run_flat<Own::included>,
};

constexpr Algorithm shm_exscan = {
    .collective = Collective::exscan,
    .name = "flat",
    .help = flat_help,
    .bracketing = Bracketing::left,
    .shm = run_flat<Own::excluded>,
};

constexpr Algorithm shm_scan_prefixes = {
    .collective = Collective::scan,
    .name = "prefixes",
    .help = prefixes_help,
    .bracketing = Bracketing::left,
    .shm = run_prefixes<Own::included>,
};

constexpr Algorithm shm_exscan_prefixes = {
    .collective = Collective::exscan,
    .name = "prefixes",
    .help = prefixes_help,
    .bracketing = Bracketing::left,
    .shm = run_prefixes<Own::excluded>,
};

}  // namespace sluice
