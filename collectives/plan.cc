// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

namespace sluice {

Range cut(size_t n, const Part& part) {
  // n * begin may overflow; its quotient and remainder by `of` do not.
  const auto floor_of = [&](uint64_t numerator) {
    return n / part.of * numerator + n % part.of * numerator / part.of;
  };
  const size_t first = floor_of(part.begin);
  return {first, floor_of(part.end) - first};
}

namespace {

// A point within a block.
struct Fraction {
  uint32_t numerator, denominator;
};
bool operator<(const Fraction& a, const Fraction& b) {
  return uint64_t{a.numerator} * b.denominator < uint64_t{b.numerator} * a.denominator;
}

// A step's access to a piece of a slice. Equal slices have equal numbers.
struct Access {
  StepId step;
  uint32_t slice;
};
constexpr StepId nobody = std::numeric_limits<StepId>::max();

// The last users of a block: for each stretch of it that they used alike, the last writer and the
// readers since.
class BlockHistory {
 public:
  template <typename Visit>  // void(const Access& earlier, bool wrote)
  void read(const Part& part, const Access& access, Visit visit) {
    const auto [first, last] = stretches(part);
    for (auto it = first; it != last; ++it) {
      if (it->second.writer.step != nobody) visit(it->second.writer, true);
      it->second.readers.push_back(access);
    }
  }

  template <typename Visit>
  void write(const Part& part, const Access& access, Visit visit) {
    const auto [first, last] = stretches(part);
    for (auto it = first; it != last; ++it) {
      if (it->second.writer.step != nobody) visit(it->second.writer, true);
      for (const Access& reader : it->second.readers) visit(reader, false);
    }
    // Later steps wait for this writer, and through it for all before.
    first->second = {access, {}};
    stretches_.erase(std::next(first), last);
  }

 private:
  struct Users {
    Access writer{nobody, 0};
    std::vector<Access> readers;
  };
  using Stretches = std::map<Fraction, Users>;  // by begin; each ends where the next begins

  std::pair<Stretches::iterator, Stretches::iterator> stretches(const Part& part) {
    const auto first = split({part.begin, part.of});
    const auto last = part.end == part.of ? stretches_.end() : split({part.end, part.of});
    return {first, last};
  }

  Stretches::iterator split(const Fraction& at) {
    const auto next = stretches_.lower_bound(at);
    if (next != stretches_.end() && !(at < next->first)) return next;
    return stretches_.emplace_hint(next, at, std::prev(next)->second);
  }

  Stretches stretches_{{Fraction{0, 1}, Users{}}};
};

// Gives equal slices the same number, after aliases are resolved.
class SliceNumbers {
 public:
  uint32_t number(std::vector<Piece> pieces) {
    const auto [begin, end] = by_hash_.equal_range(hash(pieces));
    for (auto it = begin; it != end; ++it) {
      if (slices_[it->second] == pieces) return it->second;
    }
    const auto fresh = static_cast<uint32_t>(slices_.size());
    by_hash_.emplace(hash(pieces), fresh);
    slices_.push_back(std::move(pieces));
    return fresh;
  }

  Pieces pieces(uint32_t slice) const { return slices_[slice]; }

 private:
  static uint64_t hash(Pieces pieces) {
    uint64_t h = pieces.size();
    for (const Piece& piece : pieces) {
      for (uint64_t word :
           {uint64_t{piece.block} << 2 | static_cast<uint64_t>(piece.area),
            uint64_t{piece.part.begin} << 32 | piece.part.end, uint64_t{piece.part.of}}) {
        h = (h ^ word) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
      }
    }
    return h;
  }

  std::vector<std::vector<Piece>> slices_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

// Finds what each step waits for, in program order, and writes it into the plan.
class Dependencies {
 public:
  Dependencies(Plan& plan, PlanBuilder::Alias alias) : plan_(plan), alias_(alias) {
    place_.resize(plan.steps.size(), none);
    awaited_.resize(plan.steps.size(), false);
  }

  // `ordered`: (later, earlier), sorted.
  void find(const std::vector<std::pair<StepId, StepId>>& ordered) {
    auto order = ordered.begin();
    for (StepId id = 0; id < plan_.steps.size(); ++id) {
      if (plan_.steps[id].is_joint()) {
        join(id);
      } else {
        touch(id);
        respect_joint(id);
      }
      for (; order != ordered.end() && order->first == id; ++order) wait_for(order->second, false);
      drop_implied();
      commit(id);
    }
  }

 private:
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

  void wait_for(StepId earlier, bool pipelined) {
    if (place_[earlier] == none) {
      place_[earlier] = static_cast<uint32_t>(waits_.size());
      waits_.push_back({earlier, pipelined});
    } else {
      waits_[place_[earlier]].pipelined &= pipelined;
    }
  }

  void touch(StepId id) {
    const Step step = plan_.steps[id];
    use(id, step.from, false);
    use(id, step.with, false);
    if (step.kind == Kind::send) return;
    use(id, step.to, true);
    plan_.steps[id].settles = true;
  }

  void use(StepId id, const Slice& slice, bool writes) {
    if (slice.count == 0) return;
    const Access access{id, slices_.number(resolved(slice))};
    const auto conflict = [&](const Access& earlier, bool wrote) {
      if (earlier.step == id) return;
      wait_for(earlier.step, earlier.slice == access.slice);
      if (writes && wrote) plan_.steps[earlier.step].settles = false;
    };
    for (const Piece& piece : slices_.pieces(access.slice)) {
      if (piece.part.begin >= piece.part.end) continue;  // invalid; the model reports it
      BlockHistory& history = history_[{piece.area, piece.block}];
      if (writes) {
        history.write(piece.part, access, conflict);
      } else {
        history.read(piece.part, access, conflict);
      }
    }
  }

  // The slice with input replaced by the output that it may share memory with.
  std::vector<Piece> resolved(const Slice& slice) const {
    const Pieces pieces = plan_.of(slice);
    std::vector<Piece> result(pieces.begin(), pieces.end());
    if (!alias_.possible) return result;
    for (Piece& piece : result) {
      if (piece.area == Area::input) piece = {Area::output, alias_.block, piece.part};
    }
    return result;
  }

  // A joint waits for all steps since the last joint that no other step waits for.
  void join(StepId id) {
    for (StepId earlier = joint_ == none ? 0 : joint_; earlier < id; ++earlier) {
      if (!awaited_[earlier]) wait_for(earlier, false);
    }
    joint_ = id;
  }

  // A step waits for steps before the last joint only through the joint.
  void respect_joint(StepId id) {
    if (joint_ == none) return;
    keep_if([&](const After& wait) { return wait.step >= joint_; });
    if (waits_.empty() && id > joint_) wait_for(joint_, false);
  }

  // Removes waits that follow from other waits: q -> r -> s makes q -> s superfluous, unless s
  // needs all of q and both others are pipelined. Looks only at steps with few waits, to save time.
  void drop_implied() {
    constexpr uint32_t few = 16;
    if (waits_.size() < 2) return;
    std::vector<bool> implied(waits_.size(), false);
    for (const After& last : waits_) {
      const Step& between = plan_.steps[last.step];
      if (between.after_count > few) continue;
      for (const After& first : plan_.after_of(between)) {
        const uint32_t place = place_[first.step];
        if (place == none) continue;
        if (waits_[place].pipelined || !first.pipelined || !last.pipelined) implied[place] = true;
      }
    }
    keep_if([&](const After& wait) { return !implied[place_[wait.step]]; });
  }

  template <typename Keep>  // bool(const After&)
  void keep_if(Keep keep) {
    std::vector<After> kept;
    std::copy_if(waits_.begin(), waits_.end(), std::back_inserter(kept), keep);
    for (const After& wait : waits_) place_[wait.step] = none;
    waits_.clear();
    for (const After& wait : kept) wait_for(wait.step, wait.pipelined);
  }

  void commit(StepId id) {
    std::sort(waits_.begin(), waits_.end(),
              [](const After& a, const After& b) { return a.step < b.step; });
    Step& step = plan_.steps[id];
    step.first_after = static_cast<uint32_t>(plan_.after.size());
    step.after_count = static_cast<uint32_t>(waits_.size());
    for (const After& wait : waits_) {
      plan_.after.push_back(wait);
      place_[wait.step] = none;
      awaited_[wait.step] = true;
    }
    waits_.clear();
  }

  Plan& plan_;
  const PlanBuilder::Alias alias_;
  SliceNumbers slices_;
  std::map<std::pair<Area, uint32_t>, BlockHistory> history_;
  StepId joint_ = none;          // the last joint so far
  std::vector<After> waits_;     // of the current step
  std::vector<uint32_t> place_;  // in waits_, by step
  std::vector<bool> awaited_;    // by step
};

Step make_step(Kind kind) {
  Step step;
  step.kind = kind;
  return step;
}

// The next message with that peer, counted in `counters`.
Step make_message(Kind kind, Rank peer, std::vector<uint32_t>& counters) {
  if (counters.size() <= peer) counters.resize(size_t{peer} + 1, 0);
  Step step = make_step(kind);
  step.peer = peer;
  step.ordinal = counters[peer]++;
  return step;
}

}  // namespace

StepId PlanBuilder::send(Rank peer, Pieces from) {
  return add(make_message(Kind::send, rank_of(peer), sent_), from, {}, {});
}

StepId PlanBuilder::recv(Rank peer, Pieces to) {
  return add(make_message(Kind::recv, rank_of(peer), received_), {}, {}, to);
}

StepId PlanBuilder::recv_reduce(Rank peer, Pieces from, Pieces to, bool received_first) {
  Step step = make_message(Kind::recv_reduce, rank_of(peer), received_);
  step.received_first = received_first;
  return add(step, from, {}, to);
}

StepId PlanBuilder::reduce(Pieces from, Pieces with, Pieces to) {
  return add(make_step(Kind::reduce), from, with, to);
}

StepId PlanBuilder::copy(Pieces from, Pieces to) {
  return add(make_step(Kind::copy), from, {}, to);
}

void PlanBuilder::order(StepId earlier, StepId later) { ordered_.emplace_back(later, earlier); }

void PlanBuilder::fence() { add(make_step(Kind::copy), {}, {}, {}); }

Piece PlanBuilder::scratch(const Piece& like) {
  plan_.scratch.push_back(like.area == Area::scratch ? plan_.scratch[like.block] : like);
  return {Area::scratch, static_cast<uint32_t>(plan_.scratch.size() - 1), {}};
}

StepId PlanBuilder::add(Step step, Pieces from, Pieces with, Pieces to) {
  step.from = pool(from);
  step.with = pool(with);
  step.to = pool(to);
  plan_.steps.push_back(step);
  return static_cast<StepId>(plan_.steps.size() - 1);
}

Slice PlanBuilder::pool(Pieces pieces) {
  const Slice slice{static_cast<uint32_t>(plan_.pieces.size()),
                    static_cast<uint32_t>(pieces.size())};
  plan_.pieces.insert(plan_.pieces.end(), pieces.begin(), pieces.end());
  return slice;
}

Plan PlanBuilder::build() && {
  std::sort(ordered_.begin(), ordered_.end());
  Dependencies(plan_, alias_).find(ordered_);
  return std::move(plan_);
}

}  // namespace sluice
