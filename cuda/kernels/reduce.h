// SPDX-License-Identifier: BSD-3-Clause
//
// The loop of all reduce_* kernels. A thread takes one item at a time (arguments.h): a vector of
// several elements, or one element at any address.
#pragma once

#include "cuda/kernels/arguments.h"
#include "cuda/kernels/operations.h"

namespace sluice::cuda::kernels {

// The elements of an item: of a vector, or one only, and then the others are zero.
template <typename Element, unsigned count>
struct Elements {
  Element at[count];
};

template <typename T>
SLUICE_DEVICE void load_element(U64 from, T* to) {
  *to = load_anywhere<T>(from);
}
template <typename T>
SLUICE_DEVICE void load_element(U64 from, Complex<T>* to) {
  to->real = load_anywhere<T>(from);
  to->imaginary = load_anywhere<T>(from + sizeof(T));
}
template <typename Value, typename Index>
SLUICE_DEVICE void load_element(U64 from, Pair<Value, Index>* to) {
  to->value = load_anywhere<Value>(from);
  to->index = load_anywhere<Index>(from + sizeof(Value));
}

template <typename T>
SLUICE_DEVICE void store_element(U64 to, const T& value) {
  store_anywhere(to, value);
}
template <typename T>
SLUICE_DEVICE void store_element(U64 to, const Complex<T>& value) {
  store_anywhere(to, value.real);
  store_anywhere(to + sizeof(T), value.imaginary);
}
template <typename Value, typename Index>
SLUICE_DEVICE void store_element(U64 to, const Pair<Value, Index>& pair) {
  store_anywhere(to, pair.value);
  store_anywhere(to + sizeof(Value), pair.index);
}

// Pairs have no padding in memory, and no vectors.
template <typename Element>
struct Shape {
  static constexpr unsigned bytes = sizeof(Element), count = vector_bytes / sizeof(Element);
};
template <typename Value, typename Index>
struct Shape<Pair<Value, Index>> {
  static constexpr unsigned bytes = sizeof(Value) + sizeof(Index), count = 1;
};

template <typename Element, unsigned count>
SLUICE_DEVICE Elements<Element, count> load_item(U64 from, bool is_vector) {
  using Item = Elements<Element, count>;
  Item item{};
  if constexpr (sizeof(Item) == vector_bytes && Shape<Element>::bytes == sizeof(Element)) {
    if (is_vector) return __builtin_bit_cast(Item, load<Vector>(from));
  }
  load_element(from, &item.at[0]);
  return item;
}

template <typename Element, unsigned count>
SLUICE_DEVICE void store_item(U64 to, bool is_vector, const Elements<Element, count>& item) {
  if constexpr (sizeof item == vector_bytes && Shape<Element>::bytes == sizeof(Element)) {
    if (is_vector) {
      store(to, __builtin_bit_cast(Vector, item));
      return;
    }
  }
  store_element(to, item.at[0]);
}

template <typename Operation, typename Element, unsigned count>
SLUICE_DEVICE void each(Elements<Element, count>* left, const Elements<Element, count>& right) {
  SLUICE_UNROLL
  for (unsigned i = 0; i < count; ++i) left->at[i] = Operation::of(left->at[i], right.at[i]);
}

// Family: what an action does to an item.
template <typename Family, typename Element>
SLUICE_DEVICE void reduce(const Reduce& call) {
  constexpr unsigned bytes = Shape<Element>::bytes, count = Shape<Element>::count;
  const U64 threads = thread_count();
  for (U64 item = thread_number(); item < call.items; item += threads) {
    const bool is_vector = item < call.vectors;
    const U64 single = item - call.vectors;
    const U64 element = is_vector            ? call.head + item * count
                        : single < call.head ? single
                                             : single + call.vectors * count;
    const U64 at = element * bytes;
    auto result = load_item<Element, count>(call.operand[0] + at, is_vector);
    SLUICE_NO_UNROLL
    for (U32 i = 1; i < call.operands; ++i) {
      const auto next = load_item<Element, count>(call.operand[i] + at, is_vector);
      Family::apply(call.action, &result, next);
    }
    store_item(call.out + at, is_vector, result);
  }
}

}  // namespace sluice::cuda::kernels
