// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "collectives/model/parts.h"

namespace sluice {

Extent extent_of(const PlanSet& set, Rank rank, Area area) {
  const bool input = area == Area::input;
  switch (set.collective) {
    case Collective::allreduce:
      return Extent::whole;
    case Collective::reduce:
      return input || rank == set.root ? Extent::whole : Extent::none;
    case Collective::scan:
      return Extent::whole;
    case Collective::exscan:
      return input || rank > 0 ? Extent::whole : Extent::none;
    case Collective::broadcast:
      return input ? Extent::none : Extent::whole;
    case Collective::allgather:
    case Collective::allgatherv:
      return input ? Extent::whole : Extent::blocks;
    case Collective::gather:
    case Collective::gatherv:
      if (input) return Extent::whole;
      return rank == set.root ? Extent::blocks : Extent::none;
    case Collective::scatter:
    case Collective::scatterv:
      if (!input) return Extent::whole;
      return rank == set.root ? Extent::blocks : Extent::none;
    case Collective::reduce_scatter:
      return input ? Extent::blocks : Extent::whole;
    case Collective::alltoall:
    case Collective::alltoallv:
      return Extent::blocks;
    case Collective::barrier:
      return Extent::none;
  }
  return Extent::none;
}

bool may_alias(const PlanSet& set, Rank rank) {
  return alias_of(set.collective, rank).possible &&
         extent_of(set, rank, Area::output) != Extent::none;
}

namespace {

// Finds what is wrong with one step by itself; null if nothing.
class StepCheck {
 public:
  StepCheck(const PlanSet& set, Rank rank) : set_(set), rank_(rank), plan_(set.plans[rank]) {}

  const char* fault(StepId id) const {
    const Step& step = plan_.steps[id];
    for (const Slice& slice : {step.from, step.with, step.to}) {
      if (size_t{slice.first} + slice.count > plan_.pieces.size()) return "has a slice of nothing";
      for (const Piece& piece : plan_.of(slice)) {
        if (!exists(piece)) return "names memory that does not exist";
      }
    }
    for (const Piece& piece : plan_.of(step.to)) {
      if (piece.area == Area::input) return "writes to input";
    }
    if (const char* wrong = wrong_operands(step)) return wrong;
    if (const char* wrong = wrong_waits(id)) return wrong;
    return is_message(step) ? wrong_peer(step) : nullptr;
  }

  bool exists(const Piece& piece) const {
    const Part& part = piece.part;
    if (part.begin >= part.end || part.end > part.of) return false;
    if (piece.area == Area::scratch) return piece.block < plan_.scratch.size();
    const Extent extent = extent_of(set_, rank_, piece.area);
    if (extent == Extent::none) return false;
    return extent == Extent::whole ? piece.block == whole : piece.block < set_.size();
  }

 private:
  static const char* wrong_operands(const Step& step) {
    const bool from = step.from.count > 0, with = step.with.count > 0, to = step.to.count > 0;
    switch (step.kind) {
      case Kind::send:
        return with || to ? "has more than what it sends" : nullptr;
      case Kind::recv:
        return from || with ? "has more than where it receives" : nullptr;
      case Kind::recv_reduce:
        return !from || with || !to ? "needs an operand and a place for the result" : nullptr;
      case Kind::reduce:
        return !from || !with || !to ? "needs two operands and a place for the result" : nullptr;
      case Kind::copy:
        return from != to || with ? "needs as much to copy as where to" : nullptr;
    }
    return "is of no known kind";
  }

  const char* wrong_peer(const Step& step) const {
    if (step.peer >= set_.size()) return "has a peer out of range";
    return step.peer == rank_ ? "is a message to itself" : nullptr;
  }

  const char* wrong_waits(StepId id) const {
    const Step& step = plan_.steps[id];
    if (size_t{step.first_after} + step.after_count > plan_.after.size()) {
      return "waits for what is not in the plan";
    }
    for (const After& after : plan_.after_of(step)) {
      if (after.step >= id) return "waits for a step that is not an earlier one";
    }
    return nullptr;
  }

  const PlanSet& set_;
  const Rank rank_;
  const Plan& plan_;
};

}  // namespace

void check_steps(const PlanSet& set, Faults& faults) {
  for (Rank rank = 0; rank < set.size(); ++rank) {
    const StepCheck check(set, rank);
    for (const Piece& like : set.plans[rank].scratch) {
      if (like.area == Area::scratch || !check.exists(like)) {
        add_fault(faults, "rank " + std::to_string(rank) +
                              " has scratch as large as something that does not exist");
      }
    }
    for (StepId id = 0; id < set.plans[rank].steps.size(); ++id) {
      if (const char* fault = check.fault(id)) {
        add_fault(faults, describe(set, {rank, id}) + " " + fault);
      }
    }
  }
}

namespace {

// A set of earlier steps for each step.
class StepSets {
 public:
  explicit StepSets(size_t steps) : words_((steps + 63) / 64), bits_(steps * words_) {}

  bool has(StepId step, StepId earlier) const {
    return bits_[step * words_ + earlier / 64] >> earlier % 64 & 1;
  }
  void add(StepId step, StepId earlier) {
    bits_[step * words_ + earlier / 64] |= uint64_t{1} << earlier % 64;
  }
  void add_all(StepId step, const StepSets& sets, StepId other) {
    for (size_t i = 0; i < words_; ++i) bits_[step * words_ + i] |= sets.bits_[other * words_ + i];
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

// One rank's plan: which steps touch the same memory, and which are ordered.
class MemoryOrder {
 public:
  MemoryOrder(const PlanSet& set, Rank rank, Faults& faults)
      : set_(set),
        rank_(rank),
        plan_(set.plans[rank]),
        faults_(faults),
        done_(plan_.steps.size()),
        done_whole_(plan_.steps.size()) {}

  void check() {
    find_uses();
    find_conflicts();
    find_reach();
    for (const auto& [pair, same_slice] : conflicts_) {
      const auto earlier = static_cast<StepId>(pair), later = static_cast<StepId>(pair >> 32);
      if (!(same_slice ? done_ : done_whole_).has(later, earlier)) {
        fault(later, "is not ordered after " + describe(set_, {rank_, earlier}) +
                         ", which touches the same memory");
      }
    }
    for (StepId id = 0; id < steps(); ++id) check_pipelined(id);
  }

 private:
  struct Use {
    Piece piece;
    StepId step;
    uint32_t slice;
    bool writes;
  };

  size_t steps() const { return plan_.steps.size(); }

  void fault(StepId step, const std::string& text) {
    add_fault(faults_, describe(set_, {rank_, step}) + " " + text);
  }

  void find_uses() {
    for (StepId id = 0; id < steps(); ++id) {
      add_uses(id, plan_.steps[id].from, false);
      add_uses(id, plan_.steps[id].with, false);
      add_uses(id, plan_.steps[id].to, true);
    }
    std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
      const auto key = [](const Use& use) { return std::tuple(use.piece.area, use.piece.block); };
      return key(a) != key(b) ? key(a) < key(b) : begin(a) < begin(b);
    });
  }

  void add_uses(StepId id, const Slice& slice, bool writes) {
    if (slice.count == 0) return;
    const Pieces pieces = plan_.of(slice);
    std::vector<Piece> canonical(pieces.begin(), pieces.end());
    for (Piece& piece : canonical) make_canonical(piece);
    const auto number = static_cast<uint32_t>(slices_.size());
    const uint32_t slice_number = slices_.emplace(key(canonical), number).first->second;
    for (const Piece& piece : canonical) uses_.push_back({piece, id, slice_number, writes});
  }

  // Replaces input by the output that it may share memory with, and reduces fractions to lowest
  // terms.
  void make_canonical(Piece& piece) const {
    if (piece.area == Area::input && may_alias(set_, rank_)) {
      piece.area = Area::output;
      piece.block = alias_of(set_.collective, rank_).block;
    }
    Part& part = piece.part;
    const uint32_t divisor = std::gcd(std::gcd(part.begin, part.end), part.of);
    part = {part.begin / divisor, part.end / divisor, part.of / divisor};
  }

  static std::vector<uint32_t> key(Pieces pieces) {
    std::vector<uint32_t> words;
    for (const Piece& piece : pieces) {
      words.insert(words.end(), {static_cast<uint32_t>(piece.area), piece.block, piece.part.begin,
                                 piece.part.end, piece.part.of});
    }
    return words;
  }

  struct Point {
    uint64_t numerator, denominator;
    bool operator<(const Point& other) const {
      return numerator * other.denominator < other.numerator * denominator;
    }
  };
  static Point begin(const Use& use) { return {use.piece.part.begin, use.piece.part.of}; }
  static Point end(const Use& use) { return {use.piece.part.end, use.piece.part.of}; }

  void find_conflicts() {
    for (auto a = uses_.begin(); a != uses_.end(); ++a) {
      for (auto b = a + 1; b != uses_.end() && b->piece.area == a->piece.area &&
                           b->piece.block == a->piece.block && begin(*b) < end(*a);
           ++b) {
        if (a->writes || b->writes) add_conflict(*a, *b);
      }
    }
  }

  void add_conflict(const Use& a, const Use& b) {
    if (a.step == b.step) {
      if (a.writes && b.writes) {
        fault(a.step, "writes the same memory twice");
      } else if (a.slice != b.slice) {
        fault(a.step, "reads what it overwrites, and not as the same slice");
      }
      return;
    }
    const auto [earlier, later] = std::minmax(a.step, b.step);
    const auto [known, fresh] = conflicts_.emplace(uint64_t{later} << 32 | earlier, true);
    known->second &= a.slice == b.slice;
  }

  // Finds which steps are done, whole or at least in the same segment, before a segment of a step
  // starts.
  void find_reach() {
    for (StepId id = 0; id < steps(); ++id) {
      for (const After& after : plan_.after_of(plan_.steps[id])) {
        done_.add(id, after.step);
        done_.add_all(id, done_, after.step);
        if (after.pipelined) {
          done_whole_.add_all(id, done_whole_, after.step);
        } else {
          done_whole_.add(id, after.step);
          done_whole_.add_all(id, done_, after.step);
        }
      }
    }
  }

  void check_pipelined(StepId id) {
    for (const After& after : plan_.after_of(plan_.steps[id])) {
      const auto conflict = conflicts_.find(uint64_t{id} << 32 | after.step);
      if (!after.pipelined || (conflict != conflicts_.end() && conflict->second)) continue;
      fault(id, "is pipelined behind " + describe(set_, {rank_, after.step}) +
                    ", but they do not use the same slice");
    }
  }

  const PlanSet& set_;
  const Rank rank_;
  const Plan& plan_;
  Faults& faults_;
  std::map<std::vector<uint32_t>, uint32_t> slices_;
  std::vector<Use> uses_;
  std::unordered_map<uint64_t, bool> conflicts_;  // later << 32 | earlier: same slice only
  StepSets done_, done_whole_;
};

}  // namespace

void check_memory_order(const PlanSet& set, Faults& faults) {
  for (Rank rank = 0; rank < set.size(); ++rank) MemoryOrder(set, rank, faults).check();
}

}  // namespace sluice
