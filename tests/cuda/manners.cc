// SPDX-License-Identifier: BSD-3-Clause
//
// manners --driver PATH --what NAME[,NAME...]: what Sluice asks of a driver, and how it fails.
// Needs the stand-in driver, which counts what is asked of it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "tests/cuda/manners.h"

bool has_driver = false, all_gone_at_end = true, pinned_at_end = false;
int64_t retained_at_end = 0;

void expect_error(const std::function<int()>& call) {
  int failed = 0, error = MPI_SUCCESS;
  for (int number = 1; number <= 2 && error == MPI_SUCCESS; ++number) {
    error = call();
    if (error != MPI_SUCCESS) failed = number;
  }
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  test::check(error != MPI_SUCCESS, "no error");
  MPI_Error_string(error, text, &length);
  std::printf("rank %d call %d: %s\n", rank, failed, text);
  std::fflush(stdout);
}

int64_t counted(const char* name) { return CUDA(standin_counter)(name); }

// (The driver waits for the whole device when the program frees memory.)
void allreduce(const void* from, void* to, size_t count) {
  const int64_t waits = has_driver ? counted("waits") : 0;
  MPI_Allreduce(from, to, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (has_driver) test::check(counted("waits") == waits, "waits for a whole device");
}

namespace {
double total() { return size * (size + 1) / 2.0; }
}  // namespace

void expect_sums(const KindMemory& memory, size_t count, const std::string& what) {
  const auto got = memory.get<double>(count);
  const auto is_right = [](double each) { return each == total(); };
  test::check(std::all_of(got.begin(), got.end(), is_right), what + ": the sum");
}

std::vector<double> ones(size_t count) {
  return std::vector<double>(count, static_cast<double>(rank + 1));
}

namespace {

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

// Each byte is copied once out and once in, and what is pinned stays within its bound.
void copies() {
  const bool is_refused = std::getenv("STANDIN_FAIL") != nullptr;
  const size_t bound = std::strtoull(std::getenv("SLUICE_CUDA_PINNED"), nullptr, 10);
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{100000}, size_t{8} << 20}) {
    KindMemory from(Kind::device, count * 8), to(Kind::device, count * 8);
    from.put(ones(count));
    for (int i = 0; i < 3; ++i) {
      const int64_t out = counted("bytes_out"), in = counted("bytes_in");
      const int64_t copies = counted("copies");
      allreduce(from.data(), to.data(), count);
      const auto bytes = static_cast<int64_t>(count * 8);
      test::check(counted("bytes_out") - out == bytes, "bytes out");
      test::check(counted("bytes_in") - in == bytes, "bytes in");
      const int64_t most = 2 * std::min<int64_t>((bytes + (256 << 10) - 1) / (256 << 10), 32);
      test::check(counted("copies") - copies == most,
                  "copies: " + std::to_string(counted("copies") - copies));
    }
    expect_sums(to, count, "copies");
    test::check(counted("pinned_most") <= static_cast<int64_t>(bound), "too much is pinned");
    test::check(bound == 0 || is_refused || count > 1000 || counted("pageable") == 0,
                "unpinned copies");
  }
  test::check(bound == 0 || is_refused || counted("pinned") > 0, "nothing is pinned");
  test::check(!is_refused || counted("cuMemHostRegister_v2") > 1, "no attempt to pin");
}

int64_t copy_calls() {
  return counted("cuMemcpy2DAsync_v2") + counted("cuMemcpyDtoHAsync_v2") +
         counted("cuMemcpyHtoDAsync_v2");
}

// Broadcasts elements of a type, which becomes free, in memory of this many ints. The copies of
// each rank are counted; bytes outside the type stay as they are.
void broadcast(MPI_Datatype type, int count, size_t ints, int64_t copies, const char* what) {
  MPI_Type_commit(&type);
  KindMemory both(Kind::device, ints * sizeof(int));
  std::vector<int> values(ints), expected(ints);
  for (size_t i = 0; i < ints; ++i) expected[i] = values[i] = static_cast<int>(i) + 1000000 * rank;
  int bytes = 0, at = 0;
  MPI_Type_size(type, &bytes);
  std::vector<int> packed(static_cast<size_t>(bytes * count) / sizeof(int));
  std::vector<int> zeros(ints);
  for (size_t i = 0; i < ints; ++i) zeros[i] = static_cast<int>(i);
  MPI_Pack(zeros.data(), count, type, packed.data(), bytes * count, &at, MPI_COMM_SELF);
  at = 0;
  MPI_Unpack(packed.data(), bytes * count, &at, expected.data(), count, type, MPI_COMM_SELF);
  both.put(values);
  const int64_t before = copy_calls();
  MPI_Bcast(both.data(), count, type, 0, MPI_COMM_WORLD);
  test::check(copy_calls() - before == copies,
              std::string(what) + ": " + std::to_string(copy_calls() - before) + " copies");
  test::check(both.get<int>(ints) == expected, what);
  MPI_Type_free(&type);
}

MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent) {
  MPI_Datatype made;
  MPI_Type_create_resized(type, 0, extent, &made);
  MPI_Type_free(&type);
  return made;
}

// Blocks of ranks that lie side by side are one copy.
void blocks() {
  std::vector<int> counts, places, expected;
  for (int i = 0; i < size; ++i) {
    counts.push_back(3 + i);
    places.push_back(static_cast<int>(expected.size()));
    expected.insert(expected.end(), static_cast<size_t>(3 + i), i);
  }
  KindMemory from(Kind::device, 400), to(Kind::device, 400);
  from.put(std::vector<int>(static_cast<size_t>(3 + rank), rank));
  const int64_t before = copy_calls();
  MPI_Allgatherv(from.data(), 3 + rank, MPI_INT, to.data(), counts.data(), places.data(), MPI_INT,
                 MPI_COMM_WORLD);
  test::check(copy_calls() - before == 2, "allgatherv: a copy out and one in");
  test::check(to.get<int>(expected.size()) == expected, "allgatherv");
}

// Types take as few copies as two dimensions allow, and gaps stay as they are.
void vectors() {
  MPI_Datatype type;
  MPI_Type_contiguous(50, MPI_INT, &type);
  broadcast(type, 3, 150, 1, "contiguous");
  MPI_Type_vector(200, 1, 3, MPI_INT, &type);
  broadcast(type, 1, 600, 1, "a column");
  MPI_Type_vector(200, 1, 3, MPI_INT, &type);
  broadcast(resized(type, sizeof(int)), 2, 700, 1, "two columns, by a kernel");
  const int lengths[] = {1, 2}, places[] = {1, 4};
  MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
  broadcast(resized(type, 8 * sizeof(int)), 500, 4000, 1, "an array of structures, by kernels");
  const int sizes[] = {7, 30, 10}, part[] = {5, 20, 3}, start[] = {1, 4, 2};
  MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, MPI_INT, &type);
  broadcast(type, 1, 7 * 30 * 10, 5, "a block in three dimensions");
  const int regular[] = {3, 13, 23, 33, 43, 53};
  MPI_Type_create_indexed_block(6, 4, regular, MPI_INT, &type);
  broadcast(type, 1, 60, 1, "equal blocks at equal distances");
  const int irregular[] = {40, 3, 20, 9};
  MPI_Type_create_indexed_block(4, 2, irregular, MPI_INT, &type);
  broadcast(type, 1, 60, 3, "blocks anywhere, two as rows");
  const int growing[] = {1, 2, 3, 4}, far[] = {40, 3, 20, 9};
  MPI_Type_indexed(4, growing, far, MPI_INT, &type);
  broadcast(type, 1, 60, 4, "blocks of any size anywhere");
  MPI_Type_vector(150000, 1, 2, MPI_INT, &type);
  broadcast(type, 1, 300000, 3, "a column of 600 KB");
  MPI_Type_vector(5, 1, -3, MPI_INT, &type);
  MPI_Datatype moved;
  const int one = 1;
  const MPI_Aint last = 12 * sizeof(int);
  MPI_Type_create_hindexed(1, &one, &last, type, &moved);
  MPI_Type_free(&type);
  broadcast(moved, 1, 20, 5, "backwards");
  blocks();
}

// Elements of one type in two allocations, with other memory or none between them.
void apart() {
  auto one = std::make_unique<KindMemory>(Kind::device, 4096);
  auto other = std::make_unique<KindMemory>(Kind::device, 4096);
  MPI_Aint low = 0, high = 0;
  MPI_Get_address(one->data(), &low);
  MPI_Get_address(other->data(), &high);
  if (high < low) std::swap(low, high), std::swap(one, other);
  MPI_Datatype type;
  MPI_Type_create_hvector(2, 1, high - low, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  for (KindMemory* memory : {one.get(), other.get()}) {
    memory->put(std::vector<double>{rank + (memory == one.get() ? 1.0 : 2.0), 5});
  }
  MPI_Bcast(one->data(), 1, type, 0, MPI_COMM_WORLD);
  test::check(one->get<double>(2) == std::vector<double>{1, 5}, "the first allocation");
  test::check(other->get<double>(2) == std::vector<double>{2, 5}, "the second allocation");
  MPI_Type_free(&type);
}

// The same call again and again, whose buffers change their kind.
void changing() {
  std::vector<std::unique_ptr<KindMemory>> inputs, outputs;
  for (const Kind kind : test::kinds) {
    inputs.push_back(std::make_unique<KindMemory>(kind, 80));
    outputs.push_back(std::make_unique<KindMemory>(kind, 80));
    inputs.back()->put(ones(10));
  }
  test::Random random(static_cast<uint64_t>(rank) + 1);
  for (int i = 0; i < 2000; ++i) {
    KindMemory& from = *inputs[random.chance(2) ? 0 : random.below(inputs.size())];
    KindMemory& to = *outputs[random.chance(2) ? 0 : random.below(outputs.size())];
    to.put(std::vector<double>(10, -1));
    allreduce(from.data(), to.data(), 10);
    expect_sums(to, 10, "changing");
  }
}

using CallWithNothing = void (*)(void* from, void* to, const int* zeros);
const CallWithNothing calls_with_nothing[] = {
    [](void* from, void* to, const int*) {
      MPI_Allreduce(from, to, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    },
    [](void* from, void* to, const int*) {
      MPI_Reduce(from, to, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    },
    [](void*, void* to, const int*) { MPI_Bcast(to, 0, MPI_INT, 0, MPI_COMM_WORLD); },
    [](void* from, void* to, const int*) {
      MPI_Allgather(from, 0, MPI_INT, to, 0, MPI_INT, MPI_COMM_WORLD);
    },
    [](void* from, void* to, const int* zeros) {
      MPI_Allgatherv(from, 0, MPI_INT, to, zeros, zeros, MPI_INT, MPI_COMM_WORLD);
    },
    [](void* from, void* to, const int*) {
      MPI_Alltoall(from, 0, MPI_INT, to, 0, MPI_INT, MPI_COMM_WORLD);
    },
    [](void* from, void* to, const int* zeros) {
      MPI_Alltoallv(from, zeros, zeros, MPI_INT, to, zeros, zeros, MPI_INT, MPI_COMM_WORLD);
    },
    [](void* from, void* to, const int* zeros) {
      MPI_Reduce_scatter(from, to, zeros, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    },
    [](void* from, void* to, const int*) {
      MPI_Reduce_scatter_block(from, to, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }};

// No data: any pointer will do.
void nothing() {
  auto* const wild = reinterpret_cast<double*>(uintptr_t{0x10});
  const int64_t copies = counted("copies");
  for (int i = 0; i < 3; ++i) {
    allreduce(wild, wild + 1, 0);
    MPI_Bcast(wild, 0, MPI_INT, 0, MPI_COMM_WORLD);
  }
  KindMemory device(Kind::device, 8);
  double host = 0;
  void* const buffers[] = {nullptr, wild, device.data(), &host};
  const std::vector<int> zeros(static_cast<size_t>(size));
  for (size_t i = 0; i < 3 * std::size(buffers); ++i) {
    void* const from = buffers[i % 4];
    void* const to = buffers[(i + 1 + i / 4) % 4];
    for (const auto& call : calls_with_nothing) call(from, to, zeros.data());
  }
  test::check(counted("copies") == copies, "copies of nothing");
}

// A copy fails on rank 1 (or what HOW names, at that copy): all ranks get an error, in this call
// or, if they were done with it, in the next.
void failing() {
  const auto count = size_t{1} << 20;
  all_gone_at_end = false;
  if (!std::getenv("FATAL")) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::vector<double> from(count, 1), to(count);
  const char* const how = std::getenv("HOW");
  const Kind kind = how && std::string(how) == "retain" ? Kind::mapped : Kind::device;
  KindMemory device_from(kind, count * 8), device_to(kind, count * 8);
  device_from.put(from);
  if (rank == 1) {
    if (kind == Kind::mapped) CUDA(cuCtxSetCurrent)(nullptr);
    test::check(CUDA(standin_fail)(how ? how : "copy", std::getenv("COPY")), "standin_fail");
  }
  expect_error([&] {
    if (rank != 1) {
      return MPI_Allreduce(from.data(), to.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    return MPI_Allreduce(device_from.data(), device_to.data(), count, MPI_DOUBLE, MPI_SUM,
                         MPI_COMM_WORLD);
  });
  CUDA(standin_forgive)();
}

// A setting of rank 1 alone: RANK_1="SLUICE_X=value". (Which rank this is, the launcher says.)
void set_for_rank_1() {
  const char* const setting = std::getenv("RANK_1");
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    const char* const number = std::getenv(name);
    if (setting && number && std::string(number) == "1") putenv(strdup(setting));
  }
}

struct Part {
  const char* name;
  void (*run)();
};
const Part parts[] = {{"copies", copies},
                      {"vectors", vectors},
                      {"apart", apart},
                      {"aliased", aliased},
                      {"contexts", contexts},
                      {"without-context", without_context},
                      {"reset", reset},
                      {"shut-down", shut_down},
                      {"capture", capture},
                      {"threads", threads},
                      {"reused", reused},
                      {"early-in-thread", early},
                      {"early-in-contexts", early_in_contexts},
                      {"in-order", in_order},
                      {"green-thread", green},
                      {"kept", kept},
                      {"queries", queries},
                      {"managed", managed},
                      {"aliased", aliased},
                      {"waiting", waiting},
                      {"behind-a-message-thread", behind_a_message},
                      {"handles", handles},
                      {"stuck", stuck},
                      {"asked", asked},
                      {"in-thread", in_thread},
                      {"short-lived", short_lived},
                      {"changing", changing},
                      {"nothing", nothing},
                      {"failing", failing}};

// After MPI_Finalize: nothing of Sluice's is left. (In a broken context nothing can be unpinned.)
bool is_clean() {
  const std::pair<const char*, int64_t> expected[] = {
      {"misuse", 0}, {"streams", 0}, {"events", 0}, {"pinned", 0}, {"retained", retained_at_end}};
  bool clean = true;
  for (const auto& [name, value] : expected) {
    const bool stays = pinned_at_end && std::string(name) == "pinned";
    if (counted(name) == value || stays) continue;
    std::printf("at the end, %s: %d\n", name, static_cast<int>(counted(name)));
    clean = false;
    if (!all_gone_at_end) break;
  }
  return clean || (!all_gone_at_end && counted("misuse") == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const test::Options options(argc, argv);
  const std::string what = options.text("what", ""), driver = options.text("driver", "");
  set_for_rank_1();
  test::start(argc, argv,
              what.find("thread") == what.npos ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
  std::vector<double> from(100, static_cast<double>(rank + 1)), to(100);
  for (size_t count = 1; count <= 100; ++count) allreduce(from.data(), to.data(), count);
  test::check(!is_mapped("libsluice-cuda"), "a module is mapped, but no driver");
  if (!driver.empty()) {
    test::load_driver(driver);
    has_driver = true;
    retained_at_end = counted("retained");
    if (what == "first-threads") first_threads();
    allreduce(from.data(), to.data(), 100);
    const char* const switched = std::getenv("SLUICE_CUDA");
    const bool is_off = switched && std::string(switched) == "off";
    test::check(is_mapped("libsluice-cuda") == !is_off, "the module, with a driver");
  }
  std::istringstream names(what);
  for (std::string name; std::getline(names, name, ',');) {
    for (const Part& part : parts) {
      if (name == part.name) part.run();
    }
  }
  if (what != "failing" && what != "stuck") test::summarize("manners");
  MPI_Finalize();
  if (driver.empty()) return 0;
  return is_clean() ? 0 : 1;
}
