// SPDX-License-Identifier: BSD-3-Clause
#include "src/nccl/offload.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "src/memory/placement.h"
#include "src/nccl/nccl_executor.h"

namespace sluice {
namespace {

// Uneven blocks are reduced one by one: with more ranks the host is faster.
constexpr Rank most_uneven = 16;

// Whether this rank can take part, and, from the leader, the id.
struct IdOffer {
  uint32_t able = 0;
  std::array<char, sluice_nccl_id> id = {};
};

std::atomic<uint64_t> last_made{0};

}  // namespace

bool NcclLibrary::open(bool shares) {
  if (std::exchange(was_tried_, true)) return nccl_ != nullptr;
  char why[sluice_cuda_why] = "";
  nccl_ = find_nccl(&failure_);
  if (nccl_ && nccl_->open(&library_, why) != 0) {
    failure_ = {Code::unavailable, why};
  } else if (nccl_ && library_.was_loaded_already && !shares) {
    failure_ = {Code::unavailable, "the program uses NCCL itself (SLUICE_NCCL=on uses it too)"};
  }
  if (!failure_.ok()) nccl_ = nullptr;
  return nccl_ != nullptr;
}

std::unique_ptr<Offload> Offload::make(Team& team, DeviceGroups& groups, const Knobs& knobs,
                                       const std::string& hint, const std::string& communicator) {
  const std::string& value = hint.empty() ? knobs.nccl : hint;
  if (value == "off" || knobs.cuda == "off" || team.size() < 2) return nullptr;
  const Mode mode = value == "on" ? Mode::on : Mode::automatic;
  const char* const silence = hint.empty() ? "SLUICE_NCCL=off" : "the hint sluice_nccl=off";
  return std::unique_ptr<Offload>(new Offload(team, groups, knobs, mode, silence, communicator));
}

Offload::Offload(Team& team, DeviceGroups& groups, const Knobs& knobs, Mode mode,
                 const char* silence, const std::string& communicator)
    : team_(team),
      groups_(groups),
      knobs_(knobs),
      mode_(mode),
      silence_(silence),
      communicator_(communicator),
      id_(++last_made),
      job_(team.rank()),
      packed_(team.size() * Vote::packed_size),
      votes_(team.size()) {
  for (Rank rank = 0; rank < team.size(); ++rank) processes_.push_back(team.process(rank));
}

bool Offload::is_eligible(const Call& call) const {
  if (call.bytes < knobs_.nccl_least || call.bytes == 0) return false;
  if (knobs_.reproducible && is_reducing(call.collective)) return false;
  const bool is_uneven = call.ragged && call.collective == Collective::reduce_scatter;
  if (is_uneven && team_.size() > most_uneven) return false;
  return nccl_terms(call) && !team_.is_forced(call.collective);
}

std::optional<Status> Offload::carry(UnplacedCall& unplaced, Staging& input, Staging& output) {
  if (!schedule_.is_due()) return {};
  const Call& call = unplaced.call;
  const NcclTerms terms = *nccl_terms(call);
  const DeviceGroups::Token token = groups_.try_take();
  const Vote mine = vote(unplaced, terms, token, input, output);
  Ballot ballot;
  if (Status status = count(call, mine, &ballot); !status.ok()) return status;
  report(ballot);
  switch (schedule_.learn(ballot)) {
    case VoteSchedule::Action::run:
      return run(unplaced, terms, mine.on_device, input, output);
    case VoteSchedule::Action::start:
      if (Status status = start(call, ballot); !status.ok()) return status;
      break;
    case VoteSchedule::Action::give_up:
      token ? abort() : groups_.abandon(votes_[ballot.rank].group, 0);
      break;
    case VoteSchedule::Action::carry_on:
      break;
  }
  return {};
}

Vote Offload::vote(const UnplacedCall& unplaced, const NcclTerms& terms,
                   const DeviceGroups::Token& token, Staging& input, Staging& output) {
  const Call& call = unplaced.call;
  Vote vote;
  vote.signature = encode_signature(call.collective, call.root);
  vote.bytes = call.bytes;
  vote.type = static_cast<uint8_t>(terms.type);
  vote.operation = static_cast<uint8_t>(terms.operation);
  vote.blocks = digest_of_blocks(unplaced);
  data_ = find_data(unplaced, terms.bytes);
  vote.on_device = data_.kind == Whereabouts::Kind::on_device;
  why_.clear();
  if (asks_for_other_carriers()) {
    vote.lack = Vote::Lack::settings;
  } else if (data_.kind == Whereabouts::Kind::unknown) {
    vote.lack = Vote::Lack::library;
  } else if (!token) {
    vote.lack = Vote::Lack::busy;
  } else if (DeviceGroup* const group = groups_.find(processes_)) {
    vote.lack = look_at_group(*group, &vote);
    if (vote.lack == Vote::Lack::nothing) {
      vote.lack = reserve(*group, vote, unplaced, terms, input, output);
    }
  } else if (vote.on_device) {
    vote.lack = look_at_device(&vote);
  }
  return vote;
}

// NCCL sends in clear, by interfaces that it chooses itself.
bool Offload::asks_for_other_carriers() const {
  if (knobs_.tls != "off" && (knobs_.tls_local || team_.spans_hosts())) return true;
  return team_.spans_hosts() && (!knobs_.interfaces.empty() || knobs_.transport != "auto");
}

// Before there is a group.
Vote::Lack Offload::look_at_device(Vote* vote) {
  if (!find_library(vote)) return Vote::Lack::library;
  char why[sluice_cuda_why] = "";
  auto* const uuid = reinterpret_cast<unsigned char*>(vote->device.data());
  if (nccl_->find_device(&data_.place, uuid, why) != 0) {
    why_ = why;
    tell_here(Level::info, why_);
    return Vote::Lack::library;
  }
  return groups_.is_busy(nullptr, most_groups()) ? Vote::Lack::busy : Vote::Lack::nothing;
}

Vote::Lack Offload::look_at_group(DeviceGroup& group, Vote* vote) {
  char why[sluice_cuda_why] = "";
  auto* const uuid = reinterpret_cast<unsigned char*>(vote->device.data());
  if (!find_library(vote)) return Vote::Lack::library;
  vote->group = group.id();
  vote->on_device = vote->on_device && data_.place.device == group.device() &&
                    nccl_->find_device(&data_.place, uuid, why) == 0;
  switch (group.advance()) {
    case DeviceGroup::State::ready:
      break;
    case DeviceGroup::State::starting:
      return Vote::Lack::start;
    default:
      return look_at_end(group);
  }
  return groups_.is_busy(&group, most_groups()) ? Vote::Lack::busy : Vote::Lack::nothing;
}

// Of a group that can't be used any more.
Vote::Lack Offload::look_at_end(const DeviceGroup& group) {
  why_ = group.why();
  tell_here(Level::info, group.failure().message());
  return group.has_failed() ? Vote::Lack::failure : Vote::Lack::given_up;
}

Vote::Lack Offload::reserve(DeviceGroup& group, const Vote& vote, const UnplacedCall& unplaced,
                            const NcclTerms& terms, Staging& input, Staging& output) {
  if (vote.on_device) {
    job_.describe(unplaced, terms, input, output);
  } else {
    job_.describe_sizes(unplaced, terms, input, output);
  }
  const Status status = group.reserve(job_.job());
  if (status.ok()) return Vote::Lack::nothing;
  if (status.code() != Code::memory) return look_at_end(group);
  why_ = status.message();
  return Vote::Lack::memory;
}

bool Offload::find_library(Vote* vote) {
  const bool is_open = nccl_.open(mode_ == Mode::on);
  if (!is_open) tell_here(Level::info, why_ = nccl_.why_not());
  vote->version = is_open ? nccl_.version() : 0;
  return is_open;
}

// Gathers all ranks' votes.
Status Offload::count(const Call& call, const Vote& mine, Ballot* ballot) {
  std::array<std::byte, Vote::packed_size> packed;
  mine.pack(packed);
  if (Status status = team_.exchange(call, packed, packed_); !status.ok()) return status;
  for (size_t rank = 0; rank < votes_.size(); ++rank) {
    votes_[rank] = Vote::unpack(std::span(packed_).subspan(rank * packed.size(), packed.size()));
  }
  *ballot = count_votes(votes_);
  if (ballot->result != Ballot::Result::mismatch) return {};
  const auto other = std::ranges::find_if(
      votes_, [&](const Vote& vote) { return !vote.is_about_the_same_call(mine); });
  const std::string rank = "rank " + std::to_string(other - votes_.begin());
  const Status status = describe_difference(mine, *other).with(rank);
  return team_.fail_call(status.with(std::string(to_string(call.collective))));
}

// Begins a group, unless another communicator of these processes has one.
Status Offload::start(const Call& call, const Ballot& ballot) {
  if (ballot.shares_group) return {};
  DeviceGroup* group = nullptr;
  try {
    group = &groups_.add(processes_, data_.place.device);
  } catch (const std::bad_alloc&) {  // the others learn of it
  }
  Id id{};
  char why[sluice_cuda_why] = "";
  bool able = group != nullptr;
  if (able && team_.rank() == 0) able = nccl_->unique_id(id.data(), why) == 0;
  if (*why) tell_here(mode_ == Mode::on ? Level::warning : Level::info, why);
  Status status;
  try {
    status = agree_on_id(call, &able, &id);
  } catch (const std::bad_alloc&) {
    if (group) groups_.drop(*group);
    throw;
  }
  if (status.ok() && able) {
    group->begin(*nccl_, id, static_cast<int>(team_.rank()));
    use(*group);
  } else if (group) {
    groups_.drop(*group);
  }
  return status;
}

// The leader tells its id. *able: in, this rank is; out, all ranks are.
Status Offload::agree_on_id(const Call& call, bool* able, Id* id) {
  const IdOffer mine{*able ? 1U : 0U, *id};
  std::vector<IdOffer> all(team_.size());
  if (Status status = team_.exchange(call, std::as_bytes(std::span(&mine, 1)),
                                     std::as_writable_bytes(std::span(all)));
      !status.ok()) {
    return status;
  }
  *able = std::ranges::all_of(all, [](const IdOffer& each) { return each.able == 1; });
  *id = all[0].id;
  return {};
}

// For the token's holder. (Another thread's holder may be in a job of the group.)
void Offload::abort() {
  DeviceGroup* const group = groups_.find(processes_);
  if (group && group->advance() != DeviceGroup::State::ended) group->abort();
}

void Offload::use(DeviceGroup& group) {
  group.set_last_user(id_);
  group_ = group.id();
}

// If this rank fails before it is in the job, it still has the token to leave the group with, as
// the others do.
Status Offload::run(UnplacedCall& unplaced, const NcclTerms& terms, bool on_device, Staging& input,
                    Staging& output) try {
  use(*groups_.find(processes_));
  Status status = on_device ? run_job(unplaced.call) : run_on_host(unplaced, terms, input, output);
  status.ok() ? void(has_carried_ = true) : abort();
  return status;
} catch (const std::bad_alloc&) {
  abort();
  throw;
}

// Data that is not dense on the device goes by the host, and through scratch on the device. (All of
// it by staging memory: NCCL may write to that even if it can't be ended.)
Status Offload::run_on_host(UnplacedCall& unplaced, const NcclTerms& terms, Staging& input,
                            Staging& output) {
  Placement placement(unplaced, input, output, team_, Placement::Staged::all);
  Status local = placement.begin();
  if (local.ok()) local = pack_all(unplaced.call, team_.size());
  if (local.ok()) {
    job_.describe_on_host(unplaced.call, terms);
    if (Status status = run_job(unplaced.call); !status.ok()) {
      if (!is_quiet()) input.abandon();
      if (!is_quiet()) output.abandon();
      return status;
    }
    local = placement.end();
  }
  const std::string name(to_string(unplaced.call.collective));
  return local.ok() ? local : team_.fail_call(local.with(name));
}

Status Offload::run_job(const Call& call) {
  DeviceGroup& group = *groups_.find(processes_);
  NcclExecutor executor(group, job_.job());
  const Status status = team_.run_with(executor, route, call);
  if (!status.ok() && !is_quiet()) {
    log(Level::error, "%s: NCCL can't be ended, and may still write to the call's buffers",
        communicator_.c_str());
  }
  return status;
}

// Whether NCCL touches no memory of calls any more.
bool Offload::is_quiet() {
  DeviceGroup* const group = groups_.find(processes_);
  return !group || group->advance() == DeviceGroup::State::ended;
}

void Offload::abandon() { groups_.abandon(group_, id_); }

// Reports a reason that only this rank knows.
void Offload::tell_here(Level level, const std::string& why) {
  if (std::exchange(has_told_, true)) return;
  log(level, "NCCL is not used on %s: %s", communicator_.c_str(), why.c_str());
}

// Reports a reason that all ranks know. The rank that it concerns logs it, because only that rank
// knows details; if it concerns no rank in particular, the leader does.
void Offload::report(const Ballot& ballot) {
  if (!announced_.is_news(ballot)) return;
  const bool is_of_one = ballot.reason != Ballot::Reason::given_up;
  if (team_.rank() != (is_of_one ? ballot.rank : 0)) return;
  const bool is_asked_for = mode_ == Mode::on && !ballot.has_failed && !ballot.is_passing();
  const std::string rank = is_of_one ? "rank " + std::to_string(ballot.rank) + ": " : "";
  std::string reason = describe(ballot.reason);
  if (is_of_one && !why_.empty()) reason += ": " + why_;
  if (is_asked_for) reason += " (" + std::string(silence_) + " silences this)";
  log(ballot.has_failed || is_asked_for ? Level::warning : Level::info,
      "NCCL does not carry calls on %s%s: %s%s", communicator_.c_str(),
      ballot.has_failed && has_carried_ ? " any more" : "", rank.c_str(), reason.c_str());
}

}  // namespace sluice
