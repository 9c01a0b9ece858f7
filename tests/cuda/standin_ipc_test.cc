// SPDX-License-Identifier: BSD-3-Clause
//
// The stand-in driver: memory that another process opens.
#include <csignal>

#include "tests/cuda/ipc_peer.h"
#include "tests/cuda/standin_rig.h"

namespace standin {
namespace {

constexpr size_t bytes = 10000;

class Ipc : public StandIn {
 protected:
  static CUipcMemHandle handle_of(CUdeviceptr memory) {
    CUipcMemHandle handle{};
    EXPECT_EQ(cuIpcGetMemHandle(&handle, memory), CUDA_SUCCESS);
    return handle;
  }
};

TEST_F(Ipc, AnotherProcessReadsAndWritesIt) {
  const CUdeviceptr memory = allocate(bytes);
  EXPECT_EQ(cuMemsetD8_v2(memory, 17, bytes), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  const CUipcMemHandle handle = handle_of(memory);
  test::IpcPeer peer(1);
  EXPECT_EQ(peer.open(&handle), CUDA_SUCCESS);
  EXPECT_EQ(peer.ask("read 9999"), 17);
  EXPECT_EQ(peer.ask("fill 5000 18"), 0);
  EXPECT_EQ(read(memory, 1), filled(1, 18));
  EXPECT_EQ(read(memory + 5000, 1), filled(1, 17));
  EXPECT_EQ(peer.ask("read 10000"), -CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(peer.ask("forgive"), 1);
  EXPECT_EQ(peer.ask("close"), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST_F(Ipc, ThisProcessReadsAndWritesAnotherOnesByCopiesWithin) {
  CUipcMemHandle handle{};
  test::IpcPeer peer;
  peer.offer(bytes, &handle);
  CUdeviceptr opened = 0;
  ASSERT_EQ(cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            CUDA_SUCCESS);
  EXPECT_EQ(standin_counter("imports"), 1);
  const int64_t within = standin_counter("bytes_within"), out = standin_counter("bytes_out");
  const CUdeviceptr own = allocate(bytes);
  EXPECT_EQ(peer.ask("fill 10000 77"), 0);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(own, opened, bytes, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(standin_counter("bytes_within") - within, static_cast<int64_t>(bytes));
  EXPECT_EQ(standin_counter("bytes_out"), out);
  EXPECT_EQ(read(own, bytes), filled(bytes, 77));
  EXPECT_EQ(cuMemFree_v2(own), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcCloseMemHandle(opened), CUDA_SUCCESS);
  EXPECT_EQ(standin_counter("imports"), 0);
  EXPECT_EQ(peer.ask("free"), CUDA_SUCCESS);
  EXPECT_EQ(peer.ask("forgive"), 0);
}

TEST_F(Ipc, TheProcessesAreOrderedByTheirOwnWaitingAlone) {
  const CUdeviceptr memory = allocate(bytes);
  const CUipcMemHandle handle = handle_of(memory);
  test::IpcPeer peer;
  EXPECT_EQ(cuMemsetD8_v2(memory, 1, bytes), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(peer.open(&handle), CUDA_SUCCESS);
  standin_hold();
  EXPECT_EQ(cuMemsetD8_v2(memory, 2, bytes), CUDA_SUCCESS);
  EXPECT_EQ(peer.ask("read 0"), 1);
  standin_release();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(peer.ask("read 0"), 2);
  EXPECT_EQ(peer.ask("close"), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST_F(Ipc, RefusesToOpenTwiceWithoutPeersAndInAnotherContainer) {
  const CUdeviceptr memory = allocate(bytes);
  const CUipcMemHandle handle = handle_of(memory);
  {
    test::IpcPeer same(0), lonely(1, {"STANDIN_PEERS=0"}), there(0, {"STANDIN_PEERS=0"});
    EXPECT_EQ(same.open(&handle), CUDA_SUCCESS);
    EXPECT_EQ(same.open(&handle), CUDA_ERROR_ALREADY_MAPPED);
    EXPECT_EQ(lonely.open(&handle), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    EXPECT_EQ(there.open(&handle), CUDA_SUCCESS);
    test::IpcPeer apart(0, {"STANDIN_CONTAINER=other"}), fails(0, {"STANDIN_FAIL=import:1"});
    EXPECT_EQ(apart.open(&handle), CUDA_ERROR_MAP_FAILED);
    EXPECT_EQ(fails.open(&handle), CUDA_ERROR_MAP_FAILED);
    EXPECT_EQ(fails.open(&handle), CUDA_SUCCESS);
    for (test::IpcPeer* each : {&same, &there, &fails}) EXPECT_EQ(each->ask("close"), 0);
  }
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST_F(Ipc, TellsMisuses) {
  const CUdeviceptr memory = allocate(bytes);
  const CUipcMemHandle handle = handle_of(memory);
  test::IpcPeer peer, late;
  EXPECT_EQ(peer.open(&handle), CUDA_SUCCESS);
  EXPECT_EQ(peer.ask("read 0") >= 0, true);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(standin_forgive(), 1);  // it was open
  EXPECT_EQ(peer.ask("read 0"), -CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(peer.ask("forgive"), 1);
  EXPECT_EQ(peer.ask("close"), CUDA_SUCCESS);
  EXPECT_EQ(peer.ask("close"), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(peer.ask("forgive"), 1);
  EXPECT_NE(late.open(&handle), CUDA_SUCCESS);
}

TEST_F(Ipc, AProcessThatDiesHasNothingOpen) {
  const CUdeviceptr memory = allocate(bytes);
  const CUipcMemHandle handle = handle_of(memory);
  test::IpcPeer peer;
  EXPECT_EQ(peer.open(&handle), CUDA_SUCCESS);
  peer.end(SIGKILL);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

}  // namespace
}  // namespace standin
