// SPDX-License-Identifier: BSD-3-Clause
//
// Segments between separate processes.
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
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/unit/support/child.h"
#include "transports/shm/segment.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

Segment make(size_t bytes, Segment::Way way) {
  auto made = Segment::create(bytes, way);
  if (!made.ok()) throw std::runtime_error(made.status().message());
  EXPECT_TRUE(made->sign(99));  // otherwise other programs remove a name that nobody signed
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

// A copy of this virtual machine may have a file with the same numbers, but not with this name.
TEST_P(EachWay, IsNotTakenForMemoryOfAnotherHost) {
  const Segment made = make(4096, GetParam());
  Segment::Handle other = made.handle();
  ++other.number;
  EXPECT_FALSE(Segment::open(other, 4096).ok());
}

// Even if the child uses its copy of the object.
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

// A process that could truncate the segment could crash this one.
TEST(Segment, WithoutANameIsRefusedUnlessItsLengthIsSealed) {
  struct Case {
    int seals;
    bool is_good;
  };
  for (const auto& [seals, is_good] :
       {Case{0, false}, Case{F_SEAL_GROW, false}, Case{F_SEAL_SHRINK, true}}) {
    const int file = memfd_create("sluice-0", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(file, 4096), 0);
    ASSERT_EQ(fcntl(file, F_ADD_SEALS, seals), 0);
    struct stat about {};
    ASSERT_EQ(fstat(file, &about), 0);
    const Segment::Handle handle{about.st_dev, about.st_ino, 0, getpid(), file};
    EXPECT_EQ(Segment::open(handle, 4096).ok(), is_good) << "seals " << seals;
    close(file);
  }
}

TEST(Segment, SaysSoWhereThereIsNoRoom) {
  auto made = Segment::create(size_t{1} << 50, Segment::Way::named);
  const Status status = made.ok() ? made->reserve(0, size_t{1} << 50) : made.status();
  EXPECT_FALSE(status.ok());
}

// Also in a process that locks all its memory.
TEST_P(EachWay, TakesNoMemoryBeforeSomeIsReserved) {
  constexpr size_t bytes = size_t{64} << 20;
  constexpr int not_allowed = 77;
  const int taken = in_child([&] {
    if (mlockall(MCL_FUTURE) != 0) return not_allowed;
    const Segment made = make(bytes, GetParam());
    struct stat about {};
    if (stat(made.handle().path().c_str(), &about) != 0) return -1;
    return static_cast<int>(about.st_blocks * 512 >> 20);  // MB
  });
  if (taken == not_allowed) GTEST_SKIP() << "may lock no memory";
  EXPECT_EQ(taken, 0);
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

// Runs rank 3 in a child that calls `more` and reports when it is done. The child lives until it is
// killed, or ends itself if `more` returns false.
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

// Other descriptors of the same file.
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

// The process's limit on file size: exceeding it would end the process (SIGXFSZ).
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

}  // namespace
}  // namespace sluice
