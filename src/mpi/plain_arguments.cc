// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/plain_arguments.h"

#include <limits>

namespace sluice {
namespace {

bool is_int(size_t number) { return number <= size_t{std::numeric_limits<int>::max()}; }

}  // namespace

std::byte* place_in_output(const Call& call, Rank rank) {
  switch (call.collective) {
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::gather:
    case Collective::gatherv:
      break;
    default:
      return call.output.base;
  }
  return call.output.base + call.output.block(rank).offset * call.element;
}

bool PlainArguments::set(const Exchange& placed, const Arguments& program, Position position) {
  const Call& call = placed.call;
  arguments_ = program;
  if (call.collective == Collective::barrier) return true;
  MPI_Datatype type = MPI_BYTE;
  if (call.reduction.kernel) type = datatype_of(placed.input)->handle;
  arguments_.datatype = arguments_.sendtype = arguments_.recvtype = type;
  is_in_place_ = placed.in_place;
  put_buffers(call);
  return set_counts(call, position);
}

// (A reduce_scatter in place has its input in the buffer for the result; so has rank 0 in an exscan
// in place, which has no result: MPI reads the one and leaves the other alone.)
void PlainArguments::put_buffers(const Call& call) {
  if (call.collective == Collective::exscan && !call.output.base) {
    if (arguments_.sendbuf == MPI_IN_PLACE) {
      arguments_.recvbuf = call.input.base;
    } else {
      arguments_.sendbuf = call.input.base;
    }
    return;
  }
  if (is_in_place_ && scatters(call)) {
    arguments_.sendbuf = call.input.base;
    arguments_.recvbuf = MPI_IN_PLACE;
    return;
  }
  const bool shares_result = call.collective == Collective::reduce_scatter;
  arguments_.sendbuf = is_in_place_ ? MPI_IN_PLACE : call.input.base;
  arguments_.recvbuf = is_in_place_ && shares_result ? call.input.base : call.output.base;
  arguments_.buffer = call.output.base;
}

bool PlainArguments::set_counts(const Call& call, Position position) {
  Arguments& to = arguments_;
  const View &input = call.input, &output = call.output;
  const Rank ranks = position.size;
  switch (call.collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan:
      return set_one(input, &to.count);
    case Collective::broadcast:
      return set_one(output, &to.count);
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::gather:
    case Collective::scatter:
      return set_one(input, &to.sendcount) && set_one(output, &to.recvcount);
    case Collective::allgatherv:
      return set_one(input, &to.sendcount) &&
             set_array(output, &to.recvcounts, &to.rdispls, 0, ranks);
    case Collective::gatherv:
      return set_one(input, &to.sendcount) &&
             (position.rank != call.root ||
              set_array(output, &to.recvcounts, &to.rdispls, 0, ranks));
    case Collective::scatterv:
      return set_one(output, &to.recvcount) &&
             (position.rank != call.root ||
              set_array(input, &to.sendcounts, &to.sdispls, 0, ranks));
    case Collective::alltoallv:
      return set_array(input, &to.sendcounts, &to.sdispls, 0, ranks) &&
             set_array(output, &to.recvcounts, &to.rdispls, 2, ranks);
    case Collective::reduce_scatter:
      if (input.counts.empty()) return set_one(input, &to.recvcount);
      // (The program's array holds them already, unless it is of 64 bits.)
      return to.recvcounts.width() == sizeof(int) ||
             set_array(input, &to.recvcounts, &to.rdispls, 0, ranks);
    case Collective::barrier:
      break;
  }
  return true;
}

bool PlainArguments::set_one(const View& view, MPI_Count* count) {
  *count = static_cast<MPI_Count>(view.count);
  return view.counts.empty() && is_int(view.count);
}

// at: which of four arrays of a number for each rank.
bool PlainArguments::set_array(const View& view, Numbers* counts, Numbers* displacements, size_t at,
                               Rank ranks) {
  numbers_.resize(size_t{4} * ranks);
  int* const count = numbers_.data() + at * ranks;
  int* const displacement = count + ranks;
  for (Rank i = 0; i < ranks; ++i) {
    const View::Extent extent = view.block(i);
    if (!is_int(extent.count) || !is_int(extent.offset)) return false;
    count[i] = static_cast<int>(extent.count);
    displacement[i] = static_cast<int>(extent.offset);
  }
  *counts = Numbers(count);
  *displacements = Numbers(displacement);
  return true;
}

}  // namespace sluice
