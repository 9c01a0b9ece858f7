// SPDX-License-Identifier: BSD-3-Clause
//
// hints: MPI info on communicators, given in every possible way, equal on all ranks or not. The
// program checks what MPI_Comm_get_info returns; test_hints checks the algorithms used and the log
// messages (each communicator has a name). With one rank, cases with differing hints are skipped.
#include <clocale>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "tests/mpi/harness.h"

namespace {

using Pairs = std::initializer_list<std::pair<const char*, const char*>>;

// Owns an MPI_Info.
class Info {
 public:
  Info(Pairs pairs) {
    MPI_Info_create(&info_);
    for (const auto& [key, value] : pairs) MPI_Info_set(info_, key, value);
  }
  ~Info() { MPI_Info_free(&info_); }
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  operator MPI_Info() const { return info_; }

 private:
  MPI_Info info_;
};

MPI_Comm named(MPI_Comm comm, const char* name) {
  MPI_Comm_set_name(comm, name);
  return comm;
}

MPI_Comm duplicate(const char* name, Pairs pairs) {
  MPI_Comm made;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, Info(pairs), &made);
  return named(made, name);
}

void use(MPI_Comm comm) {
  int rank = 0, size = 0, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  test::check(sum == size * (size + 1) / 2, "allreduce");
  int data = rank == 0 ? 4711 : 0;
  MPI_Bcast(&data, 1, MPI_INT, 0, comm);
  test::check(data == 4711, "bcast");
}

// The value that MPI_Comm_get_info returns for a key; empty if none.
std::string shown(MPI_Comm comm, const char* key) {
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  MPI_Comm_get_info(comm, &info);
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
  MPI_Info_free(&info);
  return found ? value : "";
}

void expect(MPI_Comm comm, const char* key, const std::string& value) {
  const std::string seen = shown(comm, key);
  test::check(seen == value, std::string(key) + " is '" + seen + "', not '" + value + "'");
}

void finish(MPI_Comm comm) {
  use(comm);
  MPI_Comm_free(&comm);
}

void made_with() {
  MPI_Comm comm = duplicate(
      "with info", {{"sluice_allreduce", "ring"}, {"sluice_nccl", "on"}, {"unrelated", "yes"}});
  expect(comm, "sluice_allreduce", "ring");
  expect(comm, "sluice_nccl", "on");
  use(comm);
  expect(comm, "sluice_allreduce", "ring");
  MPI_Comm copy;
  MPI_Comm_dup(comm, &copy);
  expect(named(copy, "plain copy"), "sluice_allreduce", "");
  expect(copy, "sluice_nccl", "");
  finish(copy);
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, Info({{"sluice_bcast", "mpi"}}), &copy);
  expect(named(copy, "shared"), "sluice_bcast", "mpi");
  expect(copy, "sluice_allreduce", "");
  finish(copy);
  MPI_Comm_split_type(comm, MPI_UNDEFINED, 0, Info({{"sluice_bcast", "mpi"}}), &copy);
  test::check(copy == MPI_COMM_NULL, "no communicator");
#if MPI_VERSION >= 4
  MPI_Request request;
  MPI_Comm_idup_with_info(comm, Info({{"sluice_allreduce", "ring"}}), &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  finish(named(copy, "in its time"));
#endif
  MPI_Comm_free(&comm);
  finish(duplicate("switched off", {{"sluice", "off"}}));
  finish(duplicate("all to MPI", {{"sluice_allreduce", "mpi"}, {"sluice_bcast", "mpi"}}));
}

// Hints set before a communicator's first call, and after it.
void given_later() {
  MPI_Comm comm = duplicate("unhinted", {});
  MPI_Comm_set_info(comm, Info({{"sluice_allreduce", "binomial"}}));
  use(named(comm, "later 1"));
  MPI_Comm_set_info(
      comm, Info({{"sluice_bcast", "chain"}, {"sluice_nccl", "auto"}, {"unrelated", "yes"}}));
  expect(comm, "sluice_allreduce", "binomial");
  use(named(comm, "later 2"));
  expect(comm, "sluice_nccl", "auto");
  MPI_Comm_set_info(comm, Info({{"sluice_allreduce", "auto"}, {"sluice_nccl", "off"}}));
  expect(comm, "sluice_nccl", "off");
  use(named(comm, "later 3"));
  MPI_Comm_set_info(comm, Info({{"sluice", "off"}}));
  use(named(comm, "later off"));
  MPI_Comm_set_info(comm, Info({{"sluice", "1"}}));
  finish(named(comm, "later on"));
}

// Hints that only some ranks give, or that differ between ranks, have no effect.
void differing() {
  if (test::size < 2) return;
  const bool first = test::rank == 0;
  MPI_Comm comm = duplicate("at odds", {{"sluice_allreduce", first ? "ring" : "binomial"},
                                        {"sluice_bcast", "chain"},
                                        {"sluice_nccl", first ? "on" : "auto"}});
  use(comm);
  expect(comm, "sluice_allreduce", "");
  expect(comm, "sluice_nccl", "");
  expect(comm, "sluice_bcast", "chain");
  finish(comm);
  comm = duplicate("one off", {});
  use(comm);
  if (first) {
    MPI_Comm_set_info(comm, Info({{"sluice", "off"}}));
  } else {
    MPI_Comm_set_info(comm, Info({{"sluice_bcast", "auto"}}));
  }
  finish(comm);
}

void senseless() {
  MPI_Comm comm = duplicate("senseless", {{"sluice_allreduce", "banana"},
                                          {"sluice_alreduce", "ring"},
                                          {"sluice_bcast", "chain"},
                                          {"sluice_nccl", "yes"},
                                          {"sluice", "perhaps"}});
  use(comm);
  for (const char* key : {"sluice_allreduce", "sluice_alreduce", "sluice_nccl", "sluice"})
    expect(comm, key, "");
  expect(comm, "sluice_bcast", "chain");
  finish(comm);
}

void between_groups() {
  if (test::size < 2) return;
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, test::rank % 2, test::rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - test::rank % 2, 7, &between);
  for (int i = 0; i < 2; ++i) {
    int there = 0, one = 1, sum = 0;
    MPI_Comm_remote_size(between, &there);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, between);
    test::check(sum == there, "allreduce between two groups");
    MPI_Comm_set_info(between, Info({{"sluice_allreduce", "ring"}}));
  }
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

// Also the library's start is in the user's locale, except that of MPICH: in a Turkish one
// UCX 1.13, which it starts, doesn't know its own settings.
void start_in_a_locale(int& argc, char**& argv) {
#ifndef MPICH_VERSION
  std::setlocale(LC_ALL, "");
#endif
  test::start(argc, argv);
  std::setlocale(LC_ALL, "");
}

}  // namespace

int main(int argc, char** argv) {
  start_in_a_locale(argc, argv);
  if (test::rank == 0) std::printf("numbers have a %s\n", std::localeconv()->decimal_point);
  made_with();
  given_later();
  differing();
  senseless();
  between_groups();
  return test::finish("hints");
}
