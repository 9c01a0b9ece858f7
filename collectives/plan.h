// SPDX-License-Identifier: BSD-3-Clause
//
// The plan contract: what one rank does in one collective, as a graph of steps over named memory.
//
// A plan knows neither addresses nor bytes. It names memory by Pieces (an area, a block of it, a
// part of that block), which an Execution resolves through the call's counts and displacements; so
// a plan's size depends on the number of ranks alone, and one plan serves every message size. (The
// field's names for the idea: GOAL schedules, Hoefler et al. 2009; libnbc; MSCCL programs.)
//
// Areas and blocks, by collective (p ranks):
//
//   collective       input                        output
//   allreduce        all: the operand             all: the result
//   reduce           all: the operand             all: the result; exists on the root alone
//   broadcast        (none)                       all: the buffer; the root's holds the data
//   allgather(v)     all: this rank's block       block r: rank r's
//   reduce_scatter   block r: for rank r          all: this rank's block of the result
//   alltoall(v)      block r: for rank r          block r: from rank r
//   barrier          (none)                       (none)
//
// Input and output may be the same memory (MPI_IN_PLACE) in allreduce, in reduce at the root, and
// in allgather, where the input is the output's own block. In reduce_scatter and alltoall they
// never overlap: the caller sets the input aside first. A plan never writes to input.
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
  copy,         // to = from; free where both are the same memory; see Step::is_joint
};

enum class Area : uint8_t { input, output, scratch };

// The whole of an area that has no blocks (see the table above).
inline constexpr uint32_t whole = std::numeric_limits<uint32_t>::max();

// Where an area's blocks really lie: memory that is dense in elements of one size.
struct Blocks {
  std::byte* base = nullptr;
  size_t count = 0;  // elements: of the whole; or of each block where blocks are uniform
  std::span<const size_t> counts;   // ragged blocks: elements of each
  std::span<const size_t> offsets;  // and where each begins, in elements from base
};

// The fraction [begin/of, end/of) of a block, cut between elements: of n elements, those from
// floor(n * begin / of) up to floor(n * end / of). Never empty as a fraction (begin < end <= of),
// though it may hold no element where the block has few.
struct Part {
  uint32_t begin = 0;
  uint32_t end = 1;
  uint32_t of = 1;
  bool operator==(const Part&) const = default;
};

// The elements of a block of n that a part spans: its first, and how many.
struct Range {
  size_t first;
  size_t count;
};
Range cut(size_t n, const Part& part);

// A run of memory. In scratch, `block` is the index of a slot (Plan::scratch).
struct Piece {
  Area area = Area::output;
  uint32_t block = whole;
  Part part{};
  bool operator==(const Piece&) const = default;
};

// Pieces of a plan's pool, read one after another as one message or operand. No pieces at all make
// a token: a message that carries no payload and yet is sent, as barriers need. A slice with pieces
// that come out empty (fewer elements than ranks) is neither sent nor received: both sides see
// that.
struct Slice {
  uint32_t first = 0;
  uint32_t count = 0;
};

struct Step {
  Kind kind = Kind::copy;
  bool received_first = false;  // recv_reduce: the received operand stands left (lower ranks')
  bool settles = false;  // no later step writes any of what it writes: its result is there to stay
  Rank peer = 0;
  uint32_t ordinal = 0;  // this is the n-th message between the two ranks in this direction
  Slice from, with, to;
  uint32_t first_after = 0, after_count = 0;  // in Plan::after

  // A copy without pieces does nothing but wait for others and be waited for: PlanBuilder::fence.
  bool is_joint() const { return kind == Kind::copy && to.count == 0; }
};

// That a step waits for an earlier one. Pipelined: wherever the two touch the same memory they name
// the very same slice, so that segment k may start when segment k of the earlier step is done.
// Otherwise the earlier step must be done whole. Edges that follow from others are left out, so a
// step that has nothing to do (its slices come out empty, or it is a joint) is done no sooner than
// what it waits for.
struct After {
  uint32_t step = 0;
  bool pipelined = false;
};

struct Plan {
  std::vector<Step> steps;     // in program order: `after` points backwards only
  std::vector<Piece> pieces;   // the pool that slices point into
  std::vector<After> after;    // likewise for steps
  std::vector<Piece> scratch;  // slot i holds as many elements as this piece of input or output

  std::span<const Piece> of(const Slice& slice) const {
    return {pieces.data() + slice.first, slice.count};
  }
  std::span<const After> after_of(const Step& step) const {
    return {after.data() + step.first_after, step.after_count};
  }
};

using Pieces = std::span<const Piece>;
using StepId = uint32_t;

// Writes a plan in program order, as a sequential program for this rank that would be correct if
// run one step after another with unbounded buffers. What a step has to wait for is worked out from
// the memory it touches (read after write, write after read, write after write), input and output
// taken to overlap where they may (Alias); what is not ordered by memory runs in any order, all at
// once. Ordinals are counted per peer and direction, so two ranks must list the messages between
// them in one and the same order.
class PlanBuilder {
 public:
  // Which output memory the input may be: none; the whole of it; or, as in allgather, one block.
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
  // Peers are from here on places in this group, as when a plan for few ranks is carried out by
  // some of many; {} ends it.
  void talk_among(std::vector<Rank> group) { group_ = std::move(group); }

  // Tokens: messages without payload.
  StepId send_token(Rank peer) { return send(peer, Pieces()); }
  StepId recv_token(Rank peer) { return recv(peer, Pieces()); }

  // `later` also waits for `earlier`, whole, though they share no memory. For tokens, and to bound
  // what is in flight.
  void order(StepId earlier, StepId later);
  // All steps from here on wait for all steps so far. Adds a joint: a copy without pieces, which
  // waits for what went before and is waited for by what follows, so that m steps before and n
  // after take m + n edges.
  void fence();

  // A new scratch slot that holds as many elements as `like`: of input or output, or another slot.
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
