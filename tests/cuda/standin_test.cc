// SPDX-License-Identifier: BSD-3-Clause
//
// The stand-in driver: memory, contexts, names, injected errors.
#include <dlfcn.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/cuda/standin_rig.h"
#include "tests/unit/support/child.h"

namespace standin {
namespace {

constexpr size_t granularity = size_t{2} << 20;

using Memory = StandIn;

// Signals end the child.
int touch(CUdeviceptr pointer, bool writes) {
  return sluice::in_child([=] {
    auto* const byte = reinterpret_cast<volatile char*>(static_cast<uintptr_t>(pointer));
    if (writes) *byte = 1;
    return *byte == 0 ? 10 : 11;
  });
}

// Of a copy by the kernel.
int errno_of_read(CUdeviceptr pointer) {
  char byte = 0;
  const iovec to{&byte, 1}, from{reinterpret_cast<void*>(static_cast<uintptr_t>(pointer)), 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 ? 0 : errno;
}

struct Mapped {
  CUdeviceptr pointer = 0;
  size_t bytes = 0;
  explicit Mapped(size_t parts, int device = 0, int user = 0) : bytes(parts * granularity) {
    EXPECT_EQ(cuMemAddressReserve(&pointer, bytes, 0, 0, 0), CUDA_SUCCESS);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    for (size_t i = 0; i < parts; ++i) {
      CUmemGenericAllocationHandle handle = 0;
      EXPECT_EQ(cuMemCreate(&handle, granularity, &properties, 0), CUDA_SUCCESS);
      EXPECT_EQ(cuMemMap(pointer + i * granularity, granularity, 0, handle, 0), CUDA_SUCCESS);
      EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    }
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, user},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(cuMemSetAccess(pointer, bytes, &access, 1), CUDA_SUCCESS);
  }
  void unmap() const { EXPECT_EQ(cuMemUnmap(pointer, bytes), CUDA_SUCCESS); }
  void free() const { EXPECT_EQ(cuMemAddressFree(pointer, bytes), CUDA_SUCCESS); }
};

TEST_F(Memory, OfADeviceFaultsWhenTheProcessorTouchesIt) {
  const CUdeviceptr device = allocate(100);
  CUdeviceptr pool = 0;
  ASSERT_EQ(cuMemAllocAsync(&pool, 100, nullptr), CUDA_SUCCESS);
  const Mapped mapped(1);
  for (const CUdeviceptr pointer : {device, pool, mapped.pointer}) {
    EXPECT_EQ(touch(pointer, false), -1);
    EXPECT_EQ(touch(pointer, true), -1);
    EXPECT_EQ(errno_of_read(pointer), EFAULT);
  }
  EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(pool, nullptr), CUDA_SUCCESS);
  mapped.unmap();
  EXPECT_EQ(touch(mapped.pointer, false), -1);
  mapped.free();
}

TEST_F(Memory, ThatIsPinnedOrManagedMayBeTouched) {
  std::byte* const pinned = pin(100);
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, 100, 1), CUDA_SUCCESS);
  EXPECT_EQ(touch(reinterpret_cast<CUdeviceptr>(pinned), true), 11);
  EXPECT_EQ(touch(managed, true), 11);
  EXPECT_EQ(standin_counter("pinned"), 100);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(managed), CUDA_SUCCESS);
}

TEST_F(Memory, TellsItsExtentAndDevice) {
  const CUdeviceptr device = allocate(100);
  EXPECT_EQ(ask(device + 99).bytes, 100U);
  EXPECT_EQ(ask(device + 100).type, 0U) << "behind its end";
  EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
  const Mapped mapped(1, 1);
  const Answer answer = ask(mapped.pointer);
  EXPECT_EQ(answer.type, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(answer.context, nullptr);
  EXPECT_EQ(answer.device, 1);
  mapped.unmap(), mapped.free();
}

TEST_F(Memory, OfVirtualAddressesIsCopiedAcrossMappingsByThoseWithAccess) {
  const Mapped mapped(2), other(1, 1, 1);
  const auto bytes = filled(granularity, 7);
  EXPECT_EQ(cuMemcpyHtoD_v2(mapped.pointer + 5000, bytes.data(), bytes.size()), CUDA_SUCCESS);
  EXPECT_EQ(read(mapped.pointer + 5000, bytes.size()), bytes);
  EXPECT_EQ(read(mapped.pointer + 5000 + granularity, 1), filled(1, 0));
  EXPECT_EQ(cuMemcpyHtoD_v2(other.pointer, bytes.data(), 1), CUDA_ERROR_INVALID_VALUE)
      << "device 0 may not";
  EXPECT_EQ(cuMemcpyHtoD_v2(mapped.pointer + granularity + 1, bytes.data(), granularity),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(standin_forgive(), 2);
  mapped.unmap(), mapped.free(), other.unmap(), other.free();
}

TEST_F(Memory, IsFreedOnceAndByItsOwnFunction) {
  const CUdeviceptr device = allocate(100);
  std::byte* const pinned = pin(100);
  EXPECT_EQ(cuMemFree_v2(device + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(pinned + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(reinterpret_cast<CUdeviceptr>(pinned)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(device), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(standin_forgive(), 4);
}

using Contexts = StandIn;

TEST_F(Contexts, ThatAreGoneCannotBePushed) {
  CUcontext made = nullptr;
  CUdevice device = -1;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  ASSERT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxPushCurrent_v2(made), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(standin_forgive(), 1);
}

TEST_F(Contexts, ArePrimaryAsLongAsTheyAreRetained) {
  CUcontext again = nullptr;
  CUevent event = nullptr;
  unsigned long long before = 0, after = 0;
  EXPECT_EQ(standin_counter("retained"), 1);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(standin_counter("retained"), 2);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxGetId(context, &before), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  unsigned flags = 0;
  int active = 1;
  CUcontext found = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(cuCtxGetCurrent(&found), CUDA_SUCCESS);
  EXPECT_EQ(found, context) << "it stays current, though dead";
  EXPECT_EQ(cuCtxGetId(context, &after), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuEventCreate(&event, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(again, context);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxGetId(context, &after), CUDA_SUCCESS);
  EXPECT_NE(before, after);
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(standin_forgive(), 2);
  EXPECT_EQ(standin_counter("events"), 0);
}

TEST_F(Contexts, LeaveRegistrationsBehind) {
  char own = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(&own);
  CUcontext made = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostRegister_v2(&own, 1, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
  EXPECT_EQ(ask(address).type, CU_MEMORYTYPE_HOST);
  EXPECT_EQ(ask(address).context, made) << "which is gone";
  EXPECT_EQ(cuMemHostUnregister(&own), CUDA_SUCCESS);
}

TEST_F(Contexts, ThatAreGreenBelongToOneThreadAtATime) {
  const CUcontext green = standin_green_context(0);
  CUcontext popped = nullptr;
  ASSERT_EQ(cuCtxPushCurrent_v2(green), CUDA_SUCCESS);
  std::thread([&] {
    EXPECT_EQ(cuCtxPushCurrent_v2(green), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(standin_forgive(), 1);
  EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  std::thread([&] {
    EXPECT_EQ(cuCtxPushCurrent_v2(green), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(cuCtxDestroy_v2(green), CUDA_SUCCESS);
}

TEST_F(Contexts, WaitForCallsThatEnqueueBeforeTheirFlagsAreSet) {
  const CUdeviceptr device = allocate(8);
  const int64_t calls = standin_counter("cuMemcpyHtoD_v2");
  standin_hold();
  std::thread launching([&] {
    uint64_t value = 0;
    EXPECT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD_v2(device, &value, 8), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  });
  while (standin_counter("copies") == 0 || standin_counter("cuMemcpyHtoD_v2") == calls) {
    std::this_thread::yield();
  }
  std::atomic<bool> is_set{false};
  std::thread setting([&] {
    EXPECT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetFlags(CU_CTX_SYNC_MEMOPS), CUDA_SUCCESS);
    is_set = true;
    CUcontext popped = nullptr;
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  });
  while (standin_counter("cuCtxSetFlags") == 0) std::this_thread::yield();
  EXPECT_FALSE(is_set);
  standin_release();
  launching.join();
  setting.join();
  unsigned flags = 0;
  EXPECT_EQ(cuCtxGetFlags(&flags), CUDA_SUCCESS);
  EXPECT_EQ(flags, CU_CTX_SYNC_MEMOPS);
  EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
}

using Injected = StandIn;

TEST_F(Injected, AllocationsFail) {
  ASSERT_TRUE(standin_fail("host_alloc", "2"));
  ASSERT_TRUE(standin_fail("device_alloc", "1+"));
  void* pinned = nullptr;
  CUdeviceptr device = 0;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 8, 0), CUDA_SUCCESS);
  char own[8];
  EXPECT_EQ(cuMemHostRegister_v2(own, 8, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemHostRegister_v2(own, 8, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(own), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cuMemAlloc_v2(&device, 8), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_TRUE(standin_fail("device_alloc", "0"));
  EXPECT_EQ(cuMemFree_v2(allocate(8)), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_FALSE(standin_fail("nothing", "1"));
  EXPECT_FALSE(standin_fail("copy", "soon"));
}

// (The device is busy in another context.)
TEST_F(StandIn, MemoryIsForgottenOnceIfItsContextGoesMeanwhile) {
  constexpr size_t page = 4096;
  std::vector<std::byte> memory(3 * page);
  void* const own = memory.data() + (page - reinterpret_cast<uintptr_t>(memory.data()) % page);
  const CUdeviceptr device = allocate(8);
  std::byte* const pinned = pin(8);
  const CUstream busy = stream();
  CUcontext made = nullptr, popped = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostRegister_v2(own, page, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  standin_hold();
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(pinned, device, 8, busy), CUDA_SUCCESS);
  const int64_t waits = standin_counter("waits");
  std::thread other([&] {
    cuCtxPushCurrent_v2(made);
    cuMemHostUnregister(own);
    CUcontext mine = nullptr;
    cuCtxPopCurrent_v2(&mine);
  });
  while (standin_counter("waits") == waits) std::this_thread::yield();
  EXPECT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
  standin_release();
  other.join();
  EXPECT_EQ(standin_counter("pinned"), 8);
  EXPECT_EQ(cuStreamDestroy_v2(busy), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
}

TEST_F(Injected, ACopyThatFailsBreaksItsContext) {
  CUcontext made = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
  const CUdeviceptr device = allocate(8);
  std::byte* const pinned = pin(8);
  const CUstream own = stream();
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, 2), CUDA_SUCCESS);
  ASSERT_TRUE(standin_fail("copy", "2"));
  pinned[0] = std::byte{1};
  standin_hold();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cuMemcpyDtoHAsync_v2(pinned, device, 8, own), CUDA_SUCCESS) << "it fails later";
    pinned[0] = std::byte{1};
  }
  EXPECT_EQ(cuEventRecord(event, own), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  standin_release();
  EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(pinned, device, 8, own), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 8), CUDA_ERROR_ILLEGAL_ADDRESS);
  const char* name = nullptr;
  EXPECT_EQ(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name), CUDA_SUCCESS);
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  ASSERT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(allocate(8)), CUDA_SUCCESS) << "another context goes on";
}

TEST_F(Injected, ALostDeviceIsLostToAllItsContexts) {
  CUcontext one = nullptr, two = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&one, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate_v2(&two, 0, 1), CUDA_SUCCESS);
  ASSERT_TRUE(standin_fail("lose_device", "1"));
  const CUdeviceptr device = allocate(8);
  uint64_t value = 0;
  EXPECT_EQ(cuMemcpyHtoD_v2(device, &value, 8), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
  ASSERT_EQ(cuCtxDestroy_v2(two), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
  ASSERT_EQ(cuCtxDestroy_v2(one), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS) << "device 0 goes on";
}

using Names = StandIn;

TEST_F(Names, OfOldGiveFunctionsThatRefuse) {
  void* function = nullptr;
  ASSERT_EQ(cuGetProcAddress("cuMemAlloc", &function, 3010, 0), CUDA_SUCCESS);
  EXPECT_EQ(reinterpret_cast<CUresult (*)(unsigned*, unsigned)>(function)(nullptr, 8),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(standin_forgive(), 1);
  ASSERT_EQ(cuGetProcAddress("cuMemAlloc", &function, 12000, 0), CUDA_SUCCESS);
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemAlloc_v2));
}

std::string library(const std::string& name) {
  const char* top = std::getenv("top_builddir");
  return std::string(top ? top : ".") + "/tests/cuda/standin/" + name;
}

// Each library has a state of its own.
TEST(Library, HasTheNamesOfItsTime) {
  void* const now = dlopen(library("libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(now) << dlerror();
  EXPECT_EQ(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), now) << "found by its soname";
  void* const old = dlopen(library("old/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(old) << dlerror();
  for (const char* name : {"cuInit", "cuMemAlloc", "cuMemAlloc_v2", "cuMemcpy2DAsync_v2"}) {
    EXPECT_TRUE(dlsym(now, name)) << name;
    EXPECT_TRUE(dlsym(old, name)) << name;
  }
  for (const char* name :
       {"cuMemAllocAsync", "cuGetProcAddress", "cuCtxGetId", "cuDevicePrimaryCtxRelease_v2"}) {
    EXPECT_TRUE(dlsym(now, name)) << name;
    EXPECT_FALSE(dlsym(old, name)) << name;
  }
  EXPECT_FALSE(dlsym(now, "_ZN7standin6driverEv"));
  const auto allocate = reinterpret_cast<decltype(&cuMemAlloc_v2)>(dlsym(now, "cuMemAlloc_v2"));
  CUdeviceptr pointer = 0;
  EXPECT_EQ(allocate(&pointer, 8), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(Library, EndsAProcessThatMisusedIt) {
  const std::string command = "'" + library("../standin_tests") + "' --gtest_filter=Misuse.* 2>&1";
  EXPECT_EQ(WEXITSTATUS(std::system((command + " >/dev/null").c_str())), 97);
  const std::string again = command + " | grep -q 'standin: MISUSED 1 times'";
  EXPECT_EQ(std::system(again.c_str()), 0);
}

// For the test above; alone it is nothing.
TEST(Misuse, IsLeft) {
  if (std::string(testing::GTEST_FLAG(filter)) != "Misuse.*") return;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace standin
