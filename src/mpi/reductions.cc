// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/reductions.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/mpi/datatypes.h"
#include "src/mpi/error_probe.h"
#include "src/mpi/narrow_floats.h"
#include "src/mpi/typemap.h"
#include "src/mpi/user_operation.h"

namespace sluice {
namespace {

// The kind of number in a predefined type. MPI is asked for its size, since Fortran's depends on
// compiler options, and C's on the machine.
enum class Family : uint8_t {
  integer,
  unsigned_integer,
  plain_integer,  // Fortran's and multi-language types: no logical operations
  byte,
  floating,
  long_floating,  // C's long double, which Fortran's REAL*16 is not
  complex,
  long_complex,
  logical,
  pair,
  narrow,        // Sluice's own
  f90_floating,  // by precision: one longer than double may be either of two types
  f90_complex,
  none,
};

struct TypeRow {
  MPI_Datatype handle;
  Family family;
  Type type = Type::int8;  // if size and family do not tell it
};

std::vector<TypeRow> list_c_types() {
  using enum Family;
  return {
#ifdef SLUICE_OPEN_MPI
      // MPI defines no reductions of characters; Open MPI does, and benchmarks rely on it.
      {MPI_CHAR, integer},
#endif
      {MPI_SIGNED_CHAR, integer},
      {MPI_SHORT, integer},
      {MPI_INT, integer},
      {MPI_LONG, integer},
      {MPI_LONG_LONG, integer},
      {MPI_INT8_T, integer},
      {MPI_INT16_T, integer},
      {MPI_INT32_T, integer},
      {MPI_INT64_T, integer},
      {MPI_UNSIGNED_CHAR, unsigned_integer},
      {MPI_UNSIGNED_SHORT, unsigned_integer},
      {MPI_UNSIGNED, unsigned_integer},
      {MPI_UNSIGNED_LONG, unsigned_integer},
      {MPI_UNSIGNED_LONG_LONG, unsigned_integer},
      {MPI_UINT8_T, unsigned_integer},
      {MPI_UINT16_T, unsigned_integer},
      {MPI_UINT32_T, unsigned_integer},
      {MPI_UINT64_T, unsigned_integer},
      {MPI_AINT, plain_integer},
      {MPI_OFFSET, plain_integer},
      {MPI_COUNT, plain_integer},
      {MPI_BYTE, byte},
      {MPI_FLOAT, floating},
      {MPI_DOUBLE, floating},
      {MPI_LONG_DOUBLE, long_floating},
      {MPI_C_BOOL, logical},
      {MPI_C_FLOAT_COMPLEX, complex},
      {MPI_C_DOUBLE_COMPLEX, complex},
      {MPI_C_LONG_DOUBLE_COMPLEX, long_complex},
      {MPI_CXX_BOOL, logical},
      {MPI_CXX_FLOAT_COMPLEX, complex},
      {MPI_CXX_DOUBLE_COMPLEX, complex},
      {MPI_CXX_LONG_DOUBLE_COMPLEX, long_complex},
      {MPI_FLOAT_INT, pair, Type::float32_int32},
      {MPI_DOUBLE_INT, pair, Type::float64_int32},
      {MPI_LONG_INT, pair, Type::int64_int32},
      {MPI_2INT, pair, Type::int32_int32},
      {MPI_SHORT_INT, pair, Type::int16_int32},
      {MPI_LONG_DOUBLE_INT, pair, Type::float80_int32},
  };
}

std::vector<TypeRow> list_fortran_types() {
  using enum Family;
  return {
      {MPI_INTEGER, plain_integer},
      {MPI_INTEGER1, plain_integer},
      {MPI_INTEGER2, plain_integer},
      {MPI_INTEGER4, plain_integer},
      {MPI_INTEGER8, plain_integer},
      {MPI_REAL, floating},
      {MPI_REAL4, floating},
      {MPI_REAL8, floating},
      {MPI_REAL16, floating},
      {MPI_DOUBLE_PRECISION, floating},
      {MPI_COMPLEX, complex},
      {MPI_COMPLEX8, complex},
      {MPI_COMPLEX16, complex},
      {MPI_COMPLEX32, complex},
      {MPI_DOUBLE_COMPLEX, complex},
      {MPI_LOGICAL, logical},
#ifdef MPI_LOGICAL1
      {MPI_LOGICAL1, logical},
      {MPI_LOGICAL2, logical},
      {MPI_LOGICAL4, logical},
      {MPI_LOGICAL8, logical},
#endif
      {MPI_2INTEGER, pair, Type::int32_int32},
      {MPI_2REAL, pair, Type::float32_float32},
      {MPI_2DOUBLE_PRECISION, pair, Type::float64_float64},
  };
}

// The kernels' type for a row whose elements have `size` bytes.
std::optional<Type> type_of(const TypeRow& row, size_t size) {
  const auto sized = [size](std::initializer_list<std::pair<size_t, Type>> types) {
    for (const auto& [bytes, type] : types) {
      if (bytes == size) return std::optional<Type>(type);
    }
    return std::optional<Type>();
  };
  using enum Type;
  switch (row.family) {
    case Family::integer:
    case Family::plain_integer:
      return sized({{1, int8}, {2, int16}, {4, int32}, {8, int64}});
    case Family::unsigned_integer:
    case Family::byte:
      return sized({{1, uint8}, {2, uint16}, {4, uint32}, {8, uint64}});
    case Family::f90_floating:
      return sized({{4, float32}, {8, float64}});
    case Family::f90_complex:
      return sized({{8, complex64}, {16, complex128}});
    case Family::floating:
      return sized({{4, float32}, {8, float64}, {16, float128}});
    case Family::long_floating:
      return sized({{16, float80}, {8, float64}});
    case Family::complex:
      return sized({{8, complex64}, {16, complex128}, {32, complex256}});
    case Family::long_complex:
      return sized({{32, complex160}, {16, complex128}});
    case Family::logical:
      return sized({{1, logical8}, {2, logical16}, {4, logical32}, {8, logical64}});
    case Family::pair:
    case Family::narrow:
      return row.type;
    case Family::none:
      return {};
  }
  return {};
}

struct PredefinedType {
  Datatype datatype;
  Type type;
  Family family;
  std::shared_ptr<const Layout> layout = {};  // of pairs with gaps
};

bool before(const PredefinedType& a, const PredefinedType& b) {
  return std::less<>()(a.datatype.handle, b.datatype.handle);
}

std::optional<PredefinedType> describe_predefined(const TypeRow& row) {
  Datatype datatype;
  if (!measure_datatype(row.handle, &datatype)) return {};
  const std::optional<Type> type = type_of(row, datatype.size);
  // Types that MPI packs in another size than the kernels' are left to MPI.
  if (!type || datatype.size != size_of(*type)) return {};
  datatype.run = true;
  if (datatype.is_dense(2)) return PredefinedType{datatype, *type, row.family};
  auto layout = std::make_shared<Layout>();
  if (row.family != Family::pair || !read_layout(row.handle, layout.get())) return {};
  datatype.start = layout->start();
  datatype.run = layout->is_run();
  datatype.layout = layout.get();
  return PredefinedType{datatype, *type, row.family, std::move(layout)};
}

// The types that Fortran programs request by precision (MPI_Type_create_f90_real and the like) are
// predefined, too, but have no named handles.
Family family_of_f90(MPI_Datatype handle) {
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  const bool told = !real().Type_get_envelope(handle, &integers, &addresses, &types, &combiner);
  if (told && combiner == MPI_COMBINER_F90_INTEGER) return Family::plain_integer;
  if (told && combiner == MPI_COMBINER_F90_REAL) return Family::f90_floating;
  if (told && combiner == MPI_COMBINER_F90_COMPLEX) return Family::f90_complex;
  return Family::none;
}

// All rows that this MPI has, by handle. (It may know a handle and not support the type.)
std::vector<PredefinedType> list_predefined() {
  std::vector<TypeRow> rows = list_c_types();
  const std::vector<TypeRow> more = list_fortran_types();
  rows.insert(rows.end(), more.begin(), more.end());
  std::vector<PredefinedType> list;
  for (const TypeRow& row : rows) {
    if (row.handle == MPI_Datatype{} || !is_committed(row.handle)) continue;
    if (const auto known = describe_predefined(row)) list.push_back(*known);
  }
  std::ranges::sort(list, before);
  return list;
}

std::optional<PredefinedType> find_predefined(MPI_Datatype handle) {
  static const auto& list = *new std::vector<PredefinedType>(list_predefined());  // outlives exit()
  PredefinedType wanted{};
  wanted.datatype.handle = handle;
  const auto found = std::ranges::lower_bound(list, wanted, before);
  if (found != list.end() && found->datatype.handle == handle) return *found;
  if (const auto narrow = narrow_float(handle)) {
    return describe_predefined({handle, Family::narrow, *narrow});
  }
  bool committed = false;
  if (!is_datatype(handle, &committed)) return {};
  // With MPI 5's ABI, MPI may have Fortran's types only since the list was made: once the program
  // has told their sizes (MPI_Abi_set_fortran_info), which is before or after on each rank.
  for (const TypeRow& row : list_fortran_types()) {
    if (committed && row.handle == handle) return describe_predefined(row);
  }
  return describe_predefined({handle, family_of_f90(handle)});
}

std::optional<Op> find_op(MPI_Op handle) {
  struct OpRow {
    MPI_Op handle;
    Op op;
  };
  static const OpRow rows[] = {
      {MPI_SUM, Op::sum},          {MPI_PROD, Op::prod},        {MPI_MIN, Op::min},
      {MPI_MAX, Op::max},          {MPI_LAND, Op::logical_and}, {MPI_LOR, Op::logical_or},
      {MPI_LXOR, Op::logical_xor}, {MPI_BAND, Op::bit_and},     {MPI_BOR, Op::bit_or},
      {MPI_BXOR, Op::bit_xor},     {MPI_MINLOC, Op::minloc},    {MPI_MAXLOC, Op::maxloc},
  };
  for (const OpRow& row : rows) {
    if (row.handle == handle) return row.op;
  }
  return {};
}

// Whether MPI predefines the operation; also true for the null operation and those for RMA windows
// alone.
bool is_predefined(MPI_Op handle) {
  static const MPI_Op others[] = {
      MPI_Op{},  // no handle at all
      MPI_OP_NULL, MPI_REPLACE, MPI_NO_OP,
#ifdef MPIX_EQUAL
      MPIX_EQUAL,
#endif
  };
  return std::ranges::find(others, handle) != std::end(others) || find_op(handle);
}

// Nothing is cached: the program may free an operation, and MPI reuse its handle.
const Reducible* find_user_defined(MPI_Datatype handle, MPI_Op op, Reducible* found) {
  const Datatype* datatype = find_datatype(handle);
  int commutes = 0;
  if (!datatype || datatype->size == 0 || !is_operation(op)) return nullptr;
  if (real().Op_commutative(op, &commutes)) return nullptr;
  *found = {*datatype, {UserOperation::kernel, nullptr, commutes != 0}, true};
  return found;
}

// Whether MPI defines an operation on a family; the kernels can do more (MPI, section "Predefined
// Reduction Operations").
bool is_defined(Family family, Op op) {
  const bool logical = op == Op::logical_and || op == Op::logical_or || op == Op::logical_xor;
  const bool bits = op == Op::bit_and || op == Op::bit_or || op == Op::bit_xor;
  if (family == Family::byte) return bits;
  return family != Family::plain_integer || !logical;
}

// This thread's last reduction. Reused only for predefined types and operations, which MPI never
// frees.
struct LastReduction {
  MPI_Datatype datatype{};
  MPI_Op op{};
  Reducible reducible;
};
constinit thread_local LastReduction last_reduction __attribute__((tls_model("initial-exec")));

}  // namespace

const Reducible* find_reducible(MPI_Datatype datatype, MPI_Op op) {
  LastReduction& last = last_reduction;
  if (last.datatype == datatype && last.op == op && last.reducible.reduction.kernel &&
      !last.reducible.user_defined) {
    return &last.reducible;
  }
  if (!is_predefined(op)) return find_user_defined(datatype, op, &last.reducible);
  const std::optional<PredefinedType> known = find_predefined(datatype);
  const std::optional<Op> kernel_op = find_op(op);
  if (!known || !kernel_op || !is_defined(known->family, *kernel_op)) return nullptr;
  const ReduceKernel kernel = find_kernel(*kernel_op, known->type);
  if (!kernel) return nullptr;
  last = {datatype,
          op,
          {known->datatype, {kernel, nullptr, true, Arithmetic{known->type, *kernel_op}}, false}};
  return &last.reducible;
}

}  // namespace sluice
