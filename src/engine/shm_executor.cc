// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/shm_executor.h"

#include <utility>
#include <vector>

#include "src/base/log.h"
#include "src/engine/team.h"

namespace sluice {

ShmExecutor::ShmExecutor(Process& process, const TeamChannels& channels, Rank rank,
                         std::unique_ptr<Arena> arena, Waiter& waiter, ArenaWaitPolicy::Watch watch,
                         ClassCounts* counts, OverLinks& links)
    : process_(process),
      channels_(channels),
      rank_(rank),
      links_(links),
      arena_(std::move(arena)),
      rounds_(arena_->rounds()),
      wait_policy_(waiter, *arena_, std::move(watch), counts),
      slots_(*arena_) {}

Status ShmExecutor::exchange_members(const std::string& name) {
  Status status = learn_members(name);
  if (status.ok()) return status;
  if (!wait_policy_.status().ok()) status = wait_policy_.status();
  rounds_.signals().abort("rank " + std::to_string(rank_) + ": " + status.message());
  return status;
}

Status ShmExecutor::learn_members(const std::string& name) {
  const Rank size = channels_.size();
  const std::string& how = process_.knobs.groups;
  const bool domains = how == "auto" && size >= least_for_groups;
  ArenaMember mine;
  if (process_.locate) mine.locality = process_.locate(domains);
  mine.locality.known_per_processor = process_.oversubscription.per_processor();
  mine.tries = process_.knobs.single_copy;
  if (size == 2) mine.round_trip = process_.round_trips.find(channels_.process(1 - rank_));
  std::vector<ArenaMember> members;
  std::vector<Locality> localities;
  localities.reserve(size);
  Status status = join_arena(*arena_, wait_policy_, mine, &members);
  if (!status.ok()) return status;
  for (const ArenaMember& member : members) localities.push_back(member.locality);
  process_.oversubscription.learn(ranks_per_processor(localities, rank_));
  per_processor_ = most_per_processor(localities);
  if (size == 2 && per_processor_ == 1) status = learn_round_trip(members, name);
  if (!status.ok()) return status;
  const std::vector<uint32_t> groups = make_groups(how, localities);
  if (groups.empty()) return {};
  groups_.emplace(groups, rank_);
  if (rank_ == 0) {
    log(Level::info, "%s: ranks %s form groups", name.c_str(), describe_groups(groups).c_str());
  }
  return {};
}

// Once for a pair of processes: both must know it.
Status ShmExecutor::learn_round_trip(const std::vector<ArenaMember>& members,
                                     const std::string& name) {
  const uint64_t known = members[0].round_trip;
  round_trip_ = static_cast<uint32_t>(known);
  if (known != 0 && known == members[1].round_trip) return {};
  if (!measure_round_trip(rounds_, wait_policy_, &round_trip_)) return why_not_met(rounds_);
  process_.round_trips.learn(channels_.process(1 - rank_), round_trip_);
  log(Level::info, "%s: a flag takes %u ns from one rank to the other and back", name.c_str(),
      round_trip_);
  return {};
}

Selection::Arena ShmExecutor::traits() const {
  return {
      .cma = rounds_.cma() != nullptr,
      .groups = groups_ ? std::span(groups_->of()) : std::span<const uint32_t>(),
      .per_processor = per_processor_,
      .round_trip = round_trip_,
  };
}

Slots::Answer ShmExecutor::prepare_slots(const Algorithm& algorithm, const Call& call,
                                         uint32_t number) {
  wait_policy_.begin();
  return slots_.prepare(needs_slots(algorithm, call.bytes, call.ragged, channels_.size()), number,
                        encode_signature(call.collective, call.root), call.bytes, wait_policy_);
}

bool ShmExecutor::take_scratch(ShmCall* call) {
  if (!scratch_.reserve(2 * ShmCall::scratch_half)) {
    failed_here_ = process_.no_memory_for_call;
    return false;
  }
  call->scratch = {scratch_.data(), 2 * ShmCall::scratch_half};
  return true;
}

bool ShmExecutor::pack(const Call& call) {
  failed_here_ = pack_all(call, channels_.size());
  return failed_here_.ok();
}

Status ShmExecutor::failure(const Call& call) const {
  if (!failed_here_.ok()) return failed_here_;
  if (const std::string cause = rounds_.signals().cause(); !cause.empty())
    return {Code::aborted, cause};
  if (const auto& other = rounds_.disagreement()) {
    if (other->about_own) {
      return Status{Code::mismatch,
                    "it expects " + std::to_string(other->bytes) + " bytes where this rank sends " +
                        std::to_string(other->expected) + ": counts or datatypes differ"}
          .with(channels_.describe(other->rank));
    }
    const uint32_t signature = encode_signature(call.collective, call.root);
    return describe_mismatch({signature, other->expected}, {other->signature, other->bytes})
        .with(channels_.describe(other->rank));
  }
  if (const auto& move = rounds_.failed_move()) {
    return why_not_moved(*move).with(channels_.describe(move->rank));
  }
  const Status& status = wait_policy_.status();
  if (status.ok()) return {Code::internal, "a shared-memory algorithm gave up without a reason"};
  return status.code() == Code::peer_lost ? status.with(channels_.describe(wait_policy_.rank()))
                                          : status;
}

std::optional<Rank> ShmExecutor::find_ended() const {
  for (Rank rank = 0; rank < channels_.size(); ++rank) {
    if (rank != rounds_.rank() && !arena_->lives(rank)) return rank;
  }
  return {};
}

void ShmExecutor::trim(bool may_return_slots) {
  scratch_ = {};
  if (may_return_slots) slots_.give_back();
}

}  // namespace sluice
