// SPDX-License-Identifier: BSD-3-Clause
//
// persistent: persistent collectives, each of them and in patterns: started in other orders on
// other ranks, among other requests, with what the program frees meanwhile, and failing.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "sluice/sluice.h"
#include "tests/mpi/harness.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define INIT(function) MPI_##function##_init
#define HAS_PERSISTENT 1
#elif defined OMPI_HAVE_MPI_EXT_PCOLLREQ
#define INIT(function) MPIX_##function##_init
#define HAS_PERSISTENT 1
#define IS_EXTENSION 1
#endif

#ifdef HAS_PERSISTENT

namespace {

bool is_carried = false;           // by Sluice
constexpr unsigned watchdog = 60;  // seconds per pattern

struct Place {
  MPI_Comm comm;
  int rank, size;
};

// A persistent sum and its data.
struct Sum {
  Sum(Place at, int count) : at_(at), from(count), to(count, -1) {
    INIT(Allreduce)
    (from.data(), to.data(), count, MPI_INT, MPI_SUM, at.comm, MPI_INFO_NULL, &request);
  }
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
  ~Sum() {
    if (request == MPI_REQUEST_NULL) return;
    MPI_Request_free(&request);
    test::check(request == MPI_REQUEST_NULL, "a request that was freed is null");
  }

  void fill(int which) {
    for (size_t i = 0; i < from.size(); ++i) from[i] = at_.rank * 1000 + value(i, which);
    std::ranges::fill(to, -1);
    which_ = which;
  }
  void start(int which) {
    fill(which);
    MPI_Start(&request);
  }
  // The first element that is wrong; its number is that of elements if none is.
  size_t find_wrong() const {
    size_t i = 0;
    while (i < to.size() && to[i] == expected(i)) ++i;
    return i;
  }
  void check(const char* what) const {
    const size_t i = find_wrong();
    if (i < to.size()) {
      test::fail(std::string(what) + ": element " + std::to_string(i) + " is " +
                 std::to_string(to[i]) + ", not " + std::to_string(expected(i)));
    }
    test::check(true, what);
  }

 private:
  static int value(size_t i, int which) { return static_cast<int>(i % 97) + which; }
  int expected(size_t i) const {
    return at_.size * (at_.size - 1) / 2 * 1000 + at_.size * value(i, which_);
  }
  Place at_;
  int which_ = 0;

 public:
  std::vector<int> from, to;
  MPI_Request request = MPI_REQUEST_NULL;
};

void wait(Sum& sum, const char* what) {
  MPI_Wait(&sum.request, MPI_STATUS_IGNORE);
  test::check(sum.request != MPI_REQUEST_NULL, "a wait frees no persistent request");
  sum.check(what);
}

constexpr int long_count = 300000;

// Each collective's data: blocks of `count` elements for each rank, some of them shorter where
// blocks may differ.
struct Data {
  Place at;
  int count, root;
  std::vector<int> from, to, counts, own_counts, places;
};

struct Kind {
  const char* name;
  void (*init)(Data& data, MPI_Request* request);
  void (*call)(Data& data);  // the blocking one
};

#define KIND(function, ...)                                                                   \
  {                                                                                           \
#function,                                                                                  \
        [](Data& d, MPI_Request* request) {                                                     \
          INIT(function)(__VA_ARGS__ __VA_OPT__(, ) d.at.comm, MPI_INFO_NULL, request);         \
        },                                                                                      \
        [](Data& d) { MPI_##function(__VA_ARGS__ __VA_OPT__(, ) d.at.comm); } \
  }
#define FROM d.from.data(), d.count, MPI_INT
#define FROM_BLOCKS d.from.data(), d.counts.data(), d.places.data(), MPI_INT
#define FROM_OWN d.from.data(), d.counts[d.at.rank], MPI_INT
#define TO d.to.data(), d.count, MPI_INT
#define TO_BLOCKS d.to.data(), d.counts.data(), d.places.data(), MPI_INT
#define TO_OWN d.to.data(), d.counts[d.at.rank], MPI_INT
#define REDUCES d.from.data(), d.to.data(), d.count, MPI_INT, MPI_SUM

// (In alltoallv each rank sends blocks as long as its own.)
const Kind kinds[] = {
    KIND(Barrier),
    KIND(Allreduce, REDUCES),
    KIND(Reduce, REDUCES, d.root),
    KIND(Scan, REDUCES),
    KIND(Exscan, REDUCES),
    KIND(Reduce_scatter_block, REDUCES),
    KIND(Reduce_scatter, d.from.data(), d.to.data(), d.counts.data(), MPI_INT, MPI_SUM),
    KIND(Bcast, TO, d.root),
    KIND(Gather, FROM, TO, d.root),
    KIND(Gatherv, FROM_OWN, TO_BLOCKS, d.root),
    KIND(Scatter, FROM, TO, d.root),
    KIND(Scatterv, FROM_BLOCKS, TO_OWN, d.root),
    KIND(Allgather, FROM, TO),
    KIND(Allgatherv, FROM_OWN, TO_BLOCKS),
    KIND(Alltoall, FROM, TO),
    KIND(Alltoallv, d.from.data(), d.own_counts.data(), d.places.data(), MPI_INT, TO_BLOCKS),
};

Data make_data(Place at, int count) {
  Data data{at, count, at.size - 1, {}, {}, {}, {}, {}};
  for (int rank = 0; rank < at.size; ++rank) {
    data.counts.push_back(count - std::min(rank, count));
    data.places.push_back(rank * count);
  }
  data.own_counts.assign(at.size, data.counts[at.rank]);
  data.from.resize(static_cast<size_t>(at.size) * count + 1);
  data.to.resize(data.from.size());
  return data;
}

void fill(Data& data, int round) {
  for (size_t i = 0; i < data.from.size(); ++i) {
    data.from[i] = data.at.rank * 1000 + static_cast<int>(i % 89) + round;
    data.to[i] = -data.from[i];
  }
}

void run_kind(const Kind& kind, Place at, int count) {
  Data data = make_data(at, count);
  MPI_Request request = MPI_REQUEST_NULL;
  kind.init(data, &request);
  for (int round = 0; round < 5; ++round) {
    fill(data, round);
    kind.call(data);
    const std::vector<int> expected = data.to;
    fill(data, round);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    test::check(data.to == expected, std::string(kind.name) + " of " + std::to_string(count) +
                                         ": start " + std::to_string(round));
  }
  MPI_Request_free(&request);
}

void all_kinds(Place at) {
  for (const Kind& kind : kinds) {
    for (const int count : {0, 1, 60, 20000}) run_kind(kind, at, count);
  }
}

#if MPI_VERSION >= 4
void large_counts(Place at) {
  for (const int count : {3, 30000}) {
    std::vector<int> from(count), to(count), moved(count);
    MPI_Request requests[2];
    MPI_Allreduce_init_c(from.data(), to.data(), count, MPI_INT, MPI_SUM, at.comm, MPI_INFO_NULL,
                         &requests[0]);
    MPI_Bcast_init_c(moved.data(), count, MPI_INT, 0, at.comm, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < 3; ++round) {
      std::ranges::fill(from, at.rank + round);
      std::ranges::fill(moved, at.rank == 0 ? round : -1);
      MPI_Startall(2, requests);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      test::check(to.back() == at.size * (at.size - 1) / 2 + at.size * round, "Allreduce_init_c");
      test::check(moved.back() == round, "Bcast_init_c");
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  }
}
#else
void large_counts(Place) {}
#endif

// Ranks start requests in different orders, between blocking and non-blocking calls.
void other_orders(Place at) {
  Sum short_sum(at, 5), long_sum(at, 30000), middle(at, 700);
  Sum* const sums[] = {&short_sum, &long_sum, &middle};
  for (int round = 0; round < 30; ++round) {
    int one = 1, all = 0, more = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < 3; ++i) {
      sums[(i + at.rank + round) % 3]->start(round);
      if (i == at.rank % 3) {
        MPI_Iallreduce(&one, &more, 1, MPI_INT, MPI_SUM, at.comm, &request);
      }
    }
    if (round % 3 == 0) MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, at.comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    test::check(more == at.size, "a non-blocking call among starts");
    for (int i = 0; i < 3; ++i) wait(*sums[(2 * i + at.rank) % 3], "in another order");
  }
}

// A rank runs ahead: it starts a request again before others have read its last data.
void ahead(Place at) {
  std::vector<int> data(60);
  MPI_Request request = MPI_REQUEST_NULL;
  INIT(Bcast)(data.data(), 60, MPI_INT, 0, at.comm, MPI_INFO_NULL, &request);
  for (int round = 0; round < 300; ++round) {
    std::ranges::fill(data, at.rank == 0 ? round : -1);
    if (at.rank == at.size - 1 && round % 50 == 1) usleep(1000);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    test::check(data.front() == round && data.back() == round,
                "a broadcast by a rank that is ahead");
  }
  MPI_Request_free(&request);
}

void while_in_recv(Place at) {
  for (const int count : {1, 1000, long_count}) {
    Sum sum(at, count);
    for (int round = 0; round < 3; ++round) {
      int token = 0;
      sum.start(round);
      if (at.rank == 0) {
        for (int peer = 1; peer < at.size; ++peer) {
          MPI_Recv(&token, 1, MPI_INT, peer, 0, at.comm, MPI_STATUS_IGNORE);
        }
        wait(sum, "in MPI_Recv");
      } else {
        wait(sum, "in MPI_Recv");
        MPI_Send(&token, 1, MPI_INT, 0, 0, at.comm);
      }
    }
  }
}

// Waits until all requests are done, by another function each time.
void wait_for_all(std::vector<MPI_Request>& requests, int by) {
  const int count = static_cast<int>(requests.size());
  std::vector<int> indices(count);
  int seen = 0, some = 0, index = 0, flag = 0;
  switch (by) {
    case 0:
      MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
      break;
    case 1:
      for (; seen < count; ++seen) {
        MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
        test::check(index >= 0 && index < count, "Waitany names an active request");
      }
      break;
    case 2:
      for (; seen < count; seen += some) {
        MPI_Testsome(count, requests.data(), &some, indices.data(), MPI_STATUSES_IGNORE);
        test::check(some != MPI_UNDEFINED, "Testsome knows active requests");
      }
      break;
    case 3:
      for (; seen < count; seen += some) {
        MPI_Waitsome(count, requests.data(), &some, indices.data(), MPI_STATUSES_IGNORE);
        test::check(some != MPI_UNDEFINED, "Waitsome knows active requests");
      }
      break;
    case 4:
      for (; seen < count; seen += flag) {
        MPI_Testany(count, requests.data(), &index, &flag, MPI_STATUS_IGNORE);
        test::check(!flag || index != MPI_UNDEFINED, "Testany knows active requests");
      }
      break;
    default:
      while (!flag) MPI_Testall(count, requests.data(), &flag, MPI_STATUSES_IGNORE);
      break;
  }
  MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
  test::check(index == MPI_UNDEFINED, "no request is active once all are done");
}

// Among persistent messages of MPI's, started together.
void mixed_requests(Place at) {
  const int next = (at.rank + 1) % at.size, previous = (at.rank + at.size - 1) % at.size;
  int sent = 0, received = -1, moved = -1;
  Sum one(at, 5), two(at, 5000);
  std::vector<MPI_Request> requests(5);
  MPI_Recv_init(&received, 1, MPI_INT, previous, 5, at.comm, &requests[0]);
  requests[1] = one.request;
  MPI_Send_init(&sent, 1, MPI_INT, next, 5, at.comm, &requests[2]);
  requests[3] = two.request;
  INIT(Bcast)(&moved, 1, MPI_INT, 0, at.comm, MPI_INFO_NULL, &requests[4]);
  const std::vector<MPI_Request> made = requests;
  for (int round = 0; round < 60; ++round) {
    sent = at.rank + round;
    moved = at.rank == 0 ? round : -1;
    one.fill(round);
    two.fill(round + 1);
    MPI_Startall(5, requests.data());
    wait_for_all(requests, round % 6);
    test::check(requests == made, "persistent requests stay");
    test::check(received == previous + round && moved == round, "what was started together");
    one.check("a mix of requests");
    two.check("a mix of requests");
  }
  for (const int i : {0, 2, 4}) MPI_Request_free(&requests[i]);
}

void statuses(Place at) {
  Sum sum(at, 10);
  int flag = 0;
  MPI_Status status;
  MPI_Request_get_status(sum.request, &flag, &status);
  test::check(flag != 0, "an inactive request is done");
  sum.start(1);
  for (flag = 0; !flag;) MPI_Request_get_status(sum.request, &flag, &status);
  MPI_Wait(&sum.request, &status);
  int elements = -1;
  MPI_Get_count(&status, MPI_BYTE, &elements);
  test::check(elements == 0, "the status is empty");
  sum.check("after its status");
  MPI_Wait(&sum.request, &status);
  test::check(sum.request != MPI_REQUEST_NULL, "a wait for an inactive request returns");
}

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// What the program frees while requests that need it exist; data with gaps is packed at each start.
void freed_meanwhile(Place at) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(at.comm, &comm);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(add, 1, &op);
  MPI_Datatype number = MPI_DATATYPE_NULL, gaps = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(1, MPI_INT, &number);
  MPI_Type_commit(&number);
  MPI_Type_vector(100, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  std::vector<int> from(500), to(500), moved(200), sum(200);
  MPI_Request requests[3];
  INIT(Allreduce)(from.data(), to.data(), 500, number, op, comm, MPI_INFO_NULL, &requests[0]);
  INIT(Bcast)(moved.data(), 1, gaps, 0, comm, MPI_INFO_NULL, &requests[1]);
  INIT(Allgather)
  (from.data(), 1, MPI_INT, to.data() + 499 - at.size, 1, MPI_INT, comm, MPI_INFO_NULL,
   &requests[2]);
  MPI_Request_free(&requests[2]);
  MPI_Op_free(&op);
  MPI_Type_free(&number);
  MPI_Type_free(&gaps);
  MPI_Comm_free(&comm);
  for (int round = 0; round < 10; ++round) {
    std::ranges::fill(from, at.rank + round);
    std::ranges::fill(moved, at.rank == 0 ? round : -1);
    if (round % 2 == 1 && at.rank == 0) usleep(1000);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    const int expected = at.size * (at.size - 1) / 2 + at.size * round;
    test::check(to.front() == expected && to.back() == expected, "an operation that was freed");
    test::check(moved[0] == round && moved[198] == round, "a type that was freed");
    test::check(moved[199] == (at.rank == 0 ? round : -1), "gaps stay");
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

// A request is freed while its call runs: MPI forbids it, but the call ends, and nothing breaks.
void freed_active(Place at) {
  for (const int count : {4, long_count}) {
    Sum sum(at, count);
    sum.start(1);
    MPI_Request_free(&sum.request);
    test::check(sum.request == MPI_REQUEST_NULL, "an active request that is freed is null");
    MPI_Request barrier = MPI_REQUEST_NULL;
    for (int over = 0; !over;) {
      int flag = 0;
      MPI_Test(&barrier, &flag, MPI_STATUS_IGNORE);
      const int is_done = sum.find_wrong() == sum.to.size();
      MPI_Allreduce(&is_done, &over, 1, MPI_INT, MPI_MIN, at.comm);
    }
    sum.check("a call of a request that was freed");
  }
}

// A communicator's first call.
void first_call(Place at) {
  for (int round = 0; round < 3; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(at.comm, &comm);
    Sum sum({comm, at.rank, at.size}, 20);
    sum.start(round);
    wait(sum, "a first call");
    MPI_Request_free(&sum.request);
    MPI_Comm_free(&comm);
  }
}

// Ranks free requests in different orders, and make others.
void many(Place at) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Sum>> sums;
    for (int i = 0; i < 25; ++i) sums.push_back(std::make_unique<Sum>(at, i % 6 == 0 ? 3000 : i));
    for (const auto& sum : sums) sum->start(round);
    for (const auto& sum : sums) wait(*sum, "one of many");
    if (at.rank % 2 == 0) std::ranges::reverse(sums);
    while (!sums.empty()) sums.pop_back();
  }
}

// More than a team can name. (Takes long where ranks share processors: only if it is asked for.)
void exhausting(Place at) {
  constexpr int all = 66000;
  Sum kept(at, 3);
  for (int i = 0; i < all; ++i) {
    Sum sum(at, 2);
    if (i % 1000 != 0 && i < 65000) continue;
    sum.start(i);
    kept.start(i + 1);
    wait(sum, "a late request");
    wait(kept, "an early request");
  }
}

struct Pattern {
  const char* name;
  void (*run)(Place at);
  // Whether MPI libraries pass it with calls of their own. (In MPICH 4.0 MPI_Gather_init goes
  // wrong; Open MPI 4.1 uses operations that were freed.)
  bool is_mpis;
};

const Pattern patterns[] = {
    {"all_kinds", all_kinds, false},
    {"large_counts", large_counts, true},
    {"other_orders", other_orders, true},
    {"ahead", ahead, true},
    {"while_in_recv", while_in_recv, true},
    {"mixed_requests", mixed_requests, false},
    {"statuses", statuses, false},
    {"freed_meanwhile", freed_meanwhile, false},
    {"freed_active", freed_active, false},
    {"first_call", first_call, false},
    {"many", many, true},
    {"exhausting", exhausting, false},
};

std::string message_of(int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  return text;
}

void tell(const char* what, int error) {
  std::fprintf(stderr, "rank %d: %s: %s\n", test::rank, what,
               error == MPI_SUCCESS ? "no error" : message_of(error).c_str());
}

// In the init function: the last rank makes another call.
void fail_at_init(Place at) {
  int from = 1, to = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  const int error =
      at.rank == at.size - 1
          ? INIT(Bcast)(&from, 1, MPI_INT, 0, at.comm, MPI_INFO_NULL, &request)
          : INIT(Allreduce)(&from, &to, 1, MPI_INT, MPI_SUM, at.comm, MPI_INFO_NULL, &request);
  tell("init", error);
  test::check(error != MPI_SUCCESS, "an init function reports an error");
}

// differ: the last rank's count is another; late: the last rank starts when rank 0 has given up
// (SLUICE_TIMEOUT); forgotten: nobody waits; twice: the request is active already.
void fail_by(const std::string& how, int count, Place at) {
  const bool is_last = at.rank == at.size - 1;
  MPI_Comm_set_errhandler(at.comm, MPI_ERRORS_RETURN);
  if (how == "init") return fail_at_init(at);
  static std::vector<int> from(count + 1, 1), to(count + 1, 0);  // as long as the call
  static MPI_Request request = MPI_REQUEST_NULL;
  INIT(Allreduce)
  (from.data(), to.data(), how == "differ" && is_last ? count + 1 : count, MPI_INT, MPI_SUM,
   at.comm, MPI_INFO_NULL, &request);
  int token = 0;
  if (how == "late" && is_last) MPI_Recv(&token, 1, MPI_INT, 0, 0, at.comm, MPI_STATUS_IGNORE);
  int error = MPI_Start(&request);
  if (how == "forgotten") return;
  if (how == "twice") {
    const int again = MPI_Start(&request);
    tell("start", again);
    test::check(again != MPI_SUCCESS, "a request can't be started twice");
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    return test::check(error == MPI_SUCCESS && to[0] == at.size, "its first start goes on");
  }
  MPI_Request both[2] = {MPI_REQUEST_NULL, request};
  MPI_Status statuses[2];
  if (error == MPI_SUCCESS) error = MPI_Waitall(2, both, statuses);
  if (error != MPI_SUCCESS) {
    test::check(error == MPI_ERR_IN_STATUS, "the wait's error is in the statuses");
    test::check(statuses[0].MPI_ERROR == MPI_SUCCESS, "no other status has it");
    error = statuses[1].MPI_ERROR;
  }
  if (how == "late" && at.rank == 0) MPI_Send(&token, 1, MPI_INT, at.size - 1, 0, at.comm);
  tell("wait", error);
  if (how == "differ" || at.rank == 0) test::check(error != MPI_SUCCESS, "an error is reported");
  error = MPI_Wait(&request, MPI_STATUS_IGNORE);
  test::check(error == MPI_SUCCESS, "an error is reported once");
  if (how == "differ")
    test::check(MPI_Start(&request) != MPI_SUCCESS, "a failed call can't be repeated");
  MPI_Request_free(&request);
}

// Whether Sluice carries persistent calls.
void check_carrier(const std::string& expected) {
  if (!test::sluice_in_process()) return;
  using Function = const char*(MPI_Comm);
  auto* const last = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  if (!last) test::fail("the library lacks sluice_last_algorithm");
  MPI_Barrier(MPI_COMM_WORLD);
  const Sum sum({MPI_COMM_WORLD, test::rank, test::size}, 1);
  const std::string by = last(MPI_COMM_WORLD);
#ifdef IS_EXTENSION
  test::check(expected == "mpi" || by != "mpi", "a blocking call is done by " + by);
#else
  is_carried = by != "mpi";
  test::check(is_carried == (expected != "mpi"), "a persistent call is done by " + by);
#endif
}

void run(const test::Options& options) {
  const std::string only = options.text("only", "");
  check_carrier(options.text("by", "sluice"));
  const Place at{MPI_COMM_WORLD, test::rank, test::size};
  const std::string how = options.text("fail", "");
  test::check(true, "it got here");
  if (test::rank == 0) std::fprintf(stderr, "carried: %s\n", is_carried ? "yes" : "no");
  if (!how.empty()) return fail_by(how, static_cast<int>(options.number("count", 1)), at);
  for (const Pattern& pattern : patterns) {
    if (only.empty() ? pattern.run == exhausting : only != pattern.name) continue;
    if (!is_carried && !pattern.is_mpis) continue;
    alarm(pattern.run == exhausting ? 5 * watchdog : watchdog);
    if (test::rank == 0) std::fprintf(stderr, "%s\n", pattern.name);
    pattern.run(at);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  alarm(0);
}

}  // namespace

#else

namespace {

void run(const test::Options&) { test::check(true, "this MPI has no persistent collectives"); }

}  // namespace

#endif

int main(int argc, char** argv) {
  test::start(argc, argv);
  run(test::Options(argc, argv));
  return test::finish("persistent");
}
