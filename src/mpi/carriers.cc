// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/carriers.h"

#include <algorithm>
#include <span>
#include <utility>

#include "src/engine/execution.h"
#include "src/mpi/runtime.h"

namespace sluice {
namespace {

static_assert(sizeof(Vote) <= Team::exchange_at_once);

CallFacts facts_of(const UnplacedCall& unplaced) {
  const Call& call = unplaced.call;
  CallFacts facts;
  facts.signature = encode_signature(call.collective, call.root);
  facts.blocks = digest_of_blocks(unplaced);
  facts.bytes = call.bytes;
  if (const auto& arithmetic = call.reduction.arithmetic) {
    facts.type = static_cast<uint32_t>(arithmetic->type);
    facts.operation = static_cast<uint32_t>(arithmetic->op);
  }
  return facts;
}

}  // namespace

std::unique_ptr<Carriers> Carriers::make(Team& team, Runtime& runtime, const Hints& hints,
                                         const std::string& communicator) {
  const Knobs& knobs = runtime.process().knobs;
  auto rounds = DeviceRounds::make(team, runtime.device_slabs(), knobs, communicator);
  auto offload =
      Offload::make(team, runtime.device_groups(), knobs, nccl_hint(hints), communicator);
  if (!rounds && !offload) return nullptr;
  std::unique_ptr<Carriers> carriers(
      new Carriers(team, runtime.device_slabs(), runtime.device_groups()));
  carriers->rounds_ = std::move(rounds);
  carriers->offload_ = std::move(offload);
  return carriers;
}

std::array<bool, carrier_count> Carriers::find_eligible(const Call& call) const {
  return {rounds_ && rounds_->is_eligible(call), offload_ && offload_->is_eligible(call)};
}

std::optional<Status> Carriers::carry(UnplacedCall& unplaced, Staging& input, Staging& output,
                                      const Algorithm** by) {
  using Outcome = VoteSchedule::Outcome;
  const Call& call = unplaced.call;
  const bool is_alltoallv = call.collective == Collective::alltoallv;
  VoteSchedule& schedule = is_alltoallv ? schedule_of_alltoallv_ : schedule_;
  if (!schedule.is_due()) return {};

  Question question;
  question.asked = find_eligible(call);
  const auto [asks_ipc, asks_nccl] = question.asked;
  std::optional<DeviceSlabs::Token> slabs;
  std::optional<DeviceGroups::Token> groups;
  Vote mine;
  mine.facts = facts_of(unplaced);
  if (asks_ipc) rounds_->vote(unplaced, slabs.emplace(slabs_.try_take()), &mine);
  if (asks_nccl) offload_->vote(unplaced, groups.emplace(groups_.try_take()), input, output, &mine);
  if (Status status = exchange(call, mine); !status.ok()) return status;
  if (asks_ipc) rounds_->complete(call, &question);
  const Ballot ballot = count_votes(votes_, question);
  if (ballot.is_mismatch) return fail_mismatch(call, mine);

  bool goes = false;
  if (asks_ipc) {
    Status status = rounds_->conclude(call, ballot, votes_, &goes);
    if (!status.ok()) return status;
  }
  if (goes) {
    groups.reset();
    schedule.learn(Outcome::went);
    *by = &DeviceRounds::route;
    return rounds_->run(unplaced, ballot.longest, input, output);
  }
  slabs.reset();
  std::optional<Status> done;
  if (asks_nccl) {
    const Finding& finding = ballot.by(Carrier::nccl);
    done = offload_->carry(unplaced, finding, votes_, *groups, input, output);
  }
  const bool is_starting = asks_nccl && offload_->is_starting();
  const bool is_passing = ballot.by(Carrier::ipc).is_passing();
  schedule.learn(done          ? Outcome::went
                 : is_passing  ? Outcome::passing
                 : is_starting ? Outcome::starting
                               : Outcome::refused);
  if (done) *by = &Offload::route;
  return done;
}

// (Slabs stay if a rank is lost.)
Status Carriers::exchange(const Call& call, const Vote& mine) {
  Status status = team_.exchange(call, std::as_bytes(std::span(&mine, 1)),
                                 std::as_writable_bytes(std::span(votes_)));
  if (!status.ok() && rounds_) slabs_.leave();
  return status;
}

// Names the first rank in another call than this one.
Status Carriers::fail_mismatch(const Call& call, const Vote& mine) {
  const auto other =
      std::ranges::find_if(votes_, [&](const Vote& vote) { return vote.facts != mine.facts; });
  const std::string rank = "rank " + std::to_string(other - votes_.begin());
  const Status status = describe_difference(mine.facts, other->facts).with(rank);
  return team_.fail_call(status.with(std::string(to_string(call.collective))));
}

}  // namespace sluice
