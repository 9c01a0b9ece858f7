// SPDX-License-Identifier: BSD-3-Clause
//
// payload still|grow: how many bytes MPI itself moves while the messages of each collective grow
// from 8 bytes to 8 MB. The counts come from Open MPI's monitoring component
// (pml_monitoring_enable=2) by MPI_T performance variables. "still": they must not grow, because
// Sluice carries the payload. "grow": they must grow; run without Sluice, this shows that the test
// works. payload BYTES: makes each collective once, with this size; payload-is-not-in-mpi then
// reads the component's output files, which count point-to-point messages, too.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

#include "tests/mpi/harness.h"

namespace {

constexpr int small = 8;
constexpr int big = 8 << 20;

// Bytes that this process passed to MPI's collectives, and to point-to-point if available.
class Counters {
 public:
  Counters() {
    int provided = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session_);
    int variables = 0;
    MPI_T_pvar_get_num(&variables);
    for (int i = 0; i < variables; ++i) add(i);
    test::check(!handles_.empty(), "the monitoring component counts");
  }
  unsigned long read() {
    unsigned long bytes = 0;
    for (size_t i = 0; i < handles_.size(); ++i) {
      std::vector<size_t> values(counts_[i]);
      MPI_T_pvar_read(session_, handles_[i], values.data());
      bytes = std::accumulate(values.begin(), values.end(), bytes);
    }
    return bytes;
  }

 private:
  void add(int index) {
    char name[256] = "", description[4096] = "";
    int name_size = sizeof name, description_size = sizeof description;
    int verbosity, kind, bind, fixed, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;
    if (MPI_T_pvar_get_info(index, name, &name_size, &verbosity, &kind, &type, &values, description,
                            &description_size, &bind, &fixed, &continuous, &atomic)) {
      return;
    }
    if (std::strcmp(name, "pml_monitoring_messages_size") != 0 &&
        std::strcmp(name, "coll_monitoring_messages_size") != 0) {
      return;
    }
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_T_pvar_handle handle;
    int count = 0;
    MPI_T_pvar_handle_alloc(session_, index, &world, &handle, &count);
    if (!continuous) MPI_T_pvar_start(session_, handle);
    handles_.push_back(handle);
    counts_.push_back(static_cast<size_t>(count));
  }

  MPI_T_pvar_session session_;
  std::vector<MPI_T_pvar_handle> handles_;
  std::vector<size_t> counts_;
};

// An operation that returns the last rank's operand.
void keep_right(void*, void*, int*, MPI_Datatype*) {}

class Collectives {
 public:
  Collectives() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Type_create_resized(MPI_CHAR, 0, 2, &spaced_);
    MPI_Type_commit(&spaced_);
    MPI_Op_create(keep_right, 0, &keep_);
    const auto room = 2 * static_cast<size_t>(big) * static_cast<size_t>(size_);
    from_.resize(room);
    to_.resize(room);
  }
  ~Collectives() {
    MPI_Op_free(&keep_);
    MPI_Type_free(&spaced_);
  }

  struct Row {
    std::string name;
    bool has_payload;
    std::function<void(int bytes)> call;
  };
  std::vector<Row> rows() {
    std::vector<Row> all = reductions(MPI_SUM, MPI_DOUBLE, 8, "");
    const std::vector<Row> own = reductions(keep_, spaced_, 1, ", user-defined");
    all.insert(all.end(), own.begin() + 1, own.end());
    for (const bool derived : {false, true}) {
      const std::vector<Row> more = movements(derived);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

 private:
  std::vector<Row> reductions(MPI_Op op, MPI_Datatype type, int size, const std::string& suffix) {
    return {
        {"barrier", false, [](int) { MPI_Barrier(MPI_COMM_WORLD); }},
        {"allreduce" + suffix, true,
         [=, this](int n) { MPI_Allreduce(from(), to(), n / size, type, op, world_); }},
        {"reduce" + suffix, true,
         [=, this](int n) { MPI_Reduce(from(), to(), n / size, type, op, 0, world_); }},
        {"reduce_scatter" + suffix, true,
         [=, this](int n) {
           MPI_Reduce_scatter(from(), to(), counts(n / size), type, op, world_);
         }},
        {"reduce_scatter_block" + suffix, true,
         [=, this](int n) { MPI_Reduce_scatter_block(from(), to(), n / size, type, op, world_); }},
        {"scan" + suffix, true,
         [=, this](int n) { MPI_Scan(from(), to(), n / size, type, op, world_); }},
        {"exscan" + suffix, true,
         [=, this](int n) { MPI_Exscan(from(), to(), n / size, type, op, world_); }}};
  }
  std::vector<Row> movements(bool derived) {
    // One rank has a type with gaps, the others none.
    const MPI_Datatype type = derived && rank_ % 2 == 0 ? spaced_ : MPI_CHAR;
    const std::string suffix = derived ? ", derived" : "";
    return {{"bcast" + suffix, true, [=, this](int n) { MPI_Bcast(to(), n, type, 0, world_); }},
            {"allgather" + suffix, true,
             [=, this](int n) { MPI_Allgather(from(), n, type, to(), n, type, world_); }},
            {"allgatherv" + suffix, true,
             [=, this](int n) {
               MPI_Allgatherv(from(), n, type, to(), counts(n), places(n), type, world_);
             }},
            {"alltoall" + suffix, true,
             [=, this](int n) { MPI_Alltoall(from(), n, type, to(), n, type, world_); }},
            {"alltoallv" + suffix, true,
             [=, this](int n) {
               MPI_Alltoallv(from(), counts(n), places(n), type, to(), counts(n), places(n), type,
                             world_);
             }},
            {"gather" + suffix, true,
             [=, this](int n) { MPI_Gather(from(), n, type, to(), n, type, 0, world_); }},
            {"gatherv" + suffix, true,
             [=, this](int n) {
               MPI_Gatherv(from(), n, type, to(), counts(n), places(n), type, 0, world_);
             }},
            {"scatter" + suffix, true,
             [=, this](int n) { MPI_Scatter(from(), n, type, to(), n, type, 0, world_); }},
            {"scatterv" + suffix, true, [=, this](int n) {
               MPI_Scatterv(from(), counts(n), places(n), type, to(), n, type, 0, world_);
             }}};
  }

  void* from() { return from_.data(); }
  void* to() { return to_.data(); }
  const int* counts(int n) {
    counts_.assign(static_cast<size_t>(size_), n);
    return counts_.data();
  }
  const int* places(int n) {
    places_.resize(static_cast<size_t>(size_));
    for (int i = 0; i < size_; ++i) places_[static_cast<size_t>(i)] = i * n;
    return places_.data();
  }

  const MPI_Comm world_ = MPI_COMM_WORLD;
  int rank_ = 0, size_ = 0;
  MPI_Datatype spaced_;
  MPI_Op keep_;
  std::vector<char> from_, to_;
  std::vector<int> counts_, places_;
};

// The bytes that MPI moved on all ranks in one call.
unsigned long measure(Counters& counters, const Collectives::Row& row, int bytes) {
  const unsigned long before = counters.read();
  row.call(bytes);
  unsigned long moved = counters.read() - before, all = 0;
  IN_MPI(MPI_Allreduce)(&moved, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

void compare(bool must_grow) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Collectives collectives;
  Counters counters;
  for (const Collectives::Row& row : collectives.rows()) {
    row.call(small);  // does one-time set-up
    const unsigned long little = measure(counters, row, small);
    const unsigned long much = measure(counters, row, big);
    const std::string text = row.name + ": MPI moved " + std::to_string(little) + " bytes for 8, " +
                             std::to_string(much) + " for 8 MB";
    if (rank == 0) std::printf("%s\n", text.c_str());
    if (!must_grow) {
      test::check(much == little, text);
    } else if (row.has_payload) {
      test::check(much >= little + big / 2, text);
    }
  }
  test::summarize("payload");
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "still" || mode == "grow") {
    const bool active = test::sluice_in_process();
    test::check(active == (mode == "still"), "Sluice is where it should be");
    compare(mode == "grow");
  } else {
    Collectives collectives;
    for (const Collectives::Row& row : collectives.rows()) row.call(std::atoi(mode.c_str()));
  }
  MPI_Finalize();
}
