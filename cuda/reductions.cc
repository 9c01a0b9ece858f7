// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/reductions.h"

#include <algorithm>
#include <cstdio>

#include "cuda/kernels/arguments.h"
#include "cuda/loaded_kernels.h"
#include "cuda/streams.h"

namespace sluice::cuda {
namespace {

using kernels::Action;
using kernels::vector_bytes;

// Which operations a type has.
enum class Family : uint8_t { none, integer, unsigned_integer, logical, floating, complex, pair };

struct Row {
  Family family = Family::none;
  size_t bytes = 0;     // of an element
  Kernel kernel = {};   // for all operations
  Kernel product = {};  // complex: for this one (the other kernel adds twice as many real numbers)
};

constexpr Kernel int8{"reduce_int8", Image::int8}, int16{"reduce_int16", Image::int16},
    int32{"reduce_int32", Image::int32}, int64{"reduce_int64", Image::int64},
    float32{"reduce_float32", Image::float32}, float64{"reduce_float64", Image::float64};

constexpr Kernel pair(const char* name) { return {name, Image::pairs}; }

// In the order of SluiceCudaType.
constexpr Row rows[sluice_cuda_types] = {
    {Family::integer, 1, int8},
    {Family::integer, 2, int16},
    {Family::integer, 4, int32},
    {Family::integer, 8, int64},
    {Family::unsigned_integer, 1, int8},
    {Family::unsigned_integer, 2, int16},
    {Family::unsigned_integer, 4, int32},
    {Family::unsigned_integer, 8, int64},
    {Family::floating, 2, {"reduce_float16", Image::float16}},
    {Family::floating, 2, {"reduce_bfloat16", Image::bfloat16}},
    {Family::floating, 4, float32},
    {Family::floating, 8, float64},
    {},  // float80
    {},  // float128
    {Family::complex, 8, float32, {"reduce_complex64", Image::float32}},
    {Family::complex, 16, float64, {"reduce_complex128", Image::float64}},
    {},  // complex160
    {},  // complex256
    {Family::logical, 1, int8},
    {Family::logical, 2, int16},
    {Family::logical, 4, int32},
    {Family::logical, 8, int64},
    {Family::pair, 8, pair("reduce_float32_int32")},
    {Family::pair, 12, pair("reduce_float64_int32")},
    {Family::pair, 12, pair("reduce_int64_int32")},
    {Family::pair, 8, pair("reduce_int32_int32")},
    {Family::pair, 6, pair("reduce_int16_int32")},
    {},  // float80_int32
    {Family::pair, 8, pair("reduce_float32_float32")},
    {Family::pair, 16, pair("reduce_float64_float64")},
};

bool has(Family family, int operation) {
  const bool is_logical =
      operation >= sluice_cuda_logical_and && operation <= sluice_cuda_logical_xor;
  const bool locates = operation == sluice_cuda_minloc || operation == sluice_cuda_maxloc;
  switch (family) {
    case Family::none:
      return false;
    case Family::integer:
    case Family::unsigned_integer:
      return !locates;
    case Family::logical:
      return is_logical;
    case Family::floating:
      return operation <= sluice_cuda_max;
    case Family::complex:
      return operation <= sluice_cuda_prod;
    case Family::pair:
      return locates;
  }
  return false;
}

bool is_known(int type, int operation) {
  return type >= 0 && type < sluice_cuda_types && operation >= 0 &&
         operation < sluice_cuda_operations && has(rows[type].family, operation);
}

Action action_of(Family family, int operation) {
  const bool is_unsigned = family == Family::unsigned_integer;
  switch (operation) {
    case sluice_cuda_prod:
      return Action::prod;
    case sluice_cuda_min:
      return is_unsigned ? Action::unsigned_min : Action::min;
    case sluice_cuda_max:
      return is_unsigned ? Action::unsigned_max : Action::max;
    case sluice_cuda_logical_and:
      return Action::logical_and;
    case sluice_cuda_logical_or:
      return Action::logical_or;
    case sluice_cuda_logical_xor:
      return Action::logical_xor;
    case sluice_cuda_bit_and:
      return Action::bit_and;
    case sluice_cuda_bit_or:
      return Action::bit_or;
    case sluice_cuda_bit_xor:
      return Action::bit_xor;
    case sluice_cuda_minloc:
      return Action::min;
    case sluice_cuda_maxloc:
      return Action::max;
    default:
      return Action::sum;
  }
}

// Divides the elements into vectors and others. Vectors need all operands at the same distance from
// a multiple of their size, and that distance in whole elements.
void divide(kernels::Reduce* call, size_t element_bytes, size_t elements) {
  const size_t before = (vector_bytes - call->out % vector_bytes) % vector_bytes;
  const bool is_even = std::all_of(
      call->operand, call->operand + call->operands,
      [&](unsigned long long operand) { return (operand - call->out) % vector_bytes == 0; });
  const size_t head = before / element_bytes;
  call->items = elements;
  if (!is_even || before % element_bytes != 0 || elements < head) return;
  const size_t in_vector = vector_bytes / element_bytes;
  call->head = head;
  call->vectors = (elements - head) / in_vector;
  call->items = elements - call->vectors * (in_vector - 1);
}

}  // namespace

bool can_reduce(int type, int operation) {
  return is_known(type, operation) && are_kernels_usable();
}

bool begin_reduce(SluiceCudaStream* stream, int type, int operation, const void* const* operands,
                  size_t operand_count, void* out, size_t elements, char* why) {
  if (!is_known(type, operation) || operand_count < 2 || operand_count > kernels::most_operands) {
    std::snprintf(why, sluice_cuda_why, "no kernel for operation %d on type %d and %zu operands",
                  operation, type, operand_count);
    return false;
  }
  const Row& row = rows[type];
  const bool is_complex_sum = row.family == Family::complex && operation == sluice_cuda_sum;
  const bool is_complex_product = row.family == Family::complex && !is_complex_sum;
  const Kernel& kernel = is_complex_product ? row.product : row.kernel;
  const Current current(stream->context, why);
  if (!current) return false;
  if (elements == 0) return load(*stream, kernel.image, why);
  kernels::Reduce call{};
  for (size_t i = 0; i < operand_count; ++i) call.operand[i] = address_of(operands[i]);
  call.out = address_of(out);
  call.operands = static_cast<unsigned>(operand_count);
  call.action = action_of(row.family, operation);
  call.items = elements;
  if (is_complex_sum) {
    divide(&call, row.bytes / 2, elements * 2);
  } else if (row.family != Family::pair) {
    divide(&call, row.bytes, elements);
  }
  return launch(*stream, kernel, &call, call.items, why);
}

}  // namespace sluice::cuda
