// SPDX-License-Identifier: BSD-3-Clause
//
// thrown CASE... [--driver PATH]: error handlers that throw, in calls with an error on new
// communicators. The program catches what they throw, whoever has called the handler, and goes on.
// --driver: loads this CUDA driver first.
//   own      Sluice has the error: this rank sends itself more than it receives
//   invalid  MPI has it: the root of a broadcast
//   null     Sluice has it: in a call with several buffers, one is null
//   root     MPI has it: the root of such a broadcast
//   cut      MPI has it, in a trial's call by MPI: rank 0 sends too much in call 69, the first
//   timed
//            one of MPI's. (Rank 1 alone, and only Open MPI goes on)
#include <mpi.h>
//
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "sluice/sluice.h"
#include "tests/mpi/harness.h"

namespace {

using test::rank, test::size;

struct Thrown {
  int code;
};

void throw_code(MPI_Comm*, int* code, ...) { throw Thrown{*code}; }
void throw_bad_alloc(MPI_Comm*, int*, ...) { throw std::bad_alloc(); }

// Looked up, so that the program starts without Sluice, too.
template <typename Function>
Function* in_sluice(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (!found) test::fail(std::string(name) + " is not there: Sluice is not loaded");
  return reinterpret_cast<Function*>(found);
}
#define IN_SLUICE(function) in_sluice<decltype(function)>(#function)

void reduce_nothing(MPI_Comm comm) {
  double first = 1;
  void* both[] = {&first, nullptr};
  (void)IN_SLUICE(sluice_allreduce_multi)(both, 2, 1, MPI_DOUBLE, MPI_SUM, comm);
}

void broadcast_from_nobody(MPI_Comm comm) {
  double first = 1, second = 2;
  void* both[] = {&first, &second};
  (void)IN_SLUICE(sluice_bcast_multi)(both, 2, 1, MPI_DOUBLE, -7, comm);
}

void broadcast_too_much(MPI_Comm comm) {
  std::vector<char> data(200);
  for (int call = 1; call <= 69; ++call) {
    const int count = call == 69 && rank == 0 ? 101 : 100;  // (of one class)
    MPI_Bcast(data.data(), count, MPI_CHAR, 0, comm);
  }
}

void make_call(const std::string& which, MPI_Comm comm) {
  std::vector<int> in(static_cast<size_t>(size) * 2), out(in.size());
  if (which == "own") {
    MPI_Alltoall(in.data(), 2, MPI_INT, out.data(), 1, MPI_INT, comm);
  } else if (which == "invalid") {
    MPI_Bcast(out.data(), 1, MPI_INT, -7, comm);
  } else if (which == "null") {
    reduce_nothing(comm);
  } else if (which == "root") {
    broadcast_from_nobody(comm);
  } else if (which == "cut") {
    broadcast_too_much(comm);
  } else {
    test::fail("no such case: " + which);
  }
}

// What the handler throws arrives here.
std::string catch_from(const std::string& which, MPI_Comm_errhandler_function* handler) {
  MPI_Errhandler throwing;
  MPI_Comm comm;
  std::string caught = "nothing";
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handler, &throwing);
  MPI_Comm_set_errhandler(comm, throwing);
  try {
    make_call(which, comm);
  } catch (const Thrown& thrown) {
    caught = thrown.code == MPI_SUCCESS ? "success" : "an error";
  } catch (const std::bad_alloc&) {
    caught = "bad_alloc";
  }
  MPI_Errhandler_free(&throwing);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (which != "cut") MPI_Comm_free(&comm);  // (a message may still be under way there)
  return caught;
}

void try_case(const std::string& which) {
  const bool has_error = which != "cut" || rank == 1;
  for (const bool is_code : {true, false}) {
    const std::string caught = catch_from(which, is_code ? throw_code : throw_bad_alloc);
    const std::string expected = !has_error ? "nothing" : is_code ? "an error" : "bad_alloc";
    test::check(caught == expected, which + ": caught " + caught + " instead of " + expected);
  }
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  test::check(sum == size, "a call after " + which);
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) != "--driver") {
      try_case(argv[i]);
    } else if (!dlopen(argv[++i], RTLD_NOW | RTLD_LOCAL)) {
      test::fail("the driver can't be loaded");
    }
  }
  return test::finish("thrown");
}
