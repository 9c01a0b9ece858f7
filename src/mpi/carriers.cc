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
  auto ipc_calls = IpcCalls::make(team, runtime.device_slabs(), knobs, communicator);
  auto offload =
      Offload::make(team, runtime.device_groups(), knobs, nccl_hint(hints), communicator);
  if (!ipc_calls && !offload) return nullptr;
  std::unique_ptr<Carriers> carriers(
      new Carriers(team, runtime.device_slabs(), runtime.device_groups()));
  carriers->ipc_ = std::move(ipc_calls);
  carriers->offload_ = std::move(offload);
  return carriers;
}

// Which carriers the ranks may vote on before the call. Equal on all ranks.
CarrierSet Carriers::find_eligible(const Call& call) const {
  return {ipc_ && ipc_->is_eligible(call), offload_ && offload_->is_eligible(call)};
}

VoteSchedule& Carriers::schedule_of(const Call& call) {
  return call.collective == Collective::alltoallv ? schedule_of_alltoallv_ : schedule_;
}

Status Carriers::ask(UnplacedCall& unplaced, const Status& refusal, StagingPair& staging,
                     Offer* offer) {
  const CarrierSet asked = find_eligible(unplaced.call);
  offer->is_eligible = asked != CarrierSet{};
  if (!offer->is_eligible) return {};
  if (!refusal.ok()) return team_.fail_call(refusal);
  VoteSchedule& schedule = schedule_of(unplaced.call);
  if (schedule.is_due_each_time()) {
    VoteRecord& record = record_of(unplaced.call, asked);
    if (may_leave_vote_out(unplaced.call, asked, record)) {
      offer->able = record.able();
      record.leave_out();
      return {};
    }
  }
  if (!schedule.is_due()) return {};
  return vote(unplaced, staging, asked, offer);
}

VoteRecord& Carriers::record_of(const Call& call, const CarrierSet& asked) {
  return records_[{Trials::kind_of(call), asked}];
}

// Equal on all ranks: votes and trials are.
bool Carriers::may_leave_vote_out(const Call& call, const CarrierSet& asked,
                                  const VoteRecord& record) {
  const auto [asks_ipc, asks_nccl] = asked;
  const bool is_named = (asks_ipc && ipc_->is_named()) || (asks_nccl && offload_->is_named());
  return !is_named && record.is_firm() && team_.goes_without(record.able(), call);
}

Status Carriers::vote(UnplacedCall& unplaced, StagingPair& staging, const CarrierSet& asked,
                      Offer* offer) {
  const Call& call = unplaced.call;
  const auto [asks_ipc, asks_nccl] = asked;
  Question question{.asked = asked};
  Vote mine;
  mine.facts = facts_of(unplaced);
  if (asks_ipc) ipc_->vote(unplaced, offer->slabs.emplace(slabs_.try_take()), &mine);
  if (asks_nccl) {
    offload_->vote(unplaced, offer->groups.emplace(groups_.try_take()), staging, &mine);
  }
  if (Status status = exchange(call, mine); !status.ok()) return status;
  if (asks_ipc) ipc_->complete(call, &question);
  const Ballot ballot = count_votes(votes_, question);
  if (ballot.is_mismatch) return fail_mismatch(call, mine);
  offer->longest = ballot.longest;
  return conclude(call, ballot, asked, offer);
}

// (NCCL does not learn of calls that CUDA IPC has been named for.)
Status Carriers::conclude(const Call& call, const Ballot& ballot, const CarrierSet& asked,
                          Offer* offer) {
  using Outcome = VoteSchedule::Outcome;
  const auto [asks_ipc, asks_nccl] = asked;
  auto& [ipc, nccl] = offer->able;
  Status status;
  if (asks_ipc) status = ipc_->conclude(call, ballot, votes_, &ipc);
  if (!status.ok()) return status;
  if (ipc && ipc_->is_named()) {
    offer->named = &routes::ipc;
  } else if (asks_nccl) {
    const Finding& finding = ballot.by(Carrier::nccl);
    status = offload_->conclude(call, finding, votes_, *offer->groups, &nccl);
    if (!status.ok()) return status;
    if (nccl && offload_->is_named()) offer->named = &routes::nccl;
  }
  if (!ipc) offer->slabs.reset();
  if (!nccl) offer->groups.reset();
  const bool is_passing = !ipc && ballot.by(Carrier::ipc).is_passing();
  const bool is_starting = asks_nccl && offload_->is_starting();
  record_of(call, asked).learn(is_passing || is_starting ? CarrierSet{} : offer->able);
  schedule_of(call).learn(ipc || nccl   ? Outcome::went
                          : is_passing  ? Outcome::passing
                          : is_starting ? Outcome::starting
                                        : Outcome::refused);
  return {};
}

Status Carriers::run(const Algorithm& by, UnplacedCall& unplaced, const Offer& offer,
                     StagingPair& staging) {
  return &by == &routes::ipc ? ipc_->run(unplaced, offer.longest, staging)
                             : offload_->run(unplaced, staging);
}

// (Slabs stay if a rank is lost.)
Status Carriers::exchange(const Call& call, const Vote& mine) {
  Status status = team_.exchange(call, std::as_bytes(std::span(&mine, 1)),
                                 std::as_writable_bytes(std::span(votes_)));
  if (!status.ok() && ipc_) slabs_.leave();
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
