// SPDX-License-Identifier: BSD-3-Clause
//
// What Sluice relies on in a CUDA driver, and what the stand-in has to do alike: this runs over the
// stand-in (in standin_tests, and by itself) and over a real driver (`on-gpu --only driver`).
#include <functional>
#include <string>
#include <thread>

#include "tests/cuda/driver_rig.h"

namespace standin {
namespace {

TEST_F(AnyDriver, TellsTheKindOfMemory) {
  const CUdeviceptr device = allocate(100);
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, 100, 1), CUDA_SUCCESS);
  std::byte* const pinned = pin(100);
  char own = 0;
  struct Row {
    CUdeviceptr pointer;
    unsigned type, managed;
    CUcontext context;
  };
  const Row rows[] = {{device, CU_MEMORYTYPE_DEVICE, 0, context},
                      {device + 99, CU_MEMORYTYPE_DEVICE, 0, context},
                      {managed, CU_MEMORYTYPE_DEVICE, 1, context},
                      {reinterpret_cast<CUdeviceptr>(pinned), CU_MEMORYTYPE_HOST, 0, context},
                      {reinterpret_cast<CUdeviceptr>(&own), 0, 0, nullptr}};
  for (const Row& row : rows) {
    const Answer answer = ask(row.pointer);
    EXPECT_EQ(answer.type, row.type) << &row - rows;
    EXPECT_EQ(answer.managed, row.managed) << &row - rows;
    EXPECT_EQ(answer.context, row.context) << &row - rows;
    if (row.context == nullptr) continue;
    EXPECT_EQ(answer.device, 0) << &row - rows;
  }
  EXPECT_EQ(ask(device + 99).start, device);
  EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(managed), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(ask(device).type, 0U) << "freed";
}

TEST_F(AnyDriver, DoesNotKnowMemoryThatIsNotRegistered) {
  char own = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(&own);
  unsigned type = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostRegister_v2(&own, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(ask(address).type, CU_MEMORYTYPE_HOST);
  EXPECT_EQ(cuMemHostRegister_v2(&own, 1, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(cuMemHostUnregister(&own), CUDA_SUCCESS);
}

TEST_F(AnyDriver, NeedsAContextForWork) {
  const CUdeviceptr device = allocate(8);
  CUcontext popped = nullptr;
  ASSERT_EQ(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  CUstream none = nullptr;
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 8), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuMemcpyDtoH_v2(&pointer, device, 8), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuStreamCreate(&none, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(ask(device).type, CU_MEMORYTYPE_DEVICE) << "asking needs none";
  ASSERT_EQ(cuCtxPushCurrent_v2(popped), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(device), CUDA_SUCCESS);
}

TEST_F(AnyDriver, StacksContextsWhichTakeTheirMemoryWithThem) {
  CUcontext made = nullptr, found = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxGetCurrent(&found), CUDA_SUCCESS);
  EXPECT_EQ(found, made);
  unsigned long long one = 0, other = 0;
  EXPECT_EQ(cuCtxGetId(made, &one), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetId(context, &other), CUDA_SUCCESS);
  EXPECT_NE(one, other);
  const CUdeviceptr pointer = allocate(8);
  EXPECT_EQ(ask(pointer).context, made);
  ASSERT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxGetCurrent(&found), CUDA_SUCCESS);
  EXPECT_EQ(found, context);
  EXPECT_EQ(ask(pointer).type, 0U);
}

// Of a capture, in threads that have not exchanged their mode.
TEST_F(AnyDriver, ForbidsUnsafeCallsDuringACapture) {
  const CUstream captured = stream();
  CUgraph graph = nullptr;
  CUdeviceptr pointer = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_EQ(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  ASSERT_EQ(cuMemAlloc_v2(&pointer, 8), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree_v2(pointer), CUDA_SUCCESS);
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  std::thread([&] {
    EXPECT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc_v2(&pointer, 8), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }).join();
  EXPECT_EQ(cuStreamEndCapture(captured, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_EQ(cuStreamDestroy_v2(captured), CUDA_SUCCESS);
}

TEST_F(AnyDriver, FindsFunctionsByVersion) {
  struct Row {
    const char* name;
    int version;
    CUresult result;
    CUdriverProcAddressQueryResult status;
  };
  for (const Row& row :
       {Row{"cuMemAlloc", 12000, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS},
        Row{"cuMemAlloc_v2", 12000, CUDA_ERROR_NOT_FOUND, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        Row{"cuMemAllocAsync", 11000, CUDA_ERROR_NOT_FOUND,
            CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT}}) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    EXPECT_EQ(cuGetProcAddress_v2(row.name, &function, row.version, 0, &status), row.result)
        << row.name;
    EXPECT_EQ(status, row.status) << row.name;
    EXPECT_EQ(function != nullptr, row.result == CUDA_SUCCESS) << row.name;
  }
}

TEST_F(AnyDriver, RefusesToExportWhatItDoesNotShare) {
  CUipcMemHandle handle{};
  CUdeviceptr memory = allocate(10000), other = 0;
  EXPECT_EQ(cuIpcGetMemHandle(&handle, memory), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&other, handle, 1), CUDA_ERROR_INVALID_CONTEXT);  // its own
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&other, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocManaged(&memory, 10000, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcGetMemHandle(&handle, memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&memory, 10000, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcGetMemHandle(&handle, memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeAsync(memory, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
}

TEST_F(AnyDriverCopies, OfPageableMemoryAreStaged) {
  auto source = filled(bytes, 1);
  hold();
  ASSERT_EQ(cuMemcpyHtoDAsync_v2(device, source.data(), bytes, one), CUDA_SUCCESS);
  source = filled(bytes, 2);
  release();
  finish();
  EXPECT_EQ(read(device, bytes), filled(bytes, 1));
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(source.data(), device, bytes, one), CUDA_SUCCESS);
  EXPECT_EQ(source, filled(bytes, 1)) << "back when it returns";
}

// Each row puts numbers into streams; the last one must win.
TEST_F(AnyDriverCopies, RunInOrder) {
  const CUstream blocking = stream(0);
  const auto in_one = [&] {
    for (int i = 1; i <= 5; ++i) put(i, one);
  };
  const auto by_event = [&] {
    put(1, one);
    EXPECT_EQ(cuEventRecord(event, one), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(two, event, 0), CUDA_SUCCESS);
    put(5, two);
  };
  const auto behind_the_legacy_stream = [&] {
    put(1, blocking);
    put(2, nullptr);
    put(5, blocking);
  };
  const auto in_the_legacy_stream = [&] {
    put(4, blocking);
    put(5, nullptr);
  };
  struct Row {
    const char* name;
    std::function<void()> enqueue;
    CUstream last;
  };
  const Row rows[] = {
      {"of one stream", in_one, one},
      {"by an event", by_event, two},
      {"of a blocking stream behind the legacy one", behind_the_legacy_stream, blocking},
      {"of the legacy stream", in_the_legacy_stream, nullptr}};
  for (const Row& row : rows) {
    for (int turn = 0; turn < 50; ++turn) {
      hold();
      row.enqueue();
      release();
      ASSERT_EQ(cuStreamSynchronize(row.last), CUDA_SUCCESS);
      ASSERT_EQ(value(), 5) << row.name;
    }
  }
  EXPECT_EQ(cuStreamDestroy_v2(blocking), CUDA_SUCCESS);
}

TEST_F(AnyDriverCopies, InTwoDimensionsLeaveTheGaps) {
  fill(9);
  CUDA_MEMCPY2D copy = grid(device + 90, pinned, 10);
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_SUCCESS) << "the last row ends with the memory";
  finish();
  std::vector<std::byte> wanted(bytes);
  for (size_t i = 0; i < bytes; ++i) wanted[i] = std::byte(i % 100 < 90 ? 0 : 9);
  EXPECT_EQ(read(device, bytes), wanted);
  copy.srcPitch = 9;
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_ERROR_INVALID_VALUE);
  copy.srcPitch = size_t{1} << 31;
  EXPECT_EQ(cuMemcpy2DAsync_v2(&copy, one), CUDA_ERROR_INVALID_VALUE);
  expect_misuses(2);
}

TEST_F(AnyDriverCopies, KeepPoolMemoryThatIsFreedBehindThem) {
  CUdeviceptr pool = 0;
  ASSERT_EQ(cuMemAllocAsync(&pool, bytes, one), CUDA_SUCCESS);
  fill(4);
  hold();
  ASSERT_EQ(cuMemcpyHtoDAsync_v2(pool, pinned, bytes, one), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoDAsync_v2(device, pool, bytes, one), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(pool, one), CUDA_SUCCESS);
  release();
  finish();
  EXPECT_EQ(read(device, bytes), filled(bytes, 4));
}

// As the real file begins.
std::string ptx(const std::string& version) {
  return ".version " + version +
         "\n.target sm_50\n.address_size 64\n.visible .entry reduce_int8(\n.param .align 8 .b8 "
         "x[168]"
         "\n)\n.maxntid 256, 1, 1\n{\nret;\n}\n";
}

TEST_F(AnyDriver, RefusesModulesAndLaunchesThatAreWrong) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, "ELF"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuModuleLoadData(&module, ptx("6.0").c_str()), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "reduce"), CUDA_ERROR_NOT_FOUND);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "reduce_int8"), CUDA_SUCCESS);
  std::byte call[168] = {};
  void* parameters[] = {call};
  struct Row {
    unsigned blocks, threads;
  };
  for (const Row& row : {Row{0, 32}, Row{1, 0}, Row{0x80000000U, 32}, Row{1, 257}}) {
    EXPECT_EQ(cuLaunchKernel(function, row.blocks, 1, 1, row.threads, 1, 1, 0, nullptr, parameters,
                             nullptr),
              CUDA_ERROR_INVALID_VALUE)
        << row.blocks << ", " << row.threads;
  }
  expect_misuses(4);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
}

}  // namespace
}  // namespace standin
