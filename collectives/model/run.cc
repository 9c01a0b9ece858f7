// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "collectives/model/parts.h"

namespace sluice {

namespace {

// The elements of a block, by the table in plan.h.
size_t elements_of(const PlanSet& set, const Counts& counts, Rank rank, Area area, uint32_t block) {
  if (counts.size() == 1) return counts[0];
  switch (set.collective) {
    case Collective::alltoall:
    case Collective::alltoallv:
      return area == Area::input ? counts[size_t{rank} * set.size() + block]
                                 : counts[size_t{block} * set.size() + rank];
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::gather:
    case Collective::gatherv:
    case Collective::scatter:
    case Collective::scatterv:
    case Collective::reduce_scatter:
      return counts[block == whole ? rank : block];
    default:
      return counts[0];
  }
}

}  // namespace

MemoryMap::MemoryMap(const PlanSet& set, Rank rank, const Counts& counts, bool aliased) {
  add_blocks(set, rank, counts, Area::output);
  if (aliased && may_alias(set, rank)) {
    const uint32_t block = alias_of(set.collective, rank).block;
    blocks_[static_cast<int>(Area::input)] = {blocks(Area::output)[block == whole ? 0 : block]};
  } else {
    add_blocks(set, rank, counts, Area::input);
  }
  for (const Piece& like : set.plans[rank].scratch) {
    const size_t count = resolve(like).count;
    blocks_[static_cast<int>(Area::scratch)].push_back({size_, count});
    size_ += count;
    scratch_ += count;
  }
}

void MemoryMap::add_blocks(const PlanSet& set, Rank rank, const Counts& counts, Area area) {
  const auto add = [&](uint32_t block) {
    const size_t count = elements_of(set, counts, rank, area, block);
    blocks_[static_cast<int>(area)].push_back({size_, count});
    size_ += count;
  };
  const Extent extent = extent_of(set, rank, area);
  if (extent == Extent::whole) add(whole);
  for (uint32_t block = 0; extent == Extent::blocks && block < set.size(); ++block) add(block);
}

Range MemoryMap::resolve(const Piece& piece) const {
  const Range& block = blocks(piece.area)[piece.block == whole ? 0 : piece.block];
  const Range range = cut(block.count, piece.part);
  return {block.first + range.first, range.count};
}

size_t MemoryMap::elements(Pieces pieces) const {
  size_t sum = 0;
  for (const Piece& piece : pieces) sum += resolve(piece).count;
  return sum;
}

std::vector<MemoryMap> memory_maps(const PlanSet& set, const Counts& counts, bool aliased) {
  std::vector<MemoryMap> maps;
  for (Rank rank = 0; rank < set.size(); ++rank) maps.emplace_back(set, rank, counts, aliased);
  return maps;
}

namespace {

// All ranks' memory, and what steps do to it.
class Run {
 public:
  Run(const PlanSet& set, const Partners& partners, std::vector<MemoryMap> maps, Outcome& outcome)
      : set_(set), partners_(partners), maps_(std::move(maps)), outcome_(outcome) {
    for (Rank rank = 0; rank < set.size(); ++rank) {
      memory_.emplace_back(maps_[rank].size(), Expressions::nothing);
      operands_.emplace_back(set.plans[rank].steps.size());
      fill_source(rank);
    }
  }

  size_t elements(const StepAt& at) const {
    const Step& step = step_at(at);
    return maps_[at.rank].elements(
        set_.plans[at.rank].of(step.kind == Kind::send ? step.from : step.to));
  }

  void perform(const StepAt& at, size_t first, size_t count) {
    const Step& step = step_at(at);
    const Operands& mine = operands(at);
    switch (step.kind) {
      case Kind::send:
        receive({step.peer, partners_[at.rank][at.step]}, read(at, mine.from, first, count), first);
        break;
      case Kind::reduce:
        write(at, combined(read(at, mine.from, first, count), read(at, mine.with, first, count)),
              first);
        break;
      case Kind::copy:
        write(at, read(at, mine.from, first, count), first);
        break;
      default:  // receives are performed with their sends
        break;
    }
    release(at, count);
  }

  void collect() {
    for (Rank rank = 0; rank < set_.size(); ++rank) {
      auto& blocks = outcome_.output.emplace_back();
      for (const Range& range : maps_[rank].blocks(Area::output)) {
        const auto begin = memory_[rank].begin() + static_cast<ptrdiff_t>(range.first);
        blocks.emplace_back(begin, begin + static_cast<ptrdiff_t>(range.count));
      }
    }
  }

 private:
  using Values = std::vector<Expression>;
  using Addresses = std::vector<uint32_t>;  // of elements
  struct Operands {
    Addresses from, with, to;
    size_t left = 0;  // elements still to be performed
  };

  const Step& step_at(const StepAt& at) const { return set_.plans[at.rank].steps[at.step]; }

  // The resolved operands of a step, kept from its first segment to its last.
  const Operands& operands(const StepAt& at) {
    Operands& operands = operands_[at.rank][at.step];
    if (operands.left == 0) {
      const Plan& plan = set_.plans[at.rank];
      const Step& step = step_at(at);
      operands.from = addresses(at.rank, plan.of(step.from));
      operands.with = addresses(at.rank, plan.of(step.with));
      operands.to = addresses(at.rank, plan.of(step.to));
      operands.left = elements(at);
    }
    return operands;
  }
  void release(const StepAt& at, size_t count) {
    Operands& operands = operands_[at.rank][at.step];
    operands.left -= count;
    if (operands.left == 0) operands = {};
  }

  // Fills what the rank contributes: its input, or the buffer of a broadcast's root.
  void fill_source(Rank rank) {
    const bool broadcast = set_.collective == Collective::broadcast;
    if (broadcast && rank != set_.root) return;
    uint32_t index = 0;
    for (const Range& range : maps_[rank].blocks(broadcast ? Area::output : Area::input)) {
      for (size_t i = 0; i < range.count; ++i) {
        memory_[rank][range.first + i] = outcome_.expressions.leaf(rank, index++);
      }
    }
  }

  Addresses addresses(Rank rank, Pieces pieces) const {
    Addresses result;
    for (const Piece& piece : pieces) {
      const Range range = maps_[rank].resolve(piece);
      for (size_t i = 0; i < range.count; ++i) {
        result.push_back(static_cast<uint32_t>(range.first + i));
      }
    }
    return result;
  }

  Values read(const StepAt& at, const Addresses& addresses, size_t first, size_t count) {
    Values values(count);
    for (size_t i = 0; i < count; ++i) values[i] = memory_[at.rank][addresses[first + i]];
    if (std::find(values.begin(), values.end(), Expressions::nothing) != values.end()) {
      add_fault(outcome_.faults, describe(set_, at) + " reads memory that was never written");
    }
    return values;
  }

  void write(const StepAt& at, const Values& values, size_t first) {
    const Addresses& to = operands(at).to;
    for (size_t i = 0; i < values.size(); ++i) memory_[at.rank][to[first + i]] = values[i];
  }

  void receive(const StepAt& at, const Values& received, size_t first) {
    const Step& step = step_at(at);
    if (step.kind == Kind::recv_reduce) {
      const Values own = read(at, operands(at).from, first, received.size());
      write(at, step.received_first ? combined(received, own) : combined(own, received), first);
    } else {
      write(at, received, first);
    }
    release(at, received.size());
  }

  Values combined(Values left, const Values& right) {
    for (size_t i = 0; i < left.size(); ++i) {
      const bool both = left[i] != Expressions::nothing && right[i] != Expressions::nothing;
      left[i] = both ? outcome_.expressions.combine(left[i], right[i]) : Expressions::nothing;
    }
    return left;
  }

  const PlanSet& set_;
  const Partners& partners_;
  const std::vector<MemoryMap> maps_;
  Outcome& outcome_;
  std::vector<Values> memory_;                   // by rank
  std::vector<std::vector<Operands>> operands_;  // by rank and step
};

// Checks that all ranks end with what the collective promises.
class Judge {
 public:
  Judge(const PlanSet& set, const Counts& counts, Outcome& outcome)
      : set_(set), outcome_(outcome), maps_(memory_maps(set, counts, false)) {}

  void judge() {
    for (Rank rank = 0; rank < set_.size(); ++rank) {
      for (uint32_t block = 0; block < outcome_.output[rank].size(); ++block) {
        for (uint32_t i = 0; i < outcome_.output[rank][block].size(); ++i) {
          const std::string wrong = is_reducing(set_.collective) ? wrong_sum(rank, block, i)
                                                                 : wrong_source(rank, block, i);
          if (!wrong.empty()) blame(rank, block, i, wrong);
        }
      }
    }
  }

 private:
  void blame(Rank rank, uint32_t block, uint32_t i, const std::string& wrong) {
    add_fault(outcome_.faults, "rank " + std::to_string(rank) + " ends with " +
                                   outcome_.expressions.to_string(got(rank, block, i)) +
                                   " in element " + std::to_string(i) + " of block " +
                                   std::to_string(block) + " of its output: " + wrong);
  }

  Expression got(Rank rank, uint32_t block, uint32_t i) const {
    return outcome_.output[rank][block][i];
  }

  std::string wrong_sum(Rank rank, uint32_t block, uint32_t i) const {
    const Expressions& all = outcome_.expressions;
    const Expression result = got(rank, block, i);
    if (set_.collective == Collective::allreduce && rank > 0) {
      return result == got(0, block, i) ? "" : "rank 0 has " + all.to_string(got(0, block, i));
    }
    const Rank ranks = operands_of(set_.collective, rank, set_.size());
    if (!all.is_complete(result, ranks)) return miscounted(result, ranks);
    if (set_.in_order && !all.is_in_order(result, ranks)) return "not in the order of ranks";
    if (set_.balanced && !all.is_balanced(result, ranks)) return "not by the balanced tree";
    size_t index = i;
    if (set_.collective == Collective::reduce_scatter) {
      index +=
          maps_[rank].blocks(Area::input)[rank].first - maps_[rank].blocks(Area::input)[0].first;
    }
    return all.index(result) == index ? "" : "of other elements than " + std::to_string(index);
  }

  std::string miscounted(Expression result, Rank ranks) const {
    std::vector<uint32_t> times(set_.size(), 0);
    for (Rank rank : outcome_.expressions.ranks(result, 2 * set_.size())) ++times[rank];
    for (Rank rank = 0; rank < set_.size(); ++rank) {
      if (rank < ranks && times[rank] == 0) return "rank " + std::to_string(rank) + " is missing";
      if (rank >= ranks && times[rank] > 0) return "rank " + std::to_string(rank) + " is too many";
    }
    return "a rank counts more than once";
  }

  // For collectives that only move data: checks the rank and the index of the input element.
  std::string wrong_source(Rank rank, uint32_t block, uint32_t i) const {
    const Rank source = comes_from_root() ? set_.root : block;
    size_t index = i;
    if (extent_of(set_, source, Area::input) == Extent::blocks) {
      const auto& blocks = maps_[source].blocks(Area::input);
      index += blocks[rank].first - blocks[0].first;
    }
    const Expressions& all = outcome_.expressions;
    const Expression result = got(rank, block, i);
    if (result == Expressions::nothing || !all.is_leaf(result) || all.rank(result) != source) {
      return "not from rank " + std::to_string(source);
    }
    return all.index(result) == index ? "" : "element " + std::to_string(all.index(result));
  }

  bool comes_from_root() const {
    return set_.collective == Collective::broadcast || set_.collective == Collective::scatter ||
           set_.collective == Collective::scatterv;
  }

  const PlanSet& set_;
  Outcome& outcome_;
  const std::vector<MemoryMap> maps_;
};

}  // namespace

Outcome Model::run(const Counts& counts, const RunOptions& options) const {
  Outcome outcome;
  Run run(set_, partners_, memory_maps(set_, counts, options.aliased), outcome);
  if (options.segment == 0) {
    for (const StepAt& at : sequence_) {
      if (const size_t all = run.elements(at)) run.perform(at, 0, all);
    }
  } else {
    Segments segments(set_.size());
    for (Rank rank = 0; rank < set_.size(); ++rank) {
      const std::vector<Step>& steps = set_.plans[rank].steps;
      for (StepId id = 0; id < steps.size(); ++id) {
        const size_t elements = run.elements({rank, id});
        const size_t pieces = (elements + options.segment - 1) / options.segment;
        segments[rank].push_back(is_token(steps[id]) ? 1 : static_cast<uint32_t>(pieces));
      }
    }
    std::mt19937_64 random(options.seed);
    for (const Unit& unit : schedule(set_, partners_, segments, &random, outcome.faults)) {
      const size_t first = unit.segment * options.segment, all = run.elements(unit.at);
      if (first < all) run.perform(unit.at, first, std::min(options.segment, all - first));
    }
  }
  run.collect();
  Judge(set_, counts, outcome).judge();
  return outcome;
}

}  // namespace sluice
