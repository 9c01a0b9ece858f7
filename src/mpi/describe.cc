// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/describe.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "src/mpi/datatypes.h"
#include "src/mpi/reductions.h"

namespace sluice {
namespace {

constexpr ptrdiff_t first_page = 4096;

bool is_in_place(const void* buffer) { return buffer == MPI_IN_PLACE; }

void refuse(std::string why, Exchange* x) {
  if (x->refusal.ok()) x->refusal = {Code::invalid, std::move(why)};
}

// The buffer of a side is MPI_IN_PLACE, where MPI does not allow it.
void set_misplaced(bool empty, Exchange* x, Side* side) {
  side->buffer = nullptr;
  x->fault = Exchange::Fault::in_place;
  if (!empty) refuse("a buffer is MPI_IN_PLACE, which it may not be here", x);
}

// Finds out where the data of a side is; `first` is the address of its first byte.
void set_place(const void* first, Exchange* x, Side* side) {
  if (!first) {
    x->fault = Exchange::Fault::null;
    refuse("a buffer is null", x);
  } else if (!datatype_of(*side)->is_read) {
    refuse("the layout of a datatype cannot be found out", x);
  } else if (may_be_on_device()) {
    side->place = find_place(first);
  }
}

// A side of equal blocks; false if the arguments are invalid.
bool set_uniform(const void* buffer, const Datatype* type, MPI_Count count, Rank blocks,
                 Exchange* x, Side* side) {
  if (!type || count < 0) return false;
  const bool empty = count == 0 || type->size == 0;
  *side = {buffer, type, blocks, static_cast<size_t>(count), {}, {}};
  if (is_in_place(buffer)) {
    set_misplaced(empty, x, side);
  } else if (!empty) {
    set_place(offset_by(buffer, type->start), x, side);
  }
  return true;
}

// Whether blocks at absolute addresses (MPI_BOTTOM) can be valid: no data lies in the first page of
// memory.
bool is_absolute(const Side& side) {
  size_t before = 0;
  for (Rank i = 0; i < side.blocks; ++i) {
    const ptrdiff_t address = side.displacement(i, before) + side.type->start;
    if (side.elements(i) > 0 && std::abs(address) < first_page) return false;
    before += side.elements(i);
  }
  return true;
}

// The address of the first byte of a side that has data.
const void* first_byte(const Side& side) {
  ptrdiff_t start = 0;
  if (side.displacements) {
    Rank block = 0;
    while (side.elements(block) == 0) ++block;
    start = side.displacement(block, 0);
  }
  return offset_by(side.buffer, start + side.type->start);
}

// A side of blocks of individual sizes, consecutive if there are no displacements; false if the
// arguments are invalid.
bool set_ragged(const void* buffer, const Datatype* type, Numbers counts, Numbers displacements,
                Rank blocks, Exchange* x, Side* side) {
  if (!type || !counts) return false;
  for (Rank i = 0; i < blocks; ++i) {
    if (counts[i] < 0) return false;
  }
  *side = {buffer, type, blocks, 0, counts, displacements};
  const bool empty = side->total_elements() == 0 || type->size == 0;
  if (is_in_place(buffer)) {
    set_misplaced(empty, x, side);
  } else if (!empty) {
    set_place(buffer || is_absolute(*side) ? first_byte(*side) : nullptr, x, side);
  }
  return true;
}

bool has_uneven_counts(Numbers counts, Rank blocks) {
  for (Rank i = 1; i < blocks; ++i) {
    if (counts[i] != counts[0]) return true;
  }
  return false;
}

// One block of a side, as a side of its own.
inline Side block_of(const Side& side, Rank block) {
  Side one = side;
  one.buffer = offset_by(side.buffer, side.displacement(block, block * side.count));
  one.blocks = 1;
  one.count = side.elements(block);
  one.counts = one.displacements = {};
  return one;
}

// (Null is MPI_BOTTOM, which both may be.)
bool are_aliased(const void* input, const void* output) { return input == output && input; }

// Always true.
bool take_in_place(Exchange* exchange, const Side& input) {
  exchange->input = input;
  exchange->in_place = true;
  return true;
}

size_t block_bytes(const Side& side, Rank block) { return side.elements(block) * side.type->size; }

// MPI demands that a rank sends itself as many bytes as it receives from itself, but does not
// check. Always true.
inline bool compare_own(Rank sent, Rank received, Exchange* x) {
  const size_t out = block_bytes(x->input, sent), in = block_bytes(x->output, received);
  if (out == in) return true;
  refuse("this rank sends " + std::to_string(out) + " bytes to itself, but receives " +
             std::to_string(in),
         x);
  return true;
}

// Sets what all reductions have in common and returns the type; nullptr if MPI is to do the call.
const Datatype* set_reduction(const Arguments& arguments, Collective what, Exchange* exchange) {
  const Reducible* found = find_reducible(arguments.datatype, arguments.op);
  if (!found) return nullptr;
  exchange->call.collective = what;
  exchange->call.element = found->datatype.size;
  exchange->call.reduction = found->reduction;
  if (found->user_defined) exchange->user_op = arguments.op;
  return &found->datatype;
}

// A reduction of a vector whose result this rank gets as a vector.
bool set_reduced_vector(const Arguments& a, Collective what, Exchange* x) {
  const Datatype* type = set_reduction(a, what, x);
  if (!set_uniform(a.recvbuf, type, a.count, 1, x, &x->output)) return false;
  x->call.bytes = x->output.count * type->size;
  if (is_in_place(a.sendbuf)) return take_in_place(x, x->output);
  x->aliased = are_aliased(a.sendbuf, a.recvbuf);
  return set_uniform(a.sendbuf, type, a.count, 1, x, &x->input);
}

}  // namespace

bool describe_Allreduce(const Arguments& a, Position, Exchange* x) {
  return set_reduced_vector(a, Collective::allreduce, x);
}

bool describe_Scan(const Arguments& a, Position, Exchange* x) {
  return set_reduced_vector(a, Collective::scan, x);
}

// On rank 0 the receive buffer is not significant, except as the input that MPI_IN_PLACE leaves as
// it is.
bool describe_Exscan(const Arguments& a, Position position, Exchange* x) {
  if (position.rank > 0) return set_reduced_vector(a, Collective::exscan, x);
  const Datatype* type = set_reduction(a, Collective::exscan, x);
  const void* const input = is_in_place(a.sendbuf) ? a.recvbuf : a.sendbuf;
  if (!set_uniform(input, type, a.count, 1, x, &x->input)) return false;
  x->call.bytes = x->input.bytes();
  if (is_in_place(a.sendbuf)) return true;
  x->aliased = are_aliased(a.sendbuf, a.recvbuf);
  if (is_in_place(a.recvbuf)) x->fault = Exchange::Fault::in_place;
  if (!a.recvbuf && x->input.bytes() > 0) x->fault = Exchange::Fault::null;
  return true;
}

namespace {

// Sets what all functions with a root have in common; false if the root is invalid.
inline bool set_root(const Arguments& a, Position position, Exchange* x) {
  if (a.root < 0 || static_cast<Rank>(a.root) >= position.size) return false;
  x->call.root = static_cast<Rank>(a.root);
  return true;
}

bool is_root(Position position, const Exchange& x) { return position.rank == x.call.root; }

}  // namespace

bool describe_Reduce(const Arguments& a, Position position, Exchange* x) {
  const Datatype* type = set_reduction(a, Collective::reduce, x);
  if (!type || a.count < 0 || !set_root(a, position, x)) return false;
  const bool root = is_root(position, *x);
  if (root && !set_uniform(a.recvbuf, type, a.count, 1, x, &x->output)) return false;
  x->call.bytes = static_cast<size_t>(a.count) * type->size;
  if (root && is_in_place(a.sendbuf)) return take_in_place(x, x->output);
  x->aliased = root && are_aliased(a.sendbuf, a.recvbuf);
  if (!set_uniform(a.sendbuf, type, a.count, 1, x, &x->input)) return false;
  // (An MPI that objects does so without data, too; one that does not may crash.)
  if (!root && x->fault == Exchange::Fault::in_place) x->input.count = 0;
  return true;
}

bool describe_Bcast(const Arguments& a, Position position, Exchange* x) {
  if (!set_root(a, position, x)) return false;
  if (!set_uniform(a.buffer, find_datatype(a.datatype), a.count, 1, x, &x->output)) return false;
  x->call.collective = Collective::broadcast;
  x->call.bytes = x->output.bytes();
  x->filled = is_root(position, *x);
  return true;
}

bool describe_Barrier(const Arguments&, Position, Exchange* x) {
  x->call.collective = Collective::barrier;
  return true;
}

namespace {

// MPI forbids an input that is this rank's own block of the result.
inline void set_gathered_aliasing(const Arguments& a, const Side& own, Exchange* x) {
  x->aliased = a.sendtype == a.recvtype && are_aliased(a.sendbuf, own.buffer);
  x->alias_at =
      static_cast<const std::byte*>(own.buffer) - static_cast<const std::byte*>(a.recvbuf);
}

}  // namespace

bool describe_Allgather(const Arguments& a, Position position, Exchange* x) {
  if (!set_uniform(a.recvbuf, find_datatype(a.recvtype), a.recvcount, position.size, x,
                   &x->output)) {
    return false;
  }
  x->call.collective = Collective::allgather;
  x->call.bytes = x->output.bytes();
  const Side own = block_of(x->output, position.rank);
  if (is_in_place(a.sendbuf)) return take_in_place(x, own);
  set_gathered_aliasing(a, own, x);
  return set_uniform(a.sendbuf, find_datatype(a.sendtype), a.sendcount, 1, x, &x->input) &&
         compare_own(0, position.rank, x);
}

bool describe_Allgatherv(const Arguments& a, Position position, Exchange* x) {
  if (!a.rdispls || !set_ragged(a.recvbuf, find_datatype(a.recvtype), a.recvcounts, a.rdispls,
                                position.size, x, &x->output)) {
    return false;
  }
  x->call.collective = Collective::allgatherv;
  x->call.bytes = x->output.bytes();
  x->call.ragged = x->output.type->size > 0 && has_uneven_counts(a.recvcounts, position.size);
  const Side own = block_of(x->output, position.rank);
  if (is_in_place(a.sendbuf)) return take_in_place(x, own);
  set_gathered_aliasing(a, own, x);
  return set_uniform(a.sendbuf, find_datatype(a.sendtype), a.sendcount, 1, x, &x->input) &&
         compare_own(0, position.rank, x);
}

bool describe_Alltoall(const Arguments& a, Position position, Exchange* x) {
  if (!set_uniform(a.recvbuf, find_datatype(a.recvtype), a.recvcount, position.size, x,
                   &x->output)) {
    return false;
  }
  x->call.collective = Collective::alltoall;
  x->call.bytes = x->output.bytes();
  x->set_aside = x->call.stays = is_in_place(a.sendbuf);
  if (x->set_aside) return take_in_place(x, x->output);
  x->aliased = a.sendtype == a.recvtype && are_aliased(a.sendbuf, a.recvbuf);
  return set_uniform(a.sendbuf, find_datatype(a.sendtype), a.sendcount, position.size, x,
                     &x->input) &&
         compare_own(position.rank, position.rank, x);
}

bool describe_Alltoallv(const Arguments& a, Position position, Exchange* x) {
  if (!a.rdispls || !set_ragged(a.recvbuf, find_datatype(a.recvtype), a.recvcounts, a.rdispls,
                                position.size, x, &x->output)) {
    return false;
  }
  x->call.collective = Collective::alltoallv;
  x->set_aside = x->call.stays = is_in_place(a.sendbuf);
  if (x->set_aside) return take_in_place(x, x->output);
  x->aliased =
      a.sendtype == a.recvtype && a.sendcounts == a.recvcounts && are_aliased(a.sendbuf, a.recvbuf);
  if (!a.sdispls || !set_ragged(a.sendbuf, find_datatype(a.sendtype), a.sendcounts, a.sdispls,
                                position.size, x, &x->input)) {
    return false;
  }
  x->call.weight = x->input.bytes();
  return compare_own(position.rank, position.rank, x);
}

namespace {

// What both reduce_scatter functions have in common. The input is set; with MPI_IN_PLACE it is the
// result's memory.
bool set_scattered(const Arguments& a, Position position, Exchange* x) {
  const size_t own = x->input.elements(position.rank);
  x->call.bytes = x->input.bytes();
  x->set_aside = x->in_place = is_in_place(a.sendbuf);
  x->aliased = are_aliased(a.sendbuf, a.recvbuf);
  return set_uniform(a.recvbuf, datatype_of(x->input), static_cast<MPI_Count>(own), 1, x,
                     &x->output);
}

}  // namespace

bool describe_Reduce_scatter(const Arguments& a, Position position, Exchange* x) {
  const Datatype* type = set_reduction(a, Collective::reduce_scatter, x);
  const void* const input = is_in_place(a.sendbuf) ? a.recvbuf : a.sendbuf;
  if (!set_ragged(input, type, a.recvcounts, {}, position.size, x, &x->input)) return false;
  x->call.ragged = has_uneven_counts(a.recvcounts, position.size);
  return set_scattered(a, position, x);
}

bool describe_Reduce_scatter_block(const Arguments& a, Position position, Exchange* x) {
  const Datatype* type = set_reduction(a, Collective::reduce_scatter, x);
  const void* const input = is_in_place(a.sendbuf) ? a.recvbuf : a.sendbuf;
  if (!set_uniform(input, type, a.recvcount, position.size, x, &x->input)) return false;
  return set_scattered(a, position, x);
}

namespace {

// What this rank contributes to a gather; `own`: its block of the result, on the root.
bool set_contribution(const Arguments& a, Position position, const Side* own, Exchange* x) {
  if (own && is_in_place(a.sendbuf)) return take_in_place(x, *own);
  if (own) set_gathered_aliasing(a, *own, x);
  if (!set_uniform(a.sendbuf, find_datatype(a.sendtype), a.sendcount, 1, x, &x->input)) {
    return false;
  }
  if (own) return compare_own(0, position.rank, x);
  // (As in MPI_Reduce.)
  if (x->fault == Exchange::Fault::in_place) x->input.count = 0;
  return true;
}

// What this rank gets of a scatter; `own`: its block of what is scattered, on the root, where it
// may stay.
bool set_share(const Arguments& a, Position position, const Side* own, Exchange* x) {
  if (own && is_in_place(a.recvbuf)) {
    x->in_place = true;
    return true;
  }
  if (!set_uniform(a.recvbuf, find_datatype(a.recvtype), a.recvcount, 1, x, &x->output)) {
    return false;
  }
  if (!own) return true;
  x->aliased = a.sendtype == a.recvtype && are_aliased(own->buffer, a.recvbuf);
  x->alias_at =
      static_cast<const std::byte*>(a.sendbuf) - static_cast<const std::byte*>(own->buffer);
  return compare_own(position.rank, 0, x);
}

}  // namespace

bool describe_Gather(const Arguments& a, Position position, Exchange* x) {
  x->call.collective = Collective::gather;
  if (!set_root(a, position, x)) return false;
  if (!is_root(position, *x)) {
    if (!set_contribution(a, position, nullptr, x)) return false;
    x->call.bytes = x->input.bytes() * position.size;
    return true;
  }
  const Datatype* const type = find_datatype(a.recvtype);
  if (!set_uniform(a.recvbuf, type, a.recvcount, position.size, x, &x->output)) return false;
  x->call.bytes = x->output.bytes();
  const Side own = block_of(x->output, position.rank);
  return set_contribution(a, position, &own, x);
}

bool describe_Gatherv(const Arguments& a, Position position, Exchange* x) {
  x->call.collective = Collective::gatherv;
  if (!set_root(a, position, x)) return false;
  if (!is_root(position, *x)) {
    if (!set_contribution(a, position, nullptr, x)) return false;
    x->call.weight = x->input.bytes();
    return true;
  }
  const Datatype* const type = find_datatype(a.recvtype);
  if (!a.rdispls ||
      !set_ragged(a.recvbuf, type, a.recvcounts, a.rdispls, position.size, x, &x->output)) {
    return false;
  }
  x->call.weight = x->output.bytes();
  const Side own = block_of(x->output, position.rank);
  return set_contribution(a, position, &own, x);
}

bool describe_Scatter(const Arguments& a, Position position, Exchange* x) {
  x->call.collective = Collective::scatter;
  if (!set_root(a, position, x)) return false;
  if (!is_root(position, *x)) {
    if (!set_share(a, position, nullptr, x)) return false;
    x->call.bytes = x->output.bytes() * position.size;
    return true;
  }
  const Datatype* const type = find_datatype(a.sendtype);
  if (!set_uniform(a.sendbuf, type, a.sendcount, position.size, x, &x->input)) return false;
  x->call.bytes = x->input.bytes();
  const Side own = block_of(x->input, position.rank);
  return set_share(a, position, &own, x);
}

bool describe_Scatterv(const Arguments& a, Position position, Exchange* x) {
  x->call.collective = Collective::scatterv;
  if (!set_root(a, position, x)) return false;
  if (!is_root(position, *x)) {
    if (!set_share(a, position, nullptr, x)) return false;
    x->call.weight = x->output.bytes();
    return true;
  }
  const Datatype* const type = find_datatype(a.sendtype);
  if (!a.sdispls ||
      !set_ragged(a.sendbuf, type, a.sendcounts, a.sdispls, position.size, x, &x->input)) {
    return false;
  }
  x->call.weight = x->input.bytes();
  const Side own = block_of(x->input, position.rank);
  return set_share(a, position, &own, x);
}

}  // namespace sluice
