// SPDX-License-Identifier: BSD-3-Clause
//
// The byte ring under an upgraded link: runs of any size, concurrent reader and writer, wrong
// counts.
#include "transports/shm/ring.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

// The bytes in the stream, by position.
std::byte byte_at(uint64_t position) {
  return static_cast<std::byte>(position * 0x9E3779B97F4A7C15 >> 56);
}

class RingTest : public testing::Test {
 protected:
  // Writes the next `bytes` bytes in `runs` runs; returns how many the ring took.
  size_t write(size_t bytes, size_t runs = 1) {
    std::vector<std::byte> memory(bytes);
    for (size_t i = 0; i < bytes; ++i) memory[i] = byte_at(written_ + i);
    const size_t moved = writer_.write(cut(memory, runs));
    written_ += moved;
    return moved;
  }
  // Reads and checks; returns how many bytes came.
  size_t read(size_t bytes, size_t runs = 1) {
    std::vector<std::byte> memory(bytes);
    const size_t moved = reader_.read(cut(memory, runs));
    for (size_t i = 0; i < moved; ++i) {
      if (memory[i] != byte_at(read_ + i)) {
        ADD_FAILURE() << "byte " << read_ + i;
        break;
      }
    }
    read_ += moved;
    return moved;
  }

  static std::vector<iovec> cut(std::vector<std::byte>& memory, size_t runs) {
    std::vector<iovec> cuts;
    for (size_t i = 0; i < runs; ++i) {
      const size_t begin = memory.size() * i / runs, end = memory.size() * (i + 1) / runs;
      cuts.push_back({memory.data() + begin, end - begin});
    }
    return cuts;
  }

  const std::unique_ptr<Ring> ring_ = std::make_unique<Ring>();
  RingWriter writer_{*ring_};
  RingReader reader_{*ring_};
  uint64_t written_ = 0, read_ = 0;
};

TEST_F(RingTest, EmptyGivesNothing) { EXPECT_EQ(read(100), 0U); }

TEST_F(RingTest, FullTakesNothing) {
  EXPECT_EQ(write(Ring::capacity + 1), Ring::capacity);
  EXPECT_EQ(write(1), 0U);
  EXPECT_EQ(read(1), 1U);
  EXPECT_EQ(write(2), 1U);
  EXPECT_EQ(read(2 * Ring::capacity), Ring::capacity);
  EXPECT_EQ(read(1), 0U);
  EXPECT_FALSE(writer_.corrupt() || reader_.corrupt());
}

TEST_F(RingTest, GivesWhatIsThere) {
  EXPECT_EQ(write(100, 3), 100U);
  EXPECT_EQ(read(30), 30U);
  EXPECT_EQ(read(1000, 7), 70U);
}

TEST_F(RingTest, EmptyRunsAreNone) {
  EXPECT_EQ(write(0), 0U);
  EXPECT_EQ(write(2, 8), 2U);
  EXPECT_EQ(read(2, 8), 2U);
}

TEST_F(RingTest, WrapsAnywhere) {
  for (size_t bytes = 1; read_ < 20 * Ring::capacity; bytes = bytes * 5 % 200003 + 1) {
    const size_t moved = write(bytes, bytes % 5 + 1);
    ASSERT_EQ(moved, bytes);
    ASSERT_EQ(read(bytes, bytes % 3 + 1), bytes);
  }
}

TEST_F(RingTest, AnySizesInAnyTurn) {
  const auto seed = static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int turn = 0; turn < 2000; ++turn) {
    const size_t bytes = random() % (random() % 4 == 0 ? 2 * Ring::capacity : 500);
    const size_t runs = random() % 6 + 1;
    const size_t held = written_ - read_;
    if (random() % 2 == 0) {
      ASSERT_EQ(write(bytes, runs), std::min(bytes, Ring::capacity - held));
    } else {
      ASSERT_EQ(read(bytes, runs), std::min(bytes, held));
    }
  }
}

TEST_F(RingTest, ReaderFindsWritersCountCorrupt) {
  write(10);
  read(10);
  for (const uint64_t lie : {uint64_t{9}, uint64_t{11} + Ring::capacity, ~uint64_t{0}}) {
    RingReader reader(*ring_);
    ring_->written = 10;
    std::byte bytes[16];
    const iovec run{bytes, sizeof(bytes)};
    ASSERT_EQ(reader.read({&run, 1}), 10U);
    ring_->written = lie;
    EXPECT_EQ(reader.read({&run, 1}), 0U) << lie;
    EXPECT_TRUE(reader.corrupt()) << lie;
    EXPECT_FALSE(reader.sleeps());
    ring_->written = 12;  // never set correctly again
    EXPECT_EQ(reader.read({&run, 1}), 0U) << lie;
  }
}

TEST_F(RingTest, WriterFindsReadersCountCorrupt) {
  for (const uint64_t lie : {Ring::capacity + 1, ~uint64_t{0}}) {
    const auto ring = std::make_unique<Ring>();
    RingWriter writer(*ring);
    std::vector<std::byte> memory(Ring::capacity);
    const iovec run{memory.data(), memory.size()};
    ASSERT_EQ(writer.write({&run, 1}), Ring::capacity);
    ring->taken = lie;
    EXPECT_EQ(writer.write({&run, 1}), 0U) << lie;
    EXPECT_TRUE(writer.corrupt()) << lie;
    EXPECT_FALSE(writer.sleeps());
  }
}

TEST_F(RingTest, WriterFindsReadersCountGoneBack) {
  write(10);
  read(10);
  ASSERT_EQ(write(Ring::capacity), Ring::capacity);
  ring_->taken = 9;
  EXPECT_EQ(write(1), 0U);
  EXPECT_TRUE(writer_.corrupt());
}

TEST_F(RingTest, WhoSleepsIsWokenOnce) {
  ASSERT_TRUE(reader_.sleeps());
  write(1);
  EXPECT_TRUE(writer_.wakes());
  EXPECT_FALSE(writer_.wakes());
  EXPECT_FALSE(reader_.sleeps()) << "something is there";
  reader_.awake();
  EXPECT_FALSE(writer_.wakes());
  EXPECT_FALSE(writer_.sleeps()) << "there is room";
  write(Ring::capacity);
  ASSERT_TRUE(writer_.sleeps());
  read(1);
  EXPECT_TRUE(reader_.wakes());
  EXPECT_FALSE(reader_.wakes());
}

// A descriptor that wakes a sleeper.
class WakeUp {
 public:
  ~WakeUp() { close(fd_); }
  void send() {
    const uint64_t one = 1;
    EXPECT_EQ(::write(fd_, &one, sizeof(one)), ssize_t{sizeof(one)});
  }
  // False after ten seconds without a wake-up.
  bool wait() {
    pollfd ready{fd_, POLLIN, 0};
    uint64_t count;
    return poll(&ready, 1, 10000) == 1 && ::read(fd_, &count, sizeof(count)) > 0;
  }

 private:
  const int fd_ = eventfd(0, EFD_NONBLOCK);
};

// Both sides sleep whenever they find nothing to do, and only the other side wakes them. A lost
// wake-up shows as a wait that ends by its time limit.
class RingStress : public RingTest, public testing::WithParamInterface<size_t> {
 protected:
  static constexpr std::chrono::milliseconds time{700};

  void send_all() {
    std::mt19937_64 random(1);
    do {
      for (size_t left = random() % GetParam() + 1; left > 0 && good_;) {
        const size_t moved = write(left);
        left -= moved;
        if (moved > 0 && writer_.wakes()) readers_.send();
        if (left > 0 && writer_.sleeps() && !writers_.wait()) good_ = false;
        writer_.awake();
      }
    } while (Clock::now() < end_ && good_);
    stopped_ = true;
    readers_.send();
  }
  void receive_all() {
    std::mt19937_64 random(2);
    while (good_) {
      const bool last = stopped_;
      const size_t moved = read(random() % GetParam() + 1);
      if (moved > 0 && reader_.wakes()) writers_.send();
      if (moved > 0) continue;
      if (last) return;
      if (reader_.sleeps() && !readers_.wait()) good_ = false;
      reader_.awake();
    }
  }

  const Clock::time_point end_ = Clock::now() + time;
  std::atomic<bool> good_{true}, stopped_{false};
  WakeUp writers_, readers_;
};

TEST_P(RingStress, NoWakeUpIsLost) {
  std::thread receiver([this] { receive_all(); });
  send_all();
  receiver.join();
  EXPECT_TRUE(good_);
  EXPECT_GT(written_, 0U);
  EXPECT_EQ(written_, read_);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RingStress, testing::Values(1, 100, 10000, 600000));

}  // namespace
}  // namespace sluice
