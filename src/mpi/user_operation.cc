// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/user_operation.h"

#include <algorithm>
#include <new>
#include <string>

#include "src/base/copy.h"

namespace sluice {
namespace {

constexpr size_t chunk = 32 << 10;  // bytes of an operand that are unpacked at a time
constexpr size_t alignment = 64;

// The first address from `bytes` on that lies `behind` bytes after a multiple of the alignment.
std::byte* align(std::byte* bytes, ptrdiff_t behind) {
  const auto multiple = reinterpret_cast<uintptr_t>(bytes) - static_cast<uintptr_t>(behind);
  return offset_by(bytes, static_cast<ptrdiff_t>(-multiple % alignment));
}

}  // namespace

// The memory of one element, as offsets: its data and its extent, as functions may assign whole
// structures.
Status UserOperation::measure(ptrdiff_t* low, ptrdiff_t* high) const {
  MPI_Count lower = 0, extent = 0, start = 0, length = 0;
  if (real().Type_get_extent_x(type_.handle, &lower, &extent) ||
      real().Type_get_true_extent_x(type_.handle, &start, &length)) {
    return {Code::internal, "MPI does not tell a datatype's extent"};
  }
  *low = static_cast<ptrdiff_t>(std::min({lower, lower + extent, start}));
  *high = static_cast<ptrdiff_t>(std::max({lower, lower + extent, start + length}));
  return {};
}

Status UserOperation::prepare(size_t elements) {
  ptrdiff_t low = 0, high = static_cast<ptrdiff_t>(type_.size);
  if (!is_laid_out()) {
    if (Status status = measure(&low, &high); !status.ok()) return status;
  }
  const auto one = std::max<size_t>(static_cast<size_t>(high - low), 1);
  most_ = std::clamp<size_t>(elements, 1, std::max<size_t>(chunk / one, 1));
  const ptrdiff_t rest = static_cast<ptrdiff_t>(most_ - 1) * type_.extent;
  low += std::min<ptrdiff_t>(rest, 0);
  high += std::max<ptrdiff_t>(rest, 0);
  const size_t operand = static_cast<size_t>(high - low) + alignment;
  memory_.reset(new (std::nothrow) std::byte[2 * operand]());
  if (!memory_) {
    return {Code::memory, "no memory for two operands of " + std::to_string(operand) + " bytes"};
  }
  for (size_t i = 0; i < 2; ++i) {
    operands_[i] = offset_by(align(memory_.get() + i * operand, low), -low);
  }
  return {};
}

void UserOperation::kernel(const void* left, const void* right, void* out, size_t n,
                           const void* context) {
  auto* const self = const_cast<UserOperation*>(static_cast<const UserOperation*>(context));
  const auto* l = static_cast<const std::byte*>(left);
  const auto* r = static_cast<const std::byte*>(right);
  auto* o = static_cast<std::byte*>(out);
  while (n > 0 && self->failure_.ok()) {
    const size_t some = std::min(n, self->most_), bytes = some * self->type_.size;
    self->failure_ = self->combine(l, r, o, some);
    l += bytes;
    r += bytes;
    o += bytes;
    n -= some;
  }
}

Status UserOperation::combine(const std::byte* left, const std::byte* right, std::byte* out,
                              size_t n) const {
  return is_laid_out() ? combine_in_place(left, right, out, n) : combine_apart(left, right, out, n);
}

// MPI_Reduce_local puts the result in the memory of the right operand.
Status UserOperation::combine_in_place(const std::byte* left, const std::byte* right,
                                       std::byte* out, size_t n) const {
  const size_t bytes = n * type_.size;
  std::byte* const result = out == left ? operands_[1] : out;
  if (result != right) copy_bytes(result, right, bytes);
  Status status = reduce(left, result, n);
  if (result != out) copy_bytes(out, result, bytes);
  return status;
}

Status UserOperation::combine_apart(const std::byte* left, const std::byte* right, std::byte* out,
                                    size_t n) const {
  const size_t bytes = n * type_.size;
  type_.layout->unpack(operands_[0], type_.extent, 0, bytes, left);
  type_.layout->unpack(operands_[1], type_.extent, 0, bytes, right);
  Status status = reduce(operands_[0], operands_[1], n);
  type_.layout->pack(operands_[1], type_.extent, 0, bytes, out);
  return status;
}

Status UserOperation::reduce(const void* left, void* right, size_t n) const {
  const int failed = real().Reduce_local(left, right, static_cast<int>(n), type_.handle, op_);
  if (!failed) return {};
  return {Code::internal, "MPI_Reduce_local failed with " + std::to_string(failed)};
}

}  // namespace sluice
