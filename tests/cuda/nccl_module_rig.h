// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the module's NCCL part share. Driver and NCCL are the stand-ins, opened by
// path. A rank is a thread, or one of several that a single thread plays: no function of the module
// waits for another rank. Rank i has device i.
//
// NCCL_MODULE_DRIVER=PATH: another driver, with the NCCL that the loader finds. The jobs of
// nccl_module_jobs_test.cc run over these too, on as many ranks as there are devices (on-gpu).
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cuda/nccl_module.h"
#include "tests/cuda/standin/cuda_driver.h"

extern "C" const SluiceCuda* sluice_cuda();
extern "C" const SluiceNccl* sluice_nccl();

namespace nccl_module {

inline constexpr int most_ranks = 5;

inline std::string built(const std::string& name) {
  const char* const top = std::getenv("top_builddir");
  return std::string(top ? top : ".") + "/tests/cuda/" + name;
}

inline const char* other_driver() { return std::getenv("NCCL_MODULE_DRIVER"); }

inline void* standin_driver() {
  static void* const handle =
      dlopen(other_driver() ? other_driver() : built("standin/libcuda.so.1").c_str(),
             RTLD_NOW | RTLD_LOCAL);
  return handle;
}

// A function of the driver.
template <typename Function>
Function* in_standin(const char* name) {
  return reinterpret_cast<Function*>(dlsym(standin_driver(), name));
}
#define STANDIN(function) nccl_module::in_standin<decltype(::function)>(#function)

inline int64_t counter(const char* name) { return STANDIN(standin_counter)(name); }

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

// Retains a device's primary context.
class Primary {
 public:
  explicit Primary(int device) : device_(device) {
    EXPECT_EQ(STANDIN(cuDevicePrimaryCtxRetain)(&context_, device), CUDA_SUCCESS);
  }
  ~Primary() { EXPECT_EQ(STANDIN(cuDevicePrimaryCtxRelease_v2)(device_), CUDA_SUCCESS); }
  Primary(const Primary&) = delete;

  CUcontext context() const { return context_; }
  // The result of a call while the context is the thread's current one.
  template <typename Call>
  CUresult in(Call call) const {
    CUcontext popped = nullptr;
    EXPECT_EQ(STANDIN(cuCtxPushCurrent_v2)(context_), CUDA_SUCCESS);
    const CUresult result = call();
    EXPECT_EQ(STANDIN(cuCtxPopCurrent_v2)(&popped), CUDA_SUCCESS);
    EXPECT_EQ(popped, context_);
    return result;
  }

 private:
  const int device_;
  CUcontext context_ = nullptr;
};

using Bytes = std::vector<std::byte>;

// pinned: host memory that copies read and write while they run.
enum class Where { device, pageable, pinned };

// Memory of a rank, with these contents at first.
class Memory {
 public:
  Memory(Where where, int device, const Bytes& contents)
      : where_(where), bytes_(contents.size()), primary_(device) {
    const size_t room = bytes_ + 1;
    if (where == Where::device) {
      EXPECT_EQ(primary_.in([&] { return STANDIN(cuMemAlloc_v2)(&address_, room); }), CUDA_SUCCESS);
      EXPECT_EQ(
          primary_.in([&] { return STANDIN(cuMemcpyHtoD_v2)(address_, contents.data(), bytes_); }),
          CUDA_SUCCESS);
      return;
    }
    if (where == Where::pinned) {
      EXPECT_EQ(primary_.in([&] { return STANDIN(cuMemHostAlloc)(&host_, room, 0); }),
                CUDA_SUCCESS);
    } else {
      host_ = std::malloc(room);
    }
    std::copy(contents.begin(), contents.end(), static_cast<std::byte*>(host_));
  }
  ~Memory() {
    EXPECT_EQ(primary_.in([&] {
      if (where_ == Where::device) return STANDIN(cuMemFree_v2)(address_);
      if (where_ == Where::pinned) return STANDIN(cuMemFreeHost)(host_);
      std::free(host_);
      return CUDA_SUCCESS;
    }),
              CUDA_SUCCESS);
  }
  Memory(const Memory&) = delete;

  bool is_on_host() const { return where_ != Where::device; }
  void* data() const {
    return is_on_host() ? host_ : reinterpret_cast<void*>(static_cast<uintptr_t>(address_));
  }
  Bytes contents() const {
    Bytes found(bytes_);
    if (is_on_host()) {
      std::copy_n(static_cast<const std::byte*>(host_), bytes_, found.data());
    } else {
      EXPECT_EQ(
          primary_.in([&] { return STANDIN(cuMemcpyDtoH_v2)(found.data(), address_, bytes_); }),
          CUDA_SUCCESS);
    }
    return found;
  }
  SluiceNcclSide side(size_t count) const {
    return {data(), is_on_host() ? 1 : 0, count, nullptr, nullptr};
  }

 private:
  const Where where_;
  const size_t bytes_;
  const Primary primary_;
  CUdeviceptr address_ = 0;
  void* host_ = nullptr;
};

using Id = std::array<char, sluice_nccl_id>;
using Groups = std::vector<SluiceNcclGroup*>;

inline const SluiceNccl* table() { return sluice_nccl(); }

inline Id fresh_id() {
  Id id{};
  char why[sluice_cuda_why] = "";
  EXPECT_EQ(table()->unique_id(id.data(), why), 0) << why;
  return id;
}

inline SluiceNcclGroup* create(const Id& id, int rank, int ranks) {
  char why[sluice_cuda_why] = "";
  SluiceNcclGroup* const group = table()->create(rank, id.data(), rank, ranks, why);
  EXPECT_TRUE(group) << why;
  return group;
}

inline SluiceNcclState state_of(SluiceNcclGroup* group) {
  char why[sluice_cuda_why] = "";
  return table()->advance(group, why);
}
inline std::string reason_of(SluiceNcclGroup* group) {
  char why[sluice_cuda_why] = "";
  (void)table()->advance(group, why);
  return why;
}

// Advances all until each is in a state.
inline void await_state(const Groups& groups, SluiceNcclState state) {
  for (bool is_done = false; !is_done; std::this_thread::yield()) {
    is_done = true;
    for (SluiceNcclGroup* const each : groups) is_done = (state_of(each) == state) && is_done;
  }
}

// Advances it until it is in none of these states.
inline SluiceNcclState leave_state(SluiceNcclGroup* group, SluiceNcclState state) {
  SluiceNcclState now = state;
  while ((now = state_of(group)) == state) std::this_thread::yield();
  return now;
}

inline Groups make_groups(int ranks) {
  const Id id = fresh_id();
  Groups groups;
  for (int rank = 0; rank < ranks; ++rank) groups.push_back(create(id, rank, ranks));
  return groups;
}
inline Groups connect(int ranks) {
  const Groups groups = make_groups(ranks);
  await_state(groups, sluice_nccl_ready);
  return groups;
}

inline void forget_all(const Groups& groups) {
  await_state(groups, sluice_nccl_ended);
  for (SluiceNcclGroup* const each : groups) table()->forget(each);
}
inline void end_all(const Groups& groups) {
  for (SluiceNcclGroup* const each : groups) table()->end(each);
  forget_all(groups);
}
inline void abort_all(const Groups& groups) {
  for (SluiceNcclGroup* const each : groups) table()->abort(each);
  forget_all(groups);
}

// At the end nothing may be left.
class NcclModule : public testing::Test {
 protected:
  void SetUp() override {
    setenv("STANDIN_DEVICES", std::to_string(most_ranks).c_str(), 1);
    char why[sluice_cuda_why] = "";
    const SluiceCudaSettings settings{
        .pinned = 0, .scratch = 0, .blocking_streams = 0, .sync_contexts = 1};
    SluiceNcclLibrary about{};
    ASSERT_TRUE(standin_driver()) << dlerror();
    const std::string library = built("standin_nccl/libnccl.so.2");
    ASSERT_TRUE(other_driver() || dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) << dlerror();
    ASSERT_EQ(sluice_cuda()->begin(standin_driver(), &settings, why), 0) << why;
    ASSERT_EQ(STANDIN(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(table()->open(&about, why), 0) << why;
  }
  void TearDown() override {
    sluice_cuda()->end();
    if (other_driver()) return;  // which counts nothing
    for (const char* name : {"nccl_communicators", "nccl_running", "streams", "events", "contexts",
                             "retained", "device_memory", "pinned"}) {
      EXPECT_EQ(counter(name), 0) << name;
    }
    EXPECT_EQ(STANDIN(standin_forgive)(), 0);
  }
};

}  // namespace nccl_module
