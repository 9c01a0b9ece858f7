// SPDX-License-Identifier: BSD-3-Clause
//
// deaths ACCOUNT --victim RANK --calls LETTERS --by FUNCTION [--starts 1]: a rank is killed while
// the others have non-blocking collectives in flight. LETTERS says which, in order: short ones, of
// a few bytes, and long ones; s and l on MPI_COMM_WORLD, S and L on a duplicate. The victim starts
// none of them; with --starts it starts all and dies at once. FUNCTION is MPI's function by which
// the others complete them (Wait, Waitall, ...); Testall-later: when all have failed, and
// MPI_Testall has had a message to wait for beside them; or Allreduce: a blocking call on a third
// communicator, with them in flight, comes before. The others write what came of each call into a
// file, and what of a later one on each of the two communicators.
#include <signal.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"

namespace {

using test::rank, test::size;

constexpr size_t short_count = 2, long_count = 1 << 19;

struct InFlight {
  InFlight(char which, MPI_Comm on)
      : letter(which), from(is_long() ? long_count : short_count, rank + 1), to(from.size(), -1) {
    result = MPI_Iallreduce(from.data(), to.data(), static_cast<int>(from.size()), MPI_INT, MPI_SUM,
                            on, &request);
  }
  bool is_long() const { return std::tolower(letter) == 'l'; }
  bool is_over() const { return result != MPI_SUCCESS || request == MPI_REQUEST_NULL; }
  bool is_right() const {
    const int sum = size * (size + 1) / 2;
    return to.front() == sum && to.back() == sum;
  }

  char letter;
  std::vector<int> from, to;
  MPI_Request request = MPI_REQUEST_NULL;
  int result;
};
using Calls = std::vector<std::unique_ptr<InFlight>>;

// A function that completes requests. Calls it until all are completed; the results go to the
// calls. (A call that failed has a result, and its request is null.)
using Complete = void(Calls&);

template <typename Function>
void one_by_one(Calls& calls, const Function& function) {
  for (const auto& call : calls) {
    while (!call->is_over()) call->result = function(&call->request);
  }
}

void by_wait(Calls& calls) {
  one_by_one(calls, [](MPI_Request* request) { return MPI_Wait(request, MPI_STATUS_IGNORE); });
}

void by_test(Calls& calls) {
  int flag = 0;
  one_by_one(calls,
             [&](MPI_Request* request) { return MPI_Test(request, &flag, MPI_STATUS_IGNORE); });
}

// The requests of all calls, for functions that take several.
struct Several {
  explicit Several(Calls& of) : calls(of), statuses(of.size()), indices(of.size()) {
    for (const auto& call : calls) requests.push_back(call->request);
  }
  int count() const { return static_cast<int>(requests.size()); }
  // Of a function that has set the first statuses, of those calls that `which` names.
  void take(int result, int number, const std::vector<int>* which) {
    for (int i = 0; i < number && result == MPI_ERR_IN_STATUS; ++i) {
      const auto at = static_cast<size_t>(which ? (*which)[static_cast<size_t>(i)] : i);
      if (calls[at]->result == MPI_SUCCESS)
        calls[at]->result = statuses[static_cast<size_t>(i)].MPI_ERROR;
    }
    for (size_t i = 0; i < requests.size(); ++i) calls[i]->request = requests[i];
    test::check(result == MPI_SUCCESS || result == MPI_ERR_IN_STATUS, "errors are in statuses");
  }
  bool are_over() const {
    for (const auto& call : calls) {
      if (!call->is_over()) return false;
    }
    return true;
  }

  Calls& calls;
  std::vector<MPI_Request> requests;
  std::vector<MPI_Status> statuses;
  std::vector<int> indices;
};

void by_waitall(Calls& calls) {
  Several all(calls);
  all.take(MPI_Waitall(all.count(), all.requests.data(), all.statuses.data()), all.count(),
           nullptr);
}

void by_testall(Calls& calls) {
  Several all(calls);
  for (int flag = 0, result = MPI_SUCCESS; !flag && result == MPI_SUCCESS;) {
    result = MPI_Testall(all.count(), all.requests.data(), &flag, all.statuses.data());
    if (flag || result != MPI_SUCCESS) all.take(result, all.count(), nullptr);
  }
}

// All at once, and none before: with them is a message that comes when they have ended.
void by_testall_later(Calls& calls) {
  Several all(calls);
  for (const MPI_Request request : all.requests) {
    for (int flag = 0; request != MPI_REQUEST_NULL && !flag;)
      MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  }
  int token = 0, received = 0, flag = 0;
  std::vector<MPI_Request> with_message = all.requests;
  with_message.push_back(MPI_REQUEST_NULL);
  all.statuses.resize(with_message.size());
  MPI_Irecv(&received, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &with_message.back());
  const auto test_all = [&] {
    return MPI_Testall(all.count() + 1, with_message.data(), &flag, all.statuses.data());
  };
  const std::vector<MPI_Request> before = with_message;
  for (int i = 0; i < 10; ++i) {
    test::check(test_all() == MPI_SUCCESS && !flag && with_message == before, "nothing happens");
  }
  MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
  int result = MPI_SUCCESS;
  while (!flag && result == MPI_SUCCESS) result = test_all();
  all.requests.assign(with_message.begin(), with_message.end() - 1);
  all.take(result, all.count(), nullptr);
}

void by_waitsome(Calls& calls) {
  Several all(calls);
  while (!all.are_over()) {
    int some = 0;
    const int result = MPI_Waitsome(all.count(), all.requests.data(), &some, all.indices.data(),
                                    all.statuses.data());
    all.take(result, some, &all.indices);
  }
}

void by_testsome(Calls& calls) {
  Several all(calls);
  while (!all.are_over()) {
    int some = 0;
    const int result = MPI_Testsome(all.count(), all.requests.data(), &some, all.indices.data(),
                                    all.statuses.data());
    all.take(result, some, &all.indices);
  }
}

void take_one(Several& all, int index, int result) {
  const bool is_one = index >= 0 && index < all.count();
  test::check(is_one, "an index");
  if (is_one) all.calls[static_cast<size_t>(index)]->result = result;
  all.take(MPI_SUCCESS, 0, nullptr);
}

void by_waitany(Calls& calls) {
  Several all(calls);
  while (!all.are_over()) {
    int index = MPI_UNDEFINED;
    const int result = MPI_Waitany(all.count(), all.requests.data(), &index, MPI_STATUS_IGNORE);
    take_one(all, index, result);
  }
}

void by_testany(Calls& calls) {
  Several all(calls);
  while (!all.are_over()) {
    int index = MPI_UNDEFINED, flag = 0;
    const int result =
        MPI_Testany(all.count(), all.requests.data(), &index, &flag, MPI_STATUS_IGNORE);
    if (flag || result != MPI_SUCCESS) take_one(all, index, result);
  }
}

struct Way {
  const char* name;
  Complete* complete;
};
constexpr Way ways[] = {
    {"Wait", by_wait},         {"Waitall", by_waitall},   {"Waitany", by_waitany},
    {"Waitsome", by_waitsome}, {"Test", by_test},         {"Testall", by_testall},
    {"Testany", by_testany},   {"Testsome", by_testsome}, {"Testall-later", by_testall_later},
    {"Allreduce", by_wait},
};

Complete* find_way(const std::string& name) {
  for (const Way& way : ways) {
    if (name == way.name) return way.complete;
  }
  test::fail("--by takes no " + name);
}

std::string what_came_of(int result) {
  if (result == MPI_SUCCESS) return "no error";
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  return text;
}

int sum_up(MPI_Comm comm) {
  int one = 1, sum = 0;
  return MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
}

// A communicator that has had a call, so that Sluice carries what follows.
MPI_Comm make_comm() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  test::check(sum_up(comm) == MPI_SUCCESS, "the first call");
  return comm;
}

// Each line is written at once, as other ranks write, too.
void write_account(const std::string& path, const std::string& lines) {
  FILE* const file = std::fopen(path.c_str(), "a");
  if (!file) test::fail("no " + path);
  std::fputs(lines.c_str(), file);
  std::fclose(file);
}

std::string line_of(const std::string& what, const std::string& came) {
  return "rank " + std::to_string(rank) + " " + what + ": " + came + "\n";
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  const std::string letters = options.text("calls", "s"), by = options.text("by", "Wait");
  const bool is_victim = rank == static_cast<int>(options.number("victim", 0));
  Complete* const complete = find_way(by);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  test::check(sum_up(MPI_COMM_WORLD) == MPI_SUCCESS, "the first call");
  MPI_Comm second = make_comm(), third = make_comm();
  if (is_victim && options.number("starts", 0) == 0) raise(SIGKILL);
  Calls calls;
  for (const char letter : letters) {
    const bool on_second = std::isupper(letter) != 0;
    calls.push_back(std::make_unique<InFlight>(letter, on_second ? second : MPI_COMM_WORLD));
  }
  if (is_victim) raise(SIGKILL);
  alarm(200);
  std::string account;
  if (by == "Allreduce") account += line_of("third", what_came_of(sum_up(third)));
  complete(calls);
  for (const auto& call : calls) {
    const std::string came = what_came_of(call->result);
    const bool is_wrong = call->result == MPI_SUCCESS && !call->is_right();
    account += line_of(std::string(1, call->letter), is_wrong ? "a wrong result" : came);
  }
  account += line_of("world", what_came_of(sum_up(MPI_COMM_WORLD)));
  account += line_of("second", what_came_of(sum_up(second)));
  write_account(argv[1], account);
  usleep(static_cast<useconds_t>(rank) * 200000);  // (all at once: Open MPI's mpirun may hang)
  _exit(0);
}
