// SPDX-License-Identifier: BSD-3-Clause
#include "src/nccl/device_job.h"

#include <algorithm>

#include "src/memory/placement.h"
#include "src/memory/staged_side.h"

namespace sluice {
namespace {

std::optional<SluiceNcclCollective> collective_of(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return sluice_nccl_allreduce;
    case Collective::reduce:
      return sluice_nccl_reduce;
    case Collective::broadcast:
      return sluice_nccl_broadcast;
    case Collective::allgather:
    case Collective::allgatherv:
      return sluice_nccl_allgather;
    case Collective::reduce_scatter:
      return sluice_nccl_reduce_scatter;
    case Collective::alltoall:
      return sluice_nccl_alltoall;
    case Collective::scan:  // NCCL has none
    case Collective::exscan:
    case Collective::gather:
    case Collective::gatherv:
    case Collective::scatter:
    case Collective::scatterv:
    case Collective::alltoallv:  // ranks know no common size, by which they would agree to vote
    case Collective::barrier:
      break;
  }
  return {};
}

std::optional<SluiceNcclType> type_of(Type type) {
  switch (type) {
    case Type::int8:
      return sluice_nccl_int8;
    case Type::uint8:
      return sluice_nccl_uint8;
    case Type::int32:
      return sluice_nccl_int32;
    case Type::uint32:
      return sluice_nccl_uint32;
    case Type::int64:
      return sluice_nccl_int64;
    case Type::uint64:
      return sluice_nccl_uint64;
    case Type::float16:
      return sluice_nccl_float16;
    case Type::bfloat16:
      return sluice_nccl_bfloat16;
    case Type::float32:
    case Type::complex64:
      return sluice_nccl_float32;
    case Type::float64:
    case Type::complex128:
      return sluice_nccl_float64;
    default:
      return {};
  }
}

std::optional<SluiceNcclOperation> operation_of(const Arithmetic& arithmetic) {
  const bool complex = arithmetic.type == Type::complex64 || arithmetic.type == Type::complex128;
  if (complex && arithmetic.op != Op::sum) return {};
  switch (arithmetic.op) {
    case Op::sum:
      return sluice_nccl_sum;
    case Op::prod:
      return sluice_nccl_prod;
    case Op::max:
      return sluice_nccl_max;
    case Op::min:
      return sluice_nccl_min;
    default:
      return {};
  }
}

size_t bytes_of(SluiceNcclType type) {
  switch (type) {
    case sluice_nccl_int8:
    case sluice_nccl_uint8:
      return 1;
    case sluice_nccl_float16:
    case sluice_nccl_bfloat16:
      return 2;
    case sluice_nccl_int32:
    case sluice_nccl_uint32:
    case sluice_nccl_float32:
      return 4;
    default:
      return 8;
  }
}

}  // namespace

std::optional<NcclTerms> nccl_terms(const Call& call) {
  const auto collective = collective_of(call.collective);
  if (!collective) return {};
  if (!call.reduction.kernel) return NcclTerms{*collective, sluice_nccl_uint8, sluice_nccl_sum, 1};
  const auto& arithmetic = call.reduction.arithmetic;
  if (!arithmetic) return {};
  const auto type = type_of(arithmetic->type);
  const auto operation = operation_of(*arithmetic);
  if (!type || !operation) return {};
  return NcclTerms{*collective, *type, *operation, bytes_of(*type)};
}

void DeviceJob::begin(const Call& call, const NcclTerms& terms, bool on_host) {
  job_ = {};
  job_.collective = terms.collective;
  job_.type = terms.type;
  job_.operation = terms.operation;
  job_.root = static_cast<int>(call.root);
  job_.in.on_host = job_.out.on_host = on_host;
  const size_t factor = call.element / terms.bytes;
  if (call.output.base) set(call.output, factor, &job_.out, output_);
  if (call.input.base) set(call.input, factor, &job_.in, input_);
}

// factor: elements of NCCL's in one of the engine's.
void DeviceJob::set(const View& view, size_t factor, SluiceNcclSide* side, Arrays& arrays) {
  const auto scale = [&](std::span<const size_t> from, std::vector<size_t>& to) {
    to.resize(from.size());
    std::ranges::transform(from, to.begin(), [&](size_t each) { return each * factor; });
    return to.data();
  };
  side->memory = view.base;
  side->count = view.count * factor;
  if (view.counts.empty()) return;
  side->counts = scale(view.counts, arrays.counts);
  side->offsets = scale(view.offsets, arrays.offsets);
}

// Whether the input is where MPI_IN_PLACE has it.
bool DeviceJob::is_in_place(const Call& call) const {
  const bool gathers =
      call.collective == Collective::allgather || call.collective == Collective::allgatherv;
  const size_t own = gathers ? call.output.block(rank_).offset * call.element : 0;
  return call.output.base && call.input.base == call.output.base + own;
}

void DeviceJob::describe(const UnplacedCall& unplaced, const NcclTerms& terms,
                         StagingPair& staging) {
  Call call = unplaced.call;
  view_in_place(unplaced, staging, &call);
  begin(call, terms, false);
  if (unplaced.set_aside || is_in_place(call)) job_.in.memory = nullptr;
}

void DeviceJob::describe_sizes(const UnplacedCall& unplaced, const NcclTerms& terms,
                               StagingPair& staging) {
  Call call = unplaced.call;
  const auto measure = [&](const Side& side, Staging& numbers, View* view) {
    if (!side.type) return;
    const size_t units = units_of(side, call);
    view->base = offset_by(side.buffer, side.type->start);
    view->count = side.count * units;
    if (!side.counts) return;
    set_packed_blocks(side, units, numbers);
    view->counts = numbers.counts;
    view->offsets = numbers.offsets;
  };
  measure(unplaced.output, staging.output, &call.output);
  measure(unplaced.input, staging.input, &call.input);
  begin(call, terms, true);
}

void DeviceJob::describe_on_host(const Call& call, const NcclTerms& terms) {
  begin(call, terms, true);
  if (is_in_place(call)) job_.in.memory = nullptr;
}

}  // namespace sluice
