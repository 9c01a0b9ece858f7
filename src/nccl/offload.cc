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
      job_(team.rank()) {
  for (Rank rank = 0; rank < team.size(); ++rank) processes_.push_back(team.process(rank));
}

bool Offload::is_eligible(const Call& call) const {
  if (stages_.stage() == NcclStages::Stage::failed) return false;
  if (call.bytes < knobs_.nccl_least || call.bytes == 0) return false;
  if (knobs_.reproducible && is_reducing(call.collective)) return false;
  const bool is_uneven = call.ragged && call.collective == Collective::reduce_scatter;
  if (is_uneven && team_.size() > most_uneven) return false;
  return nccl_terms(call) && team_.say_of(call, Carrier::nccl) != Team::Say::no;
}

void Offload::vote(const UnplacedCall& unplaced, const DeviceGroups::Token& token,
                   StagingPair& staging, Vote* vote) {
  data_ = find_data(unplaced, nccl_terms(unplaced.call)->bytes);
  is_on_device_ = data_.kind == Whereabouts::Kind::on_device;
  why_.clear();
  Ability& mine = vote->by(Carrier::nccl);
  if (asks_for_other_carriers()) {
    mine.lack = Lack::settings;
  } else if (data_.kind == Whereabouts::Kind::unknown) {
    mine.lack = Lack::unknown;
  } else if (!token) {
    mine.lack = Lack::busy;
  } else if (DeviceGroup* const group = groups_.find(processes_)) {
    mine.lack = check_group(*group, vote);
    if (mine.lack == Lack::nothing) mine.lack = reserve(*group, unplaced, staging);
  } else if (is_on_device_) {
    mine.lack = check_device(vote);
  }
  mine.data = is_on_device_ ? Ability::Data::on_device : Ability::Data::elsewhere;
}

Status Offload::conclude(const Call& call, const Finding& finding, std::span<const Vote> votes,
                         const DeviceGroups::Token& token, bool* able) {
  report(finding);
  const NcclStages::Action action = stages_.learn(finding);
  *able = action == NcclStages::Action::run;
  switch (action) {
    case NcclStages::Action::start:
      return start(call, finding);
    case NcclStages::Action::give_up:
      token ? abort() : groups_.abandon(votes[finding.rank].by(Carrier::nccl).group, 0);
      break;
    case NcclStages::Action::run:
    case NcclStages::Action::carry_on:
      break;
  }
  return {};
}

// NCCL sends in clear, by interfaces that it chooses itself.
bool Offload::asks_for_other_carriers() const {
  if (knobs_.tls != "off" && (knobs_.tls_local || team_.spans_hosts())) return true;
  return team_.spans_hosts() && (!knobs_.interfaces.empty() || knobs_.transport != "auto");
}

// Before there is a group.
Lack Offload::check_device(Vote* vote) {
  if (!find_library(&vote->by(Carrier::nccl))) return Lack::library;
  char why[sluice_cuda_why] = "";
  auto* const uuid = reinterpret_cast<unsigned char*>(vote->device.data());
  if (nccl_->find_device(&data_.place, uuid, why) != 0) {
    why_ = why;
    tell_here(Level::info, why_);
    return Lack::library;
  }
  return groups_.is_busy(nullptr, most_groups()) ? Lack::busy : Lack::nothing;
}

Lack Offload::check_group(DeviceGroup& group, Vote* vote) {
  char why[sluice_cuda_why] = "";
  auto* const uuid = reinterpret_cast<unsigned char*>(vote->device.data());
  Ability& mine = vote->by(Carrier::nccl);
  if (!find_library(&mine)) return Lack::library;
  mine.group = group.id();
  is_on_device_ = is_on_device_ && data_.place.device == group.device() &&
                  nccl_->find_device(&data_.place, uuid, why) == 0;
  switch (group.advance()) {
    case DeviceGroup::State::ready:
      break;
    case DeviceGroup::State::starting:
      return Lack::starting;
    default:
      return report_end(group);
  }
  return groups_.is_busy(&group, most_groups()) ? Lack::busy : Lack::nothing;
}

// Of a group that can't be used any more.
Lack Offload::report_end(const DeviceGroup& group) {
  why_ = group.why();
  tell_here(Level::info, group.failure().message());
  return group.has_failed() ? Lack::failed : Lack::given_up;
}

Lack Offload::reserve(DeviceGroup& group, const UnplacedCall& unplaced, StagingPair& staging) {
  const NcclTerms terms = *nccl_terms(unplaced.call);
  if (is_on_device_) {
    job_.describe(unplaced, terms, staging);
  } else {
    job_.describe_sizes(unplaced, terms, staging);
  }
  const Status status = group.reserve(job_.job());
  if (status.ok()) return Lack::nothing;
  if (status.code() != Code::memory) return report_end(group);
  why_ = status.message();
  return Lack::memory;
}

bool Offload::find_library(Ability* mine) {
  const bool is_open = nccl_.open(is_named());
  if (!is_open) tell_here(Level::info, why_ = nccl_.why_not());
  mine->version = is_open ? nccl_.version() : 0;
  return is_open;
}

// Begins a group, unless another communicator of these processes has one.
Status Offload::start(const Call& call, const Finding& finding) {
  if (finding.shares_group) return {};
  DeviceGroup* group = nullptr;
  try {
    group = &groups_.add(processes_, data_.place.device);
  } catch (const std::bad_alloc&) {  // the others learn of it
  }
  Id id{};
  char why[sluice_cuda_why] = "";
  bool able = group != nullptr;
  if (able && team_.rank() == 0) able = nccl_->unique_id(id.data(), why) == 0;
  if (*why) tell_here(is_named() ? Level::warning : Level::info, why);
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
Status Offload::run(UnplacedCall& unplaced, StagingPair& staging) try {
  use(*groups_.find(processes_));
  const NcclTerms terms = *nccl_terms(unplaced.call);
  Status status = is_on_device_ ? run_job(unplaced.call) : run_on_host(unplaced, terms, staging);
  status.ok() ? void(has_carried_ = true) : abort();
  return status;
} catch (const std::bad_alloc&) {
  abort();
  throw;
}

// Data that is not dense on the device goes by the host, and through scratch on the device. (All of
// it by staging memory: NCCL may write to that even if it can't be ended.)
Status Offload::run_on_host(UnplacedCall& unplaced, const NcclTerms& terms, StagingPair& staging) {
  Placement placement(unplaced, staging, team_, Placement::Staged::all);
  Status local = placement.begin();
  if (local.ok()) local = pack_all(unplaced.call, team_.size());
  if (local.ok()) {
    job_.describe_on_host(unplaced.call, terms);
    if (Status status = run_job(unplaced.call); !status.ok()) {
      if (!is_quiet()) staging.input.abandon();
      if (!is_quiet()) staging.output.abandon();
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
  const Status status = team_.run_with(executor, routes::nccl, call);
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

// Reports a reason that all ranks know, once: why NCCL does not carry calls although all ranks'
// data is on devices, or that it never will. The rank that it concerns logs it, because only that
// rank knows details; if it concerns no rank in particular, the leader does.
void Offload::report(const Finding& finding) {
  const bool has_failed = finding.next == Finding::Next::never;
  const bool is_expected = finding.lack == Lack::starting || finding.lack == Lack::not_started;
  const bool stays = finding.next == Finding::Next::stay && finding.all_on_device;
  if (!has_failed && (!stays || is_expected)) return;
  const uint32_t bit = 1U << static_cast<unsigned>(finding.lack);
  if (std::exchange(announced_, announced_ | bit) & bit) return;
  const bool is_of_one = finding.lack != Lack::given_up;
  if (team_.rank() != (is_of_one ? finding.rank : 0)) return;
  const bool is_asked_for = is_named() && !has_failed && !finding.is_passing();
  const std::string rank = is_of_one ? "rank " + std::to_string(finding.rank) + ": " : "";
  std::string reason = describe(Carrier::nccl, finding.lack);
  if (is_of_one && !why_.empty()) reason += ": " + why_;
  if (is_asked_for) reason += " (" + std::string(silence_) + " silences this)";
  log(has_failed || is_asked_for ? Level::warning : Level::info,
      "NCCL does not carry calls on %s%s: %s%s", communicator_.c_str(),
      has_failed && has_carried_ ? " any more" : "", rank.c_str(), reason.c_str());
}

}  // namespace sluice
