// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a team's calls by shared-memory algorithms (collectives/shm/shm.h), in the arena that all
// its ranks map. A call blocks until this rank's part is done, so it is run, not started: on the
// way of short calls there is no virtual call.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collectives/shm/groups.h"
#include "collectives/shm/shm.h"
#include "src/engine/execution.h"
#include "src/engine/selection.h"
#include "src/engine/shared_arena.h"
#include "src/engine/slots.h"
#include "src/engine/team_channels.h"

namespace sluice {

struct Process;

class ShmExecutor {
 public:
  // watch: what the team checks while a rank waits in the arena. counts: of its calls, told of each
  // such wait; may be null. links: carries the part of a call
  // that goes over links. All must outlive this.
  ShmExecutor(Process& process, const TeamChannels& channels, Rank rank,
              std::unique_ptr<Arena> arena, Waiter& waiter, ArenaWaitPolicy::Watch watch,
              ClassCounts* counts, OverLinks& links);

  // The ranks tell each other where they run, form groups and try CMA. Collective over the ranks;
  // blocks. If it fails, the others are told. name: of the communicator. May throw std::bad_alloc.
  Status exchange_members(const std::string& name);
  // What exchange_members found out, for the rules.
  Selection::Arena traits() const;

  // Whether the call must see to its slots before it runs. number: Tag::call.
  bool concerns_slots(const Algorithm& algorithm, const Call& call, uint32_t number) const {
    return slots_.concern(algorithm, call.bytes, number);
  }
  // Reserves slots if the call needs them. lack: it must go by links. failed: see `failure`.
  Slots::Answer prepare_slots(const Algorithm& algorithm, const Call& call, uint32_t number);
  // After `lack`: why this rank has none, once.
  Status take_lack() { return slots_.take_why(); }

  // Runs the call. Inline, because short calls spend a tenth of their time on the way here.
  bool run(const Algorithm& algorithm, const Call& call) {
    ShmCall shm_call{
        .root = call.root,
        .element = call.element,
        .reduction = call.reduction,
        .input = call.input,
        .output = call.output,
        .groups = groups_ ? &*groups_ : nullptr,
        .in_turns = per_processor_ > 1,
        .scratch = {},
        .links = links_,
    };
    if (algorithm.needs.cma && call.reduction.kernel && !take_scratch(&shm_call)) return false;
    if ((call.input.source || call.output.source) && !pack(call)) return false;
    wait_policy_.begin();
    rounds_.begin(encode_signature(call.collective, call.root), call.bytes, &wait_policy_);
    // A rank that aborted may have left the call, so data that was fetched from it may be anything.
    return algorithm.shm(rounds_, shm_call) &&
           !(algorithm.needs.cma && rounds_.signals().is_aborted());
  }
  // Why `run` or a wait for slots failed; never ok. (If a part over links failed, the team knows
  // why.) It names the rank concerned.
  Status failure(const Call& call) const;

  // For calls in flight. The cma is another one than that of calls that block; null: ranks can't
  // use any. May throw std::bad_alloc.
  Cells& cells(uint32_t set) { return arena_->cells(set); }
  std::unique_ptr<Cma> make_cma() const {
    return rounds_.cma() ? rounds_.cma()->make_another() : nullptr;
  }

  bool is_aborted() const { return rounds_.signals().is_aborted(); }
  std::string abort_cause() const { return rounds_.signals().cause(); }
  // Tells the other ranks, and whether they still put into this rank's memory.
  void abort(const std::string& text) { rounds_.signals().abort(text); }
  bool is_put_to() const { return rounds_.signals().is_put_to(); }
  // A rank whose process has ended, if there is one. A system call for each rank.
  std::optional<Rank> find_ended() const;
  // Between calls: gives memory back. may_return_slots: no rank can be in the arena.
  void trim(bool may_return_slots);

 private:
  [[gnu::cold]] bool take_scratch(ShmCall* call);
  [[gnu::cold]] bool pack(const Call& call);
  Status learn_members(const std::string& name);
  Status learn_round_trip(const std::vector<ArenaMember>& members, const std::string& name);

  Process& process_;
  const TeamChannels& channels_;
  const Rank rank_;
  OverLinks& links_;
  const std::unique_ptr<Arena> arena_;
  Rounds& rounds_;
  ArenaWaitPolicy wait_policy_;
  Slots slots_;
  std::optional<Groups> groups_;  // if there are two
  uint32_t per_processor_ = 1;    // most ranks for a processor
  uint32_t round_trip_ = 0;       // between two ranks, in nanoseconds
  Scratch scratch_;               // operands got by CMA
  Status failed_here_;            // before anything was published
};

}  // namespace sluice
