// SPDX-License-Identifier: BSD-3-Clause
//
// The NCCL part of the CUDA module by itself: the life of a group. One thread plays all ranks.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "tests/cuda/nccl_module_rig.h"

namespace nccl_module {
namespace {

using Values = std::vector<int32_t>;
constexpr int turns = 1000;  // of what must not happen

// An allreduce, in place, of as many int32 on each rank, all of them rank + 1 at first.
class Sum {
 public:
  explicit Sum(size_t ranks, Where where = Where::device, size_t count = 1) : count_(count) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      const Values operand(count, static_cast<int32_t>(rank + 1));
      Bytes contents(count * sizeof operand[0]);
      std::memcpy(contents.data(), operand.data(), contents.size());
      memory_.push_back(std::make_unique<Memory>(where, static_cast<int>(rank), contents));
    }
  }
  static SluiceNcclJob job() {
    SluiceNcclJob made{};
    made.collective = sluice_nccl_allreduce;
    made.type = sluice_nccl_int32;
    made.operation = sluice_nccl_sum;
    return made;
  }
  SluiceNcclJob job(size_t rank) const {
    SluiceNcclJob made = job();
    made.out = memory_[rank]->side(count_);
    return made;
  }
  void start(const Groups& groups, size_t rank) const {
    char why[sluice_cuda_why] = "";
    const SluiceNcclJob own = job(rank);
    EXPECT_EQ(table()->reserve(groups[rank], &own, why), 0) << why;
    EXPECT_EQ(table()->start(groups[rank], &own, why), 0) << why;
  }
  void start(const Groups& groups) const {
    for (size_t rank = 0; rank < groups.size(); ++rank) start(groups, rank);
  }
  void run(const Groups& groups) const {
    start(groups);
    await_state(groups, sluice_nccl_ready);
  }
  // The last of each rank.
  Values values() const {
    Values all;
    for (const auto& each : memory_) {
      int32_t value = 0;
      const Bytes contents = each->contents();
      std::memcpy(&value, &contents[contents.size() - sizeof value], sizeof value);
      all.push_back(value);
    }
    return all;
  }

 private:
  const size_t count_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

void expect_state(SluiceNcclGroup* group, SluiceNcclState state) {
  for (int i = 0; i < turns; ++i, std::this_thread::yield()) {
    ASSERT_EQ(state_of(group), state) << reason_of(group);
  }
}

// A reason that a function of the table gives when it fails.
template <typename Call>
std::string reason_from(Call call) {
  char why[sluice_cuda_why] = "";
  EXPECT_EQ(call(why), -1);
  return why;
}

using NcclGroup = NcclModule;

TEST_F(NcclGroup, RunsJobAfterJob) {
  const Groups groups = connect(2);
  const Sum sum(2);
  for (const int32_t expected : {3, 6, 12}) {
    sum.run(groups);
    EXPECT_EQ(sum.values(), Values(2, expected));
  }
  end_all(groups);
}

// Neither in start nor in advance: this thread is the other rank.
TEST_F(NcclGroup, WaitsInNoCallForAnotherRank) {
  const Groups groups = connect(2);
  for (const Where where : {Where::device, Where::pageable, Where::pinned}) {
    const Sum sum(2, where);
    sum.start(groups, 0);
    expect_state(groups[0], sluice_nccl_running);
    EXPECT_EQ(sum.values(), (Values{1, 2}));
    sum.start(groups, 1);
    await_state(groups, sluice_nccl_ready);
    EXPECT_EQ(sum.values(), (Values{3, 3}));
  }
  end_all(groups);
}

// NCCL enqueues late: the event must be behind the job.
TEST_F(NcclGroup, IsReadyOnlyWhenTheJobIsDone) {
  const Setting polls("NCCL_STANDIN_POLLS", "50");
  const Groups groups = connect(2);
  const Sum sum(2);
  for (const int32_t expected : {3, 6, 12}) {
    sum.start(groups);
    for (size_t rank = 0; rank < 2; ++rank) {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(state_of(groups[rank]), sluice_nccl_running);
    }
    await_state(groups, sluice_nccl_ready);
    EXPECT_EQ(sum.values(), Values(2, expected));
  }
  end_all(groups);
}

// A copy to pinned memory returns at once: its event counts. Rank 0's is begun while no operation
// starts.
TEST_F(NcclGroup, IsReadyOnlyWhenTheCopyBackIsDone) {
  const Groups groups = connect(2);
  const Sum pinned(2, Where::pinned), on_device(2);
  const Memory other(Where::device, 0, Bytes(1));
  const int64_t before = counter("cuMemcpyDtoHAsync_v2");
  pinned.start(groups, 0);
  while (counter("nccl_running") == 0) (void)state_of(groups[0]);
  on_device.start(groups, 1);
  await_state({groups[1]}, sluice_nccl_ready);
  while (counter("cuMemcpyDtoHAsync_v2") == before) {
    STANDIN(standin_release)();
    (void)other.contents();
    STANDIN(standin_hold)();
    EXPECT_EQ(state_of(groups[0]), sluice_nccl_running);
  }
  expect_state(groups[0], sluice_nccl_running);
  EXPECT_EQ(pinned.values(), (Values{1, 2}));
  STANDIN(standin_release)();
  await_state(groups, sluice_nccl_ready);
  EXPECT_EQ(pinned.values(), (Values{3, 2}));
  end_all(groups);
}

TEST_F(NcclGroup, KeepsTheCurrentContext) {
  const Primary other(2);
  CUcontext current = nullptr;
  EXPECT_EQ(other.in([&] {
    const Groups groups = connect(2);
    for (const Where where : {Where::device, Where::pageable}) Sum(2, where).run(groups);
    end_all(groups);
    const Groups aborted = connect(2);
    abort_all(aborted);
    return STANDIN(cuCtxGetCurrent)(&current);
  }),
            CUDA_SUCCESS);
  EXPECT_EQ(current, other.context());
}

TEST_F(NcclGroup, LeavesAProgramsCaptureAlone) {
  const Primary primary(0);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  EXPECT_EQ(primary.in([&] { return STANDIN(cuStreamCreate)(&stream, 1); }), CUDA_SUCCESS);
  const Sum on_device(2), on_host(2, Where::pageable);
  EXPECT_EQ(primary.in([&] {
    return STANDIN(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  }),
            CUDA_SUCCESS);
  const Groups groups = connect(2);
  on_device.run(groups);
  on_host.run(groups);
  end_all(groups);
  EXPECT_EQ(primary.in([&] { return STANDIN(cuStreamEndCapture)(stream, &graph); }), CUDA_SUCCESS);
  EXPECT_EQ(primary.in([&] { return STANDIN(cuStreamDestroy_v2)(stream); }), CUDA_SUCCESS);
}

// A blocking stream waits for the default stream, here a busy one.
TEST_F(NcclGroup, HasAStreamOfTheKindThatIsSet) {
  for (const int is_blocking : {0, 1}) {
    char why[sluice_cuda_why] = "";
    const SluiceCudaSettings settings{
        .pinned = 0, .scratch = 0, .blocking_streams = is_blocking, .sync_contexts = is_blocking};
    ASSERT_EQ(sluice_cuda()->begin(standin_driver(), &settings, why), 0) << why;
    const Primary primary(0);
    const Sum sum(2);
    const Memory other(Where::device, 2, Bytes(1));
    const Groups groups = connect(2);
    unsigned flags = 0;
    EXPECT_EQ(primary.in([&] { return STANDIN(cuCtxGetFlags)(&flags); }), CUDA_SUCCESS);
    EXPECT_EQ((flags & CU_CTX_SYNC_MEMOPS) != 0, is_blocking != 0);
    EXPECT_EQ(primary.in([&] {
      STANDIN(standin_occupy)(nullptr);
      return CUDA_SUCCESS;
    }),
              CUDA_SUCCESS);
    sum.start(groups);
    for (int i = 0; i < turns && is_blocking; ++i) {
      ASSERT_EQ(state_of(groups[0]), sluice_nccl_running);
      (void)state_of(groups[1]);
      (void)other.contents();  // (the driver works)
    }
    if (is_blocking) STANDIN(standin_vacate)();
    await_state(groups, sluice_nccl_ready);
    STANDIN(standin_vacate)();
    end_all(groups);
  }
}

class NcclScratch : public NcclModule {
 protected:
  static constexpr size_t megabyte = size_t{1} << 20;
  static size_t scratch() { return static_cast<size_t>(counter("device_memory")); }
};

TEST_F(NcclScratch, IsKeptUpTo64MB) {
  const Groups groups = connect(2);
  const size_t before = scratch();
  {
    const Sum small(2, Where::pageable), large(2, Where::pageable, 5 * megabyte);
    large.run(groups);
    const size_t kept = scratch() - before;
    EXPECT_GE(kept, 2 * 20 * megabyte);
    EXPECT_LE(kept, 2 * 64 * megabyte);
    small.run(groups);
    EXPECT_EQ(scratch() - before, kept);
    EXPECT_EQ(large.values(), (Values{3, 3}));
  }
  {
    const Sum huge(2, Where::pageable, 17 * megabyte);
    huge.run(groups);
    EXPECT_EQ(huge.values(), (Values{3, 3}));
    EXPECT_EQ(scratch(), before) << "freed after the job";
  }
  const Sum on_device(2);
  const size_t own = scratch();
  on_device.run(groups);
  EXPECT_EQ(scratch(), own) << "needs none";
  end_all(groups);
}

TEST_F(NcclScratch, MayLack) {
  const Groups groups = connect(2);
  const Sum sum(2, Where::pageable);
  const SluiceNcclJob job = sum.job(0);
  ASSERT_TRUE(STANDIN(standin_fail)("device_alloc", "1"));
  EXPECT_EQ(reason_from([&](char* why) { return table()->reserve(groups[0], &job, why); }),
            "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)");
  EXPECT_EQ(state_of(groups[0]), sluice_nccl_ready) << "that job can't be, others can";
  const Sum on_device(2);
  on_device.run(groups);
  sum.run(groups);
  EXPECT_EQ(sum.values(), (Values{3, 3}));
  end_all(groups);
}

TEST_F(NcclScratch, MustBeReserved) {
  const Groups groups = connect(2);
  const Sum sum(2, Where::pageable);
  const SluiceNcclJob job = sum.job(0);
  const std::string reason =
      reason_from([&](char* why) { return table()->start(groups[0], &job, why); });
  EXPECT_EQ(reason, "no scratch is reserved for this job");
  EXPECT_EQ(state_of(groups[0]), sluice_nccl_failed);
  EXPECT_EQ(reason_of(groups[0]), reason);
  abort_all(groups);
}

using NcclFailure = NcclModule;

// The others know nothing of it. All abort.
TEST_F(NcclFailure, OfAJobOnOneRank) {
  for (const Where where : {Where::device, Where::pageable}) {
    const Setting third("NCCL_STANDIN_ERROR", "3:1");
    const Groups groups = connect(3);
    const Sum sum(3, where);
    sum.run(groups);
    sum.run(groups);
    EXPECT_EQ(sum.values(), Values(3, 18));
    sum.start(groups);
    EXPECT_EQ(leave_state(groups[1], sluice_nccl_running), sluice_nccl_failed);
    EXPECT_EQ(reason_of(groups[1]), "ncclCommGetAsyncError says: system error (NCCL error 2)");
    expect_state(groups[0], sluice_nccl_running);
    expect_state(groups[2], sluice_nccl_running);
    abort_all(groups);
    EXPECT_EQ(sum.values(), Values(3, 18));
  }
}

// NCCL says no when it is called, also between the calls that open and close a group of calls. (The
// memory is not what the job says, which is a misuse.)
TEST_F(NcclFailure, OfACallOfNccl) {
  for (const bool is_grouped : {false, true}) {
    const Groups groups = connect(2);
    const Sum sum(2, Where::pageable);
    SluiceNcclJob job = sum.job(0);
    job.collective = is_grouped ? sluice_nccl_alltoall : sluice_nccl_allreduce;
    job.out.on_host = 0;
    job.in = job.out;
    const std::string reason =
        reason_from([&](char* why) { return table()->start(groups[0], &job, why); });
    EXPECT_EQ(reason, std::string(is_grouped ? "ncclSend" : "ncclAllReduce") +
                          ": invalid argument (NCCL error 4)");
    EXPECT_EQ(STANDIN(standin_forgive)(), 1);
    EXPECT_EQ(state_of(groups[0]), sluice_nccl_failed);
    EXPECT_EQ(reason_of(groups[0]), reason);
    abort_all(groups);
    end_all(connect(2));  // (would be refused in an open group)
  }
}

TEST_F(NcclFailure, OfFinalizeTurnsIntoAbort) {
  const Setting fails("NCCL_STANDIN_FINALIZE", "1");
  const Groups groups = connect(2);
  const int64_t before = counter("nccl_aborts");
  for (SluiceNcclGroup* const each : groups) table()->end(each);
  while (counter("nccl_aborts") == before) EXPECT_EQ(state_of(groups[1]), sluice_nccl_ending);
  expect_state(groups[0], sluice_nccl_ending);
  abort_all(groups);
}

// The device's context is broken from then on.
TEST_F(NcclFailure, OfACopy) {
  for (const bool is_last : {false, true}) {  // of those to scratch and from it
    const Groups groups = connect(2);
    const Sum sum(2, Where::pageable);
    sum.start(groups, 1);
    expect_state(groups[1], sluice_nccl_running);
    ASSERT_TRUE(STANDIN(standin_fail)("copy", is_last ? "2" : "1"));
    sum.start(groups, 0);
    EXPECT_EQ(leave_state(groups[0], sluice_nccl_running), sluice_nccl_failed);
    const std::string reason = reason_of(groups[0]);
    const bool is_of_nccl =
        reason == "ncclCommGetAsyncError says: unhandled cuda error (NCCL error 1)";
    EXPECT_TRUE(reason.find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos ||
                (is_of_nccl && !is_last))
        << reason;
    EXPECT_EQ(sum.values(), (Values{1, 2}));
    abort_all(groups);
  }
}

using NcclInit = NcclModule;

TEST_F(NcclInit, WaitsForALateRank) {
  const Id id = fresh_id();
  Groups groups = {create(id, 0, 2)};
  expect_state(groups[0], sluice_nccl_starting);
  const Setting late("NCCL_STANDIN_INIT", "delay:1:30");
  groups.push_back(create(id, 1, 2));
  await_state(groups, sluice_nccl_ready);
  end_all(groups);
}

TEST_F(NcclInit, FailsOnOneRank) {
  const Setting fails("NCCL_STANDIN_INIT", "fail:1");
  const Groups groups = make_groups(2);
  EXPECT_EQ(leave_state(groups[1], sluice_nccl_starting), sluice_nccl_failed);
  EXPECT_EQ(reason_of(groups[1]), "ncclCommGetAsyncError says: system error (NCCL error 2)");
  expect_state(groups[0], sluice_nccl_starting);
  abort_all(groups);
}

TEST_F(NcclInit, HangsUntilAbort) {
  const Setting hangs("NCCL_STANDIN_INIT", "hang:1");
  const Groups groups = make_groups(2);
  expect_state(groups[0], sluice_nccl_starting);
  expect_state(groups[1], sluice_nccl_starting);
  abort_all(groups);
}

TEST_F(NcclInit, OfOneRankIsAborted) { abort_all({create(fresh_id(), 0, 2)}); }

TEST_F(NcclInit, FailsWhenRanksShareADevice) {
  const Id id = fresh_id();
  char why[sluice_cuda_why] = "";
  const Groups groups = {create(id, 0, 2), table()->create(0, id.data(), 1, 2, why)};
  ASSERT_TRUE(groups[1]) << why;
  EXPECT_EQ(leave_state(groups[0], sluice_nccl_starting), sluice_nccl_failed);
  EXPECT_EQ(leave_state(groups[1], sluice_nccl_starting), sluice_nccl_failed);
  EXPECT_EQ(reason_of(groups[1]), "ncclCommGetAsyncError says: invalid usage (NCCL error 5)");
  abort_all(groups);
}

TEST_F(NcclInit, LeavesNothingWhereItIsRefused) {
  const auto refusal = [](int device, const Id& id) {
    char why[sluice_cuda_why] = "";
    EXPECT_FALSE(table()->create(device, id.data(), 0, 1, why));
    return std::string(why);
  };
  EXPECT_EQ(refusal(-1, Id{}), "there is no device -1");
  EXPECT_EQ(refusal(0, Id{"/no-such-file"}), "ncclCommInitRankConfig: system error (NCCL error 2)");
  ASSERT_TRUE(STANDIN(standin_fail)("stream", "1"));
  EXPECT_EQ(refusal(0, Id{}), "cuStreamCreate: CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)");
  ASSERT_TRUE(STANDIN(standin_fail)("device_alloc", "1"));
  EXPECT_EQ(refusal(0, Id{}), "no memory on device 0");
  ASSERT_TRUE(STANDIN(standin_fail)("retain", "1"));
  EXPECT_EQ(refusal(0, Id{}),
            "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)");
}

using NcclEnd = NcclModule;

// abort returns at once; NCCL waits for all ranks to abort.
TEST_F(NcclEnd, ByAbortOfARunningJob) {
  for (const Where where : {Where::device, Where::pageable}) {
    const Groups groups = connect(2);
    const Sum sum(2, where);
    sum.start(groups, 0);
    for (int i = 0; i < 20; ++i) (void)state_of(groups[0]);
    const int64_t before = counter("nccl_aborts");
    table()->abort(groups[0]);
    while (counter("nccl_aborts") == before) std::this_thread::yield();
    expect_state(groups[0], sluice_nccl_ending);
    table()->abort(groups[0]);
    abort_all(groups);
    EXPECT_EQ(counter("nccl_aborts"), before + 2) << "each rank once";
    EXPECT_EQ(sum.values(), (Values{1, 2}));
  }
}

TEST_F(NcclEnd, ByAbortOfAReadyGroup) { abort_all(connect(3)); }

// The stream still uses the job's memory.
TEST_F(NcclEnd, ComesAfterAllThatIsInTheStream) {
  const Groups groups = connect(2);
  const Sum sum(2, Where::pinned);
  STANDIN(standin_hold)();
  sum.start(groups, 0);
  table()->abort(groups[0]);
  table()->abort(groups[1]);
  await_state({groups[1]}, sluice_nccl_ended);
  while (counter("nccl_communicators") > 0) std::this_thread::yield();
  expect_state(groups[0], sluice_nccl_ending);
  STANDIN(standin_release)();
  forget_all(groups);
}

// Threads with such stacks can't be made.
TEST_F(NcclEnd, WaitsForAThread) {
  const Groups groups = connect(1);
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 46), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  table()->abort(groups[0]);
  expect_state(groups[0], sluice_nccl_ending);
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&huge);
  forget_all(groups);
}

TEST_F(NcclEnd, InOrderTakesAllRanks) {
  const Groups groups = connect(2);
  table()->end(groups[0]);
  expect_state(groups[0], sluice_nccl_ending);
  expect_state(groups[1], sluice_nccl_ready);
  table()->end(groups[1]);
  forget_all(groups);
}

TEST_F(NcclEnd, InOrderTurnsIntoAbort) {
  const Groups groups = connect(2);
  table()->end(groups[0]);
  EXPECT_EQ(state_of(groups[0]), sluice_nccl_ending);
  abort_all(groups);
}

TEST_F(NcclEnd, OfAGroupThatIsNotReadyIsAbort) {
  const Id id = fresh_id();
  const Groups groups = {create(id, 0, 2)};
  const int64_t before = counter("nccl_aborts");
  end_all(groups);
  EXPECT_EQ(counter("nccl_aborts"), before + 1);
}

TEST_F(NcclEnd, TakesNoJobs) {
  const Groups groups = connect(2);
  const Sum sum(2);
  const SluiceNcclJob job = sum.job(0);
  sum.start(groups, 0);
  const auto start = [&](char* why) { return table()->start(groups[0], &job, why); };
  const auto reserve = [&](char* why) { return table()->reserve(groups[0], &job, why); };
  EXPECT_EQ(reason_from(start), "the group is not ready");
  EXPECT_EQ(reason_from(reserve), "the group is not ready");
  EXPECT_EQ(state_of(groups[0]), sluice_nccl_running);
  sum.start(groups, 1);
  await_state(groups, sluice_nccl_ready);
  EXPECT_EQ(sum.values(), (Values{3, 3}));
  for (SluiceNcclGroup* const each : groups) table()->end(each);
  EXPECT_EQ(reason_from(start), "the group is not ready");
  forget_all(groups);
}

// Nothing is done with what was there, so the stand-in counts no misuse, and its NCCL still has
// that rank.
TEST_F(NcclEnd, IsAtOnceWhereTheProgramHasResetTheDevice) {
  const Groups groups = connect(1);
  int32_t operand = 1;
  SluiceNcclJob job = Sum::job();
  job.out = {&operand, 1, 1, nullptr, nullptr};
  ASSERT_EQ(STANDIN(cuDevicePrimaryCtxReset_v2)(0), CUDA_SUCCESS);
  EXPECT_EQ(reason_from([&](char* why) { return table()->reserve(groups[0], &job, why); }),
            "the program has reset the device");
  EXPECT_EQ(state_of(groups[0]), sluice_nccl_failed);
  EXPECT_EQ(reason_of(groups[0]), "the program has reset the device");
  EXPECT_EQ(reason_from([&](char* why) { return table()->start(groups[0], &job, why); }),
            "the group is not ready");
  table()->abort(groups[0]);
  EXPECT_EQ(state_of(groups[0]), sluice_nccl_ended);
  table()->forget(groups[0]);
  EXPECT_EQ(counter("nccl_communicators"), 1);
  STANDIN(standin_add)("nccl_communicators", -1);
}

}  // namespace
}  // namespace nccl_module
