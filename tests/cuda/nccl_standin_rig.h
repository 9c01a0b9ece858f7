// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the stand-in for NCCL share. One thread plays all ranks: every call returns at
// once, as communicators are non-blocking.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/cuda/standin_nccl/standin_nccl.h"

namespace standin_nccl {

// Sets an environment variable for a while.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;

 private:
  const char* const name_;
};

inline bool is_settled(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

// A rank with a device, a context, a stream and a communicator of its own.
class Rank {
 public:
  explicit Rank(int device) : device_(device) {
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context_, device), CUDA_SUCCESS);
    in_context([this] { EXPECT_EQ(cuStreamCreate(&stream_, 1), CUDA_SUCCESS); });
  }
  ~Rank() {
    in_context([this] {
      EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamDestroy_v2(stream_), CUDA_SUCCESS);
      for (const CUdeviceptr each : memory_) EXPECT_EQ(cuMemFree_v2(each), CUDA_SUCCESS);
    });
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(device_), CUDA_SUCCESS);
  }
  Rank(const Rank&) = delete;

  CUstream stream() const { return stream_; }
  sluice::cuda::CUstream nccl_stream() const {
    return reinterpret_cast<sluice::cuda::CUstream>(stream_);
  }

  template <typename Function>
  std::invoke_result_t<Function> in_context(Function function) const {
    struct Current {
      explicit Current(CUcontext context) { EXPECT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS); }
      ~Current() { EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS); }
    } const current(context_);
    return function();
  }

  ncclResult_t init(const ncclUniqueId& id, int rank, int ranks, bool is_blocking = false) {
    ncclConfig_t config;
    config.blocking = is_blocking ? 1 : 0;
    return in_context(
        [&] { return ncclCommInitRankConfig(&communicator, ranks, id, rank, &config); });
  }
  ncclResult_t state() const {
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(communicator, &state), ncclSuccess);
    return state;
  }
  void expect_in_progress(int polls = 1000) const {
    for (int i = 0; i < polls; ++i) EXPECT_EQ(state(), ncclInProgress);
  }
  // In place, of int32 unless told otherwise. In its context.
  ncclResult_t all_reduce(void* buffer, size_t count, ncclDataType_t type = ncclInt32,
                          ncclRedOp_t operation = ncclSum) const {
    return ncclAllReduce(buffer, buffer, count, type, operation, communicator, nccl_stream());
  }
  // And until it is on the stream, though other ranks may be missing.
  void enqueue(void* buffer, size_t count) const {
    in_context([&] { EXPECT_TRUE(is_settled(all_reduce(buffer, count))); });
    while (state() == ncclInProgress) std::this_thread::yield();
  }
  bool is_stream_done() const {
    return in_context([this] { return cuStreamQuery(stream_); }) == CUDA_SUCCESS;
  }

  template <typename Value>
  Value* make(const std::vector<Value>& values) {
    CUdeviceptr pointer = 0;
    in_context([&] {
      EXPECT_EQ(cuMemAlloc_v2(&pointer, values.size() * sizeof(Value)), CUDA_SUCCESS);
      EXPECT_EQ(cuMemcpyHtoD_v2(pointer, values.data(), values.size() * sizeof(Value)),
                CUDA_SUCCESS);
    });
    memory_.push_back(pointer);
    return reinterpret_cast<Value*>(pointer);
  }
  template <typename Value>
  std::vector<Value> read(const Value* from, size_t count) const {
    std::vector<Value> values(count);
    in_context([&] {
      EXPECT_EQ(cuMemcpyDtoH_v2(values.data(), reinterpret_cast<CUdeviceptr>(from),
                                count * sizeof(Value)),
                CUDA_SUCCESS);
    });
    return values;
  }

  ncclComm_t communicator = nullptr;

 private:
  const int device_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> memory_;
};

using Ranks = std::vector<std::unique_ptr<Rank>>;

inline ncclUniqueId fresh_id() {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  return id;
}

// Rank i has device i.
inline Ranks make_ranks(int count) {
  Ranks ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(std::make_unique<Rank>(i));
  return ranks;
}

// Polls until no rank is in progress. The first error, if any.
inline ncclResult_t settle(const Ranks& ranks) {
  ncclResult_t error = ncclSuccess;
  for (const auto& rank : ranks) {
    ncclResult_t state;
    while ((state = rank->state()) == ncclInProgress) {
      for (const auto& other : ranks) (void)other->state();
      std::this_thread::yield();
    }
    if (!error) error = state;
  }
  return error;
}

inline void init(const Ranks& ranks) {
  const ncclUniqueId id = fresh_id();
  const int count = static_cast<int>(ranks.size());
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(ranks[static_cast<size_t>(i)]->init(id, i, count), ncclInProgress);
  }
}

inline Ranks connect(int count) {
  Ranks ranks = make_ranks(count);
  init(ranks);
  EXPECT_EQ(settle(ranks), ncclSuccess);
  return ranks;
}

inline void disconnect(const Ranks& ranks) {
  for (const auto& rank : ranks) EXPECT_EQ(ncclCommFinalize(rank->communicator), ncclInProgress);
  EXPECT_EQ(settle(ranks), ncclSuccess);
  for (const auto& rank : ranks) EXPECT_EQ(ncclCommDestroy(rank->communicator), ncclSuccess);
}

inline void abort_all(const std::vector<ncclComm_t>& communicators) {
  std::vector<std::thread> threads;
  for (const ncclComm_t each : communicators) {
    threads.emplace_back([each] { EXPECT_EQ(ncclCommAbort(each), ncclSuccess); });
  }
  for (std::thread& each : threads) each.join();
}

inline void abort_all(const Ranks& ranks) {
  std::vector<ncclComm_t> all;
  for (const auto& rank : ranks) all.push_back(rank->communicator);
  abort_all(all);
}

// Each rank makes a call, `call(rank's number, rank)`, in its context, and it gets onto its stream.
template <typename Call>
void issue(const Ranks& ranks, Call call) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const ncclResult_t result =
        ranks[i]->in_context([&] { return call(static_cast<int>(i), *ranks[i]); });
    EXPECT_TRUE(is_settled(result)) << ncclGetErrorString(result);
  }
  EXPECT_EQ(settle(ranks), ncclSuccess);
}

inline void synchronize(const Ranks& ranks) {
  for (const auto& rank : ranks) {
    rank->in_context([&] { EXPECT_EQ(cuStreamSynchronize(rank->stream()), CUDA_SUCCESS); });
  }
}

inline void await_counter(const char* name, int64_t value) {
  while (standin_counter(name) != value) std::this_thread::yield();
}

// There are four devices. At the end nothing may be left.
class NcclStandIn : public testing::Test {
 protected:
  void SetUp() override {
    setenv("STANDIN_DEVICES", "4", 1);
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    mismatches = standin_counter("nccl_mismatches");
    aborts = standin_counter("nccl_aborts");
    jobs = standin_counter("nccl_jobs");
  }
  void TearDown() override {
    await_counter("nccl_running", 0);
    for (const char* name : {"nccl_communicators", "contexts", "streams", "device_memory"}) {
      EXPECT_EQ(standin_counter(name), 0) << name;
    }
    EXPECT_EQ(standin_forgive(), 0);
  }

  int64_t mismatches = 0, aborts = 0, jobs = 0;  // the counters at first
};

}  // namespace standin_nccl
