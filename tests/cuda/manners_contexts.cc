// SPDX-License-Identifier: BSD-3-Clause
//
// Contexts, threads and addresses that come and go.
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "tests/cuda/manners.h"

namespace {

void make_current(CUcontext context) {
  test::expect_success(CUDA(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
}

void expect_current(CUcontext context) {
  CUcontext after = nullptr;
  test::expect_success(CUDA(cuCtxGetCurrent)(&after), "cuCtxGetCurrent");
  test::check(after == context, "the current context");
}

// Lets a thread that looks for the driver tarry where it has found it.
constinit std::atomic<bool> tarries{false}, has_looked{false};

}  // namespace

__attribute__((visibility("default"))) void* dlopen(const char* name, int flags) noexcept {
  static const auto next = reinterpret_cast<decltype(&::dlopen)>(dlsym(RTLD_NEXT, "dlopen"));
  void* const library = next(name, flags);
  const bool looks = (flags & RTLD_NOLOAD) && name && std::string_view(name) == "libcuda.so.1";
  if (looks && tarries.exchange(false)) {
    has_looked = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return library;
}

// The first calls after the driver was loaded: while one thread's call looks for it, another
// thread's buffers are on a device too.
void first_threads() {
  MPI_Comm comms[2];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const auto call = [&](MPI_Comm comm) {
    make_current(test::primary_contexts()[0]);
    KindMemory from(Kind::device, 800), to(Kind::device, 800);
    from.put(ones(100));
    while (comm == comms[1] && !has_looked) std::this_thread::yield();
    MPI_Allreduce(from.data(), to.data(), 100, MPI_DOUBLE, MPI_SUM, comm);
    expect_sums(to, 100, "the first calls");
  };
  tarries = true;
  std::thread one(call, comms[0]), other(call, comms[1]);
  one.join();
  other.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// The thread's current context is the same after a call as before.
void contexts() {
  const CUcontext first = test::primary_contexts()[0], last = test::primary_contexts().back();
  for (const Kind kind : test::kinds) {
    KindMemory from(kind, 800), to(kind, 800);
    from.put(ones(100));
    for (const CUcontext context : {first, last, CUcontext{}}) {
      make_current(context);
      allreduce(from.data(), to.data(), 100);
      expect_current(context);
    }
    make_current(first);
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
    make_current(test::primary_contexts()[0]);
  }
}

// Memory without a context, in a thread without one, on a device whose primary context nobody uses:
// Sluice makes that context once and gives it back at the end.
void without_context() {
  CUcontext own = nullptr;
  CUdevice device = 0;
  test::expect_success(CUDA(cuDeviceGet)(&device, 0), "cuDeviceGet");
  make_current(nullptr);
  test::expect_success(CUDA(cuDevicePrimaryCtxRelease)(device), "cuDevicePrimaryCtxRelease");
  --retained_at_end;
  test::expect_success(CUDA(cuCtxCreate_v2)(&own, 0, device), "cuCtxCreate");
  {
    KindMemory from(Kind::mapped, 80000), to(Kind::mapped, 80000);
    from.put(ones(10000));
    make_current(nullptr);
    const int64_t before = counted("contexts");
    for (int i = 0; i < 3; ++i) allreduce(from.data(), to.data(), 10000);
    test::check(counted("contexts") == before + 1, "one context more");
    test::check(counted("retained") == retained_at_end + 1, "retained once");
    expect_current(nullptr);
    make_current(own);
    expect_sums(to, 10000, "without a context");
  }
  test::expect_success(CUDA(cuCtxDestroy_v2)(own), "cuCtxDestroy");
}

// The primary context is reset: all that was in it is gone, and it is dead until somebody retains
// it again. CUDA's runtime library does so when it is used next; Sluice where memory has no
// context. The last reset comes before MPI_Finalize.
void reset() {
  CUcontext primary = nullptr;
  for (int i = 0; i < 6; ++i) {
    const Kind kind = i % 3 == 2 ? Kind::mapped : Kind::device;
    {
      KindMemory from(kind, 80000), to(kind, 80000);
      from.put(ones(10000));
      allreduce(from.data(), to.data(), 10000);
      if (kind == Kind::mapped) {
        test::expect_success(CUDA(cuDevicePrimaryCtxReset_v2)(0), "cuDevicePrimaryCtxReset");
        allreduce(from.data(), to.data(), 10000);
      }
      expect_sums(to, 10000, "reset");
    }
    test::expect_success(CUDA(cuDevicePrimaryCtxReset_v2)(0), "cuDevicePrimaryCtxReset");
    if (i == 5) break;
    test::expect_success(CUDA(cuDevicePrimaryCtxRetain)(&primary, 0), "cuDevicePrimaryCtxRetain");
    test::expect_success(CUDA(cuDevicePrimaryCtxRelease)(0), "cuDevicePrimaryCtxRelease");
  }
  pinned_at_end = true;
}

// The driver ends before MPI does, as where an exit handler calls MPI_Finalize.
void shut_down() {
  {
    KindMemory from(Kind::device, 80000), to(Kind::device, 80000);
    from.put(ones(10000));
    allreduce(from.data(), to.data(), 10000);
    expect_sums(to, 10000, "before");
  }
  CUDA(standin_shut_down)();
  all_gone_at_end = false;
  std::vector<double> from(100, 1), to(100);
  MPI_Allreduce(from.data(), to.data(), 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  test::check(to == std::vector<double>(100, size), "host memory, after the driver has ended");
}

// The program captures a graph from a stream meanwhile, in the strictest mode.
void capture() {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  test::expect_success(CUDA(cuStreamCreate)(&stream, 1), "cuStreamCreate");
  for (const size_t count : {size_t{10}, size_t{10}, size_t{200000}}) {
    KindMemory from(Kind::device, count * 8), to(Kind::device, count * 8);
    from.put(ones(count));
    test::expect_success(CUDA(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                         "cuStreamBeginCapture");
    allreduce(from.data(), to.data(), count);
    test::expect_success(CUDA(cuStreamEndCapture)(stream, &graph), "cuStreamEndCapture");
    expect_sums(to, count, "capture");
  }
  test::expect_success(CUDA(cuStreamDestroy_v2)(stream), "cuStreamDestroy");
}

// Several threads, each with a communicator of its own.
void threads() {
  constexpr size_t many = 3;
  MPI_Comm comms[many];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::thread> all;
  for (size_t number = 0; number < many; ++number) {
    all.emplace_back([&, number] {
      make_current(test::primary_contexts()[0]);
      for (size_t i = 0; i < 40; ++i) {
        const size_t count = i % 4 == 0 ? 100000 : 1 + i;
        const Kind kind = test::kinds[(i + number) % std::size(test::kinds)];
        KindMemory from(kind, count * 8), to(Kind::device, count * 8);
        from.put(ones(count));
        MPI_Allreduce(from.data(), to.data(), static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                      comms[number]);
        expect_sums(to, count, "threads");
      }
    });
  }
  for (std::thread& each : all) each.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// A thread that has never had a context.
void in_thread() {
  for (const Kind kind : test::kinds) {
    KindMemory from(kind, 800), to(kind, 800);
    from.put(ones(100));
    std::thread([&] {
      allreduce(from.data(), to.data(), 100);
      expect_current(nullptr);
    }).join();
    expect_sums(to, 100, "in a thread");
  }
}

// One address is device memory in one call and host memory in the next, and is called with again
// and again.
void reused() {
  constexpr size_t bytes = size_t{2} << 20, count = 1000;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle handle = 0;
  test::expect_success(CUDA(cuMemAddressReserve)(&at, bytes, 0, 0, 0), "cuMemAddressReserve");
  test::expect_success(CUDA(cuMemCreate)(&handle, bytes, &properties, 0), "cuMemCreate");
  void* const address = reinterpret_cast<void*>(static_cast<uintptr_t>(at));
  KindMemory to(Kind::host, count * 8);
  const auto values = ones(count);
  for (int i = 0; i < 5; ++i) {
    test::expect_success(CUDA(cuMemMap)(at, bytes, 0, handle, 0), "cuMemMap");
    test::expect_success(CUDA(cuMemSetAccess)(at, bytes, &access, 1), "cuMemSetAccess");
    test::expect_success(CUDA(cuMemcpyHtoD_v2)(at, values.data(), count * 8), "cuMemcpyHtoD");
    const int64_t out = counted("bytes_out");
    for (int call = 0; call < 3; ++call) allreduce(address, to.data(), count);
    test::check(counted("bytes_out") - out == 3 * count * 8, "copied from the device");
    expect_sums(to, count, "device memory");
    test::expect_success(CUDA(cuMemUnmap)(at, bytes), "cuMemUnmap");
    const void* const host = mmap(address, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    test::check(host == address, "host memory in its place");
    std::copy(values.begin(), values.end(), static_cast<double*>(address));
    to.put(std::vector<double>(count, -1));
    for (int call = 0; call < 3; ++call) allreduce(address, to.data(), count);
    expect_sums(to, count, "host memory");
  }
  test::expect_success(CUDA(cuMemRelease)(handle), "cuMemRelease");
  test::expect_success(CUDA(cuMemAddressFree)(at, bytes), "cuMemAddressFree");
}

// Synchronous copies of the program that return before they are done, also before its first call.
// The call is made in a thread that has no context.
void early() {
  constexpr size_t count = 1000;
  KindMemory from(Kind::device, count * 8), to(Kind::device, count * 8);
  for (int i = 0; i < 20; ++i) {
    from.put(std::vector<double>(count, i));
    from.put(ones(count));
    std::thread([&] { allreduce(from.data(), to.data(), count); }).join();
    expect_sums(to, count, "early");
  }
  test::check(counted("cuPointerSetAttribute") == 2, "set once for each allocation");
}

// The same to memory that belongs to no context, after a first call. The flag of a context is set
// once, unless a knob forbids it.
void early_in_contexts() {
  constexpr size_t count = 1000;
  const char* const knob = std::getenv("SLUICE_CUDA_SYNC_MEMOPS");
  const bool is_off = knob && std::string_view(knob) == "off";
  for (const Kind kind : {Kind::mapped, Kind::pool, Kind::mapped}) {
    KindMemory from(kind, count * 8), to(kind, count * 8);
    from.put(ones(count));
    test::expect_success(CUDA(cuCtxSynchronize)(), "cuCtxSynchronize");
    allreduce(from.data(), to.data(), count);
    for (int i = 0; i < 20 && !is_off; ++i) {
      from.put(std::vector<double>(count, i));
      from.put(ones(count));
      allreduce(from.data(), to.data(), count);
      expect_sums(to, count, "early, without a context");
    }
  }
  test::check(counted("cuCtxSetFlags") == (is_off ? 0 : 1), "the flag of the context");
}

// With blocking streams, what the program has begun in the default stream comes before a call.
void in_order() {
  constexpr size_t count = 100;
  KindMemory from(Kind::device, count * 8), to(Kind::device, count * 8);
  KindMemory source(Kind::pinned, count * 8);
  source.put(ones(count));
  for (int i = 0; i < 20; ++i) {
    from.put(std::vector<double>(count, -1));
    test::expect_success(CUDA(cuCtxSynchronize)(), "cuCtxSynchronize");
    const int64_t out = counted("bytes_out");
    CUDA(standin_hold)();
    const auto address = reinterpret_cast<CUdeviceptr>(from.data());
    test::expect_success(CUDA(cuMemcpyHtoDAsync_v2)(address, source.data(), count * 8, nullptr),
                         "cuMemcpyHtoDAsync");
    std::thread later([&] {
      while (counted("bytes_out") == out) std::this_thread::yield();
      CUDA(standin_release)();
    });
    allreduce(from.data(), to.data(), count);
    later.join();
    expect_sums(to, count, "in the default stream's order");
  }
}

// Memory without a context, while a green context is current: another thread must not use that.
void green() {
  const CUcontext context = CUDA(standin_green_context)(0);
  {
    KindMemory from(Kind::mapped, 800), to(Kind::mapped, 800);
    from.put(ones(100));
    make_current(context);
    for (int i = 0; i < 3; ++i) {
      allreduce(from.data(), to.data(), 100);
      expect_current(context);
      std::thread([&] { allreduce(from.data(), to.data(), 100); }).join();
    }
    make_current(test::primary_contexts()[0]);
    expect_sums(to, 100, "beside a green context");
  }
  test::expect_success(CUDA(cuCtxDestroy_v2)(context), "cuCtxDestroy");
}

// Streams are kept from call to call, whatever the driver.
void kept() {
  KindMemory from(Kind::device, 800), to(Kind::device, 800);
  from.put(ones(100));
  allreduce(from.data(), to.data(), 100);
  const int64_t streams = counted("cuStreamCreate"), events = counted("cuEventCreate");
  for (int i = 0; i < 3; ++i) allreduce(from.data(), to.data(), 100);
  test::check(counted("cuStreamCreate") == streams, "new streams");
  test::check(counted("cuEventCreate") == events, "new events");
  expect_sums(to, 100, "kept");
}

// Managed memory of a device that is busy, where the processor must not touch it meanwhile.
void managed() {
  CUstream stream = nullptr;
  test::expect_success(CUDA(cuStreamCreate)(&stream, 1), "cuStreamCreate");
  for (const size_t count : {size_t{10}, size_t{200000}}) {
    KindMemory from(Kind::managed, count * 8), to(Kind::managed, count * 8);
    from.put(ones(count));
    to.put(std::vector<double>(count, -1));
    CUDA(standin_occupy)(stream);
    allreduce(from.data(), to.data(), count);
    CUDA(standin_vacate)();
    test::expect_success(CUDA(cuStreamSynchronize)(stream), "cuStreamSynchronize");
    expect_sums(to, count, "managed");
  }
  test::expect_success(CUDA(cuStreamDestroy_v2)(stream), "cuStreamDestroy");
  test::check(counted("cuDeviceGetAttribute") == 1, "asked once");
}

// The driver is asked once about each buffer and, on a device, once about each stream and each
// block of pinned memory.
void queries() {
  for (const Kind kind : {Kind::host, Kind::device}) {
    KindMemory from(kind, 800), to(kind, 800);
    from.put(ones(100));
    for (int i = 0; i < 3; ++i) {
      const int64_t before = counted("cuPointerGetAttributes") + counted("cuCtxGetId");
      allreduce(from.data(), to.data(), 100);
      const int64_t asked = counted("cuPointerGetAttributes") + counted("cuCtxGetId") - before;
      test::check(i == 0 || asked == (kind == Kind::host ? 2 : 6),
                  std::string(test::name_of(kind)) + ": " + std::to_string(asked) + " queries");
    }
  }
}

// However long copies take: in a wait loop the driver is asked about an event and nothing else.
void waiting() {
  KindMemory from(Kind::device, 8), to(Kind::device, 8);
  from.put(ones(1));
  const char* const names[] = {"cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuEventRecord",
                               "cuThreadExchangeStreamCaptureMode", "cuPointerGetAttributes"};
  std::vector<int64_t> before(std::size(names)), quick(std::size(names));
  for (const bool slow : {false, false, true}) {
    for (size_t i = 0; i < std::size(names); ++i) before[i] = counted(names[i]);
    const int64_t queries = counted("cuEventQuery");
    if (slow) CUDA(standin_hold)();
    std::thread later([&] {
      while (slow && counted("cuEventQuery") < queries + 1000) std::this_thread::yield();
      if (slow) CUDA(standin_release)();
    });
    allreduce(from.data(), to.data(), 1);
    later.join();
    for (size_t i = 0; i < std::size(names); ++i) {
      const int64_t calls = counted(names[i]) - before[i];
      test::check(!slow || calls == quick[i], std::string(names[i]) + " in a wait loop");
      quick[i] = calls;
    }
  }
  expect_sums(to, 1, "waiting");
}
