// SPDX-License-Identifier: BSD-3-Clause
//
// rounds --driver PATH [--what NAME[,NAME...]] [--how HOW] [--devices own] [--seed S]: collectives
// that go from device to device by CUDA IPC. All ranks use device 0, or each its own. What each
// case expects is computed here. Without --what: what works over a real driver, too.
#include "tests/cuda/rounds.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

int victim = 0;
std::string option;
bool may_be_left = false;

bool is_standin() { return test::has_in_driver("standin_counter"); }

int64_t counted(const char* name) { return CUDA(standin_counter)(name); }

MPI_Comm duplicate() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

std::string text_of(int result) {
  if (result == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  return text;
}

bool all(bool holds) {
  int least = holds;
  IN_MPI(MPI_Allreduce)(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return least != 0;
}

std::string sum(MPI_Comm comm, size_t count, Kind kind) {
  int members = 0, own = 0;
  MPI_Comm_size(comm, &members);
  MPI_Comm_rank(comm, &own);
  std::vector<int> values(count), sums(count);
  for (size_t i = 0; i < count; ++i) {
    const int value = static_cast<int>(i % 101);
    values[i] = value + own;
    sums[i] = members * value + members * (members - 1) / 2;
  }
  KindMemory data(kind, count * sizeof(int));
  data.put(values);
  const int result =
      MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count), MPI_INT, MPI_SUM, comm);
  if (result == MPI_SUCCESS) test::check(data.get<int>(count) == sums, "a sum");
  return text_of(result);
}

void expect_sums(MPI_Comm comm, int calls, bool by_ipc) {
  for (int call = 0; call < calls; ++call) {
    const std::string text = sum(comm);
    test::check(text.empty(), text);
    const std::string by = algorithm_of(comm);
    test::check((by == "ipc") == by_ipc, "a sum by " + by);
  }
}

namespace {

// Operands whose sums depend on their order.
float value(int of, size_t at, int salt) {
  const auto mixed = static_cast<uint32_t>(at * 2654435761U + static_cast<unsigned>(of) * 40503U +
                                           static_cast<unsigned>(salt) * 97U);
  return static_cast<float>(mixed % 100003) / 997.0F - 37.0F;
}

std::vector<float> values(int of, size_t begin, size_t count, int salt) {
  std::vector<float> made(count);
  for (size_t i = 0; i < count; ++i) made[i] = value(of, begin + i, salt);
  return made;
}

// From the left, in the order of ranks.
std::vector<float> sums(size_t begin, size_t count, int salt) {
  std::vector<float> made = values(0, begin, count, salt);
  for (int of = 1; of < size; ++of) {
    for (size_t i = 0; i < count; ++i) made[i] += value(of, begin + i, salt);
  }
  return made;
}

struct Draw {
  Kind in = Kind::device, out = Kind::device;
  bool in_place = false;
  int root = 0, salt = 0;
  size_t count = 0;  // of each block
  std::vector<int> counts, offsets;
  MPI_Comm comm = MPI_COMM_NULL;
  std::string by;  // the algorithm must be that, if set

  void expect(bool is_right, const char* what) const {
    const std::string algorithm = algorithm_of(comm);
    test::check(is_right, std::string(what) + " of " + std::to_string(count) + " by " + algorithm +
                              (in_place ? " in place" : "") + ", " + name_of(in) + " and " +
                              name_of(out));
    const bool fits = by.empty() || (by == "ipc") == (algorithm == "ipc");
    test::check(fits, std::string(what) + " of " + std::to_string(count) + " went by " + algorithm);
  }
};

using Floats = std::vector<float>;

size_t as_size(int number) { return static_cast<size_t>(number); }

void put_at(Floats* all, size_t at, const Floats& part) {
  std::ranges::copy(part, all->begin() + static_cast<ptrdiff_t>(at));
}

// A rank's block for another one.
Floats block(int from, int to, const Draw& draw) {
  return values(from, as_size(to) * draw.count, draw.count, draw.salt);
}

void allreduce(const Draw& draw) {
  const int n = static_cast<int>(draw.count);
  KindMemory in(draw.in, draw.count * 4), out(draw.out, draw.count * 4);
  (draw.in_place ? out : in).put(values(rank, 0, draw.count, draw.salt));
  MPI_Allreduce(draw.in_place ? MPI_IN_PLACE : in.data(), out.data(), n, MPI_FLOAT, MPI_SUM,
                draw.comm);
  draw.expect(out.get<float>(draw.count) == sums(0, draw.count, draw.salt), "allreduce");
}

void reduce(const Draw& draw) {
  const int n = static_cast<int>(draw.count);
  const bool is_root = rank == draw.root, in_place = draw.in_place && is_root;
  KindMemory in(draw.in, draw.count * 4), out(draw.out, draw.count * 4);
  const Floats own = values(rank, 0, draw.count, draw.salt);
  in.put(own);
  out.put(own);
  MPI_Reduce(in_place ? MPI_IN_PLACE : in.data(), out.data(), n, MPI_FLOAT, MPI_SUM, draw.root,
             draw.comm);
  draw.expect(out.get<float>(draw.count) == (is_root ? sums(0, draw.count, draw.salt) : own),
              "reduce");
}

void broadcast(const Draw& draw) {
  KindMemory data(draw.out, draw.count * 4);
  data.put(values(rank, 0, draw.count, draw.salt));
  MPI_Bcast(data.data(), static_cast<int>(draw.count), MPI_FLOAT, draw.root, draw.comm);
  draw.expect(data.get<float>(draw.count) == values(draw.root, 0, draw.count, draw.salt),
              "broadcast");
}

void allgather(const Draw& draw) {
  const size_t whole = draw.count * as_size(size), own = draw.count * as_size(rank);
  const int n = static_cast<int>(draw.count);
  KindMemory in(draw.in, draw.count * 4), out(draw.out, whole * 4);
  Floats before(whole, -1), expected(whole);
  in.put(values(rank, 0, draw.count, draw.salt));
  if (draw.in_place) put_at(&before, own, values(rank, 0, draw.count, draw.salt));
  out.put(before);
  MPI_Allgather(draw.in_place ? MPI_IN_PLACE : in.data(), n, MPI_FLOAT, out.data(), n, MPI_FLOAT,
                draw.comm);
  for (int of = 0; of < size; ++of) {
    put_at(&expected, draw.count * as_size(of), values(of, 0, draw.count, draw.salt));
  }
  draw.expect(out.get<float>(whole) == expected, "allgather");
}

// (With gaps between the blocks, some of which are empty.)
void allgatherv(const Draw& draw) {
  const size_t whole = as_size(draw.offsets.back() + draw.counts.back());
  const size_t mine = as_size(draw.counts[as_size(rank)]);
  KindMemory in(draw.in, mine * 4), out(draw.out, whole * 4);
  Floats expected(whole, -1), before(whole, -1);
  const Floats own = values(rank, 0, mine, draw.salt);
  in.put(own);
  if (draw.in_place) put_at(&before, as_size(draw.offsets[as_size(rank)]), own);
  out.put(before);
  MPI_Allgatherv(draw.in_place ? MPI_IN_PLACE : in.data(), static_cast<int>(mine), MPI_FLOAT,
                 out.data(), draw.counts.data(), draw.offsets.data(), MPI_FLOAT, draw.comm);
  for (int of = 0; of < size; ++of) {
    put_at(&expected, as_size(draw.offsets[as_size(of)]),
           values(of, 0, as_size(draw.counts[as_size(of)]), draw.salt));
  }
  draw.expect(out.get<float>(whole) == expected, "allgatherv");
}

void alltoall(const Draw& draw) {
  const size_t whole = draw.count * as_size(size);
  const int n = static_cast<int>(draw.count);
  KindMemory in(draw.in, whole * 4), out(draw.out, whole * 4);
  Floats expected(whole);
  (draw.in_place ? out : in).put(values(rank, 0, whole, draw.salt));
  MPI_Alltoall(draw.in_place ? MPI_IN_PLACE : in.data(), n, MPI_FLOAT, out.data(), n, MPI_FLOAT,
               draw.comm);
  for (int of = 0; of < size; ++of) {
    put_at(&expected, draw.count * as_size(of), block(of, rank, draw));
  }
  draw.expect(out.get<float>(whole) == expected, "alltoall");
}

// What a rank has for another one; in place, as much as it gets.
size_t sent_count(int from, int to, const Draw& draw) {
  const int one = draw.in_place ? std::min(from, to) : from, other = from + to - one;
  const auto mixed = static_cast<size_t>(one * 37 + other * 11 + draw.salt * 7);
  return mixed % 4 == 0 ? 0 : 1 + mixed * 7919 % std::max<size_t>(draw.count, 1);
}

void alltoallv(Draw draw) {
  size_t total = 0;
  for (int pair = 0; pair < size * size; ++pair) {
    total += sent_count(pair / size, pair % size, draw);
  }
  if (total == 0) draw.by = "";
  std::vector<int> sent, sent_at, received, received_at;
  int sent_end = 0, received_end = 0;
  for (int other = 0; other < size; ++other) {
    sent.push_back(static_cast<int>(sent_count(rank, other, draw)));
    received.push_back(static_cast<int>(sent_count(other, rank, draw)));
    sent_at.push_back(sent_end);
    received_at.push_back(received_end);
    sent_end += sent.back() + other % 2;
    received_end += received.back() + 1;
  }
  const size_t ins = as_size(sent_end), outs = as_size(received_end);
  KindMemory in(draw.in, ins * 4), out(draw.out, outs * 4);
  Floats before(draw.in_place ? outs : ins, -2), expected(outs, -1);
  for (int other = 0; other < size; ++other) {
    const auto& at = draw.in_place ? received_at : sent_at;
    put_at(&before, as_size(at[as_size(other)]),
           values(rank, as_size(other) * 100, as_size(sent[as_size(other)]), draw.salt));
    put_at(&expected, as_size(received_at[as_size(other)]),
           values(other, as_size(rank) * 100, as_size(received[as_size(other)]), draw.salt));
  }
  if (draw.in_place) {
    for (int gap = 0; gap < size; ++gap) {
      before[as_size(received_at[as_size(gap)] + received[as_size(gap)])] = -1;
    }
    out.put(before);
  } else {
    in.put(before);
    out.put(Floats(outs, -1));
  }
  MPI_Alltoallv(draw.in_place ? MPI_IN_PLACE : in.data(), sent.data(), sent_at.data(), MPI_FLOAT,
                out.data(), received.data(), received_at.data(), MPI_FLOAT, draw.comm);
  draw.expect(out.get<float>(outs) == expected, "alltoallv");
}

void reduce_scatter(const Draw& draw, bool uneven) {
  std::vector<int> counts = draw.counts;
  if (!uneven) counts.assign(as_size(size), static_cast<int>(draw.count));
  size_t whole = 0, before = 0;
  for (int of = 0; of < size; ++of) {
    if (of == rank) before = whole;
    whole += as_size(counts[as_size(of)]);
  }
  const size_t own = as_size(counts[as_size(rank)]);
  KindMemory in(draw.in, whole * 4), out(draw.out, (draw.in_place ? whole : own) * 4);
  (draw.in_place ? out : in).put(values(rank, 0, whole, draw.salt));
  const void* const from = draw.in_place ? MPI_IN_PLACE : in.data();
  if (uneven) {
    MPI_Reduce_scatter(from, out.data(), counts.data(), MPI_FLOAT, MPI_SUM, draw.comm);
  } else {
    MPI_Reduce_scatter_block(from, out.data(), counts[0], MPI_FLOAT, MPI_SUM, draw.comm);
  }
  draw.expect(out.get<float>(own) == sums(before, own, draw.salt), "reduce_scatter");
}

void run(size_t which, const Draw& draw) {
  using Function = void (*)(const Draw&);
  constexpr Function functions[] = {broadcast,
                                    allgather,
                                    allgatherv,
                                    alltoall,
                                    [](const Draw& one) { alltoallv(one); },
                                    allreduce,
                                    reduce,
                                    [](const Draw& one) { reduce_scatter(one, false); },
                                    [](const Draw& one) { reduce_scatter(one, true); }};
  functions[which](draw);
}
constexpr size_t moves = 5, functions = 9;

Draw draw_shape(test::Random& shared, MPI_Comm comm, size_t most) {
  Draw draw;
  draw.comm = comm;
  draw.in_place = shared.chance(2);
  draw.root = static_cast<int>(shared.below(as_size(size)));
  draw.salt = static_cast<int>(shared.below(1000));
  draw.count = 1 + shared.below(shared.chance(3) ? 50 : most);
  int at = 0;
  for (int of = 0; of < size; ++of) {
    const bool is_empty = of > 0 && shared.chance(4);
    draw.counts.push_back(is_empty ? 0 : 1 + static_cast<int>(shared.below(most)));
    draw.offsets.push_back(at);
    at += draw.counts.back() + static_cast<int>(shared.below(3));
  }
  return draw;
}

// From now on all calls with data on devices go by CUDA IPC.
MPI_Comm prepared() {
  MPI_Comm comm = duplicate();
  expect_sums(comm, 1, true);
  Draw draw;
  draw.comm = comm;
  draw.count = 1000;
  draw.by = "ipc";
  alltoallv(draw);
  return comm;
}

// Random calls with all data on devices.
void every(uint64_t seed, size_t first, size_t last) {
  test::Random shared(seed);
  MPI_Comm comm = prepared();
  const Kind kinds[] = {Kind::device, Kind::device, Kind::device, Kind::pool, Kind::mapped};
  test::Random own(seed + 1 + static_cast<uint64_t>(rank));
  for (int call = 0; call < 100; ++call) {
    const size_t which = first + shared.below(last - first);
    Draw draw = draw_shape(shared, comm, 12000);
    draw.in = kinds[own.below(std::size(kinds))];
    draw.out = kinds[own.below(std::size(kinds))];
    draw.by = "ipc";
    run(which, draw);
  }
  MPI_Comm_free(&comm);
}

// The kinds of a rank's memory change from call to call.
void changing_kinds(uint64_t seed) {
  test::Random shared(seed), own(seed + 1 + static_cast<uint64_t>(rank));
  MPI_Comm comm = prepared();
  int by_ipc = 0, otherwise = 0;
  for (int call = 0; call < 120; ++call) {
    const size_t which = shared.below(functions);
    Draw draw = draw_shape(shared, comm, 5000);
    const size_t rarely = 1 + shared.below(10);
    const auto pick = [&] {
      return own.chance(rarely) ? test::kinds[own.below(std::size(test::kinds))] : Kind::device;
    };
    draw.in = pick();
    draw.out = pick();
    const bool on_devices = all(draw.in == Kind::device && draw.out == Kind::device);
    if (on_devices) draw.by = "ipc";
    if (!all(draw.in != Kind::host && draw.out != Kind::host) && which == moves && !draw.in_place) {
      draw.by = "another way";
    }
    run(which, draw);
    ++(algorithm_of(comm) == "ipc" ? by_ipc : otherwise);
  }
  test::check(by_ipc > 0 && otherwise > 0, "both ways were taken");
  MPI_Comm_free(&comm);
}

// No byte of a large sum leaves the devices.
void crossings() {
  const size_t count = size_t{16} << 20;
  MPI_Comm comm = duplicate();
  KindMemory data(Kind::device, count * 4);
  data.put(std::vector<int>(count, 1 + rank));
  expect_sums(comm, 1, true);
  const int64_t out = counted("bytes_out"), in = counted("bytes_in");
  MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count), MPI_INT, MPI_SUM, comm);
  test::check(algorithm_of(comm) == "ipc", "a large sum by " + algorithm_of(comm));
  test::check(counted("bytes_out") == out && counted("bytes_in") == in, "nothing crosses the bus");
  const std::vector<int> expected(count, size * (size + 1) / 2);
  test::check(data.get<int>(count) == expected, "a large sum");
  MPI_Comm_free(&comm);
}

// Threads with a communicator each: one at a time uses the slabs.
void threads() {
  MPI_Comm comms[] = {duplicate(), duplicate()};
  const CUcontext context = test::primary_contexts()[option == "own" ? as_size(rank) : 0];
  std::vector<std::thread> running;
  for (const MPI_Comm comm : comms) {
    running.emplace_back([&, comm] {
      test::expect_success(CUDA(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
      for (int call = 0; call < 60; ++call) {
        const std::string text = sum(comm, 3000);
        test::check(text.empty(), text);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  expect_sums(comms[0], 1, true);
  expect_sums(comms[1], 1, true);
}

// Communicators share the slabs, and parts of the world have them too.
void communicators() {
  for (int round = 0; round < 4; ++round) {
    MPI_Comm comm = duplicate(), reversed = MPI_COMM_NULL, part = MPI_COMM_NULL;
    expect_sums(comm, 2, true);
    MPI_Comm_split(comm, 0, -rank, &reversed);
    expect_sums(reversed, 2, true);
    MPI_Comm_split(comm, rank % 2, 0, &part);
    int members = 0;
    MPI_Comm_size(part, &members);
    expect_sums(part, 2, members > 1);
    for (MPI_Comm* each : {&comm, &reversed, &part}) MPI_Comm_free(each);
  }
  test::check(counted("cuIpcOpenMemHandle_v2") == size - 1, "each slab is opened once");
  test::check(counted("cuIpcGetMemHandle") == 1, "there is one slab");
}

// Calls of all ranks, each before one of all but the last, which reads a slab slowly: who is done
// must not put new data into it.
void overtaking() {
  MPI_Comm comm = duplicate(), part = MPI_COMM_NULL;
  MPI_Comm_split(comm, rank == victim, 0, &part);
  const int others = size - 1;
  Draw draw;
  draw.count = 5000;
  draw.by = "ipc";
  for (draw.salt = 0; draw.salt < 30; ++draw.salt) {
    draw.comm = comm;
    broadcast(draw);
    KindMemory data(Kind::device, draw.count * 4);
    const std::vector<float> own(draw.count, static_cast<float>(rank + draw.salt));
    data.put(own);
    if (rank == victim) continue;
    MPI_Bcast(data.data(), static_cast<int>(draw.count), MPI_FLOAT, 0, part);
    test::check(others < 2 || algorithm_of(part) == "ipc", "a broadcast by " + algorithm_of(part));
    test::check(data.get<float>(draw.count) ==
                    std::vector<float>(draw.count, static_cast<float>(draw.salt)),
                "a broadcast of the others");
  }
}

struct Case {
  const char* name;
  std::function<void(uint64_t seed)> run;
  bool is_plain;  // of those that are run if none is named
};
std::string account;  // a file for what ranks that do not end well have to say
const Case cases[] = {
    {"moves", [](uint64_t seed) { every(seed, 0, moves); }, true},
    {"reductions", [](uint64_t seed) { every(seed, moves, functions); }, true},
    {"changing-kinds", changing_kinds, true},
    {"crossings", [](uint64_t) { crossings(); }, false},
    {"communicators", [](uint64_t) { communicators(); }, false},
    {"threads", [](uint64_t) { threads(); }, false},
    {"overtaking", [](uint64_t) { overtaking(); }, false},
    {"failures", [](uint64_t) { failures(); }, false},
    {"killed", [](uint64_t) { killed(account); }, false},
    {"stuck", [](uint64_t) { stuck(); }, false},
    {"stuck-in-a-vote", [](uint64_t) { stuck_in_a_vote(); }, false},
    {"failures-of-a-part", [](uint64_t) { failures_of_a_part(); }, false},
    {"reset", [](uint64_t) { reset(); }, false},
    {"forks", [](uint64_t) { forks(); }, false},
    {"reasons", [](uint64_t) { reasons(); }, false},
    {"mismatches", [](uint64_t) { mismatches(); }, false},
};

bool is_named(const std::string& name, const std::string& list) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

// After MPI_Finalize: nothing of Sluice's is left.
bool is_clean(int64_t retained) {
  const std::pair<const char*, int64_t> expected[] = {{"misuse", 0},  {"imports", 0},
                                                      {"streams", 0}, {"events", 0},
                                                      {"pinned", 0},  {"retained", retained}};
  bool clean = true;
  for (const auto& [name, number] : expected) {
    if (counted(name) == number) continue;
    std::printf("rank %d: at the end, %s: %d\n", rank, name, static_cast<int>(counted(name)));
    clean = false;
    if (may_be_left) break;
  }
  return clean || (may_be_left && counted("misuse") == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const test::Options options(argc, argv);
  const std::string what = options.text("what", "");
  option = options.text("how", "");
  account = options.text("account", "");
  test::start(argc, argv, what == "threads" ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  victim = size - 1;
  test::load_driver(options.text("driver", "libcuda.so.1"),
                    options.text("devices", "shared") == "own" ? rank : 0);
  const int64_t retained = is_standin() ? counted("retained") : 0;
  const uint64_t seed = test::agree_on_seed(options);
  for (const Case& each : cases) {
    if (what.empty() ? each.is_plain : is_named(each.name, what)) each.run(seed);
  }
  test::finish("rounds");
  return !is_standin() || is_clean(retained) ? 0 : 1;
}
