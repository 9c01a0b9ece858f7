// SPDX-License-Identifier: BSD-3-Clause
//
// Segments and arenas between real processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "transports/shm/segment.h"
#include "transports/shm/shm.h"
#include "transports/shm/single_copy.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

// Runs `body` in a child and gives what it returns.
template <typename Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Segment make(size_t bytes, Segment::Way way) {
  auto made = Segment::create(bytes, way);
  if (!made.ok()) throw std::runtime_error(made.status().message());
  EXPECT_TRUE(made->give_name().ok());
  return std::move(*made);
}

class EachWay : public ::testing::TestWithParam<Segment::Way> {};
INSTANTIATE_TEST_SUITE_P(Segment, EachWay,
                         ::testing::Values(Segment::Way::unnamed, Segment::Way::named));

TEST_P(EachWay, IsTheSameMemoryInAllThatOpenIt) {
  const Segment made = make(8192, GetParam());
  EXPECT_EQ(made.data()[5000], std::byte{0});
  made.data()[5000] = std::byte{42};
  EXPECT_EQ(in_child([&] {
              auto opened = Segment::open(made.handle(), 8192);
              if (!opened.ok()) return 0;
              opened->data()[100] = std::byte{7};
              return static_cast<int>(opened->data()[5000]);
            }),
            42);
  EXPECT_EQ(made.data()[100], std::byte{7});
}

TEST_P(EachWay, IsForItsUserAloneAndOfItsSize) {
  const Segment made = make(4096, GetParam());
  struct stat about {};
  ASSERT_EQ(stat(made.handle().path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  EXPECT_FALSE(Segment::open(made.handle(), 8192).ok()) << "of another size";
  Segment::Handle other = made.handle();
  ++other.inode;
  EXPECT_FALSE(Segment::open(other, 4096).ok()) << "another file";
}

// Whatever the child does with its copy of the object.
TEST_P(EachWay, IsNotForChildren) {
  std::optional<Segment> made(make(4096, GetParam()));
  ASSERT_TRUE(made->sign(0));
  const std::byte* const data = made->data();
  EXPECT_EQ(in_child([&] {
              unsigned char resident = 0;
              const bool unmapped =
                  mincore(const_cast<std::byte*>(data), 4096, &resident) != 0 && errno == ENOMEM;
              made.reset();
              return unmapped ? 1 : 0;
            }),
            1);
  EXPECT_EQ(data[0], std::byte{0});
  EXPECT_EQ(access(made->handle().path().c_str(), F_OK), 0);
  EXPECT_EQ(in_child([&] {
              auto opened = Segment::open(made->handle(), 4096);
              return opened.ok() && opened->lives(0) ? 1 : 0;
            }),
            1);
}

TEST(Segment, LosesItsName) {
  Segment made = make(4096, Segment::Way::named);
  made.remove_name();
  EXPECT_NE(access(made.handle().path().c_str(), F_OK), 0);
  EXPECT_FALSE(Segment::open(made.handle(), 4096).ok());
}

TEST(Segment, WhoeverNamesTheNextRemovesWhatTheDeadLeft) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const auto leave_name = [&] {
    auto made = Segment::create(4096, Segment::Way::named);
    if (!made.ok() || !made->sign(0) || !made->give_name().ok()) return 1;
    const Segment::Handle handle = made->handle();
    const bool told = write(pipe_ends[1], &handle, sizeof(handle)) == ssize_t{sizeof(handle)};
    _exit(told ? 0 : 1);  // as if killed
  };
  ASSERT_EQ(in_child(leave_name), 0);
  Segment::Handle dead;
  ASSERT_EQ(read(pipe_ends[0], &dead, sizeof(dead)), ssize_t{sizeof(dead)});
  EXPECT_EQ(access(dead.path().c_str(), F_OK), 0);
  Segment living = make(4096, Segment::Way::named);
  ASSERT_TRUE(living.sign(0));
  EXPECT_NE(access(dead.path().c_str(), F_OK), 0) << "should be gone";
  EXPECT_EQ(in_child([&] {
              return Segment::create(4096, Segment::Way::named).ok() &&
                             access(living.handle().path().c_str(), F_OK) == 0
                         ? 1
                         : 0;
            }),
            1)
      << "the living keep theirs";
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(Segment, SaysSoWhereThereIsNoRoom) {
  auto made = Segment::create(size_t{1} << 50, Segment::Way::named);
  const Status status = made.ok() ? made->reserve(0, size_t{1} << 50) : made.status();
  EXPECT_FALSE(status.ok());
}

TEST(Segment, TellsTheLivingFromTheDead) {
  auto made = Segment::create(4096, Segment::Way::unnamed);
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(made->lives(3)) << "nobody has signed";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto opened = Segment::open(made->handle(), 4096);
    const char good = opened.ok() && opened->sign(3) ? 1 : 0;
    if (write(ready[1], &good, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char good = 0;
  ASSERT_EQ(read(ready[0], &good, 1), 1);
  EXPECT_EQ(good, 1);
  EXPECT_TRUE(made->lives(3));
  EXPECT_FALSE(made->lives(2));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(made->lives(3));
  close(ready[0]);
  close(ready[1]);
}

// Rank 3, in a process of its own that does `more` and tells when that is done; it lives until it
// is killed, or says so itself by false.
template <typename More>
pid_t live_as_three(const Segment& made, const More& more) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto opened = Segment::open(made.handle(), made.size());
    const bool good = opened.ok() && opened->sign(3), stays = good && more(*opened);
    if (write(ready[1], &good, 1) != 1 || !stays) _exit(0);
    for (;;) pause();
  }
  bool good = false;
  EXPECT_EQ(read(ready[0], &good, 1), 1);
  EXPECT_TRUE(good);
  close(ready[0]);
  close(ready[1]);
  return child;
}

// Of the same file.
TEST_P(EachWay, WhoClosesOtherDescriptorsLives) {
  const Segment made = make(4096, GetParam());
  const pid_t child = live_as_three(made, [&](const Segment& opened) {
    { const auto again = Segment::open(made.handle(), 4096); }
    return close(open(opened.handle().path().c_str(), O_RDONLY)) == 0;
  });
  EXPECT_TRUE(made.lives(3));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(made.lives(3));
}

TEST_P(EachWay, ADeathShowsThoughAChildLivesOn) {
  const Segment made = make(4096, GetParam());
  int alive[2];
  ASSERT_EQ(pipe(alive), 0);
  const pid_t child = live_as_three(made, [&](const Segment&) {
    if (fork() > 0) return false;
    char end;
    close(alive[1]);
    _exit(static_cast<int>(read(alive[0], &end, 1)));
  });
  waitpid(child, nullptr, 0);
  const auto until = std::chrono::steady_clock::now() + 1s;
  while (made.lives(3) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_FALSE(made.lives(3));
  close(alive[0]);
  close(alive[1]);
}

// More than that a process's files may not be: to try would end it.
TEST_P(EachWay, KeepsWithinTheLimitOfFiles) {
  const int made = in_child([&] {
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto small = Segment::create(4096, GetParam()), large = Segment::create(4097, GetParam());
    if (!small.ok() || !small->reserve(0, 4096).ok() || small->reserve(4096, 1).ok()) return 1;
    return large.ok() ? 2 : 0;
  });
  EXPECT_EQ(made, 0);
}

class Nobody final : public Patience {
 public:
  bool wait(uint32_t) override {
    std::this_thread::yield();
    return std::chrono::steady_clock::now() < until_;
  }

 private:
  const std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + 20s;
};

const ProcessId first{1, 1}, second{2, 2};
const std::vector<ProcessId> both{first, second};

// Both processes' part: a hundred rounds in which each sees the other's number.
int meet(Rounds& rounds) {
  Nobody patience;
  const uint32_t other = 1 - rounds.rank();
  for (uint64_t i = 0; i < 100; ++i) {
    rounds.begin(7, 1, &patience);
    if (!rounds.open(1, 1)) return 1;
    *rounds.data(rounds.rank(), 1, 1) = static_cast<std::byte>(i + rounds.rank());
    rounds.publish(1, 1);
    if (!rounds.await(other, 1, 1)) return 2;
    if (*rounds.data(other, 1, 1) != static_cast<std::byte>(i + other)) return 3;
    rounds.take(1);
    rounds.end(1);
  }
  return 0;
}

TEST(Shm, TwoProcessesMeetInALease) {
  auto source = make_shm_source(first);
  const auto offer = source->offer(both, false);
  ASSERT_TRUE(offer.ok()) << offer.status().message();
  const pid_t child = fork();
  if (child == 0) {
    auto other = make_shm_source(second);
    auto arena = other->take_up(*offer, both, 1);
    _exit(arena.ok() ? meet((*arena)->rounds()) : 9);
  }
  auto arena = source->take_up(*offer, both, 0);
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(meet((*arena)->rounds()), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE((*arena)->lives(1));
  source->settle(*offer, 0);
}

// One process stands for both here: leases, not memory, are looked at.
TEST(Shm, LeasesAreReusedOnceAllHaveLetGo) {
  auto one = make_shm_source(first), two = make_shm_source(second);
  std::vector<ArenaSource::Offer> offers;
  const auto lease = [&] {
    auto offer = one->offer(both, false);
    EXPECT_TRUE(offer.ok());
    offers.push_back(*offer);
    return std::pair(std::move(*one->take_up(*offer, both, 0)),
                     std::move(*two->take_up(*offer, both, 1)));
  };
  auto a = lease(), b = lease();
  EXPECT_NE(offers[0], offers[1]);
  a.first.reset();
  auto c = lease();
  EXPECT_NE(offers[2], offers[0]) << "the other has not let go";
  a.second.reset();
  auto d = lease();
  EXPECT_EQ(offers[3], offers[0]);
  d.first->rounds().abort("broken");
  d.first.reset();
  d.second.reset();
  auto e = lease();
  EXPECT_NE(offers[4], offers[0]) << "a team broke there";
  for (const auto& offer : offers) one->settle(offer, 0);
}

TEST(Shm, LeasesThatOneCouldNotTakeUpAreReusedToo) {
  auto one = make_shm_source(first);
  const auto offer = one->offer(both, false);
  ASSERT_TRUE(offer.ok());
  { ASSERT_TRUE(one->take_up(*offer, both, 0).ok()); }
  one->settle(*offer, 1);
  EXPECT_EQ(*one->offer(both, false), *offer);
}

// Names are looked through when another segment gets one.
TEST(Shm, WhoRemovesNamesOfTheDeadStaysAlive) {
  int there[2], back[2];
  ASSERT_EQ(pipe(there), 0);
  ASSERT_EQ(pipe(back), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto one = make_shm_source(first);
    const auto offer = one->offer(both, true);
    if (!offer.ok()) _exit(9);
    const auto arena = one->take_up(*offer, both, 0);
    char done;
    const bool told =
        arena.ok() && write(there[1], &*offer, sizeof(*offer)) > 0 && read(back[0], &done, 1) == 1;
    _exit(!told ? 9 : (*arena)->lives(1) ? 1 : 0);
  }
  ArenaSource::Offer offer;
  ASSERT_EQ(read(there[0], &offer, sizeof(offer)), ssize_t{sizeof(offer)});
  auto two = make_shm_source(second);
  const auto arena = two->take_up(offer, both, 1);
  EXPECT_TRUE(arena.ok());
  const std::vector<ProcessId> others{second, {3, 3}};
  const auto another = two->offer(others, true);
  ASSERT_TRUE(another.ok());
  two->settle(*another, 0);
  EXPECT_EQ(write(back[1], "", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 1) << "this process has lost its lock";
  for (const int end : {there[0], there[1], back[0], back[1]}) close(end);
}

TEST(Shm, WhatIsOfferedAgainIsReachedByName) {
  auto one = make_shm_source(first);
  const auto offer = one->offer(both, false), again = one->offer(both, true);
  ASSERT_TRUE(offer.ok());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_NE(*offer, *again);
  const auto reaches = [&] { return make_shm_source(second)->take_up(*again, both, 1).ok(); };
  EXPECT_EQ(in_child(reaches), 1);
  one->settle(*again, 0);
  EXPECT_EQ(in_child(reaches), 0) << "the name is gone";
}

TEST(Shm, LeasesHaveABound) {
  auto one = make_shm_source(first), two = make_shm_source(second);
  std::vector<std::unique_ptr<Arena>> arenas;
  size_t count = 0;
  for (; count < 1000; ++count) {
    const auto offer = one->offer(both, false);
    if (!offer.ok()) break;
    auto mine = one->take_up(*offer, both, 0);
    auto theirs = two->take_up(*offer, both, 1);
    one->settle(*offer, 0);
    if (!mine.ok() || !theirs.ok()) break;
    arenas.push_back(std::move(*mine));
    arenas.push_back(std::move(*theirs));
  }
  EXPECT_GE(count, 200U);
  EXPECT_LT(count, 1000U);
  arenas.clear();
  EXPECT_TRUE(one->offer(both, false).ok()) << "there is room again";
}

TEST(Shm, OffersThatMakeNoSenseAreRefused) {
  ArenaSource::Offer offer{};
  EXPECT_FALSE(make_shm_source(first)->take_up(offer, both, 0).ok());
  const auto good = make_shm_source(second)->offer(both, false);
  EXPECT_FALSE(good.ok() && make_shm_source(first)->take_up(*good, both, 0).ok())
      << "whoever offered it is gone";
}

size_t descriptors() {
  const std::filesystem::directory_iterator begin("/proc/self/fd"), end;
  return static_cast<size_t>(std::distance(begin, end));
}

TEST(Shm, ManySetsOfProcessesLeakNothing) {
  auto one = make_shm_source(first);
  size_t before = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    const std::vector<ProcessId> set{first, {3, i}};
    const auto offer = one->offer(set, false);
    ASSERT_TRUE(offer.ok());
    { ASSERT_TRUE(one->take_up(*offer, set, 0).ok()); }
    one->settle(*offer, 0);
    if (i == 50) before = descriptors();
  }
  EXPECT_EQ(descriptors(), before);
}

// Also where data makes a stop on its way, once and more often.
TEST(SingleCopy, MovesWhatLiesAnyhow) {
  constexpr size_t page = 4096, most = 200000;
  SingleCopy mine(2);
  ASSERT_TRUE(mine.meet(1, mine.introduction()));  // this process plays the other
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
      EXPECT_TRUE(moves_right([&] { return mine.fetch(1, address(from), to, bytes); }))
          << bytes << " bytes, " << shift;
      EXPECT_TRUE(moves_right([&] { return mine.put(1, address(to), from, bytes); }))
          << bytes << " bytes, " << shift;
    }
  }
}

// A parent may read its child's memory everywhere.
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
  Fetcher::Introduction introduction;
  uint64_t address = 0;
  ASSERT_EQ(read(up[0], &introduction, sizeof(introduction)), ssize_t{sizeof(introduction)});
  ASSERT_EQ(read(up[0], &address, sizeof(address)), ssize_t{sizeof(address)});
  ASSERT_TRUE(mine.meet(1, introduction));
  std::vector<std::byte> text(100000);
  EXPECT_TRUE(mine.fetch(1, address, text.data(), text.size()));
  EXPECT_EQ(text[99999], std::byte{'x'});
  EXPECT_FALSE(mine.fetch(1, 0, text.data(), 1)) << "nothing is there";
  introduction.content += 1;
  EXPECT_FALSE(mine.meet(1, introduction)) << "some other process";
  ASSERT_EQ(write(down[1], "", 1), 1);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(mine.fetch(1, address, text.data(), 1)) << "the process is gone";
  for (const int end : {up[0], up[1], down[0], down[1]}) close(end);
}

// Pages of the kernel's that every process has, where copying between processes does not go.
const std::byte* beyond_copying() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("[vvar]")) {
      return reinterpret_cast<const std::byte*>(std::stoull(line, nullptr, 16));
    }
  }
  return nullptr;
}

TEST(SingleCopy, KnowsWhatOthersCantReach) {
  SingleCopy mine(2);
  const std::vector<std::byte> memory(100000);
  EXPECT_TRUE(mine.is_in_reach(memory.data(), memory.size()));
  EXPECT_TRUE(mine.is_in_reach(memory.data() + 1000, 10)) << "from memory";
  EXPECT_TRUE(mine.is_in_reach(nullptr, 0));
  EXPECT_FALSE(mine.is_in_reach(nullptr, 1));
  if (const std::byte* const beyond = beyond_copying()) {
    EXPECT_FALSE(mine.is_in_reach(beyond, 4096));
  }
}

// Where memory may be read and not written, it is no use.
TEST(SingleCopy, MeetsOnlyWhoseMemoryItCanWrite) {
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const word = static_cast<uint64_t*>(page);
  *word = 42;
  SingleCopy mine(2);
  const Fetcher::Introduction self{static_cast<uint64_t>(getpid()),
                                   reinterpret_cast<uintptr_t>(word), 42};
  EXPECT_TRUE(mine.meet(1, self));
  mprotect(page, 4096, PROT_READ);
  EXPECT_FALSE(mine.meet(1, self));
  munmap(page, 4096);
}

TEST(Shm, HostsHaveNumbers) {
  EXPECT_NE(shm_host(), 0U);
  EXPECT_EQ(shm_host(), shm_host());
}

}  // namespace
}  // namespace sluice
