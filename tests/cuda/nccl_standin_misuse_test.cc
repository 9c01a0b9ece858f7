// SPDX-License-Identifier: BSD-3-Clause
//
// What the stand-in for NCCL calls a misuse, and a finalize that fails.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/nccl_standin_rig.h"
#include "tests/unit/support/child.h"

namespace standin_nccl {
namespace {

class NcclMisuse : public NcclStandIn {
 protected:
  void SetUp() override {
    NcclStandIn::SetUp();
    ranks = connect(2);
    for (const auto& rank : ranks) buffers.push_back(rank->make(std::vector<int32_t>(8, 1)));
  }
  void TearDown() override {
    if (is_connected) disconnect(ranks);
    ranks.clear();
    NcclStandIn::TearDown();
  }
  // By rank 0, of two numbers, unless told otherwise.
  ncclResult_t reduce(const void* from, void* to, size_t count = 2) {
    return ncclAllReduce(from, to, count, ncclInt32, ncclSum, ranks[0]->communicator,
                         ranks[0]->nccl_stream());
  }
  // Expects that rank 0's call is refused and told as the only misuse.
  template <typename Call>
  void expect_misuse(ncclResult_t result, Call call) {
    EXPECT_EQ(ranks[0]->in_context(call), result);
    EXPECT_EQ(standin_forgive(), 1);
  }

  Ranks ranks;
  std::vector<int32_t*> buffers;
  bool is_connected = true;
};

TEST_F(NcclMisuse, IsACallWhileInProgress) {
  for (size_t i = 0; i < 2; ++i) {
    ranks[i]->in_context([&] { EXPECT_TRUE(is_settled(ranks[i]->all_reduce(buffers[i], 2))); });
  }
  expect_misuse(ncclInvalidUsage, [&] { return reduce(buffers[0], buffers[0]); });
  expect_misuse(ncclInvalidUsage, [&] { return ncclCommFinalize(ranks[0]->communicator); });
  EXPECT_EQ(settle(ranks), ncclSuccess);
  synchronize(ranks);
}

TEST_F(NcclMisuse, IsAnotherCurrentContext) {
  CUcontext other = nullptr;
  EXPECT_EQ(ranks[1]->in_context([&] { return reduce(buffers[0], buffers[0]); }), ncclInvalidUsage);
  EXPECT_EQ(reduce(buffers[0], buffers[0]), ncclInvalidUsage) << "none is current";
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(reduce(buffers[0], buffers[0]), ncclInvalidUsage);
  ASSERT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  EXPECT_EQ(standin_forgive(), 3);
}

TEST_F(NcclMisuse, IsInitWithoutAContext) {
  ncclConfig_t config;
  ncclComm_t communicator = nullptr;
  const ncclUniqueId id = fresh_id();
  EXPECT_EQ(ncclCommInitRankConfig(&communicator, 1, id, 0, &config), ncclUnhandledCudaError);
  EXPECT_EQ(standin_forgive(), 1);
  expect_misuse(ncclInvalidArgument, [&] {
    config.magic = 0;
    return ncclCommInitRankConfig(&communicator, 1, id, 0, &config);
  });
  EXPECT_EQ(unlink(id.internal), 0) << "nobody came";
}

TEST_F(NcclMisuse, IsABufferThatTheDeviceMayNotUse) {
  std::vector<int32_t> pageable(8);
  CUdeviceptr managed = 0;
  void* pinned = nullptr;
  const auto refused = ncclInvalidArgument;
  expect_misuse(refused, [&] { return reduce(buffers[1], buffers[0]); });
  expect_misuse(refused, [&] { return reduce(buffers[0], buffers[1]); });
  expect_misuse(refused, [&] { return reduce(pageable.data(), buffers[0]); });
  expect_misuse(refused, [&] { return reduce(buffers[0], pageable.data()); });
  expect_misuse(refused, [&] { return reduce(buffers[0], buffers[0], 9); });
  expect_misuse(refused, [&] { return reduce(buffers[0], nullptr); });
  ranks[0]->in_context([&] {
    EXPECT_EQ(cuMemAllocManaged(&managed, 8, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuMemHostAlloc(&pinned, 8, 0), CUDA_SUCCESS);
    EXPECT_TRUE(is_settled(reduce(pinned, reinterpret_cast<void*>(managed))));
  });
  ranks[1]->in_context([&] { EXPECT_TRUE(is_settled(ranks[1]->all_reduce(buffers[1], 2))); });
  EXPECT_EQ(settle(ranks), ncclSuccess);
  synchronize(ranks);
  ranks[0]->in_context([&] {
    EXPECT_EQ(cuMemFree_v2(managed), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  });
}

TEST_F(NcclMisuse, IsAStreamOfAnotherDevice) {
  expect_misuse(ncclInvalidArgument, [&] {
    return ncclAllReduce(buffers[0], buffers[0], 2, ncclInt32, ncclSum, ranks[0]->communicator,
                         ranks[1]->nccl_stream());
  });
}

TEST_F(NcclMisuse, AreBuffersThatOverlap) {
  int32_t* const at = buffers[0];
  const ncclComm_t own = ranks[0]->communicator;
  const auto stream = ranks[0]->nccl_stream();
  expect_misuse(ncclInvalidArgument, [&] { return reduce(at, at + 1); });
  expect_misuse(ncclInvalidArgument,
                [&] { return ncclAllGather(at + 2, at, 2, ncclInt32, own, stream); });
  // Where MPI wants it on rank 1.
  const ncclResult_t result = ranks[1]->in_context([&] {
    return ncclReduceScatter(buffers[1], buffers[1], 2, ncclInt32, ncclSum, ranks[1]->communicator,
                             ranks[1]->nccl_stream());
  });
  EXPECT_EQ(result, ncclInvalidArgument);
  EXPECT_EQ(standin_forgive(), 1);
}

// As MPI's alltoall in place: what is sent may be overwritten before.
TEST_F(NcclMisuse, AreBuffersOfAGroupThatOverlap) {
  int32_t* const at = buffers[0];
  const ncclComm_t own = ranks[0]->communicator;
  const auto stream = ranks[0]->nccl_stream();
  const auto exchange = [&](int32_t* from, int32_t* to) {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(from, 2, ncclInt32, 0, own, stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(to, 2, ncclInt32, 0, own, stream), ncclSuccess);
    return ncclGroupEnd();
  };
  expect_misuse(ncclInvalidArgument, [&] { return exchange(at, at); });
  expect_misuse(ncclInvalidArgument, [&] { return exchange(at, at + 1); });
  expect_misuse(ncclInvalidArgument, [&] {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(ncclRecv(at + i, 2, ncclInt32, 0, own, stream), ncclSuccess);
    }
    return ncclGroupEnd();
  });
  ranks[0]->in_context([&] { EXPECT_TRUE(is_settled(exchange(at, at + 2))); });
  EXPECT_EQ(settle(ranks), ncclSuccess);
  synchronize(ranks);
}

TEST_F(NcclMisuse, IsAnUnknownTypeOperationOrRank) {
  int32_t* const at = buffers[0];
  const ncclComm_t own = ranks[0]->communicator;
  const auto stream = ranks[0]->nccl_stream();
  const auto refused = ncclInvalidArgument;
  expect_misuse(refused, [&] { return ncclAllReduce(at, at, 1, 10, ncclSum, own, stream); });
  expect_misuse(refused, [&] { return ncclAllReduce(at, at, 1, ncclInt8, 4, own, stream); });
  expect_misuse(refused, [&] { return ncclBroadcast(at, at, 1, ncclInt8, 2, own, stream); });
  expect_misuse(refused, [&] { return ncclSend(at, 1, ncclInt8, -1, own, stream); });
}

TEST_F(NcclMisuse, InAGroupEndsIt) {
  expect_misuse(ncclInvalidUsage, [] { return ncclGroupEnd(); });
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << "of nothing";
  expect_misuse(ncclInvalidArgument, [&] {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(reduce(buffers[0], buffers[0]), ncclSuccess);
    EXPECT_EQ(reduce(buffers[1], buffers[0]), ncclInvalidArgument);
    return ncclGroupEnd();
  });
  EXPECT_EQ(ranks[0]->state(), ncclSuccess) << "nothing was enqueued";
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << "the next group is a new one";
}

TEST_F(NcclMisuse, IsDestroyBeforeFinalize) {
  is_connected = false;
  EXPECT_EQ(ncclCommDestroy(ranks[0]->communicator), ncclInvalidUsage);
  EXPECT_EQ(ncclCommFinalize(ranks[1]->communicator), ncclInProgress);
  EXPECT_EQ(ncclCommDestroy(ranks[1]->communicator), ncclInvalidUsage) << "before it has ended";
  EXPECT_EQ(standin_forgive(), 2);
}

TEST_F(NcclMisuse, IsACommunicatorThatIsGone) {
  const ncclComm_t gone = ranks[0]->communicator;
  disconnect(ranks);
  is_connected = false;
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(gone, &state), ncclInvalidArgument);
  EXPECT_EQ(standin_forgive(), 1);
  expect_misuse(ncclInvalidArgument, [&] { return ncclCommAbort(gone); });
}

TEST_F(NcclMisuse, IsTheCommunicatorOfTheProcessThatForked) {
  const int status = sluice::in_child([&] {
    ncclResult_t state = ncclSuccess;
    const bool is_refused =
        ncclCommGetAsyncError(ranks[0]->communicator, &state) == ncclInvalidArgument;
    return is_refused && standin_counter("misuse") == 1 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(NcclMisuse, IsACallAfterFinalize) {
  for (const auto& rank : ranks) EXPECT_EQ(ncclCommFinalize(rank->communicator), ncclInProgress);
  EXPECT_EQ(settle(ranks), ncclSuccess);
  expect_misuse(ncclInvalidUsage, [&] { return reduce(buffers[0], buffers[0]); });
  for (const auto& rank : ranks) EXPECT_EQ(ncclCommDestroy(rank->communicator), ncclSuccess);
  is_connected = false;
}

// The kernel notices; the driver tells.
TEST_F(NcclMisuse, IsMemoryFreedBeforeItsJobEnds) {
  CUdeviceptr early = 0;
  ranks[0]->in_context([&] {
    ASSERT_EQ(cuMemAlloc_v2(&early, 8), CUDA_SUCCESS);
    EXPECT_TRUE(is_settled(reduce(reinterpret_cast<void*>(early), buffers[0])));
    ASSERT_EQ(cuMemFree_v2(early), CUDA_SUCCESS) << "while it is not on the stream yet";
  });
  ranks[1]->in_context([&] { EXPECT_TRUE(is_settled(ranks[1]->all_reduce(buffers[1], 2))); });
  EXPECT_EQ(settle(ranks), ncclSuccess);
  synchronize(ranks);
  EXPECT_EQ(standin_forgive(), 1);
}

using NcclFinalize = NcclStandIn;

TEST_F(NcclFinalize, FailsOnTheGivenRank) {
  const Setting fails("NCCL_STANDIN_FINALIZE", "1");
  const Ranks all = connect(2);
  for (const auto& each : all) EXPECT_EQ(ncclCommFinalize(each->communicator), ncclInProgress);
  EXPECT_EQ(all[1]->state(), ncclSystemError);
  all[0]->expect_in_progress();
  abort_all(all);
}

}  // namespace
}  // namespace standin_nccl
