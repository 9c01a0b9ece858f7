// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/numbers.h"

#include <cstdint>
#include <cstring>

namespace test {
namespace {

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void put(std::byte* at, Values values, size_t size, int64_t number) {
  std::memset(at, 0, size);
  if (values == Values::floating && size == sizeof(float)) {
    store(at, static_cast<float>(number));
  } else if (values == Values::floating && size == sizeof(double)) {
    store(at, static_cast<double>(number));
  } else if (values == Values::floating) {
    const auto value = static_cast<long double>(number);
    std::memcpy(at, &value, long_double_bytes);
  } else {
    std::memcpy(at, &number, size);  // two's complement, little-endian
  }
}

void clear(std::byte* at, Values values, size_t size) {
  if (values == Values::floating && size == sizeof(long double)) {
    std::memset(at + long_double_bytes, 0, size - long_double_bytes);
  }
}

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<size_t>(high - low + 1)));
}

Number make_number(MPI_Datatype handle, const char* name, Values values, bool has_logic = true) {
  Number number{handle, name, values, 0};
  number.has_logic = has_logic;
  return number;
}

Number make_pair(MPI_Datatype handle, const char* name, Values first, size_t first_size,
                 size_t index_at, Values second = Values::integer, size_t second_size = 4) {
  return {handle, name, Values::pair, 0, first, first_size, index_at, second, second_size};
}

#define NUMBER(type, ...) make_number(type, #type, __VA_ARGS__)
#define PAIR(type, ...) make_pair(type, #type, __VA_ARGS__)

std::vector<Number> c_numbers() {
  using enum Values;
  return {NUMBER(MPI_SIGNED_CHAR, integer),
          NUMBER(MPI_SHORT, integer),
          NUMBER(MPI_INT, integer),
          NUMBER(MPI_LONG, integer),
          NUMBER(MPI_LONG_LONG, integer),
          NUMBER(MPI_INT8_T, integer),
          NUMBER(MPI_INT16_T, integer),
          NUMBER(MPI_INT32_T, integer),
          NUMBER(MPI_INT64_T, integer),
          NUMBER(MPI_UNSIGNED_CHAR, unsigned_integer),
          NUMBER(MPI_UNSIGNED_SHORT, unsigned_integer),
          NUMBER(MPI_UNSIGNED, unsigned_integer),
          NUMBER(MPI_UNSIGNED_LONG, unsigned_integer),
          NUMBER(MPI_UNSIGNED_LONG_LONG, unsigned_integer),
          NUMBER(MPI_UINT8_T, unsigned_integer),
          NUMBER(MPI_UINT16_T, unsigned_integer),
          NUMBER(MPI_UINT32_T, unsigned_integer),
          NUMBER(MPI_UINT64_T, unsigned_integer),
          NUMBER(MPI_AINT, integer, false),
          NUMBER(MPI_OFFSET, unsigned_integer, false),  // Open MPI 4.1.4 treats it as unsigned
          NUMBER(MPI_COUNT, integer, false),
          NUMBER(MPI_BYTE, bytes),
          NUMBER(MPI_FLOAT, floating),
          NUMBER(MPI_DOUBLE, floating),
          NUMBER(MPI_LONG_DOUBLE, floating),
          NUMBER(MPI_C_BOOL, logical),
          NUMBER(MPI_C_FLOAT_COMPLEX, complex),
          NUMBER(MPI_C_DOUBLE_COMPLEX, complex),
          NUMBER(MPI_C_LONG_DOUBLE_COMPLEX, complex),
          NUMBER(MPI_CXX_BOOL, logical),
          NUMBER(MPI_CXX_FLOAT_COMPLEX, complex),
          NUMBER(MPI_CXX_DOUBLE_COMPLEX, complex),
          NUMBER(MPI_CXX_LONG_DOUBLE_COMPLEX, complex),
          PAIR(MPI_FLOAT_INT, floating, 4, 4),
          PAIR(MPI_DOUBLE_INT, floating, 8, 8),
          PAIR(MPI_LONG_INT, integer, 8, 8),
          PAIR(MPI_2INT, integer, 4, 4),
          PAIR(MPI_SHORT_INT, integer, 2, 4),
          PAIR(MPI_LONG_DOUBLE_INT, floating, 16, 16)};
}

std::vector<Number> fortran_numbers() {
  using enum Values;
  return {NUMBER(MPI_INTEGER, integer, false),
          NUMBER(MPI_INTEGER1, integer, false),
          NUMBER(MPI_INTEGER2, integer, false),
          NUMBER(MPI_INTEGER4, integer, false),
          NUMBER(MPI_INTEGER8, integer, false),
          NUMBER(MPI_REAL, floating),
          NUMBER(MPI_REAL4, floating),
          NUMBER(MPI_REAL8, floating),
          NUMBER(MPI_DOUBLE_PRECISION, floating),
          NUMBER(MPI_COMPLEX, complex),
          NUMBER(MPI_COMPLEX8, complex),
          NUMBER(MPI_COMPLEX16, complex),
          NUMBER(MPI_DOUBLE_COMPLEX, complex),
          NUMBER(MPI_LOGICAL, logical),
          PAIR(MPI_2INTEGER, integer, 4, 4),
          PAIR(MPI_2REAL, floating, 4, 4, floating, 4),
          PAIR(MPI_2DOUBLE_PRECISION, floating, 8, 8, floating, 8)};
}

// MPI returns errors meanwhile.
class Errors {
 public:
  Errors() {
    for (int i = 0; i < 2; ++i) {
      MPI_Comm_get_errhandler(comms_[i], &handlers_[i]);
      MPI_Comm_set_errhandler(comms_[i], MPI_ERRORS_RETURN);
    }
  }
  ~Errors() {
    for (int i = 0; i < 2; ++i) {
      MPI_Comm_set_errhandler(comms_[i], handlers_[i]);
      MPI_Errhandler_free(&handlers_[i]);
    }
  }
  Errors(const Errors&) = delete;
  Errors& operator=(const Errors&) = delete;

 private:
  MPI_Comm comms_[2] = {MPI_COMM_WORLD, MPI_COMM_SELF};
  MPI_Errhandler handlers_[2]{};
};

// A library with MPI 5's ABI that was built without Fortran has its types once it is told their
// sizes.
void tell_of_fortran() {
#ifdef MPI_ABI_VERSION
  const Errors errors;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Abi_get_fortran_info(&info);
  if (info == MPI_INFO_NULL) {
    MPI_Info_create(&info);
    for (const char* four : {"mpi_logical_size", "mpi_integer_size", "mpi_real_size"}) {
      MPI_Info_set(info, four, "4");
    }
    MPI_Info_set(info, "mpi_double_precision_size", "8");
    for (const char* type : {"integer1", "integer2", "integer4", "integer8", "real4", "real8",
                             "complex8", "complex16", "double_complex"}) {
      MPI_Info_set(info, ("mpi_" + std::string(type) + "_supported").c_str(), "true");
    }
    MPI_Abi_set_fortran_info(info);
  }
  MPI_Info_free(&info);
#endif
}

}  // namespace

void Number::draw(MPI_Op op, std::byte* at, int rank, Random& random) const {
  std::memset(at, 0, extent);
  if (values == Values::pair) {
    put(at, first, first_size, between(random, -3, 3));  // few values, so that ties occur
    put(at + index_at, second, second_size, between(random, 0, 99));
    return;
  }
  if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) {
    for (size_t i = 0; i < extent; ++i) at[i] = static_cast<std::byte>(random.next());
    return;
  }
  if (values == Values::complex) {
    // For products: 2+i or its opposite, so that no zero occurs. The sign of a zero would depend on
    // the order.
    const size_t half = extent / 2;
    const bool product = op == MPI_PROD;
    const int64_t sign = random.chance(2) ? 1 : -1;
    put(at, Values::floating, half, product ? 2 * sign : between(random, -9, 9));
    put(at + half, Values::floating, half, product ? sign : between(random, -9, 9));
    return;
  }
  const int64_t least = values == Values::unsigned_integer || values == Values::logical ? 0 : -3;
  int64_t number = between(random, least, 3);
  if (op == MPI_PROD) number = rank < 3 ? between(random, 1, 2) : 1;
  if (op == MPI_LAND || op == MPI_LXOR || op == MPI_LOR) number = between(random, 0, 1);
  put(at, values, extent, number);
}

void Number::clear_padding(std::byte* at) const {
  if (values == Values::pair) return clear(at, first, first_size);
  if (values == Values::complex) {
    clear(at, Values::floating, extent / 2);
    return clear(at + extent / 2, Values::floating, extent / 2);
  }
  clear(at, values, extent);
}

std::vector<std::pair<size_t, size_t>> Number::gaps() const {
  if (values != Values::pair) return {};
  return {{first_size, index_at}, {index_at + second_size, extent}};
}

size_t extent_of(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return 0;
  const Errors errors;
  MPI_Aint lower = 0, extent = 0;
  const int result = MPI_Type_get_extent(type, &lower, &extent);
  return result == MPI_SUCCESS ? static_cast<size_t>(extent) : 0;
}

std::vector<Number> all_numbers() {
  std::vector<Number> all = c_numbers(), fortran = fortran_numbers(), known;
  all.insert(all.end(), fortran.begin(), fortran.end());
  tell_of_fortran();
  for (Number& number : all) {
    number.extent = extent_of(number.handle);
    if (number.extent > 0) known.push_back(number);
  }
  return known;
}

std::vector<Operation> operations_on(const Number& number) {
  const std::vector<Operation> arithmetic = {
      {MPI_SUM, "sum"}, {MPI_PROD, "prod"}, {MPI_MIN, "min"}, {MPI_MAX, "max"}};
  const std::vector<Operation> logic = {{MPI_LAND, "land"}, {MPI_LOR, "lor"}, {MPI_LXOR, "lxor"}};
  const std::vector<Operation> bits = {{MPI_BAND, "band"}, {MPI_BOR, "bor"}, {MPI_BXOR, "bxor"}};
  std::vector<Operation> all;
  const auto add = [&all](const std::vector<Operation>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  switch (number.values) {
    case Values::integer:
    case Values::unsigned_integer:
      add(arithmetic);
      if (number.has_logic) add(logic);
      add(bits);
      return all;
    case Values::floating:
      return arithmetic;
    case Values::complex:
      return {{MPI_SUM, "sum"}, {MPI_PROD, "prod"}};
    case Values::logical:
      return logic;
    case Values::bytes:
      return bits;
    case Values::pair:
      return {{MPI_MINLOC, "minloc"}, {MPI_MAXLOC, "maxloc"}};
  }
  return {};
}

}  // namespace test
