// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/call_cache.h"

#include <algorithm>
#include <new>
#include <span>

#include "src/mpi/thread_state.h"

namespace sluice {
namespace {

// Whether the receive buffer is no result's, but counts: at the root of a scatter in place, and on
// rank 0 of an exscan that is in place, or that MPI is to do with plain arguments.
bool has_odd_buffer(const Exchange& exchange, const Arguments& with, bool needs_plain) {
  const Call& call = exchange.call;
  if (exchange.output.type) return false;
  if (call.collective != Collective::exscan) return call.output.base != nullptr;
  return needs_plain || with.sendbuf == MPI_IN_PLACE;
}

bool is_plain(const View& view) { return !view.source && !view.sink; }

}  // namespace

void CallCache::keep(const char* name, const Arguments& with, const Exchange& exchange,
                     const Way& way, Position where) {
  entry = nullptr;
  lease.end();
  const bool plain = is_plain(exchange.call.input) && is_plain(exchange.call.output);
  const Side &input = exchange.input, &output = exchange.output;
  const auto is_kept = [](const Side& side) {
    return !side.type || (side.place.is_host() && datatype_of(side)->is_kept);
  };
  if (!plain || !is_kept(input) || !is_kept(output)) return;
  algorithm = way.by == Way::By::mpi ? nullptr : way.algorithm;
  was_handed_over = !algorithm && way.of;
  if (has_odd_buffer(exchange, with, was_handed_over)) return;
  if (exchange.user_op || exchange.set_aside || !exchange.others.empty()) return;
  arguments = with;
  position = where;
  call = exchange.call;
  if (!keep_arrays(exchange) || (was_handed_over && !keep_plain(exchange))) return;
  types_freed = exchange.types_freed;
  has_input = input.type != nullptr;
  has_output = output.type != nullptr;
  checks_receive = has_output || call.collective == Collective::exscan;
  in_place = has_input && with.sendbuf == MPI_IN_PLACE;
  keep_starts(exchange);
  alias_at = exchange.alias_at;
  algorithm ? lease.begin(way.of) : lease.begin_for_mpi(way.of);
  entry = name;
}

// (A call that was left to MPI has no views.)
void CallCache::keep_starts(const Exchange& exchange) {
  const Side &input = exchange.input, &output = exchange.output;
  if (!algorithm && !was_handed_over) {
    output_start = has_output ? output.type->start : 0;
    input_start = has_input ? input.type->start : 0;
    return;
  }
  if (has_output) output_start = call.output.base - offset_by(output.buffer, 0);
  if (has_input) {
    input_start = call.input.base - offset_by(in_place ? output.buffer : input.buffer, 0);
  }
}

bool CallCache::keep_plain(const Exchange& exchange) try {
  return plain_.set(exchange, arguments, position);
} catch (const std::bad_alloc&) {
  return false;
}

// Copies the arrays that count on this rank: the program may have changed its own by the next call.
// False if out of memory.
bool CallCache::keep_arrays(const Exchange& exchange) try {
  if (!exchange.input.type) arguments.sendcounts = arguments.sdispls = {};
  if (!exchange.output.type) arguments.recvcounts = arguments.rdispls = {};
  Numbers* const all[] = {&arguments.sendcounts, &arguments.recvcounts, &arguments.sdispls,
                          &arguments.rdispls};
  const Rank ranks = position.size;
  size_t bytes = 0;
  for (const Numbers* numbers : all) bytes += *numbers ? ranks * numbers->width() : 0;
  arrays_.resize(bytes);
  std::byte* memory = arrays_.data();
  for (Numbers* numbers : all) {
    if (!*numbers) continue;
    *numbers = numbers->copied_to(memory, ranks);
    memory += ranks * numbers->width();
  }
  std::span<const size_t>* const views[] = {&call.input.counts, &call.input.offsets,
                                            &call.output.counts, &call.output.offsets};
  size_t length = 0;
  for (const auto* view : views) length += view->size();
  extents_.resize(length);
  size_t* extents = extents_.data();
  for (auto* view : views) {
    const size_t* const end = std::ranges::copy(*view, extents).out;
    *view = {extents, end};
    extents += view->size();
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

bool CallCache::any_on_device(const Buffers& buffers) const {
  const auto is_on_device = [](const void* buffer, ptrdiff_t start) {
    return buffer != MPI_IN_PLACE && !find_place(offset_by(buffer, start)).is_host();
  };
  return (has_output && is_on_device(buffers.receive, output_start)) ||
         (has_input && is_on_device(buffers.send, input_start));
}

bool CallCache::rebind(const Buffers& buffers) {
  const auto is_memory = [](const void* buffer) { return buffer && buffer != MPI_IN_PLACE; };
  if (may_be_on_device() && any_on_device(buffers)) return false;
  if (types_freed != datatypes_freed.load(std::memory_order_acquire)) return false;
  if (checks_receive && !is_memory(buffers.receive)) return false;
  if (has_output) call.output.base = offset_by(buffers.receive, output_start);
  if (has_input) {
    if (in_place ? buffers.send != MPI_IN_PLACE : !is_memory(buffers.send)) return false;
    // MPI may have an error for input and output in the same memory (error_probe.h).
    const bool is_aliased = buffers.send == offset_by(buffers.receive, alias_at);
    if (is_aliased && checks_receive && !in_place) return false;
    call.input.base = offset_by(in_place ? buffers.receive : buffers.send, input_start);
  }
  return true;
}

}  // namespace sluice
