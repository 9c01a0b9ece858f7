// SPDX-License-Identifier: BSD-3-Clause
//
// nonblocking: patterns of non-blocking collectives. In most of them a rank is in another function
// of MPI's while its call must go on; a rank whose call does not would hang.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "sluice/sluice.h"
#include "tests/mpi/harness.h"

namespace {

bool is_carried = false;           // by Sluice
constexpr unsigned watchdog = 60;  // seconds per pattern

struct Place {
  MPI_Comm comm;
  int rank, size;
};

// An allreduce in flight, with its data.
struct Sum {
  Sum(Place at, int count, int which) : at_(at), from(count), to(count, -1) {
    for (int i = 0; i < count; ++i) from[i] = at.rank * 1000 + i % 97 + which;
    MPI_Iallreduce(from.data(), to.data(), count, MPI_INT, MPI_SUM, at.comm, &request);
    which_ = which;
  }
  void check(const char* what) const {
    for (size_t i = 0; i < to.size(); ++i) {
      const int value = static_cast<int>(i % 97) + which_;
      const int expected = at_.size * (at_.size - 1) / 2 * 1000 + at_.size * value;
      if (to[i] != expected) {
        test::fail(std::string(what) + ": element " + std::to_string(i) + " is " +
                   std::to_string(to[i]) + ", not " + std::to_string(expected));
      }
    }
    test::check(true, what);
  }
  Place at_;
  int which_ = 0;
  std::vector<int> from, to;
  MPI_Request request = MPI_REQUEST_NULL;
};

void wait(Sum& sum, const char* what) {
  MPI_Wait(&sum.request, MPI_STATUS_IGNORE);
  test::check(sum.request == MPI_REQUEST_NULL, "the request is freed");
  sum.check(what);
}

constexpr int long_count = 300000;

// Rank 0 gets to its wait only when the others' calls have ended, and these wait for rank 0's part.
void while_in_recv(Place at) {
  for (const int count : {1, 1000, long_count}) {
    Sum sum(at, count, 1);
    int token = 0;
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

void while_in_ssend(Place at) {
  Sum sum(at, long_count, 2);
  int token = 0;
  if (at.rank == 0) {
    for (int peer = 1; peer < at.size; ++peer) MPI_Ssend(&token, 1, MPI_INT, peer, 0, at.comm);
    wait(sum, "in MPI_Ssend");
  } else {
    wait(sum, "in MPI_Ssend");
    MPI_Recv(&token, 1, MPI_INT, 0, 0, at.comm, MPI_STATUS_IGNORE);
  }
}

void while_in_barrier(Place at) {
  Sum sum(at, long_count, 3);
  if (at.rank == 0) {
    MPI_Barrier(at.comm);
    wait(sum, "in MPI_Barrier");
  } else {
    wait(sum, "in MPI_Barrier");
    MPI_Barrier(at.comm);
  }
}

void while_in_fence(Place at) {
  int memory = 0;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, at.comm, &window);
  Sum sum(at, long_count, 4);
  if (at.rank == 0) {
    MPI_Win_fence(0, window);
    wait(sum, "in MPI_Win_fence");
  } else {
    wait(sum, "in MPI_Win_fence");
    MPI_Win_fence(0, window);
  }
  MPI_Win_free(&window);
}

// Rank 0 is in a blocking call on another communicator.
void while_in_other_comm(Place at) {
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Comm_dup(at.comm, &other);
  int one = 1, sum_of_ones = 0;
  MPI_Allreduce(&one, &sum_of_ones, 1, MPI_INT, MPI_SUM, other);
  for (int round = 0; round < 50; ++round) {
    Sum sum(at, round % 2 ? long_count / 10 : 10, round);
    if (at.rank == round % at.size) {
      MPI_Allreduce(&one, &sum_of_ones, 1, MPI_INT, MPI_SUM, other);
      wait(sum, "in a call on another communicator");
    } else {
      wait(sum, "in a call on another communicator");
      MPI_Allreduce(&one, &sum_of_ones, 1, MPI_INT, MPI_SUM, other);
    }
    test::check(sum_of_ones == at.size, "the blocking call");
  }
  MPI_Comm_free(&other);
}

void many_barriers(Place at) {
  std::vector<MPI_Request> requests(1000);
  for (MPI_Request& request : requests) MPI_Ibarrier(at.comm, &request);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (const MPI_Request request : requests) {
    test::check(request == MPI_REQUEST_NULL, "all requests are freed");
  }
}

// Nobody leaves before all have come.
void barrier_holds(Place at) {
  int token = 0, flag = 1;
  MPI_Request request = MPI_REQUEST_NULL;
  if (at.rank == 0) {
    MPI_Recv(&token, 1, MPI_INT, 1, 0, at.comm, MPI_STATUS_IGNORE);
    MPI_Ibarrier(at.comm, &request);
  } else {
    MPI_Ibarrier(at.comm, &request);
    for (int i = 0; at.rank == 1 && i < 1000; ++i) {
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      test::check(flag == 0, "the barrier holds");
    }
    if (at.rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 0, at.comm);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void mixed_requests(Place at) {
  const int next = (at.rank + 1) % at.size, previous = (at.rank + at.size - 1) % at.size;
  for (int round = 0; round < 20; ++round) {
    int sent = at.rank + round, received = -1;
    Sum one(at, 5, round), two(at, 2000, round + 1);
    MPI_Request requests[5] = {one.request, MPI_REQUEST_NULL, MPI_REQUEST_NULL, two.request,
                               MPI_REQUEST_NULL};
    MPI_Irecv(&received, 1, MPI_INT, previous, 5, at.comm, &requests[1]);
    MPI_Isend(&sent, 1, MPI_INT, next, 5, at.comm, &requests[2]);
    MPI_Ibarrier(at.comm, &requests[4]);
    MPI_Status statuses[5];
    int seen = 0, some = 0, indices[5] = {}, index = 0, flag = 0;
    switch (round % 4) {
      case 0:
        MPI_Waitall(5, requests, statuses);
        break;
      case 1:
        for (; seen < 5; ++seen) {
          MPI_Waitany(5, requests, &index, statuses);
          test::check(index >= 0 && index < 5, "Waitany names a request");
        }
        break;
      case 2:
        for (; seen < 5; seen += some) {
          MPI_Testsome(5, requests, &some, indices, statuses);
          test::check(some != MPI_UNDEFINED, "Testsome knows active requests");
        }
        break;
      default:
        while (!flag) MPI_Testall(5, requests, &flag, statuses);
        break;
    }
    for (const MPI_Request request : requests) {
      test::check(request == MPI_REQUEST_NULL, "each request is freed");
    }
    test::check(received == previous + round, "MPI's own message");
    one.check("a mix of requests");
    two.check("a mix of requests");
  }
}

void statuses(Place at) {
  Sum sum(at, 10, 1);
  int flag = 0;
  MPI_Status status;
  std::memset(&status, -1, sizeof status);
  while (!flag) MPI_Request_get_status(sum.request, &flag, &status);
  test::check(sum.request != MPI_REQUEST_NULL, "Request_get_status frees nothing");
  int elements = -1, is_cancelled = -1;
  MPI_Wait(&sum.request, &status);
  MPI_Get_count(&status, MPI_BYTE, &elements);
  MPI_Test_cancelled(&status, &is_cancelled);
  test::check(!is_carried || (elements == 0 && is_cancelled == 0), "the status is empty");
  sum.check("after its status");
}

void add_reversed(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// What the program frees while calls that need it are in flight.
void freed_meanwhile(Place at) {
  for (int round = 0; round < 10; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(at.comm, &comm);
    MPI_Barrier(comm);
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(add_reversed, 1, &op);
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(1, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Datatype gaps = MPI_DATATYPE_NULL;
    MPI_Type_vector(100, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    std::vector<int> from(500, at.rank + 1), to(500, 0), moved(200, at.rank == 0 ? 7 : 0);
    MPI_Request requests[2];
    if (round % 2 == 1 && at.rank == 0) usleep(2000);
    MPI_Iallreduce(from.data(), to.data(), 500, pair, op, comm, &requests[0]);
    MPI_Ibcast(moved.data(), 1, gaps, 0, comm, &requests[1]);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    MPI_Type_free(&gaps);
    MPI_Comm_free(&comm);
    test::check(op == MPI_OP_NULL && pair == MPI_DATATYPE_NULL, "handles are null once freed");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    const int expected = at.size * (at.size + 1) / 2;
    test::check(to.front() == expected && to.back() == expected, "an operation that was freed");
    test::check(moved[198] == 7 && moved[199] == (at.rank == 0 ? 7 : 0), "a type that was freed");
  }
}

// A rank frees the communicator, and only then sends what lets the others start the call.
void freed_before_others_start(Place at) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(at.comm, &comm);
  MPI_Barrier(comm);
  int token = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (at.rank != 0) MPI_Recv(&token, 1, MPI_INT, 0, 9, at.comm, MPI_STATUS_IGNORE);
  MPI_Ibarrier(comm, &request);
  MPI_Comm_free(&comm);
  for (int peer = 1; at.rank == 0 && peer < at.size; ++peer) {
    MPI_Send(&token, 1, MPI_INT, peer, 9, at.comm);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  test::check(request == MPI_REQUEST_NULL, "a call outlives its communicator");
}

// A communicator's first call: MPI may not wait in it for other ranks.
void first_call(Place at) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(at.comm, &comm);
  int token = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (at.rank != 0) MPI_Recv(&token, 1, MPI_INT, 0, 9, at.comm, MPI_STATUS_IGNORE);
  MPI_Ibarrier(comm, &request);
  for (int peer = 1; at.rank == 0 && peer < at.size; ++peer) {
    MPI_Send(&token, 1, MPI_INT, peer, 9, at.comm);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  test::check(request == MPI_REQUEST_NULL, "a first call in flight");
  MPI_Comm_free(&comm);
}

// Ranks wait by calls that are done at once, and never come into a wait of MPI's until it is over.
void between_short_calls(Place at) {
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_dup(at.comm, &pair);
  MPI_Barrier(pair);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(at.comm, &request);
  for (int over = 0, flag = 0; !over;) {
    if (at.rank == at.size - 1) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_Allreduce(&flag, &over, 1, MPI_INT, MPI_MAX, pair);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  Sum sum(at, long_count, 6);
  for (int over = 0, flag = 0; !over;) {
    if (at.rank == at.size - 1) MPI_Test(&sum.request, &flag, MPI_STATUS_IGNORE);
    MPI_Allreduce(&flag, &over, 1, MPI_INT, MPI_MAX, pair);
  }
  wait(sum, "between short calls");
  MPI_Comm_free(&pair);
}

// Blocking calls beside many in flight, in one order.
void between_blocking_calls(Place at) {
  std::vector<Sum> sums;
  sums.reserve(100);
  for (int i = 0; i < 100; ++i) {
    sums.emplace_back(at, i % 7 == 0 ? 20000 : i, i);
    if (i % 3 == 0) {
      int one = 1, all = 0;
      MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, at.comm);
      test::check(all == at.size, "a blocking call");
    }
  }
  for (int i = 0; i < 100; ++i) {
    const size_t which = static_cast<size_t>(at.rank % 2 ? i : 99 - i);
    wait(sums[which], "beside blocking calls");
  }
}

struct Pattern {
  const char* name;
  void (*run)(Place at);
};

const Pattern patterns[] = {
    {"while_in_recv", while_in_recv},
    {"while_in_ssend", while_in_ssend},
    {"while_in_barrier", while_in_barrier},
    {"while_in_fence", while_in_fence},
    {"while_in_other_comm", while_in_other_comm},
    {"many_barriers", many_barriers},
    {"barrier_holds", barrier_holds},
    {"mixed_requests", mixed_requests},
    {"statuses", statuses},
    {"freed_meanwhile", freed_meanwhile},
    {"freed_before_others_start", freed_before_others_start},
    {"first_call", first_call},
    {"between_blocking_calls", between_blocking_calls},
    {"between_short_calls", between_short_calls},
};

std::string message_of(int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  return text;
}

// Calls that fail: mismatch: the last rank makes another one; late: it comes when rank 0 has given
// up (SLUICE_TIMEOUT); forgotten: nobody waits. The error is the wait's, at the communicator's
// handler.
void fail_by(const std::string& how, int count, Place at) {
  MPI_Comm_set_errhandler(at.comm, MPI_ERRORS_RETURN);
  static std::vector<int> from(count, 1), to(count, 0);  // as long as the call
  MPI_Request request = MPI_REQUEST_NULL;
  const bool is_last = at.rank == at.size - 1;
  const bool is_late = how == "late" && is_last;
  int token = 0;
  if (is_late) MPI_Recv(&token, 1, MPI_INT, 0, 0, at.comm, MPI_STATUS_IGNORE);
  const int started =
      how == "mismatch" && is_last
          ? MPI_Ibcast(from.data(), count, MPI_INT, 0, at.comm, &request)
          : MPI_Iallreduce(from.data(), to.data(), count, MPI_INT, MPI_SUM, at.comm, &request);
  if (how == "forgotten") return;
  int error = started;
  if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (how == "late" && at.rank == 0) MPI_Send(&token, 1, MPI_INT, at.size - 1, 0, at.comm);
  std::fprintf(stderr, "rank %d: %s\n", at.rank,
               error == MPI_SUCCESS ? "no error" : message_of(error).c_str());
  test::check(request == MPI_REQUEST_NULL, "a failed call's request is freed");
  if (how == "mismatch" || at.rank == 0) test::check(error != MPI_SUCCESS, "an error is reported");
}

// Whether Sluice carries non-blocking calls.
void check_carrier(const std::string& expected) {
  if (!test::sluice_in_process()) return;
  using Function = const char*(MPI_Comm);
  auto* const last = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  if (!last) test::fail("the library lacks sluice_last_algorithm");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Barrier(MPI_COMM_WORLD);
  int data = 0;
  MPI_Ibcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
  const std::string by = last(MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const bool is_mpi = by == "mpi";
  is_carried = !is_mpi;
  test::check(is_mpi == (expected == "mpi"), "a non-blocking call is done by " + by);
}

}  // namespace

void hint(const std::string& value) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "sluice_nonblocking", value.c_str());
  MPI_Comm_set_info(MPI_COMM_WORLD, info);
  MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const std::string only = options.text("only", "");
  if (const std::string value = options.text("hint", ""); !value.empty()) hint(value);
  check_carrier(options.text("by", "sluice"));
  const Place at{MPI_COMM_WORLD, test::rank, test::size};
  const std::string how = options.text("fail", "");
  if (!how.empty()) {
    test::check(true, "it got here");
    fail_by(how, static_cast<int>(options.number("count", 1)), at);
    return test::finish("nonblocking");
  }
  for (const Pattern& pattern : patterns) {
    if (!only.empty() && only != pattern.name) continue;
    alarm(watchdog);
    if (test::rank == 0) std::fprintf(stderr, "%s\n", pattern.name);
    pattern.run(at);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  alarm(0);
  return test::finish("nonblocking");
}
