// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/typemap.h"

#include <algorithm>

namespace sluice {
namespace {

bool is_predefined_combiner(int combiner) {
  constexpr int predefined[] = {MPI_COMBINER_NAMED, MPI_COMBINER_F90_REAL, MPI_COMBINER_F90_COMPLEX,
                                MPI_COMBINER_F90_INTEGER};
  return std::ranges::find(predefined, combiner) != std::end(predefined);
}

int combiner_of(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  real().Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner;
}

}  // namespace

Typemap::Typemap(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0;
#if MPI_VERSION >= 4
  // The plain function refuses types that were constructed with large counts.
  MPI_Count few = 0, places = 0, large = 0, kinds = 0;
  if (real().Type_get_envelope_c(type, &few, &places, &large, &kinds, &combiner_)) return;
  predefined_ = is_predefined_combiner(combiner_);
  if (large > 0) combiner_ = -1;
  if (predefined_ || large > 0) return;
#endif
  if (real().Type_get_envelope(type, &integers, &addresses, &types, &combiner_)) return;
  predefined_ = is_predefined_combiner(combiner_);
  if (predefined_) return;
  integers_.resize(static_cast<size_t>(integers));
  addresses_.resize(static_cast<size_t>(addresses));
  types_.resize(static_cast<size_t>(types));
  if (real().Type_get_contents(type, integers, addresses, types, integers_.data(),
                               addresses_.data(), types_.data())) {
    types_.clear();
    combiner_ = -1;
  }
}

Typemap::~Typemap() {
  for (MPI_Datatype& type : types_) {
    if (!is_predefined_combiner(combiner_of(type))) real().Type_free(&type);
  }
}

ptrdiff_t Typemap::element_extent() const {
  MPI_Count lower = 0, extent = 0;
  real().Type_get_extent_x(types_[0], &lower, &extent);
  return static_cast<ptrdiff_t>(extent);
}

bool Typemap::is_told() const {
  constexpr int told[] = {
      MPI_COMBINER_DUP,      MPI_COMBINER_RESIZED,       MPI_COMBINER_CONTIGUOUS,
      MPI_COMBINER_VECTOR,   MPI_COMBINER_HVECTOR,       MPI_COMBINER_INDEXED,
      MPI_COMBINER_HINDEXED, MPI_COMBINER_INDEXED_BLOCK, MPI_COMBINER_HINDEXED_BLOCK,
      MPI_COMBINER_STRUCT};
  return std::ranges::find(told, combiner_) != std::end(told);
}

bool Typemap::visit(const Visitor& visitor) const {
  switch (combiner_) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return visitor({0, 1, types_[0]});
    case MPI_COMBINER_CONTIGUOUS:
      return visitor({0, static_cast<size_t>(integers_[0]), types_[0]});
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
      return visit_vector(visitor);
    default:
      return is_told() && visit_blocks(visitor);
  }
}

bool Typemap::visit_vector(const Visitor& visitor) const {
  const auto count = static_cast<size_t>(integers_[0]), length = static_cast<size_t>(integers_[1]);
  const ptrdiff_t extent = element_extent();
  const ptrdiff_t stride = combiner_ == MPI_COMBINER_VECTOR ? integers_[2] * extent : addresses_[0];
  if (stride == static_cast<ptrdiff_t>(length) * extent) {
    return visitor({0, count * length, types_[0]});
  }
  for (size_t i = 0; i < count; ++i) {
    if (!visitor({static_cast<ptrdiff_t>(i) * stride, length, types_[0]})) return false;
  }
  return true;
}

// Lengths, displacements and types lie where the constructor's arguments put them (MPI, section
// "Decoding a Datatype").
bool Typemap::visit_blocks(const Visitor& visitor) const {
  const auto count = static_cast<size_t>(integers_[0]);
  const bool one_length =
      combiner_ == MPI_COMBINER_INDEXED_BLOCK || combiner_ == MPI_COMBINER_HINDEXED_BLOCK;
  const bool in_elements =
      combiner_ == MPI_COMBINER_INDEXED || combiner_ == MPI_COMBINER_INDEXED_BLOCK;
  const bool many_types = combiner_ == MPI_COMBINER_STRUCT;
  const size_t first_displacement = one_length ? 2 : 1 + count;
  const ptrdiff_t extent = in_elements ? element_extent() : 1;
  for (size_t i = 0; i < count; ++i) {
    const auto length = static_cast<size_t>(integers_[one_length ? 1 : 1 + i]);
    const ptrdiff_t displacement =
        in_elements ? integers_[first_displacement + i] * extent : addresses_[i];
    if (!visitor({displacement, length, types_[many_types ? i : 0]})) return false;
  }
  return true;
}

namespace {

bool measure(MPI_Datatype handle, Datatype* type, MPI_Count* true_extent) {
  MPI_Count size = 0, lower = 0, extent = 0, start = 0;
  const Real& mpi = real();
  if (mpi.Type_size_x(handle, &size) || mpi.Type_get_extent_x(handle, &lower, &extent) ||
      mpi.Type_get_true_extent_x(handle, &start, true_extent) || size < 0) {
    return false;
  }
  *type = {handle, static_cast<size_t>(size), static_cast<ptrdiff_t>(start),
           static_cast<ptrdiff_t>(extent), false};
  return true;
}

// Whether the components follow one another without a gap. (Size and true extent alone do not say:
// a type may list its parts out of order, or one twice and leave a gap.)
bool is_run(const Typemap& map, const Datatype& whole) {
  ptrdiff_t end = whole.start;
  return map.visit([&](const Typemap::Component& part) {
    Datatype inner;
    if (!describe_datatype(part.type, &inner)) return false;
    if (part.count == 0 || inner.size == 0) return true;
    if (!inner.is_dense(part.count) || part.displacement + inner.start != end) return false;
    end += static_cast<ptrdiff_t>(part.count * inner.size);
    return true;
  });
}

}  // namespace

bool describe_datatype(MPI_Datatype handle, Datatype* description) {
  MPI_Count true_extent = 0;
  if (handle == real().datatype_null || !measure(handle, description, &true_extent)) return false;
  if (description->size != static_cast<size_t>(true_extent)) return true;  // gaps, or overlaps
  const Typemap map(handle);
  if (map.is_predefined()) {
    description->run = true;
  } else if (map.is_subarray()) {
    // It lists its elements in memory's order, so that without gaps it is a run.
    Datatype element;
    description->run =
        describe_datatype(map.element(), &element) && element.is_dense(2) && element.size > 0;
  } else {
    description->run = is_run(map, *description);
  }
  return true;
}

}  // namespace sluice
