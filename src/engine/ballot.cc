// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/ballot.h"

#include <algorithm>

namespace sluice {
namespace {

using Next = Finding::Next;

// The votes about one carrier.
class Votes {
 public:
  Votes(std::span<const Vote> all, Carrier carrier) : all_(all), carrier_(carrier) {}

  size_t size() const { return all_.size(); }
  const Vote& operator[](size_t rank) const { return all_[rank]; }
  const Ability& ability(size_t rank) const { return all_[rank].by(carrier_); }

  // The first rank of which the predicate holds; size() if there is none.
  template <typename Predicate>
  size_t first(const Predicate& predicate) const {
    size_t rank = 0;
    while (rank < size() && !predicate(ability(rank))) ++rank;
    return rank;
  }
  // The first rank with one of these.
  size_t first_with(std::initializer_list<Lack> lacks) const {
    return first([&](const Ability& one) { return std::ranges::count(lacks, one.lack) > 0; });
  }
  // The first rank that shares its device with a lower one.
  size_t first_on_shared_device() const {
    for (size_t i = 1; i < size(); ++i) {
      const auto shares = [&](const Vote& vote) { return vote.device == all_[i].device; };
      if (std::ranges::any_of(all_.first(i), shares)) return i;
    }
    return size();
  }

 private:
  const std::span<const Vote> all_;
  const Carrier carrier_;
};

bool is_elsewhere(const Ability& ability) { return ability.data == Ability::Data::elsewhere; }

// Sets what is found if there is such a rank.
bool conclude(const Votes& votes, size_t rank, Next next, Lack lack, Finding* finding) {
  if (rank == votes.size()) return false;
  finding->next = next;
  finding->lack = lack;
  finding->rank = static_cast<Rank>(rank);
  return true;
}

bool stay(const Votes& votes, size_t rank, Finding* finding) {
  if (rank == votes.size()) return false;
  return conclude(votes, rank, Next::stay, votes.ability(rank).lack, finding);
}

Finding judge_ipc(const Votes& votes, std::span<const Vote> all, const Question& question) {
  Finding finding;
  const auto lacks = [](const Ability& ability) { return ability.lack != Lack::nothing; };
  if (stay(votes, votes.first(lacks), &finding)) return finding;
  if (std::ranges::max(all, {}, &Vote::bytes).bytes < question.least) {
    (void)conclude(votes, 0, Next::stay, Lack::small, &finding);
    return finding;
  }
  const auto slab = [](const Vote& vote) { return vote.by(Carrier::ipc).group; };
  const bool is_connected = std::ranges::equal(all, question.connected, {}, slab);
  finding.next = is_connected ? Next::go : Next::connect;
  return finding;
}

// (A rank that has given NCCL up has done so because of another one, mostly. Most ranks' data must
// lie on devices; that of the others goes through scratch there.)
Finding judge_nccl(const Votes& votes) {
  Finding finding;
  const Ability& leader = votes.ability(0);
  const auto has_other_group = [&](const Ability& one) { return one.group != leader.group; };
  const auto is_newer = [&](const Ability& one) { return one.version != leader.version; };
  size_t elsewhere = 0;
  for (size_t rank = 0; rank < votes.size(); ++rank) elsewhere += is_elsewhere(votes.ability(rank));
  finding.all_on_device = elsewhere == 0;
  finding.shares_group = leader.group != 0 && votes.first(has_other_group) == votes.size();
  for (const Lack lack : {Lack::failed, Lack::given_up}) {
    if (conclude(votes, votes.first_with({lack}), Next::never, lack, &finding)) return finding;
  }
  if (2 * elsewhere >= votes.size()) {
    (void)conclude(votes, votes.first(is_elsewhere), Next::stay, Lack::on_host, &finding);
    return finding;
  }
  const auto cannot = [](const Ability& one) {
    return one.lack != Lack::nothing && one.lack != Lack::starting;
  };
  if (stay(votes, votes.first(cannot), &finding)) return finding;
  if (conclude(votes, votes.first(is_newer), Next::stay, Lack::version, &finding)) return finding;
  const size_t second = finding.shares_group ? votes.size() : votes.first_on_shared_device();
  if (conclude(votes, second, Next::stay, Lack::shared_device, &finding)) return finding;
  if (stay(votes, votes.first_with({Lack::starting}), &finding)) return finding;
  finding.next = finding.shares_group ? Next::go : Next::start;
  if (!finding.shares_group) finding.lack = Lack::not_started;
  return finding;
}

}  // namespace

Ballot count_votes(std::span<const Vote> votes, const Question& question) {
  Ballot ballot;
  const auto is_other = [&](const Vote& vote) { return vote.facts != votes[0].facts; };
  ballot.is_mismatch = std::ranges::any_of(votes, is_other);
  if (ballot.is_mismatch) return ballot;
  ballot.longest = std::ranges::max(votes, {}, &Vote::longest).longest;
  const auto asked = [&](Carrier carrier) { return question.asked[static_cast<size_t>(carrier)]; };
  if (asked(Carrier::ipc)) {
    ballot.findings[0] = judge_ipc({votes, Carrier::ipc}, votes, question);
  }
  if (asked(Carrier::nccl)) ballot.findings[1] = judge_nccl({votes, Carrier::nccl});
  return ballot;
}

}  // namespace sluice
