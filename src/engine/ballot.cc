// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/ballot.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "src/engine/execution.h"

namespace sluice {
namespace {

// Where the members lie in a packed vote. (Ranks of one team run the same version of the library,
// on processors of one byte order.)
constexpr size_t at_signature = 0, at_version = 4, at_bytes = 8, at_type = 16, at_operation = 17,
                 at_on_device = 18, at_lack = 19, at_blocks = 20, at_group = 24, at_device = 32;

template <typename T>
void put(std::span<std::byte> bytes, size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

template <typename T>
void get(std::span<const std::byte> bytes, size_t at, T* value) {
  std::memcpy(value, bytes.data() + at, sizeof(*value));
}

Ballot::Reason reason_of(Vote::Lack lack) {
  switch (lack) {
    case Vote::Lack::nothing:
      break;
    case Vote::Lack::library:
      return Ballot::Reason::library;
    case Vote::Lack::settings:
      return Ballot::Reason::settings;
    case Vote::Lack::memory:
      return Ballot::Reason::memory;
    case Vote::Lack::busy:
      return Ballot::Reason::busy;
    case Vote::Lack::start:
      return Ballot::Reason::starting;
    case Vote::Lack::failure:
      return Ballot::Reason::failure;
    case Vote::Lack::given_up:
      return Ballot::Reason::given_up;
  }
  return Ballot::Reason::none;
}

// The first rank that shares its device with a lower one; votes.size() if none does.
size_t first_on_shared_device(std::span<const Vote> votes) {
  for (size_t i = 1; i < votes.size(); ++i) {
    const auto lower = votes.first(i);
    const auto shares = [&](const Vote& vote) { return vote.device == votes[i].device; };
    if (std::ranges::any_of(lower, shares)) return i;
  }
  return votes.size();
}

// The first vote that the predicate holds for; votes.size() if there is none.
template <typename Predicate>
size_t first_that(std::span<const Vote> votes, const Predicate& predicate) {
  return static_cast<size_t>(std::ranges::find_if(votes, predicate) - votes.begin());
}

}  // namespace

void Vote::pack(std::span<std::byte> to) const {
  std::ranges::fill(to.first(packed_size), std::byte{});
  put(to, at_signature, signature);
  put(to, at_version, version);
  put(to, at_bytes, bytes);
  put(to, at_type, type);
  put(to, at_operation, operation);
  put(to, at_on_device, static_cast<uint8_t>(on_device));
  put(to, at_lack, lack);
  put(to, at_blocks, blocks);
  put(to, at_group, group);
  put(to, at_device, device);
}

Vote Vote::unpack(std::span<const std::byte> from) {
  Vote vote;
  uint8_t is_on_device = 0;
  get(from, at_signature, &vote.signature);
  get(from, at_version, &vote.version);
  get(from, at_bytes, &vote.bytes);
  get(from, at_type, &vote.type);
  get(from, at_operation, &vote.operation);
  get(from, at_on_device, &is_on_device);
  get(from, at_lack, &vote.lack);
  get(from, at_blocks, &vote.blocks);
  get(from, at_group, &vote.group);
  get(from, at_device, &vote.device);
  vote.on_device = is_on_device != 0;
  return vote;
}

Status describe_difference(const CallFacts& mine, const CallFacts& other) {
  if (mine.signature != other.signature || mine.bytes != other.bytes) {
    return describe_mismatch({mine.signature, mine.bytes}, {other.signature, other.bytes});
  }
  if (mine.blocks != other.blocks) return {Code::mismatch, "it has other sizes of blocks"};
  const bool types = mine.type != other.type;
  return {Code::mismatch,
          std::string("it reduces ") + (types ? "another datatype" : "by another operation")};
}

const char* describe(Ballot::Reason reason) {
  using Reason = Ballot::Reason;
  switch (reason) {
    case Reason::none:
      break;
    case Reason::other_call:
      return "it is in another call";
    case Reason::failure:
      return "NCCL has failed there";
    case Reason::given_up:
      return "it was given up with a call of the same processes";
    case Reason::on_host:
      return "its data is not on a device";
    case Reason::library:
      return "NCCL can't be used there";
    case Reason::settings:
      return "SLUICE_TLS, SLUICE_TCP_INTERFACES or SLUICE_TRANSPORT is set there, "
             "which NCCL does not keep to";
    case Reason::memory:
      return "it has no memory on its device for data that is not dense there";
    case Reason::busy:
      return "NCCL is busy there with another communicator, or has as many as it may";
    case Reason::version:
      return "it has another version of NCCL";
    case Reason::shared_device:
      return "it shares its device with another rank, and NCCL needs one for each";
    case Reason::starting:
      return "NCCL is being started there";
    case Reason::no_group:
      return "NCCL has not been started there";
  }
  return "";
}

Ballot count_votes(std::span<const Vote> votes) {
  using Reason = Ballot::Reason;
  Ballot ballot;
  const auto holds = [&](size_t rank, Reason reason) {
    if (rank == votes.size()) return false;
    ballot.rank = static_cast<Rank>(rank);
    ballot.reason = reason;
    return true;
  };
  const auto lacks = [](auto... what) {
    return [=](const Vote& vote) { return ((vote.lack == what) || ...); };
  };
  const auto first = [&](auto predicate) { return first_that(votes, predicate); };
  using Lack = Vote::Lack;

  const auto is_other = [&](const Vote& vote) { return !vote.is_about_the_same_call(votes[0]); };
  if (holds(first(is_other), Reason::other_call)) {
    ballot.result = Ballot::Result::mismatch;
    return ballot;
  }
  const auto is_on_host = [](const Vote& vote) { return !vote.on_device; };
  const auto on_host = static_cast<size_t>(std::ranges::count_if(votes, is_on_host));
  ballot.all_on_device = on_host == 0;
  ballot.shares_group = votes[0].group != 0 && first([&](const Vote& vote) {
                                                 return vote.group != votes[0].group;
                                               }) == votes.size();
  // (A rank that has given it up has done so because of another one, mostly.)
  ballot.has_failed = first(lacks(Lack::failure, Lack::given_up)) < votes.size();
  if (holds(first(lacks(Lack::failure)), Reason::failure)) return ballot;
  if (holds(first(lacks(Lack::given_up)), Reason::given_up)) return ballot;
  if (2 * on_host >= votes.size() && holds(first(is_on_host), Reason::on_host)) {
    return ballot;
  }
  const size_t unable = first(lacks(Lack::library, Lack::settings, Lack::memory, Lack::busy));
  if (unable < votes.size()) {
    holds(unable, reason_of(votes[unable].lack));
    return ballot;
  }
  const auto is_newer = [&](const Vote& vote) { return vote.version != votes[0].version; };
  if (holds(first(is_newer), Reason::version)) return ballot;
  if (!ballot.shares_group && holds(first_on_shared_device(votes), Reason::shared_device)) {
    return ballot;
  }
  ballot.could_start = ballot.all_on_device;
  const size_t late = first(lacks(Lack::start));
  ballot.is_starting = late < votes.size();
  if (holds(late, Reason::starting)) return ballot;
  if (ballot.shares_group) {
    ballot.result = Ballot::Result::go;
  } else {
    ballot.reason = Reason::no_group;
  }
  return ballot;
}

bool Announced::is_news(const Ballot& ballot) {
  const bool counts = ballot.has_failed || (ballot.all_on_device && !ballot.could_start &&
                                            ballot.result != Ballot::Result::go);
  const uint32_t bit = 1U << static_cast<unsigned>(ballot.reason);
  const bool is_news = counts && (reasons_ & bit) == 0;
  if (is_news) reasons_ |= bit;
  return is_news;
}

bool VoteSchedule::is_due() {
  if (stage_ == Stage::failed || ++calls_ < next_) return false;
  switch (stage_) {
    case Stage::watching:
      next_ += std::min(next_, longest_gap);
      break;
    case Stage::starting:
      next_ += gap_at_start;
      break;
    case Stage::ready:
      next_ += 1;
      break;
    case Stage::failed:
      break;
  }
  return true;
}

void VoteSchedule::enter(Stage stage) {
  stage_ = stage;
  calls_ = in_a_row_ = 0;
  next_ = 1;
}

VoteSchedule::Action VoteSchedule::learn(const Ballot& ballot) {
  if (ballot.has_failed) {
    enter(Stage::failed);
    return Action::give_up;
  }
  switch (stage_) {
    case Stage::watching:
      return watch(ballot);
    case Stage::starting:
    case Stage::ready:
      if (ballot.result != Ballot::Result::go) return refuse(ballot);
      if (stage_ == Stage::starting) enter(Stage::ready);
      in_a_row_ = 0;
      return Action::run;
    case Stage::failed:
      break;
  }
  return Action::carry_on;
}

VoteSchedule::Action VoteSchedule::watch(const Ballot& ballot) {
  in_a_row_ = ballot.could_start ? in_a_row_ + 1 : 0;
  if (in_a_row_ < enough) return Action::carry_on;
  enter(Stage::starting);
  return Action::start;
}

// NCCL's communicator stays, for when buffers are on devices again.
VoteSchedule::Action VoteSchedule::refuse(const Ballot& ballot) {
  if (stage_ == Stage::starting && ballot.is_starting) return Action::carry_on;
  if (++in_a_row_ >= most_refusals) enter(Stage::watching);
  return Action::carry_on;
}

}  // namespace sluice
