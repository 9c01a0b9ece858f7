// SPDX-License-Identifier: BSD-3-Clause
//
// The stand-in driver: modules of PTX, and launches.
#include <string>

#include "cuda/kernels/arguments.h"
#include "tests/cuda/standin_rig.h"

namespace standin {
namespace {

using sluice::cuda::kernels::Action;
using sluice::cuda::kernels::Reduce;

// As the real file begins.
std::string ptx(const std::string& version, const std::string& parameter = ".align 8 .b8 x[168]") {
  return ".version " + version +
         "\n.target sm_50\n.address_size 64\n.visible .entry reduce_int8(\n.param " + parameter +
         "\n)\n.maxntid 256, 1, 1\n{\nret;\n}\n.visible .entry nothing(\n)\n{\nret;\n}\n";
}

class Modules : public StandIn {
 protected:
  void SetUp() override {
    StandIn::SetUp();
    ASSERT_EQ(cuModuleLoadData(&module_, ptx("6.0").c_str()), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&function_, module_, "reduce_int8"), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
    EXPECT_EQ(standin_counter("modules"), 0);
    StandIn::TearDown();
  }
  CUresult launch(unsigned blocks, unsigned threads, CUstream stream) {
    void* parameters[] = {&call_};
    return cuLaunchKernel(function_, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
  }
  // Adds `bytes` bytes of the memory to themselves.
  void twice(CUdeviceptr memory, unsigned bytes) {
    call_ = {};
    call_.operand[0] = call_.operand[1] = call_.out = memory;
    call_.operands = 2;
    call_.action = Action::sum;
    call_.items = bytes;
  }

  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  Reduce call_{};
};

TEST_F(Modules, AreReadFromPtx) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, ptx("9.0").c_str()), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(standin_forgive(), 0);
  EXPECT_EQ(cuModuleGetFunction(&function, module_, "nothing"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(standin_forgive(), 1) << "a kernel that this stand-in has not";
  for (const char* parameter : {".u64 x", ".align 8 .b8 x[164]", ".u64 x,\n.param .u32 y"}) {
    ASSERT_EQ(cuModuleLoadData(&module, ptx("6.0", parameter).c_str()), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "reduce_int8"), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(standin_forgive(), 1) << "one with other parameters: " << parameter;
    EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  }
}

TEST_F(Modules, RunKernelsInTheirStreams) {
  const CUstream own = stream();
  const CUdeviceptr memory = allocate(1000);
  const int64_t before = standin_counter("launches");
  ASSERT_EQ(cuMemsetD8_v2(memory, 3, 1000), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  standin_hold();
  twice(memory, 999);
  EXPECT_EQ(launch(2, 64, own), CUDA_SUCCESS);
  EXPECT_EQ(launch(1, 256, own), CUDA_SUCCESS);
  call_ = {};  // the driver has its own copy
  EXPECT_EQ(cuStreamQuery(own), CUDA_ERROR_NOT_READY);
  standin_release();
  EXPECT_EQ(cuStreamSynchronize(own), CUDA_SUCCESS);
  EXPECT_EQ(read(memory, 999), filled(999, 12));
  EXPECT_EQ(read(memory + 999, 1), filled(1, 3));
  EXPECT_EQ(standin_counter("launches") - before, 2);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(own), CUDA_SUCCESS);
}

// As a kernel of NCCL's that waits for another rank has it.
TEST_F(Modules, RunKernelsWhenTheDeviceIsFree) {
  const CUstream first = stream(), second = stream();
  const CUdeviceptr memory = allocate(8);
  uint64_t running = 0;
  const auto start = [](void* argument, uint64_t number, CUresult) {
    *static_cast<uint64_t*>(argument) = number;
  };
  standin_hold();
  const uint64_t number = standin_launch(first, start, &running);
  twice(memory, 8);
  EXPECT_EQ(launch(1, 32, second), CUDA_SUCCESS);
  standin_release();
  ASSERT_EQ(cuMemsetD8_v2(memory, 0, 8), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY) << "the slot is taken";
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS) << "copies go on";
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  standin_end_kernel(number);
  EXPECT_EQ(cuStreamSynchronize(second), CUDA_SUCCESS);
  EXPECT_EQ(running, number);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  for (const CUstream each : {first, second}) EXPECT_EQ(cuStreamDestroy_v2(each), CUDA_SUCCESS);
}

TEST_F(Modules, RefuseLaunchesThatAreWrong) {
  const CUdeviceptr memory = allocate(64);
  CUcontext other = nullptr;
  twice(memory, 4);
  void* parameters[] = {nullptr};
  EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(launch(1, 32, nullptr), CUDA_ERROR_INVALID_VALUE) << "in another context";
  EXPECT_EQ(cuModuleUnload(module_), CUDA_ERROR_INVALID_HANDLE);
  CUmodule gone = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&gone, ptx("6.0").c_str()), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleUnload(gone), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&function, gone, "reduce_int8"), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(cuModuleLoadData(&gone, ptx("6.0").c_str()), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(gone), CUDA_ERROR_INVALID_HANDLE) << "it went with its context";
  EXPECT_EQ(standin_forgive(), 7);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

// What a kernel does wrong shows later, and its context is broken.
TEST_F(Modules, SeeWhatKernelsAccess) {
  const CUdeviceptr memory = allocate(64);
  CUdeviceptr elsewhere = 0;
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&elsewhere, 64), CUDA_SUCCESS);
  struct Wrong {
    CUdeviceptr memory;
    unsigned bytes, vectors;
    CUresult error;
  };
  std::byte pageable[16] = {};
  for (const Wrong& wrong :
       {Wrong{memory, 65, 0, CUDA_ERROR_ILLEGAL_ADDRESS},
        Wrong{elsewhere, 1, 0, CUDA_ERROR_ILLEGAL_ADDRESS},
        Wrong{reinterpret_cast<CUdeviceptr>(pageable), 1, 0, CUDA_ERROR_ILLEGAL_ADDRESS},
        Wrong{memory + 8, 1, 1, CUDA_ERROR_MISALIGNED_ADDRESS}}) {
    CUcontext made = nullptr;
    CUmodule module = nullptr;
    ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleLoadData(&module, ptx("6.0").c_str()), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&function_, module, "reduce_int8"), CUDA_SUCCESS);
    twice(wrong.memory, wrong.bytes);
    call_.vectors = wrong.vectors;
    EXPECT_EQ(launch(1, 64, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), wrong.error);
    EXPECT_EQ(launch(1, 64, nullptr), wrong.error) << "the context is broken";
    EXPECT_EQ(standin_forgive(), 1);
    ASSERT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST_F(Modules, FailWhenToldTo) {
  CUmodule module = nullptr;
  const CUdeviceptr memory = allocate(64);
  twice(memory, 64);
  ASSERT_TRUE(standin_fail("module", "2"));
  ASSERT_EQ(cuModuleLoadData(&module, ptx("6.0").c_str()), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleLoadData(&module, ptx("6.0").c_str()), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  ASSERT_TRUE(standin_fail("launch", "1"));
  EXPECT_EQ(launch(1, 32, nullptr), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(launch(1, 32, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  CUcontext made = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleLoadData(&module, ptx("6.0").c_str()), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&function_, module, "reduce_int8"), CUDA_SUCCESS);
  twice(allocate(64), 64);
  ASSERT_TRUE(standin_fail("kernel", "1"));
  EXPECT_EQ(launch(1, 32, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
}

}  // namespace
}  // namespace standin
