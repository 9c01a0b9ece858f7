// SPDX-License-Identifier: BSD-3-Clause
//
// buffers --driver PATH [--what NAME]: collectives on memory of every kind that a CUDA driver has,
// beside host memory. The program loads the driver itself, after the first collectives, so that
// Sluice must notice it. What each case expects is computed here, not taken from an MPI library.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

#include "tests/cuda/standin/cuda_driver.h"
#include "tests/mpi/harness.h"

namespace {

int rank = 0, size = 0;

// The driver's functions, looked up in the library that is loaded late.
void* library = nullptr;
template <typename Function>
Function* in_driver(const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  test::check(found != nullptr, std::string("the driver has no ") + name);
  return found;
}
#define CUDA(function) in_driver<decltype(::function)>(#function)

void expect_success(CUresult result, const char* what) {
  test::check(result == CUDA_SUCCESS, std::string(what) + " failed: " + std::to_string(result));
}

enum class Kind { host, device, other_device, pool, mapped, managed, pinned };
const Kind kinds[] = {Kind::host,   Kind::device,  Kind::other_device, Kind::pool,
                      Kind::mapped, Kind::managed, Kind::pinned};
const char* name_of(Kind kind) {
  static const char* const names[] = {"host",   "device",  "other device", "pool",
                                      "mapped", "managed", "pinned"};
  return names[static_cast<int>(kind)];
}

std::vector<CUcontext> primaries;  // of all devices; the first is current

// Memory of a kind, filled and read through the driver.
class Memory {
 public:
  Memory(Kind kind, size_t bytes) : kind_(kind), bytes_(std::max<size_t>(bytes, 1)) {
    switch (kind) {
      case Kind::host:
        host_.resize(bytes_);
        at_ = reinterpret_cast<uintptr_t>(host_.data());
        break;
      case Kind::device:
        expect_success(CUDA(cuMemAlloc_v2)(&at_, bytes_), "cuMemAlloc");
        break;
      case Kind::other_device: {
        CUcontext popped = nullptr;
        expect_success(CUDA(cuCtxPushCurrent_v2)(primaries.back()), "cuCtxPushCurrent");
        expect_success(CUDA(cuMemAlloc_v2)(&at_, bytes_), "cuMemAlloc");
        expect_success(CUDA(cuCtxPopCurrent_v2)(&popped), "cuCtxPopCurrent");
        break;
      }
      case Kind::pool:
        expect_success(CUDA(cuMemAllocAsync)(&at_, bytes_, nullptr), "cuMemAllocAsync");
        expect_success(CUDA(cuStreamSynchronize)(nullptr), "cuStreamSynchronize");
        break;
      case Kind::mapped:
        map();
        break;
      case Kind::managed:
        expect_success(CUDA(cuMemAllocManaged)(&at_, bytes_, 1), "cuMemAllocManaged");
        break;
      case Kind::pinned: {
        void* memory = nullptr;
        expect_success(CUDA(cuMemHostAlloc)(&memory, bytes_, 0), "cuMemHostAlloc");
        at_ = reinterpret_cast<uintptr_t>(memory);
      }
    }
  }
  ~Memory() {
    switch (kind_) {
      case Kind::host:
        break;
      case Kind::pool:
        CUDA(cuMemFreeAsync)(at_, nullptr);
        break;
      case Kind::mapped:
        CUDA(cuMemUnmap)(at_, mapped_);
        CUDA(cuMemAddressFree)(at_, mapped_);
        break;
      case Kind::pinned:
        CUDA(cuMemFreeHost)(data());
        break;
      case Kind::device:
      case Kind::other_device:
      case Kind::managed:
        CUDA(cuMemFree_v2)(at_);
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const { return reinterpret_cast<void*>(static_cast<uintptr_t>(at_)); }
  bool is_host() const {
    return kind_ == Kind::host || kind_ == Kind::managed || kind_ == Kind::pinned;
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    if (values.empty()) return;
    if (is_host()) {
      std::memcpy(data(), values.data(), values.size() * sizeof(T));
    } else {
      expect_success(CUDA(cuMemcpyHtoD_v2)(at_, values.data(), values.size() * sizeof(T)),
                     "cuMemcpyHtoD");
    }
  }
  template <typename T>
  std::vector<T> get(size_t count) const {
    std::vector<T> values(count);
    if (count == 0) return values;
    if (is_host()) {
      std::memcpy(values.data(), data(), count * sizeof(T));
    } else {
      expect_success(CUDA(cuMemcpyDtoH_v2)(values.data(), at_, count * sizeof(T)), "cuMemcpyDtoH");
    }
    return values;
  }

 private:
  void map() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    size_t grain = 0;
    expect_success(
        CUDA(cuMemGetAllocationGranularity)(&grain, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "cuMemGetAllocationGranularity");
    mapped_ = (bytes_ + grain - 1) / grain * grain;
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    expect_success(CUDA(cuMemAddressReserve)(&at_, mapped_, 0, 0, 0), "cuMemAddressReserve");
    expect_success(CUDA(cuMemCreate)(&handle, mapped_, &properties, 0), "cuMemCreate");
    expect_success(CUDA(cuMemMap)(at_, mapped_, 0, handle, 0), "cuMemMap");
    expect_success(CUDA(cuMemSetAccess)(at_, mapped_, &access, 1), "cuMemSetAccess");
    expect_success(CUDA(cuMemRelease)(handle), "cuMemRelease");
  }

  const Kind kind_;
  const size_t bytes_;
  size_t mapped_ = 0;
  CUdeviceptr at_ = 0;
  std::vector<std::byte> host_;
};

double value(int of, size_t at) {
  return static_cast<double>(of * 1000 + static_cast<int>(at % 997));
}

std::vector<double> values(int of, size_t count) {
  std::vector<double> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = value(of, i);
  return all;
}

std::vector<double> sums(size_t count) {
  std::vector<double> all(count);
  for (size_t i = 0; i < count; ++i) {
    for (int of = 0; of < size; ++of) all[i] += value(of, i);
  }
  return all;
}

std::string describe(const char* what, Kind in, Kind out, size_t count) {
  return std::string(what) + " of " + std::to_string(count) + " from " + name_of(in) + " to " +
         name_of(out);
}

// The kinds of this rank; other ranks have others.
Kind kind_of(size_t index) { return kinds[(index + static_cast<size_t>(rank)) % std::size(kinds)]; }

void allreduce(Kind in, Kind out, size_t count) {
  Memory from(in, count * sizeof(double)), to(out, count * sizeof(double));
  from.put(values(rank, count));
  MPI_Allreduce(from.data(), to.data(), static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
  test::check(to.get<double>(count) == sums(count), describe("allreduce", in, out, count));
  test::check(from.get<double>(count) == values(rank, count), describe("input", in, out, count));
}

void allreduce_in_place(Kind kind, size_t count) {
  Memory both(kind, count * sizeof(double));
  both.put(values(rank, count));
  MPI_Allreduce(MPI_IN_PLACE, both.data(), static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
  test::check(both.get<double>(count) == sums(count),
              describe("allreduce in place", kind, kind, count));
}

void broadcast(Kind kind, size_t count) {
  const int root = size - 1;
  Memory data(kind, count * sizeof(double));
  data.put(values(rank, count));
  MPI_Bcast(data.data(), static_cast<int>(count), MPI_DOUBLE, root, MPI_COMM_WORLD);
  test::check(data.get<double>(count) == values(root, count),
              describe("broadcast", kind, kind, count));
}

const size_t counts[] = {0, 1, 7, 1000, 40000, 300000};

void every_kind() {
  for (const size_t count : counts) {
    for (size_t i = 0; i < std::size(kinds); ++i) {
      for (size_t j = 0; j < std::size(kinds); ++j) {
        if (count > 1000 && (i + j) % 3 != 0) continue;
        allreduce(kind_of(i), kind_of(j + i), count);
      }
      allreduce_in_place(kind_of(i), count);
      broadcast(kind_of(i), count);
    }
  }
}

void load_driver(const std::string& path) {
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  test::check(library != nullptr, "the driver can't be loaded: " + path);
  int count = 0;
  expect_success(CUDA(cuInit)(0), "cuInit");
  expect_success(CUDA(cuDeviceGetCount)(&count), "cuDeviceGetCount");
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    CUcontext context = nullptr;
    expect_success(CUDA(cuDeviceGet)(&device, i), "cuDeviceGet");
    expect_success(CUDA(cuDevicePrimaryCtxRetain)(&context, device), "cuDevicePrimaryCtxRetain");
    primaries.push_back(context);
  }
  expect_success(CUDA(cuCtxSetCurrent)(primaries.front()), "cuCtxSetCurrent");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const test::Options options(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 3; ++i) allreduce(Kind::host, Kind::host, 1);
  load_driver(options.text("driver", "libcuda.so.1"));
  every_kind();
  test::summarize("buffers");
  MPI_Finalize();
  return 0;
}
