// SPDX-License-Identifier: BSD-3-Clause
//
// manners --driver PATH --what NAME: what Sluice asks of a driver, and how it fails. Needs the
// stand-in driver, which counts what is asked of it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "tests/cuda/kinds.h"

namespace {

using test::Kind;
using test::KindMemory;

int rank = 0, size = 0;

int64_t counted(const char* name) { return CUDA(standin_counter)(name); }

bool has_driver = false;

// (The driver waits for the whole device when the program frees memory.)
void allreduce(const void* from, void* to, size_t count) {
  const int64_t waits = has_driver ? counted("waits") : 0;
  MPI_Allreduce(from, to, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (has_driver) test::check(counted("waits") == waits, "waits for a whole device");
}

double total() { return size * (size + 1) / 2.0; }

void expect_sums(const KindMemory& memory, size_t count, const std::string& what) {
  const auto got = memory.get<double>(count);
  const auto is_right = [](double each) { return each == total(); };
  test::check(std::all_of(got.begin(), got.end(), is_right), what + ": the sum");
}

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

std::vector<double> ones(size_t count) {
  return std::vector<double>(count, static_cast<double>(rank + 1));
}

// Each byte is copied once out and once in, and what is pinned stays within its bound.
void copies() {
  const bool is_refused = std::getenv("STANDIN_FAIL") != nullptr;
  const size_t bound = std::strtoull(std::getenv("SLUICE_CUDA_PINNED"), nullptr, 10);
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{8} << 20}) {
    KindMemory from(Kind::device, count * 8), to(Kind::device, count * 8);
    from.put(ones(count));
    for (int i = 0; i < 3; ++i) {
      const int64_t out = counted("bytes_out"), in = counted("bytes_in");
      const int64_t copies = counted("copies");
      allreduce(from.data(), to.data(), count);
      const auto bytes = static_cast<int64_t>(count * 8);
      test::check(counted("bytes_out") - out == bytes, "bytes out");
      test::check(counted("bytes_in") - in == bytes, "bytes in");
      const int64_t most = 2 * ((bytes + (256 << 10) - 1) / (256 << 10));
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

// Runs of equal length and distance are one copy, and gaps stay as they are.
void vectors() {
  constexpr size_t rows = 200;
  MPI_Datatype column;
  MPI_Type_vector(rows, 1, 3, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  KindMemory both(Kind::device, rows * 3 * 8);
  std::vector<double> matrix(rows * 3, -1);
  for (size_t i = 0; i < rows; ++i) matrix[3 * i] = rank == 0 ? 7 : 0;
  both.put(matrix);
  const int64_t before = counted("cuMemcpy2DAsync_v2"), copies = counted("copies");
  MPI_Bcast(both.data(), 1, column, 0, MPI_COMM_WORLD);
  test::check(counted("cuMemcpy2DAsync_v2") - before == 1, "a copy of two dimensions");
  test::check(counted("copies") - copies == 1, "one copy");
  for (size_t i = 0; i < rows; ++i) matrix[3 * i] = 7;
  test::check(both.get<double>(rows * 3) == matrix, "the matrix");
  MPI_Type_free(&column);
}

// The thread's current context is the same after a call as before.
void contexts() {
  const CUcontext first = test::primary_contexts()[0], last = test::primary_contexts().back();
  for (const Kind kind : test::kinds) {
    KindMemory from(kind, 800), to(kind, 800);
    from.put(ones(100));
    for (const CUcontext context : {first, last, CUcontext{}}) {
      CUcontext after = nullptr;
      test::expect_success(CUDA(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
      allreduce(from.data(), to.data(), 100);
      test::expect_success(CUDA(cuCtxGetCurrent)(&after), "cuCtxGetCurrent");
      test::check(after == context, "the current context");
    }
    test::expect_success(CUDA(cuCtxSetCurrent)(first), "cuCtxSetCurrent");
    expect_sums(to, 100, "contexts");
  }
}

// A context that is destroyed takes its memory and Sluice's streams with it. The next one may have
// the same handle.
void short_lived() {
  for (int i = 0; i < 20; ++i) {
    CUcontext context = nullptr;
    CUdevice device = 0;
    test::expect_success(CUDA(cuDeviceGet)(&device, 0), "cuDeviceGet");
    test::expect_success(CUDA(cuCtxCreate_v2)(&context, 0, device), "cuCtxCreate");
    {
      KindMemory from(Kind::device, 80000), to(Kind::device, 80000);
      from.put(ones(10000));
      allreduce(from.data(), to.data(), 10000);
      expect_sums(to, 10000, "short-lived");
    }
    test::expect_success(CUDA(cuCtxDestroy_v2)(context), "cuCtxDestroy");
    test::expect_success(CUDA(cuCtxSetCurrent)(test::primary_contexts()[0]), "cuCtxSetCurrent");
  }
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

// No data: any pointer will do.
void nothing() {
  auto* const wild = reinterpret_cast<double*>(uintptr_t{0x10});
  for (int i = 0; i < 3; ++i) {
    allreduce(wild, wild + 1, 0);
    MPI_Bcast(wild, 0, MPI_INT, 0, MPI_COMM_WORLD);
  }
  test::check(counted("copies") == 0, "copies of nothing");
}

// A copy fails on rank 1 (or what HOW names, at that copy): all ranks get an error, in this call
// or, if they were done with it, in the next.
void failing() {
  const auto count = size_t{1} << 20;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::vector<double> from(count, 1), to(count);
  KindMemory device_from(Kind::device, count * 8), device_to(Kind::device, count * 8);
  device_from.put(from);
  const char* const how = std::getenv("HOW");
  if (rank == 1) {
    test::check(CUDA(standin_fail)(how ? how : "copy", std::getenv("COPY")), "standin_fail");
  }
  int failed = 0, error = MPI_SUCCESS;
  for (int call = 1; call <= 2 && error == MPI_SUCCESS; ++call) {
    error = rank == 1
                ? MPI_Allreduce(device_from.data(), device_to.data(), count, MPI_DOUBLE, MPI_SUM,
                                MPI_COMM_WORLD)
                : MPI_Allreduce(from.data(), to.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (error != MPI_SUCCESS) failed = call;
  }
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  test::check(error != MPI_SUCCESS, "no error");
  MPI_Error_string(error, text, &length);
  std::printf("rank %d call %d: %s\n", rank, failed, text);
  std::fflush(stdout);
  CUDA(standin_forgive)();
}

struct Part {
  const char* name;
  void (*run)();
};
const Part parts[] = {{"copies", copies},           {"vectors", vectors},   {"contexts", contexts},
                      {"short-lived", short_lived}, {"changing", changing}, {"nothing", nothing},
                      {"failing", failing}};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const test::Options options(argc, argv);
  const std::string what = options.text("what", ""), driver = options.text("driver", "");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<double> from(100, static_cast<double>(rank + 1)), to(100);
  for (size_t count = 1; count <= 100; ++count) allreduce(from.data(), to.data(), count);
  test::check(!is_mapped("libsluice-cuda"), "a module is mapped, but no driver");
  if (!driver.empty()) {
    test::load_driver(driver);
    has_driver = true;
    allreduce(from.data(), to.data(), 100);
    const char* const switched = std::getenv("SLUICE_CUDA");
    const bool is_off = switched && std::string(switched) == "off";
    test::check(is_mapped("libsluice-cuda") == !is_off, "the module, with a driver");
  }
  for (const Part& part : parts) {
    if (what == part.name) part.run();
  }
  if (what != "failing") test::summarize("manners");
  MPI_Finalize();
  if (driver.empty()) return 0;
  // (With a broken context nothing can be unpinned.)
  const bool holds = counted("misuse") == 0 && (what == "failing" || counted("pinned") == 0);
  if (!holds) {
    std::printf("left behind: %d bytes pinned, misuse %d\n", static_cast<int>(counted("pinned")),
                static_cast<int>(counted("misuse")));
  }
  return holds ? 0 : 1;
}
