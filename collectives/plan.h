// SPDX-License-Identifier: BSD-3-Clause
//
// The plan contract: what one rank does in one collective, as a graph of steps over named memory.
//
// A plan contains no addresses and no byte counts. It names memory by Pieces (an area, a block of
// it, a part of that block), which an Execution resolves through the call's counts and
// displacements. So a plan's size depends only on the number of ranks, and one plan serves every
// message size. The Execution also cuts long steps into segments, and runs steps that touch the
// same slice segment behind segment (After), so algorithms are pipelined without code for it.
// (Elsewhere called a schedule: GOAL, Hoefler et al. 2009; libnbc; MSCCL programs.)
//
// Areas and blocks, by collective (p ranks):
//
//   collective       input                        output
//   allreduce        all: the operand             all: the result
//   reduce           all: the operand             all: the result; exists on the root alone
//   scan, exscan     all: the operand             all: the result; exscan: none on rank 0
//   broadcast        (none)                       all: the buffer; the root's holds the data
//   allgather(v)     all: this rank's block       block r: rank r's
//   gather(v)        all: this rank's block       block r: rank r's; exists on the root alone
//   scatter(v)       block r: for rank r; exists  all: this rank's block
//                    on the root alone
//   reduce_scatter   block r: for rank r          all: this rank's block of the result
//   alltoall(v)      block r: for rank r          block r: from rank r
//   barrier          (none)                       (none)
//
// Input and output may be the same memory (MPI_IN_PLACE) in allreduce and scans, in reduce at the
// root, in allgather, where the input is this rank's block of the output, and in gather at the root
// likewise. In scatter the root's output may be its block of the input, which the root's plan does
// nothing with but copy it there. In reduce_scatter and alltoall they never overlap: the caller
// copies the input elsewhere first. A plan never writes to input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace sluice {

using Rank = uint32_t;

enum class Kind : uint8_t {
  send,         // from -> the peer
  recv,         // the peer -> to
  recv_reduce,  // to = from (op) received, or received (op) from: see Step::received_first
  reduce,       // to = from (op) with
  copy,         // to = from; no work if both are the same memory; see Step::is_joint
};

enum class Area : uint8_t { input, output, scratch };

// The whole of an area that has no blocks (see the table above).
inline constexpr uint32_t whole = std::numeric_limits<uint32_t>::max();

// Where an area's blocks are in memory, which is dense in elements of one size.
struct Blocks {
  std::byte* base = nullptr;
  size_t count = 0;                 // elements of the whole, or of each block if blocks are uniform
  std::span<const size_t> counts;   // ragged blocks: elements of each
  std::span<const size_t> offsets;  // and where each begins, in elements from base
};

// The fraction [begin/of, end/of) of a block, cut between elements: of n elements, those from
// floor(n * begin / of) up to floor(n * end / of). The fraction is never empty (begin < end <= of),
// but it may contain no element if the block has few.
struct Part {
  uint32_t begin = 0;
  uint32_t end = 1;
  uint32_t of = 1;
  bool operator==(const Part&) const = default;
};

// The elements of a part of a block of n: index of the first, and how many.
struct Range {
  size_t first;
  size_t count;
};
Range cut(size_t n, const Part& part);

// A run of memory. In scratch, `block` is an index in Plan::scratch.
struct Piece {
  Area area = Area::output;
  uint32_t block = whole;
  Part part{};
  bool operator==(const Piece&) const = default;
};

// Consecutive pieces of a plan's pool, which together are one message or operand. A slice without
// pieces makes a token: a message without payload that is sent all the same, as barriers need. If a
// slice has pieces but all are empty (fewer elements than ranks), the message is neither sent nor
// received; both sides know that.
struct Slice {
  uint32_t first = 0;
  uint32_t count = 0;
};

struct Step {
  Kind kind = Kind::copy;
  bool received_first = false;  // recv_reduce: the received operand is the left one (lower ranks)
  bool settles = false;         // no later step writes any of what it writes: its result is final
  Rank peer = 0;
  uint32_t ordinal = 0;  // counts messages between the two ranks in this direction, from 0
  Slice from, with, to;
  uint32_t first_after = 0, after_count = 0;  // in Plan::after

  // A copy without pieces only orders other steps: PlanBuilder::fence.
  bool is_joint() const { return kind == Kind::copy && to.count == 0; }
};

// A dependency on an earlier step. Pipelined: wherever the two steps touch the same memory they
// name the same slice, so segment k may start when segment k of the earlier step is done. Otherwise
// the whole earlier step must be done. Edges that follow from other edges are left out. So a step
// with nothing to do (its slices are empty, or it is a joint) is done no sooner than the steps that
// it waits for.
struct After {
  uint32_t step = 0;
  bool pipelined = false;
};

struct Plan {
  std::vector<Step> steps;     // in program order: a step waits for earlier ones only
  std::vector<Piece> pieces;   // the pool that slices point into
  std::vector<After> after;    // the pool that steps point into
  std::vector<Piece> scratch;  // block i holds as many elements as this piece of input or output

  std::span<const Piece> of(const Slice& slice) const {
    return {pieces.data() + slice.first, slice.count};
  }
  std::span<const After> after_of(const Step& step) const {
    return {after.data() + step.first_after, step.after_count};
  }
};

using Pieces = std::span<const Piece>;
using StepId = uint32_t;

// Builds a plan. The caller adds the steps of a sequential program for this rank, which would be
// correct if run one step after another with unbounded buffers. The builder derives what each step
// waits for from the memory that steps touch (read after write, write after read, write after
// write). Input and output count as overlapping where they may (Alias). Steps that memory does not
// order run at the same time, in any order. Ordinals are counted per peer and direction, so two
// ranks must add the messages between them in the same order.
class PlanBuilder {
 public:
  // Which part of the output may be the same memory as the input: none, the whole, or (allgather)
  // one block.
  struct Alias {
    bool possible = false;
    uint32_t block = whole;
  };

  PlanBuilder() = default;
  explicit PlanBuilder(Alias alias) : alias_(alias) {}

  StepId send(Rank peer, Pieces from);
  StepId recv(Rank peer, Pieces to);
  // to = from (op) received; received_first: to = received (op) from.
  StepId recv_reduce(Rank peer, Pieces from, Pieces to, bool received_first);
  // to = from (op) with
  StepId reduce(Pieces from, Pieces with, Pieces to);
  StepId copy(Pieces from, Pieces to);

  // One-piece forms.
  StepId send(Rank peer, const Piece& from) { return send(peer, Pieces(&from, 1)); }
  StepId recv(Rank peer, const Piece& to) { return recv(peer, Pieces(&to, 1)); }
  StepId recv_reduce(Rank peer, const Piece& from, const Piece& to, bool received_first) {
    return recv_reduce(peer, Pieces(&from, 1), Pieces(&to, 1), received_first);
  }
  StepId reduce(const Piece& from, const Piece& with, const Piece& to) {
    return reduce(Pieces(&from, 1), Pieces(&with, 1), Pieces(&to, 1));
  }
  StepId copy(const Piece& from, const Piece& to) { return copy(Pieces(&from, 1), Pieces(&to, 1)); }
  // From here on, `peer` arguments are indices into this group of ranks; {} ends it. For running a
  // plan for few ranks on some of many.
  void talk_among(std::vector<Rank> group) { group_ = std::move(group); }

  // Tokens: messages without payload.
  StepId send_token(Rank peer) { return send(peer, Pieces()); }
  StepId recv_token(Rank peer) { return recv(peer, Pieces()); }

  // `later` also waits until all of `earlier` is done, though they share no memory. For tokens, and
  // to limit how much is in flight.
  void order(StepId earlier, StepId later);
  // All later steps wait for all steps so far. Adds a joint: a copy without pieces that waits for
  // the steps before it, and for which the steps after it wait. So m steps before and n after need
  // m + n edges.
  void fence();

  // Adds a block of scratch with as many elements as `like`, a piece of input or output or another
  // block of scratch.
  Piece scratch(const Piece& like);

  Plan build() &&;

 private:
  StepId add(Step step, Pieces from, Pieces with, Pieces to);
  Rank rank_of(Rank peer) const { return group_.empty() ? peer : group_[peer]; }
  Slice pool(Pieces pieces);

  Alias alias_;
  Plan plan_;
  std::vector<Rank> group_;
  std::vector<uint32_t> sent_, received_;           // messages so far, by peer
  std::vector<std::pair<StepId, StepId>> ordered_;  // (later, earlier), by order()
};

}  // namespace sluice
