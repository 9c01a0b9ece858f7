// SPDX-License-Identifier: BSD-3-Clause
#include "src/ipc/ipc_calls.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "src/memory/placement.h"
#include "src/memory/staged_side.h"

namespace sluice {
namespace {

constexpr size_t longest_record = 96;
static_assert(longest_record <= Team::exchange_at_once &&
              RankReport::packed_size <= longest_record &&
              SlabOffer::packed_size <= longest_record);

// Its ranks know no common size, so they vote before calls of any, and their votes tell sizes.
bool is_alltoallv(const Call& call) { return call.collective == Collective::alltoallv; }

bool has_no_data(const UnplacedCall& unplaced) {
  const auto is_empty = [](const Side& side) { return !side.type || side.bytes() == 0; };
  return unplaced.others.empty() && is_empty(unplaced.input) && is_empty(unplaced.output);
}

void measure(const UnplacedCall& unplaced, Vote* vote) {
  const Side& side = unplaced.input;
  vote->bytes = std::max(side.bytes(), unplaced.output.bytes());
  for (uint32_t block = 0; block < side.blocks; ++block) {
    vote->longest = std::max<uint64_t>(vote->longest, side.elements(block) * side.type->size);
  }
}

bool is_served(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::broadcast:
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::reduce_scatter:
    case Collective::alltoall:
    case Collective::alltoallv:
      return true;
    default:
      return false;
  }
}

bool reduces(const Call& call) { return call.reduction.kernel != nullptr; }

uint32_t bit_of(Lack lack) { return 1U << static_cast<unsigned>(lack); }
constexpr uint32_t bit_of_connecting = 1U << 31;

}  // namespace

// (Between the ranks of one host SLUICE_TLS encrypts only if SLUICE_TLS_LOCAL says so.)
std::unique_ptr<IpcCalls> IpcCalls::make(Team& team, DeviceSlabs& slabs, const Knobs& knobs,
                                         const std::string& communicator) {
  const bool encrypts = knobs.tls != "off" && knobs.tls_local;
  if (knobs.cuda_ipc == "off" || knobs.cuda == "off" || encrypts) return nullptr;
  if (team.size() < 2 || team.spans_hosts()) return nullptr;
  if (knobs.cuda_ipc == "auto" && !team.sees_devices()) return nullptr;
  return std::unique_ptr<IpcCalls>(new IpcCalls(team, slabs, knobs, communicator));
}

IpcCalls::IpcCalls(Team& team, DeviceSlabs& slabs, const Knobs& knobs,
                   const std::string& communicator)
    : team_(team),
      slabs_(slabs),
      knobs_(knobs),
      communicator_(communicator),
      packed_(team.size() * longest_record) {}

bool IpcCalls::is_eligible(const Call& call) const {
  if (!is_served(call.collective)) return false;
  const bool is_small = call.bytes < knobs_.cuda_ipc_least || call.bytes == 0;
  if (is_small && !is_alltoallv(call)) return false;
  if (reduces(call)) {
    const bool is_bounded = team_.size() <= sluice_cuda_operands;
    if (!call.reduction.arithmetic || knobs_.reproducible || !is_bounded) return false;
  }
  if (SlabPhases::piece(call, team_.size(), knobs_.cuda_ipc_slab) == 0) return false;
  const Team::Say say = team_.say_of(call, Carrier::ipc);
  return say == Team::Say::if_fast || (say == Team::Say::if_named && is_named());
}

void IpcCalls::vote(const UnplacedCall& unplaced, const DeviceSlabs::Token& token, Vote* vote) {
  using Kind = Whereabouts::Kind;
  const Call& call = unplaced.call;
  if (is_alltoallv(call)) measure(unplaced, vote);
  data_ = find_data(unplaced, 1);
  if (last_device_ >= 0 && has_no_data(unplaced)) {
    data_.kind = Kind::on_device;
    data_.place.device = last_device_;
  }
  why_.clear();
  Ability& mine = vote->by(Carrier::ipc);
  if (data_.kind == Kind::on_device) mine.data = Ability::Data::on_device;
  if (data_.kind == Kind::elsewhere) {
    mine.lack = Lack::on_host;
  } else if (data_.kind == Kind::unknown) {
    mine.lack = Lack::unknown;
  } else if (!token) {
    mine.lack = Lack::busy;
  } else {
    mine.lack = check_device(call, vote);
  }
}

Lack IpcCalls::check_device(const Call& call, Vote* vote) {
  char why[sluice_cuda_why] = "";
  Status no_module;
  if (!ipc_) ipc_ = find_ipc(&no_module);
  if (!ipc_) {
    why_ = no_module.message();
    return Lack::library;
  }
  auto* const uuid = reinterpret_cast<unsigned char*>(vote->device.data());
  if (ipc_->find_device(&data_.place, uuid, why) != 0) {
    why_ = why;
    return Lack::context;
  }
  if (reduces(call) && !can_reduce_on_device(*call.reduction.arithmetic)) return Lack::kernels;
  Slab* const slab = slabs_.find(data_.place.device);
  if (!slab) return Lack::nothing;
  if (slab->has_failed()) return Lack::failed;
  vote->by(Carrier::ipc).group = slab->id();
  const Status tried = try_kernel(call, *slab);
  why_ = tried.message();
  if (slab->has_failed()) return Lack::failed;
  return tried.ok() ? Lack::nothing : Lack::kernels;
}

void IpcCalls::complete(const Call& call, Question* question) const {
  question->connected = connected_;
  question->least = is_alltoallv(call) ? knobs_.cuda_ipc_least : 0;
}

Status IpcCalls::conclude(const Call& call, const Ballot& ballot, std::span<const Vote> votes,
                          bool* goes) {
  const auto has_failed = [](const Vote& vote) {
    return vote.by(Carrier::ipc).lack == Lack::failed;
  };
  if (std::ranges::any_of(votes, has_failed)) slabs_.leave();
  const Finding& finding = ballot.by(Carrier::ipc);
  report(finding);
  *goes = finding.next == Finding::Next::go;
  if (finding.next != Finding::Next::connect) return {};
  return connect(call, votes, goes);
}

// Whether the driver loads the call's kernel, which it compiles then, is known once one has run. So
// the first of each type runs before the ranks agree on the call. (No call uses the slab now.)
Status IpcCalls::try_kernel(const Call& call, Slab& slab) {
  if (!reduces(call)) return {};
  const Arithmetic& arithmetic = *call.reduction.arithmetic;
  if (slab.kernels() >> static_cast<unsigned>(arithmetic.type) & 1) return {};
  const void* const operands[] = {slab.memory(), slab.memory()};
  DeviceStream stream(team_);
  Status status = stream.open(slab.device());
  if (status.ok()) {
    stream.reduce(arithmetic, operands, slab.memory(), 1);
    status = stream.wait();
  }
  if (stream.is_abandoned()) slab.fail(true);
  if (status.ok()) slab.add_kernel(arithmetic.type);
  return status;
}

template <typename Record>
Status IpcCalls::exchange(const Call& call, const Record& mine) {
  std::array<std::byte, Record::packed_size> packed;
  mine.pack(packed);
  Status status =
      team_.exchange(call, packed, std::span(packed_).first(team_.size() * packed.size()));
  if (!status.ok()) slabs_.leave();
  return status;
}

template <typename Record>
Record IpcCalls::record_of(Rank rank) const {
  return Record::unpack(
      std::span(packed_).subspan(rank * Record::packed_size, Record::packed_size));
}

// All ranks tell each other of their slabs, open those of the others, and tell whether they could.
Status IpcCalls::connect(const Call& call, std::span<const Vote> votes, bool* connected) {
  *connected = false;
  connected_.clear();
  std::vector<SlabOffer> offers(team_.size());
  if (Status status = tell_offers(call, &offers); !status.ok()) return status;
  const auto none = std::ranges::find(offers, uint64_t{0}, &SlabOffer::slab);
  if (none != offers.end()) {
    const auto rank = static_cast<Rank>(none - offers.begin());
    if (rank == team_.rank()) {
      tell(bit_of_connecting, Level::warning,
           "rank " + std::to_string(rank) + ": it can't begin: " + none->why);
    }
    return {};
  }
  Rank ill = 0;
  RankReport report;
  Status status = gather_reports(call, open_all(offers, votes), &ill, &report);
  if (!status.ok()) return status;
  if (!report.is_well) {
    if (ill == team_.rank()) {
      tell(bit_of_connecting, Level::warning, "rank " + std::to_string(ill) + ": " + report.why);
    }
    return {};
  }
  for (const SlabOffer& offer : offers) connected_.push_back(offer.slab);
  *connected = true;
  return {};
}

// A rank without memory still takes part.
Status IpcCalls::tell_offers(const Call& call, std::vector<SlabOffer>* offers) {
  SlabOffer mine;
  try {
    Slab* slab = slabs_.find(data_.place.device);
    if (!slab) slab = slabs_.make(*ipc_, data_.place.device, knobs_.cuda_ipc_slab, &mine.why);
    const Status tried = slab ? try_kernel(call, *slab) : Status();
    if (slab && tried.ok()) mine = slab->offer();
    if (!tried.ok()) mine.why = tried.message();
    connected_.reserve(team_.size());
    memory_.resize(team_.size());
  } catch (const std::bad_alloc&) {
    mine.slab = 0;
  }
  if (Status status = exchange(call, mine); !status.ok()) return status;
  for (Rank rank = 0; rank < team_.size(); ++rank) (*offers)[rank] = record_of<SlabOffer>(rank);
  if (mine.slab == 0) (*offers)[team_.rank()].why = mine.why;
  return {};
}

RankReport IpcCalls::open_all(const std::vector<SlabOffer>& offers,
                              std::span<const Vote> votes) try {
  Slab& own = *slabs_.find(data_.place.device);
  memory_[team_.rank()] = own.memory();
  for (Rank rank = 0; rank < team_.size(); ++rank) {
    if (rank == team_.rank()) continue;
    std::string why;
    memory_[rank] = own.open(team_.process(rank), votes[rank].device, offers[rank], &why);
    if (!memory_[rank]) {
      return {false, "it can't open rank " + std::to_string(rank) + "'s memory: " + why};
    }
  }
  return {};
} catch (const std::bad_alloc&) {
  return {false, {}};
}

// *report: that of the first rank that is not well, *ill; all are, if it is.
Status IpcCalls::gather_reports(const Call& call, const RankReport& mine, Rank* ill,
                                RankReport* report) {
  if (Status status = exchange(call, mine); !status.ok()) return status;
  for (Rank rank = 0; rank < team_.size(); ++rank) {
    if (packed_[rank * RankReport::packed_size] != std::byte{0}) continue;
    *ill = rank;
    *report = record_of<RankReport>(rank);
    break;
  }
  if (report->is_well) return {};
  // The rest of its text.
  const bool has_rest = *ill == team_.rank() && mine.why.size() > RankReport::longest_text;
  const RankReport rest{true, has_rest ? mine.why.substr(RankReport::longest_text) : ""};
  if (Status status = exchange(call, rest); !status.ok()) return status;
  report->why += record_of<RankReport>(*ill).why;
  return {};
}

std::byte* IpcCalls::address_of(const Call& call, const SlabWork::Spot& spot) const {
  switch (spot.memory) {
    case SlabWork::Memory::input:
      return call.input.base + spot.at;
    case SlabWork::Memory::output:
      return call.output.base + spot.at;
    default:
      return memory_[spot.rank] + spot.at;
  }
}

void IpcCalls::begin(const Call& call, const SlabWork& work, DeviceStream& stream) {
  std::byte* const to = address_of(call, work.to);
  if (work.kind == SlabWork::Kind::copy) {
    return stream.copy(to, address_of(call, work.from), work.bytes);
  }
  const void* operands[sluice_cuda_operands];
  for (Rank rank = 0; rank < team_.size(); ++rank) operands[rank] = memory_[rank] + work.from.at;
  stream.reduce(*call.reduction.arithmetic, std::span(operands).first(team_.size()), to,
                work.bytes / call.element);
}

// (Nothing here throws once the stream is open, but where a Status is made.)
Status IpcCalls::run(UnplacedCall& unplaced, size_t longest, StagingPair& staging) {
  Call& call = unplaced.call;
  const auto began = std::chrono::steady_clock::now();
  last_device_ = data_.place.device;
  view_in_place(unplaced, staging, &call);
  Slab* const slab = slabs_.find(data_.place.device);
  const SlabPhases phases(call, team_.rank(), team_.size(), knobs_.cuda_ipc_slab, longest);
  DeviceStream stream(team_);
  Status own = slab ? stream.open(data_.place.device) : Status(Code::unavailable, "a reset device");
  for (size_t phase = 0; phase < phases.count(); ++phase) {
    works_.clear();
    if (own.ok()) phases.list(phase, &works_);
    for (const SlabWork& work : works_) begin(call, work, stream);
    if (own.ok()) own = stream.wait();
    if (slab && !own.ok()) slab->fail(stream.is_abandoned());
    if (stream.is_abandoned()) return abandon(call, own);
    if (Status status = synchronize(call, own); !status.ok()) return status;
  }
  team_.count(routes::ipc, call, began);
  return {};
}

// Tells the others how this rank is, and learns how they are. All fail if one has.
Status IpcCalls::synchronize(const Call& call, const Status& own) {
  Rank ill = 0;
  RankReport report;
  const RankReport mine{own.ok(), own.message()};
  if (Status status = gather_reports(call, mine, &ill, &report); !status.ok()) return status;
  if (report.is_well) return {};
  slabs_.leave();
  const Status failure{Code::unavailable, "CUDA IPC: " + report.why};
  const std::string name(to_string(call.collective));
  return team_.fail_call(failure.with("rank " + std::to_string(ill)).with(name));
}

// Gives up copies whose end could not be awaited.
Status IpcCalls::abandon(const Call& call, const Status& why) {
  log(Level::error,
      "%s: copies by CUDA IPC can't be ended, and may still write to the call's buffers",
      communicator_.c_str());
  return team_.fail_call(why.with(std::string(to_string(call.collective))));
}

// The rank that it is about says why, because it alone knows more.
void IpcCalls::report(const Finding& finding) {
  if (finding.next != Finding::Next::stay || finding.rank != team_.rank()) return;
  const Lack lack = finding.lack;
  if (lack == Lack::small) return;
  const bool is_no_kernel = lack == Lack::kernels && why_.empty();
  const bool is_expected = lack == Lack::on_host || lack == Lack::busy || is_no_kernel;
  std::string text = "rank " + std::to_string(finding.rank) + ": " + describe(Carrier::ipc, lack);
  if (!why_.empty()) text += ": " + why_;
  tell(bit_of(lack), is_expected ? Level::info : Level::warning, text);
}

// Each reason once.
void IpcCalls::tell(uint32_t reason, Level level, const std::string& text) {
  if (told_ & reason) return;
  told_ |= reason;
  log(is_named() ? level : Level::info, "CUDA IPC does not carry calls on %s: %s",
      communicator_.c_str(), text.c_str());
}

}  // namespace sluice
