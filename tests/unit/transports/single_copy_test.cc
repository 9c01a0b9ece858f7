// SPDX-License-Identifier: BSD-3-Clause
//
// CMA between separate processes: what it can reach, and the errors it reports.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "transports/shm/single_copy.h"

namespace sluice {
namespace {

// Also with a bounce buffer, filled once or several times.
TEST(SingleCopy, MovesWhatLiesAnyhow) {
  constexpr size_t page = 4096, most = 200000;
  SingleCopy mine(2);
  ASSERT_TRUE(mine.probe(1, mine.introduction()));  // this process plays both sides
  std::vector<std::byte> here(most + 3 * page), there(most + 3 * page);
  for (size_t i = 0; i < there.size(); ++i) there[i] = static_cast<std::byte>(i % 251);
  const auto aligned = [&](std::vector<std::byte>& memory) {
    return memory.data() + (page - reinterpret_cast<uintptr_t>(memory.data()) % page);
  };
  for (const size_t shift : {0, 1, 16, 63, 64, 4095}) {
    for (const size_t bytes : {100UL, 3000UL, 65536UL, 65537UL, 200000UL}) {
      std::byte* const to = aligned(here) + shift;
      const std::byte* const from = aligned(there);
      const auto moves_right = [&](auto move) {
        std::ranges::fill(here, std::byte{255});
        return move() && std::equal(from, from + bytes, to) && to[-1] == std::byte{255} &&
               to[bytes] == std::byte{255};
      };
      const auto address = [](const std::byte* at) { return reinterpret_cast<uintptr_t>(at); };
      EXPECT_TRUE(moves_right([&] { return mine.cma_get(1, address(from), to, bytes) == 0; }))
          << bytes << " bytes, " << shift;
      EXPECT_TRUE(moves_right([&] { return mine.put(1, address(to), from, bytes) == 0; }))
          << bytes << " bytes, " << shift;
    }
  }
}

// A parent may read all of its child's memory.
TEST(SingleCopy, ReadsWhatAnotherProcessNames) {
  int up[2], down[2];
  ASSERT_EQ(pipe(up), 0);
  ASSERT_EQ(pipe(down), 0);
  SingleCopy mine(2);
  const pid_t child = fork();
  if (child == 0) {
    SingleCopy theirs(2);
    std::vector<char> text(100000, 'x');
    const auto introduction = theirs.introduction();
    const auto address = reinterpret_cast<uintptr_t>(text.data());
    char done;
    const bool told = write(up[1], &introduction, sizeof(introduction)) > 0 &&
                      write(up[1], &address, sizeof(address)) > 0 && read(down[0], &done, 1) > 0;
    _exit(told ? 0 : 1);
  }
  Cma::Introduction introduction;
  uint64_t address = 0;
  ASSERT_EQ(read(up[0], &introduction, sizeof(introduction)), ssize_t{sizeof(introduction)});
  ASSERT_EQ(read(up[0], &address, sizeof(address)), ssize_t{sizeof(address)});
  ASSERT_TRUE(mine.probe(1, introduction));
  std::vector<std::byte> text(100000);
  EXPECT_EQ(mine.cma_get(1, address, text.data(), text.size()), 0);
  EXPECT_EQ(text[99999], std::byte{'x'});
  EXPECT_EQ(mine.cma_get(1, 0, text.data(), 1), EFAULT) << "nothing is there";
  introduction.content += 1;
  EXPECT_FALSE(mine.probe(1, introduction)) << "some other process";
  ASSERT_EQ(write(down[1], "", 1), 1);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(mine.cma_get(1, address, text.data(), 1), ESRCH) << "the process is gone";
  for (const int end : {up[0], up[1], down[0], down[1]}) close(end);
}

// Pages of the kernel that every process maps, but that CMA cannot copy.
const std::byte* beyond_copying() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("[vvar]")) {
      return reinterpret_cast<const std::byte*>(std::stoull(line, nullptr, 16));
    }
  }
  return nullptr;
}

constexpr size_t page = 4096;

// Memory of some pages, of which one may be unreadable.
class Pages {
 public:
  explicit Pages(size_t count)
      : bytes_(count * page),
        data_(static_cast<std::byte*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (data_ == MAP_FAILED) throw std::runtime_error("no pages");
  }
  ~Pages() { munmap(data_, bytes_); }
  std::byte* data() const { return data_; }
  void make_hole(size_t at) const { mprotect(data_ + at * page, page, PROT_NONE); }

 private:
  const size_t bytes_;
  std::byte* const data_;
};

// By both ways of checking.
TEST(SingleCopy, KnowsWhatOthersCantReach) {
  for (const bool populates : {true, false}) {
    SingleCopy mine(2, populates);
    const std::vector<std::byte> memory(1000000);
    EXPECT_TRUE(mine.is_in_reach(memory.data(), memory.size()));
    EXPECT_TRUE(mine.is_in_reach(memory.data() + 1000, 10)) << "from memory";
    EXPECT_TRUE(mine.is_in_reach(nullptr, 0));
    EXPECT_FALSE(mine.is_in_reach(nullptr, 1));
    if (const std::byte* const beyond = beyond_copying()) {
      EXPECT_FALSE(mine.is_in_reach(beyond, page));
    }
  }
}

// For any place of the hole, and any page offset of the buffer's ends.
TEST(SingleCopy, ABufferWithAHoleIsOutOfReach) {
  constexpr size_t pages = 200;
  for (const bool populates : {true, false}) {
    for (const size_t hole : {0, 1, 127, 128, 198, 199}) {
      for (const size_t shift : {1, 4095}) {
        const Pages memory(pages);
        const std::byte* const begin = memory.data() + shift;
        const size_t bytes = (pages - 1) * page - shift + 1;  // ends in the last page
        EXPECT_TRUE(SingleCopy(2, populates).is_in_reach(begin, bytes));
        memory.make_hole(hole);
        EXPECT_FALSE(SingleCopy(2, populates).is_in_reach(begin, bytes)) << hole << ", " << shift;
      }
    }
  }
}

uint32_t unprotected = 0;  // pages

void unprotect(int, siginfo_t* info, void*) {
  auto* const at = static_cast<std::byte*>(info->si_addr);
  ++unprotected;
  mprotect(at - reinterpret_cast<uintptr_t>(at) % page, page, PROT_READ | PROT_WRITE);
}

// The program's handler must see each page that is written, and no other.
TEST(SingleCopy, FetchesIntoMemoryThatAHandlerUnprotects) {
  constexpr size_t pages = 40, bytes = (pages - 4) * page;
  SingleCopy mine(2);
  ASSERT_TRUE(mine.probe(1, mine.introduction()));  // this process plays both sides
  struct sigaction handler = {}, before = {};
  handler.sa_sigaction = unprotect;
  handler.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGSEGV, &handler, &before), 0);
  const Pages here(pages), there(pages);
  std::fill_n(there.data(), pages * page, std::byte{7});
  for (const size_t shift : {0, 16, 3000}) {
    std::byte* const to = here.data() + page + shift;
    std::fill_n(here.data(), pages * page, std::byte{0});
    mprotect(here.data(), pages * page, PROT_READ);
    unprotected = 0;
    EXPECT_EQ(mine.cma_get(1, reinterpret_cast<uintptr_t>(there.data()), to, bytes), 0) << shift;
    EXPECT_EQ(unprotected, bytes / page + (shift == 0 ? 0 : 1)) << shift;
    EXPECT_TRUE(std::all_of(to, to + bytes, [](std::byte each) { return each == std::byte{7}; }));
    EXPECT_EQ(to[-1], std::byte{0});
    EXPECT_EQ(to[bytes], std::byte{0});
    mprotect(here.data(), pages * page, PROT_READ | PROT_WRITE);
  }
  sigaction(SIGSEGV, &before, nullptr);
}

// Also with a bounce buffer: the other end lies a little further into its page.
TEST(SingleCopy, APartialMoveIsAnError) {
  constexpr size_t pages = 64, hole = 40, bytes = (pages - 1) * page;
  SingleCopy mine(2);
  ASSERT_TRUE(mine.probe(1, mine.introduction()));  // this process plays both sides
  const Pages here(pages), there(pages);
  there.make_hole(hole);
  for (const size_t shift : {0, 16}) {
    for (const size_t begin : {0, 100}) {
      const auto address = reinterpret_cast<uintptr_t>(there.data() + begin);
      EXPECT_EQ(mine.cma_get(1, address, here.data() + begin + shift, bytes), EFAULT) << shift;
      EXPECT_EQ(mine.put(1, address + shift, here.data() + begin, bytes), EFAULT) << shift;
    }
  }
}

// CMA is not used if memory can be read but not written.
TEST(SingleCopy, MeetsOnlyWhoseMemoryItCanWrite) {
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const word = static_cast<uint64_t*>(page);
  *word = 42;
  SingleCopy mine(2);
  const Cma::Introduction self{static_cast<uint64_t>(getpid()), reinterpret_cast<uintptr_t>(word),
                               42};
  EXPECT_TRUE(mine.probe(1, self));
  mprotect(page, 4096, PROT_READ);
  EXPECT_FALSE(mine.probe(1, self));
  munmap(page, 4096);
}

}  // namespace
}  // namespace sluice
