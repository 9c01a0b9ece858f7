// SPDX-License-Identifier: BSD-3-Clause
//
// The CUDA module by itself, over the stand-in driver.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/module_rig.h"

namespace test {
namespace {

TEST_F(Module, PinsNoMoreThanItsBoundAndKeepsItForLater) {
  EXPECT_EQ(cuda->reserve(&place_, bound + 1), nullptr);
  void* const large = cuda->reserve(&place_, 960 * kilobyte);
  ASSERT_TRUE(large);
  void* const small = cuda->reserve(&place_, 1);
  ASSERT_TRUE(small);
  EXPECT_EQ(cuda->reserve(&place_, 1), nullptr) << "all is in use";
  cuda->give_back(large);
  const int64_t unpinned = count("cuMemHostUnregister");
  EXPECT_EQ(cuda->reserve(&place_, 70 * kilobyte), large) << "there is no room for a smaller one";
  EXPECT_EQ(cuda->reserve(&place_, 1), nullptr);
  cuda->give_back(large);
  EXPECT_EQ(cuda->reserve(&place_, 900 * kilobyte), large);
  EXPECT_EQ(count("cuMemHostUnregister"), unpinned);
  cuda->give_back(large);
  cuda->give_back(small);
  void* const all = cuda->reserve(&place_, bound);
  EXPECT_TRUE(all) << "others make room";
  EXPECT_EQ(count("pinned"), static_cast<int64_t>(bound));
  EXPECT_LE(count("pinned_most"), static_cast<int64_t>(bound));
  cuda->end();  // (what is in use stays)
  EXPECT_EQ(count("pinned"), static_cast<int64_t>(bound));
  cuda->give_back(all);
}

TEST_F(Module, ServesThreadsAtOnce) {
  constexpr size_t many = 4, bytes = 100 * kilobyte;
  std::vector<std::thread> all;
  for (size_t number = 0; number < many; ++number) {
    void* const device = allocate(bytes);
    all.emplace_back([=, this] {
      char why[sluice_cuda_why] = "";
      std::vector<char> back(bytes);
      for (int i = 0; i < 30; ++i) {
        auto* host = static_cast<char*>(cuda->reserve(&place_, bytes));
        std::vector<char> own(host ? 0 : bytes);
        if (!host) host = own.data();
        std::memset(host, static_cast<int>(number) + i, bytes);
        SluiceCudaStream* const stream = cuda->open(&place_, why);
        ASSERT_TRUE(stream) << why;
        const SluiceCudaRuns to{device, host, 0, 0, 1, bytes};
        const SluiceCudaRuns from{device, back.data(), 0, 0, 1, bytes};
        EXPECT_EQ(cuda->copy(stream, &to, 1, 1, why), 0) << why;
        EXPECT_EQ(cuda->copy(stream, &from, 1, 0, why), 0) << why;
        EXPECT_EQ(cuda->mark(stream, 0, why), 0) << why;
        int reached = 0;
        while ((reached = cuda->reached(stream, 0, why)) == 0) std::this_thread::yield();
        EXPECT_EQ(reached, 1) << why;
        cuda->close(stream, 1);
        EXPECT_EQ(back[bytes - 1], static_cast<char>(static_cast<int>(number) + i));
        if (own.empty()) cuda->give_back(host);
      }
    });
  }
  for (std::thread& each : all) each.join();
  EXPECT_LE(count("pinned_most"), static_cast<int64_t>(bound));
  EXPECT_LE(count("streams"), static_cast<int64_t>(many));
}

// In this thread, from now on.
bool forbid_process_vm_readv() {
  sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(lines), lines};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// A device's memory must not be taken for the host's because the kernel does not tell.
TEST_F(Module, DoesNotGuessWhereMemoryIs) {
  const void* const device = allocate(8);
  ASSERT_TRUE(fail("pointer", "1+"));
  std::thread([&] {
    char why[sluice_cuda_why] = "";
    SluiceCudaPlace place{};
    EXPECT_EQ(cuda->find(&place, &place, why), 0) << "the kernel can read it";
    EXPECT_EQ(cuda->find(device, &place, why), -1) << "the kernel can't";
    ASSERT_TRUE(forbid_process_vm_readv());
    for (const void* address : {device, static_cast<const void*>(&place)}) {
      why[0] = '\0';
      EXPECT_EQ(cuda->find(address, &place, why), -1);
      EXPECT_STREQ(why, "cuPointerGetAttributes: CUDA_ERROR_UNKNOWN 999 (unknown error)");
    }
  }).join();
  ASSERT_TRUE(fail("pointer", "0"));
}

// It is asked again, but not in each call.
TEST_F(Module, RemembersThatTheDriverRefusedToPin) {
  ASSERT_TRUE(fail("host_alloc", "1+"));
  const int64_t before = count("cuMemHostRegister_v2");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(cuda->reserve(&place_, kilobyte), nullptr);
  const int64_t asked = count("cuMemHostRegister_v2") - before;
  EXPECT_GT(asked, 3);
  EXPECT_LT(asked, 20);
  ASSERT_TRUE(fail("host_alloc", "0"));
  void* memory = nullptr;
  for (int i = 0; i < 2000 && !memory; ++i) memory = cuda->reserve(&place_, kilobyte);
  ASSERT_TRUE(memory);
  void* const other = cuda->reserve(&place_, kilobyte);
  EXPECT_TRUE(other) << "at once, after a success";
  cuda->give_back(memory);
  cuda->give_back(other);
}

// The device would go on with the parent's pages if a child shared and the parent then wrote them.
TEST_F(Module, LeavesPinnedMemoryOutOfChildren) {
  auto* const memory = static_cast<char*>(cuda->reserve(&place_, 1));
  ASSERT_TRUE(memory);
  *memory = 1;
  const pid_t child = fork();
  if (child == 0) {
    int ends[2];
    const bool is_there = pipe(ends) == 0 && write(ends[1], memory, 1) == 1;
    _exit(is_there ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  cuda->give_back(memory);
}

}  // namespace
}  // namespace test
