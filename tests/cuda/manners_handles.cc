// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes whose handles MPI gives again to other types, in calls that MPI does.
#include <memory>
#include <utility>

#include "tests/cuda/manners.h"

namespace {

constexpr int attempts = 1000;

// A communicator whose calls are left to MPI.
MPI_Comm make_comm_for_mpi() {
  MPI_Comm comm;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "sluice", "off");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  return comm;
}

// `ints` of them; 0: a type without data.
MPI_Datatype make_type(int ints) {
  MPI_Datatype type;
  MPI_Type_contiguous(ints, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

// A type of so many ints with this handle, which is free; MPI_DATATYPE_NULL if MPI gives others.
MPI_Datatype make_type_again(MPI_Datatype handle, int ints) {
  std::vector<MPI_Datatype> others;
  MPI_Datatype type = make_type(ints);
  while (type != handle && others.size() < attempts) {
    others.push_back(type);
    type = make_type(ints);
  }
  for (MPI_Datatype& other : others) MPI_Type_free(&other);
  if (type != handle) MPI_Type_free(&type);  // now MPI_DATATYPE_NULL
  return type;
}

// An element of so many ints to broadcast, in memory on the device.
class Element {
 public:
  explicit Element(int ints) : both_(Kind::device, 800), expected_(200, -1) {
    std::vector<int> values = expected_;
    for (size_t i = 0; i < static_cast<size_t>(ints); ++i) {
      expected_[i] = static_cast<int>(i);
      values[i] = rank == 0 ? expected_[i] : -2;
    }
    both_.put(values);
  }
  void broadcast(MPI_Datatype type, MPI_Comm comm) { MPI_Bcast(both_.data(), 1, type, 0, comm); }
  void check(const std::string& what) const {
    test::check(both_.get<int>(expected_.size()) == expected_, what);
  }

 private:
  KindMemory both_;
  std::vector<int> expected_;
};

// The first type is used once, by a call that MPI or Sluice does; then its handle means the second.
// Allocations freed after the first type are given again before its description's memory is, so
// that a mistake reads what it said; under Open MPI it does so without them.
void reuse(int ints, int later_ints, size_t spare, MPI_Comm first, MPI_Comm later) {
  Element element(ints), later_element(later_ints);
  std::vector<std::unique_ptr<char[]>> spares;
  for (size_t i = 0; i < spare; ++i) spares.push_back(std::make_unique<char[]>(16 * (i / 5 + 1)));
  MPI_Datatype type = make_type(ints);
  const MPI_Datatype handle = type;
  element.broadcast(type, first);
  MPI_Type_free(&type);
  spares.clear();
  type = make_type_again(handle, later_ints);
  const bool is_same = type == handle;
  if (!is_same) type = make_type(later_ints);
  later_element.broadcast(type, later);
  MPI_Type_free(&type);
  const std::string what = std::to_string(ints) + " ints, then " + std::to_string(later_ints);
  test::check(is_same, "MPI gives no handle again");
  element.check(what + ": the first type");
  later_element.check(what + ": the second type");
}

}  // namespace

void handles() {
  MPI_Comm by_mpi = make_comm_for_mpi();
  for (MPI_Comm first : {MPI_COMM_WORLD, by_mpi}) {
    for (const auto& [ints, later] : {std::pair{0, 100}, {10, 100}, {100, 10}, {100, 0}}) {
      for (const size_t spare : {0, 100}) reuse(ints, later, spare, first, by_mpi);
    }
  }
  MPI_Comm_free(&by_mpi);
}
