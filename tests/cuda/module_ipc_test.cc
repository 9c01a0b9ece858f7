// SPDX-License-Identifier: BSD-3-Clause
//
// The CUDA module's slabs, and those of another process.
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/ipc_module.h"
#include "tests/cuda/ipc_peer.h"
#include "tests/cuda/module_rig.h"

extern "C" const SluiceIpc* sluice_ipc();

namespace {

constexpr size_t bytes = 64 * test::kilobyte;

class Slabs : public test::Module {
 protected:
  SluiceIpcSlab* make(int device = 0) {
    SluiceIpcSlab* const slab = ipc->create(device, bytes, handle_, why_);
    EXPECT_TRUE(slab) << why_;
    return slab;
  }
  std::vector<unsigned char> read(SluiceCudaStream* stream, void* device, size_t count) {
    std::vector<unsigned char> found(count);
    copy(stream, device, found.data(), count, false);
    EXPECT_EQ(finish(stream, why_), 1) << why_;
    return found;
  }
  void fill(SluiceCudaStream* stream, void* device, unsigned char value) {
    std::vector<unsigned char> values(bytes, value);
    copy(stream, device, values.data(), bytes, true);
    EXPECT_EQ(finish(stream, why_), 1) << why_;
  }
  void reset() {
    CUcontext context = nullptr;
    ASSERT_EQ(call<decltype(cuDevicePrimaryCtxReset_v2)>("cuDevicePrimaryCtxReset_v2")(0), 0);
    ASSERT_EQ(call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0), 0);
    ASSERT_EQ(call<decltype(cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease")(0), 0);
  }

  const SluiceIpc* const ipc = sluice_ipc();
  char handle_[sluice_ipc_handle] = "", why_[sluice_cuda_why] = "";
};

TEST_F(Slabs, AreOpenedByAnotherProcess) {
  SluiceIpcSlab* const slab = make();
  SluiceCudaStream* const stream = cuda->open(&place_, why_);
  fill(stream, ipc->memory(slab), 9);
  cuda->close(stream, 1);
  test::IpcPeer peer(1);
  EXPECT_EQ(peer.open(handle_), 0);
  EXPECT_EQ(peer.ask("read " + std::to_string(bytes - 1)), 9);
  EXPECT_EQ(peer.ask("close"), 0);
  ipc->destroy(slab);
  EXPECT_LT(count("device_memory"), static_cast<int64_t>(bytes));
}

TEST_F(Slabs, OpenThoseOfAnotherProcess) {
  char theirs[sluice_ipc_handle];
  test::IpcPeer peer(1);
  peer.offer(bytes, theirs);
  SluiceIpcSlab* const slab = make();
  SluiceCudaStream* const stream = cuda->open(&place_, why_);
  for (const int value : {3, 4}) {
    void* const opened = ipc->open(slab, theirs, why_);
    ASSERT_TRUE(opened) << why_;
    EXPECT_FALSE(ipc->open(slab, theirs, why_));
    EXPECT_STREQ(why_,
                 "cuIpcOpenMemHandle: CUDA_ERROR_ALREADY_MAPPED 208 (resource already mapped)");
    EXPECT_EQ(peer.ask("fill 65536 " + std::to_string(value)), 0);
    EXPECT_EQ(cuda->copy_within(stream, ipc->memory(slab), opened, bytes, why_), 0) << why_;
    EXPECT_EQ(read(stream, ipc->memory(slab), 2), std::vector<unsigned char>(2, value));
    ipc->close(slab, opened);
  }
  cuda->close(stream, 1);
  ipc->destroy(slab);
  EXPECT_EQ(count("imports"), 0);
  EXPECT_EQ(peer.ask("free"), 0);
  EXPECT_EQ(peer.ask("forgive"), 0);
}

TEST_F(Slabs, AreGoneWithTheirContext) {
  char theirs[sluice_ipc_handle];
  test::IpcPeer peer;
  peer.offer(bytes, theirs);
  SluiceIpcSlab* const slab = make();
  void* const opened = ipc->open(slab, theirs, why_);
  ASSERT_TRUE(opened) << why_;
  EXPECT_TRUE(ipc->is_alive(slab));
  reset();
  EXPECT_FALSE(ipc->is_alive(slab));
  EXPECT_FALSE(ipc->open(slab, theirs, why_));
  EXPECT_STREQ(why_, "the program has reset the device");
  ipc->close(slab, opened);
  ipc->destroy(slab);
  SluiceIpcSlab* const next = make();
  EXPECT_TRUE(ipc->is_alive(next));
  ipc->destroy(next);
}

TEST_F(Slabs, AreNotTouchedByAForkedChild) {
  SluiceIpcSlab* const slab = make();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool is_gone = !ipc->is_alive(slab) && !ipc->open(slab, handle_, why_);
    ipc->destroy(slab);
    _exit(is_gone ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ipc->is_alive(slab));
  ipc->destroy(slab);
}

TEST_F(Slabs, SayWhyThereIsNone) {
  EXPECT_TRUE(fail("device_alloc", "1"));
  EXPECT_FALSE(ipc->create(0, bytes, handle_, why_));
  EXPECT_STREQ(why_, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)");
  EXPECT_TRUE(fail("retain", "1"));
  EXPECT_FALSE(ipc->create(0, bytes, handle_, why_));
  EXPECT_STREQ(why_, "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)");
  EXPECT_FALSE(ipc->create(99, bytes, handle_, why_));
}

TEST_F(Slabs, NeedMemoryInThePrimaryContext) {
  unsigned char uuid[sluice_ipc_uuid] = "";
  EXPECT_EQ(ipc->find_device(&place_, uuid, why_), 0) << why_;
  CUcontext other = nullptr, popped = nullptr;
  ASSERT_EQ(call<decltype(cuCtxCreate_v2)>("cuCtxCreate_v2")(&other, 0, 0), 0);
  call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&popped);
  const SluiceCudaPlace place{other, 0}, host{nullptr, -1};
  EXPECT_EQ(ipc->find_device(&place, uuid, why_), -1);
  EXPECT_TRUE(std::strstr(why_, "not the device's primary one")) << why_;
  EXPECT_EQ(ipc->find_device(&host, uuid, why_), -1);
  EXPECT_EQ(call<decltype(cuCtxDestroy_v2)>("cuCtxDestroy_v2")(other), 0);
}

}  // namespace
