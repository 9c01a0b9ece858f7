// SPDX-License-Identifier: BSD-3-Clause
//
// The stand-in for NCCL: results, init, the order of things, errors and abort.
#include <dlfcn.h>
#include <sys/wait.h>

#include <atomic>
#include <cmath>
#include <numeric>

#include "tests/cuda/nccl_standin_rig.h"

namespace standin_nccl {
namespace {

using Ints = std::vector<int32_t>;
using CudaStream = sluice::cuda::CUstream;

// 100 * rank, 100 * rank + 1, ...
Ints numbers(int rank, size_t count) {
  Ints values(count);
  std::iota(values.begin(), values.end(), 100 * rank);
  return values;
}

class Collectives : public NcclStandIn, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    NcclStandIn::SetUp();
    ranks = connect(GetParam());
    for (int i = 0; i < GetParam(); ++i) {
      Rank& rank = *ranks[static_cast<size_t>(i)];
      from.push_back(rank.make(numbers(i, 3 * ranks.size())));
      to.push_back(rank.make(Ints(3 * ranks.size(), -1)));
    }
  }
  void TearDown() override {
    disconnect(ranks);
    ranks.clear();
    NcclStandIn::TearDown();
  }
  // What a rank has received.
  Ints got(size_t rank, size_t count) const { return ranks[rank]->read(to[rank], count); }
  Ints sums(size_t first, size_t count) const {
    const int n = GetParam();
    Ints all;
    for (size_t i = first; i < first + count; ++i) {
      all.push_back(100 * (n * (n - 1) / 2) + n * static_cast<int32_t>(i));
    }
    return all;
  }
  const int32_t* source(int rank) const { return from[static_cast<size_t>(rank)]; }
  int32_t* target(int rank) const { return to[static_cast<size_t>(rank)]; }

  Ranks ranks;
  std::vector<int32_t*> from, to;
};

TEST_P(Collectives, AllReduceAndReduce) {
  issue(ranks, [&](int i, Rank& rank) {
    return ncclAllReduce(source(i), target(i), 3, ncclInt32, ncclSum, rank.communicator,
                         rank.nccl_stream());
  });
  synchronize(ranks);
  Ints expected = sums(0, 3);
  expected.push_back(-1);
  for (size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(got(i, 4), expected);
  issue(ranks, [&](int i, Rank& rank) {
    return ncclReduce(source(i) + 1, i == 1 ? target(i) : nullptr, 2, ncclInt32, ncclMax, 1,
                      rank.communicator, rank.nccl_stream());
  });
  synchronize(ranks);
  const int32_t most = 100 * (GetParam() - 1);
  EXPECT_EQ(got(1, 2), (Ints{most + 1, most + 2}));
  EXPECT_EQ(got(0, 2), sums(0, 2)) << "only the root receives";
}

TEST_P(Collectives, BroadcastAndAllGather) {
  issue(ranks, [&](int i, Rank& rank) {
    return ncclBroadcast(i == 1 ? source(i) : nullptr, target(i), 5, ncclInt32, 1,
                         rank.communicator, rank.nccl_stream());
  });
  synchronize(ranks);
  for (size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(got(i, 5), numbers(1, 5));
  issue(ranks, [&](int i, Rank& rank) {
    return ncclAllGather(source(i), target(i), 3, ncclInt32, rank.communicator, rank.nccl_stream());
  });
  synchronize(ranks);
  Ints all;
  for (int i = 0; i < GetParam(); ++i) {
    for (const int32_t each : numbers(i, 3)) all.push_back(each);
  }
  for (size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(got(i, all.size()), all);
}

TEST_P(Collectives, ReduceScatterAlsoInPlace) {
  for (const bool in_place : {false, true}) {
    issue(ranks, [&](int i, Rank& rank) {
      int32_t* const into = in_place ? const_cast<int32_t*>(source(i)) + 3 * i : target(i);
      return ncclReduceScatter(source(i), into, 3, ncclInt32, ncclSum, rank.communicator,
                               rank.nccl_stream());
    });
    synchronize(ranks);
    for (size_t i = 0; i < ranks.size(); ++i) {
      const Ints found = in_place ? ranks[i]->read(from[i] + 3 * i, 3) : got(i, 3);
      EXPECT_EQ(found, sums(3 * i, 3));
    }
  }
}

// Twice, so that messages follow messages.
TEST_P(Collectives, GroupsOfSendsAndReceives) {
  const int count = GetParam();
  for (int turn = 0; turn < 2; ++turn) {
    issue(ranks, [&](int i, Rank& rank) {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      for (int peer = 0; peer < count; ++peer) {
        EXPECT_EQ(ncclSend(source(i) + 3 * peer, 3, ncclInt32, peer, rank.communicator,
                           rank.nccl_stream()),
                  ncclSuccess);
        EXPECT_EQ(ncclRecv(target(i) + 3 * peer, 3, ncclInt32, peer, rank.communicator,
                           rank.nccl_stream()),
                  ncclSuccess);
      }
      return ncclGroupEnd();
    });
  }
  synchronize(ranks);
  for (int i = 0; i < count; ++i) {
    const Ints found = got(static_cast<size_t>(i), ranks.size() * 3);
    for (int peer = 0; peer < count; ++peer) {
      EXPECT_EQ(found[static_cast<size_t>(3 * peer)], 100 * peer + 3 * i);
    }
  }
}

TEST_P(Collectives, GroupsOfReduces) {
  issue(ranks, [&](int i, Rank& rank) {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int root = 0; root < GetParam(); ++root) {
      const auto part = static_cast<size_t>(1 + root % 2);
      EXPECT_EQ(ncclReduce(source(i) + 3 * root, target(i), part, ncclInt32, ncclSum, root,
                           rank.communicator, rank.nccl_stream()),
                ncclSuccess);
    }
    return ncclGroupEnd();
  });
  synchronize(ranks);
  for (size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(got(i, 1 + i % 2), sums(3 * i, 1 + i % 2));
  EXPECT_EQ(standin_counter("nccl_jobs") - jobs, GetParam()) << "a group is one job";
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(2, 3, 4));

using Arithmetic = NcclStandIn;

// Three ranks' operands: sum, product, greatest, least.
template <typename Value>
void try_type(const Ranks& ranks, ncclDataType_t type, const std::vector<Value>& operands,
              const std::vector<Value>& results) {
  for (const ncclRedOp_t operation : {ncclSum, ncclProd, ncclMax, ncclMin}) {
    std::vector<Value*> buffers;
    for (size_t i = 0; i < 3; ++i) buffers.push_back(ranks[i]->make(std::vector{operands[i]}));
    issue(ranks, [&](int i, Rank& rank) {
      return rank.all_reduce(buffers[static_cast<size_t>(i)], 1, type, operation);
    });
    synchronize(ranks);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(ranks[i]->read(buffers[i], 1)[0], results[operation])
          << "type " << type << " operation " << operation;
    }
  }
}

TEST_F(Arithmetic, OfAllTypesAndOperations) {
  const Ranks ranks = connect(3);
  try_type<int8_t>(ranks, ncclInt8, {100, 50, -3}, {-109, 104, 100, -3});
  try_type<uint8_t>(ranks, ncclUint8, {200, 50, 7}, {1, 112, 200, 7});
  try_type<int32_t>(ranks, ncclInt32, {-7, 5, 3}, {1, -105, 5, -7});
  try_type<uint32_t>(ranks, ncclUint32, {0x80000000, 0x80000001, 2}, {3, 0, 0x80000001, 2});
  try_type<int64_t>(ranks, ncclInt64, {-(int64_t{1} << 40), 2, 3},
                    {5 - (int64_t{1} << 40), -6 * (int64_t{1} << 40), 3, -(int64_t{1} << 40)});
  try_type<uint64_t>(ranks, ncclUint64, {uint64_t{1} << 63, 1, 1},
                     {(uint64_t{1} << 63) + 2, uint64_t{1} << 63, uint64_t{1} << 63, 1});
  try_type<float>(ranks, ncclFloat32, {1.5F, -2, 4}, {3.5F, -12, 4, -2});
  try_type<double>(ranks, ncclFloat64, {1.5, -2, 1e300}, {1e300, -3e300, 1e300, -2});
  // 1.5, -2, 4
  try_type<uint16_t>(ranks, ncclFloat16, {0x3e00, 0xc000, 0x4400},
                     {0x4300, 0xca00, 0x4400, 0xc000});
  try_type<uint16_t>(ranks, ncclBfloat16, {0x3fc0, 0xc000, 0x4080},
                     {0x4060, 0xc140, 0x4080, 0xc000});
  disconnect(ranks);
}

// 2048 + 1 + 1 of halves is 2048, and 256 + 1 + 1 of bfloat16 is 256; in another order it is not.
TEST_F(Arithmetic, RoundsAfterEachRankInTheirOrder) {
  const Ranks ranks = connect(3);
  const auto sum = [&](ncclDataType_t type, std::vector<uint16_t> operands) {
    std::vector<uint16_t*> buffers;
    for (size_t i = 0; i < 3; ++i) buffers.push_back(ranks[i]->make(std::vector{operands[i]}));
    issue(ranks, [&](int i, Rank& rank) {
      return rank.all_reduce(buffers[static_cast<size_t>(i)], 1, type);
    });
    synchronize(ranks);
    return ranks[0]->read(buffers[0], 1)[0];
  };
  EXPECT_EQ(sum(ncclFloat16, {0x6800, 0x3c00, 0x3c00}), 0x6800);
  EXPECT_EQ(sum(ncclFloat16, {0x3c00, 0x3c00, 0x6800}), 0x6801);
  EXPECT_EQ(sum(ncclFloat16, {0x7bff, 0x7bff, 0x3c00}), 0x7c00) << "infinity";
  EXPECT_EQ(sum(ncclFloat16, {0x0001, 0x0001, 0x0001}), 0x0003) << "subnormal";
  EXPECT_EQ(sum(ncclBfloat16, {0x4380, 0x3f80, 0x3f80}), 0x4380);
  EXPECT_EQ(sum(ncclBfloat16, {0x3f80, 0x3f80, 0x4380}), 0x4381);
  disconnect(ranks);
}

using Init = NcclStandIn;

TEST_F(Init, EndsWhenAllHaveCome) {
  const Ranks ranks = make_ranks(2);
  const ncclUniqueId id = fresh_id();
  EXPECT_EQ(ranks[0]->init(id, 0, 2), ncclInProgress);
  ranks[0]->expect_in_progress();
  EXPECT_EQ(ranks[1]->init(id, 1, 2), ncclInProgress);
  EXPECT_EQ(settle(ranks), ncclSuccess);
  EXPECT_NE(access(id.internal, F_OK), 0) << "the file's name is gone";
  disconnect(ranks);
}

// Each of its calls returns when the library is done with it.
TEST_F(Init, OfABlockingCommunicatorWaits) {
  const Ranks ranks = make_ranks(2);
  const ncclUniqueId id = fresh_id();
  const auto play = [&](int i) {
    Rank& rank = *ranks[static_cast<size_t>(i)];
    EXPECT_EQ(rank.init(id, i, 2, true), ncclSuccess);
    int32_t* const buffer = rank.make(Ints{1 + i});
    rank.in_context([&] {
      EXPECT_EQ(rank.all_reduce(buffer, 1), ncclSuccess);
      EXPECT_EQ(cuStreamSynchronize(rank.stream()), CUDA_SUCCESS);
    });
    EXPECT_EQ(rank.read(buffer, 1), Ints{3});
    EXPECT_EQ(ncclCommFinalize(rank.communicator), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(rank.communicator), ncclSuccess);
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

TEST_F(Init, SaysThatItIsInProgressForAWhile) {
  const Setting polls("NCCL_STANDIN_POLLS", "1000000");
  const Ranks ranks = make_ranks(1);
  init(ranks);
  ranks[0]->expect_in_progress();
  abort_all(ranks);
}

TEST_F(Init, FailsOnOneRankAndHangsOnTheOther) {
  const Setting fails("NCCL_STANDIN_INIT", "fail:1,delay:0:1");
  const Ranks ranks = make_ranks(2);
  init(ranks);
  while (ranks[1]->state() == ncclInProgress) std::this_thread::yield();
  EXPECT_EQ(ranks[1]->state(), ncclSystemError);
  EXPECT_EQ(ranks[0]->state(), ncclInProgress);
  abort_all(ranks);
}

TEST_F(Init, HangsUntilAbort) {
  for (const char* what : {"hang:0", "delay:0:100000000"}) {
    const Setting hangs("NCCL_STANDIN_INIT", what);
    const Ranks ranks = make_ranks(2);
    init(ranks);
    for (const auto& rank : ranks) rank->expect_in_progress();
    abort_all(ranks);
  }
}

TEST_F(Init, RefusesADeviceOfTwoRanks) {
  Ranks ranks;
  for (int i = 0; i < 2; ++i) ranks.push_back(std::make_unique<Rank>(0));
  init(ranks);
  EXPECT_EQ(settle(ranks), ncclInvalidUsage);
  abort_all(ranks);
}

TEST_F(Init, RefusesOtherVersions) {
  const Ranks ranks = make_ranks(2);
  const ncclUniqueId id = fresh_id();
  EXPECT_EQ(ranks[0]->init(id, 0, 2), ncclInProgress);
  const Setting older("NCCL_STANDIN_VERSION", "22808");
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 22808);
  EXPECT_EQ(ranks[1]->init(id, 1, 2), ncclInProgress);
  EXPECT_EQ(settle(ranks), ncclInvalidUsage);
  abort_all(ranks);
}

class Jobs : public NcclStandIn {
 protected:
  // Of the rank's one number, into itself.
  void start(const Ranks& ranks) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      buffers.push_back(ranks[i]->make(Ints{1 + static_cast<int32_t>(i)}));
    }
  }
  ncclResult_t reduce(int i, const Rank& rank) const {
    return rank.all_reduce(buffers[static_cast<size_t>(i)], 1);
  }
  void enqueue(int i, const Rank& rank) const { rank.enqueue(buffers[static_cast<size_t>(i)], 1); }
  Ints values(const Ranks& ranks) const {
    Ints all;
    for (size_t i = 0; i < ranks.size(); ++i) all.push_back(ranks[i]->read(buffers[i], 1)[0]);
    return all;
  }
  std::vector<int32_t*> buffers;
};

// An event that is recorded too soon is before the job.
TEST_F(Jobs, GetOntoTheStreamLate) {
  const Ranks ranks = connect(2);
  start(ranks);
  int results = 0;
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<CUevent> events;
    for (int i = 0; i < 2; ++i) {
      Rank& rank = *ranks[static_cast<size_t>(i)];
      rank.in_context([&] {
        CUevent event = nullptr;
        results += reduce(i, rank) == ncclSuccess ? 1 : 0;
        EXPECT_EQ(cuEventCreate(&event, 2), CUDA_SUCCESS);
        EXPECT_EQ(cuEventRecord(event, rank.stream()), CUDA_SUCCESS);
        EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
        events.push_back(event);
      });
    }
    EXPECT_EQ(values(ranks), (turn == 0 ? Ints{1, 2} : Ints{3, 3}));
    for (const auto& rank : ranks) {
      rank->expect_in_progress(3);
      EXPECT_EQ(rank->state(), ncclSuccess);
    }
    synchronize(ranks);
    EXPECT_EQ(values(ranks), (turn == 0 ? Ints{3, 3} : Ints{6, 6}));
    for (const CUevent event : events) EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  }
  EXPECT_EQ(results, 2) << "one turn says ncclSuccess, the other ncclInProgress";
  disconnect(ranks);
}

TEST_F(Jobs, WaitForAllRanks) {
  const Ranks ranks = connect(2);
  start(ranks);
  for (int i = 0; i < 2; ++i) {
    enqueue(i, *ranks[static_cast<size_t>(i)]);
    if (i == 1) break;
    await_counter("nccl_running", 1);
    EXPECT_FALSE(ranks[0]->is_stream_done());
  }
  synchronize(ranks);
  EXPECT_EQ(values(ranks), (Ints{3, 3}));
  disconnect(ranks);
}

// The communicators in the order `first` on rank 0 and in the other on rank 1. Each has a stream.
TEST_F(Jobs, OfTwoCommunicatorsInOtherOrdersHang) {
  for (const bool is_same_order : {true, false}) {
    const Ranks one = connect(2), two = connect(2);
    buffers.clear();
    start(one);
    for (const bool is_first : {true, false}) {
      for (int i = 0; i < 2; ++i) {
        const bool takes_one = is_same_order || i == 0 ? is_first : !is_first;
        enqueue(i, *(takes_one ? one : two)[static_cast<size_t>(i)]);
      }
    }
    if (is_same_order) {
      synchronize(one), synchronize(two);
      EXPECT_EQ(values(one), (Ints{6, 6}));
      disconnect(one), disconnect(two);
      continue;
    }
    await_counter("nccl_running", 2);
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    EXPECT_EQ(standin_counter("nccl_running"), 2) << "the slots are taken";
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_FALSE(one[i]->is_stream_done());
      EXPECT_FALSE(two[i]->is_stream_done());
    }
    abort_all(one);
    synchronize(one), synchronize(two);
    abort_all(two);
  }
}

// What each of two ranks calls, and how many of them notice.
struct Difference {
  const char* name;
  ncclResult_t (*calls)(int rank, void* at, ncclComm_t, CudaStream);
  int notice = 2;
};

class Mismatch : public Jobs, public testing::WithParamInterface<Difference> {};

TEST_P(Mismatch, HangsUntilAbort) {
  const Ranks ranks = connect(2);
  std::vector<int32_t*> memory;
  for (size_t i = 0; i < 2; ++i) memory.push_back(ranks[i]->make(Ints(4, 7)));
  issue(ranks, [&](int i, Rank& rank) {
    return GetParam().calls(i, memory[static_cast<size_t>(i)], rank.communicator,
                            rank.nccl_stream());
  });
  await_counter("nccl_mismatches", mismatches + GetParam().notice);
  for (const auto& rank : ranks) {
    EXPECT_FALSE(rank->is_stream_done());
    EXPECT_EQ(rank->state(), ncclSuccess) << "nobody tells";
  }
  abort_all(ranks);
  synchronize(ranks);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(ranks[i]->read(memory[i], 4), Ints(4, 7));
  EXPECT_EQ(standin_counter("nccl_jobs"), jobs);
}

constexpr Difference differences[] = {
    {"Kind",
     [](int i, void* at, ncclComm_t own, CudaStream stream) {
       return i == 0 ? ncclAllReduce(at, at, 2, ncclInt32, ncclSum, own, stream)
                     : ncclReduce(at, at, 2, ncclInt32, ncclSum, 0, own, stream);
     }},
    {"Count",
     [](int i, void* at, ncclComm_t own, CudaStream stream) {
       return ncclAllReduce(at, at, i == 0 ? 2 : 1, ncclInt32, ncclSum, own, stream);
     }},
    {"Type",
     [](int i, void* at, ncclComm_t own, CudaStream stream) {
       return ncclAllReduce(at, at, 2, i == 0 ? ncclInt32 : ncclUint32, ncclSum, own, stream);
     }},
    {"Operation",
     [](int i, void* at, ncclComm_t own, CudaStream stream) {
       return ncclAllReduce(at, at, 2, ncclInt32, i == 0 ? ncclSum : ncclMax, own, stream);
     }},
    {"Root", [](int i, void* at, ncclComm_t own,
                CudaStream stream) { return ncclBroadcast(at, at, 2, ncclInt32, i, own, stream); }},
    {"CountOfAMessage",
     [](int i, void* at, ncclComm_t own, CudaStream stream) {
       return i == 0 ? ncclSend(at, 2, ncclInt32, 1, own, stream)
                     : ncclRecv(at, 1, ncclInt32, 0, own, stream);
     },
     1},
};
INSTANTIATE_TEST_SUITE_P(Of, Mismatch, testing::ValuesIn(differences),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(Jobs, FailAtTheGivenNumber) {
  const Setting second("NCCL_STANDIN_ERROR", "2:1");
  const Ranks ranks = connect(2);
  start(ranks);
  issue(ranks, [&](int i, Rank& rank) { return reduce(i, rank); });
  synchronize(ranks);
  EXPECT_EQ(values(ranks), (Ints{3, 3}));
  for (int i = 0; i < 2; ++i) {
    Rank& rank = *ranks[static_cast<size_t>(i)];
    rank.in_context([&] { EXPECT_TRUE(is_settled(reduce(i, rank))); });
  }
  while (is_settled(ranks[1]->state())) (void)ranks[0]->state();
  EXPECT_EQ(ranks[1]->state(), ncclSystemError);
  while (ranks[0]->state() == ncclInProgress) std::this_thread::yield();
  EXPECT_EQ(ranks[0]->state(), ncclSuccess);
  EXPECT_FALSE(ranks[0]->is_stream_done());
  EXPECT_FALSE(ranks[1]->is_stream_done());
  abort_all(ranks);
  synchronize(ranks);
  EXPECT_EQ(values(ranks), (Ints{3, 3}));
}

TEST_F(Jobs, OfAnAbortedRankEndButAbortWaitsForAllRanks) {
  const Ranks ranks = connect(2);
  start(ranks);
  Rank& rank = *ranks[0];
  enqueue(0, rank);
  std::atomic<bool> has_returned{false};
  std::thread aborting([&] {
    EXPECT_EQ(ncclCommAbort(rank.communicator), ncclSuccess);
    has_returned = true;
  });
  rank.in_context([&] { EXPECT_EQ(cuStreamSynchronize(rank.stream()), CUDA_SUCCESS); });
  await_counter("nccl_aborts", aborts + 1);
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(has_returned);
  EXPECT_EQ(ncclCommAbort(ranks[1]->communicator), ncclSuccess);
  aborting.join();
}

TEST_F(Jobs, EndBeforeFinalizeDoes) {
  const Ranks ranks = connect(2);
  start(ranks);
  standin_hold();
  issue(ranks, [&](int i, Rank& rank) { return reduce(i, rank); });
  for (const auto& each : ranks) EXPECT_EQ(ncclCommFinalize(each->communicator), ncclInProgress);
  for (const auto& each : ranks) each->expect_in_progress();
  standin_release();
  EXPECT_EQ(settle(ranks), ncclSuccess);
  EXPECT_EQ(standin_counter("nccl_jobs"), jobs + 2);
  for (const auto& each : ranks) EXPECT_EQ(ncclCommDestroy(each->communicator), ncclSuccess);
}

TEST_F(Jobs, OfOtherRanksMayFollowUntilTheyFinalizeToo) {
  const Ranks ranks = connect(2);
  EXPECT_EQ(ncclCommFinalize(ranks[0]->communicator), ncclInProgress);
  ranks[0]->expect_in_progress();
  EXPECT_EQ(ncclCommFinalize(ranks[1]->communicator), ncclInProgress);
  EXPECT_EQ(settle(ranks), ncclSuccess);
  for (const auto& each : ranks) EXPECT_EQ(ncclCommDestroy(each->communicator), ncclSuccess);
}

std::string built(const std::string& name) {
  const char* top = std::getenv("top_builddir");
  return std::string(top ? top : ".") + "/tests/cuda/" + name;
}

TEST(NcclLibrary, HasItsNamesAndUsesTheDriverThatIsLoaded) {
  void* const driver = dlopen(built("standin/old/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(driver) << dlerror();
  void* const nccl = dlopen(built("standin_nccl/libnccl.so.2").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(nccl) << dlerror();
  EXPECT_EQ(dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD), nccl) << "found by its soname";
#define EXPECT_NAME(name, ...) EXPECT_TRUE(dlsym(nccl, #name)) << #name;
  SLUICE_NCCL_FUNCTIONS(EXPECT_NAME)
#undef EXPECT_NAME
  EXPECT_FALSE(dlsym(nccl, "_ZN12standin_nccl7size_ofEj"));
  Dl_info info{};
  ASSERT_TRUE(dladdr(dlsym(nccl, "cuInit"), &info));
  EXPECT_NE(std::string(info.dli_fname).find("/old/"), std::string::npos);
}

#define FIND(library, name) reinterpret_cast<decltype(&(name))>(dlsym(library, #name))

// As a program that knows neither when it is linked.
TEST(NcclLibrary, WorksOverTheDriverThatIsLoaded) {
  void* const driver = dlopen(built("standin/old/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const nccl = dlopen(built("standin_nccl/libnccl.so.2").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(driver && nccl) << dlerror();
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(FIND(driver, cuInit)(0), CUDA_SUCCESS);
  ASSERT_EQ(FIND(driver, cuCtxCreate_v2)(&context, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(FIND(driver, cuMemAlloc_v2)(&memory, 8), CUDA_SUCCESS);
  ASSERT_EQ(FIND(driver, cuMemsetD8_v2)(memory, 7, 4), CUDA_SUCCESS);
  ncclConfig_t config;
  config.blocking = 1;
  ncclUniqueId id;
  ncclComm_t communicator = nullptr;
  ASSERT_EQ(FIND(nccl, ncclGetUniqueId)(&id), ncclSuccess);
  ASSERT_EQ(FIND(nccl, ncclCommInitRankConfig)(&communicator, 1, id, 0, &config), ncclSuccess);
  auto* const from = reinterpret_cast<std::byte*>(memory);
  EXPECT_EQ(FIND(nccl, ncclAllReduce)(from, from + 4, 4, ncclInt8, ncclSum, communicator, nullptr),
            ncclSuccess);
  uint64_t found = 0;
  EXPECT_EQ(FIND(driver, cuMemcpyDtoH_v2)(&found, memory, 8), CUDA_SUCCESS);
  EXPECT_EQ(found, 0x0707070707070707);
  EXPECT_EQ(FIND(nccl, ncclCommFinalize)(communicator), ncclSuccess);
  EXPECT_EQ(FIND(nccl, ncclCommDestroy)(communicator), ncclSuccess);
  EXPECT_EQ(FIND(driver, cuCtxDestroy_v2)(context), CUDA_SUCCESS);
  EXPECT_EQ(FIND(driver, standin_forgive)(), 0);
}

// Each rank is a process that runs only the next test.
TEST(NcclProcesses, MeetByTheUniqueId) {
  const Setting id("NCCL_STANDIN_TEST_ID", fresh_id().internal);
  const std::string command =
      " '" + built("nccl_standin_tests") + "' --gtest_filter=NcclProcess.* >/dev/null";
  const std::string all = "NCCL_STANDIN_TEST_RANK=0" + command + " & NCCL_STANDIN_TEST_RANK=1" +
                          command + " && wait $!";
  EXPECT_EQ(WEXITSTATUS(std::system(all.c_str())), 0);
}

// For the test above; alone it is nothing.
TEST(NcclProcess, IsARank) {
  const char* const name = std::getenv("NCCL_STANDIN_TEST_ID");
  const char* const number = std::getenv("NCCL_STANDIN_TEST_RANK");
  if (!name || !number) return;
  ncclUniqueId id{};
  std::strncpy(id.internal, name, sizeof id.internal - 1);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  Ranks own;
  own.push_back(std::make_unique<Rank>(std::atoi(number)));
  ASSERT_EQ(own[0]->init(id, std::atoi(number), 2), ncclInProgress);
  EXPECT_EQ(settle(own), ncclSuccess);
  int32_t* const buffer = own[0]->make(Ints{1 + std::atoi(number)});
  issue(own, [&](int, Rank& rank) { return rank.all_reduce(buffer, 1); });
  synchronize(own);
  EXPECT_EQ(own[0]->read(buffer, 1), Ints{3});
  disconnect(own);
}

}  // namespace
}  // namespace standin_nccl
