// SPDX-License-Identifier: BSD-3-Clause
//
// How a connection over a queue pair ends: the socket's end before the last completions, and the
// device's asynchronous events.
#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/tcp_rig.h"
#include "transports/verbs/pair.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

using Result = Conduit::Moved::Result;

// The socket below, which ends when a test says so.
class Below final : public Conduit {
 public:
  const char* name() const override { return "below"; }
  Moved write(std::span<const iovec>) override { return {Result::nothing}; }
  Moved read(std::span<const iovec>) override { return now; }

  Moved now{Result::nothing};
};

class VerbsEnds : public testing::Test {
 protected:
  static constexpr size_t at_writer = 0, at_reader = 1;  // the queues, in the order they are made

  void join() {
    writer_.reset();
    reader_.reset();
    for (Below& each : below_) each.now = {Result::nothing};
    fake_verbs::reset({});
    fake_verbs::hold(true);
    auto made = makers_[0]->make(below_[0], 0);
    ASSERT_TRUE(made.ok()) << made.status().message();
    writer_ = std::move(made->upgrade);
    auto attached = makers_[1]->attach(made->offer, below_[1]);
    ASSERT_TRUE(attached.ok()) << attached.status().message();
    reader_ = std::move(attached->upgrade);
    ASSERT_TRUE(writer_->accepted(attached->offer).ok());
    got_.clear();
  }

  static std::byte byte_at(size_t at) { return static_cast<std::byte>(at * 37 + 1); }

  // A batch, which the reader's device has, and has acknowledged, but not reported.
  void write_batch(size_t bytes) {
    std::vector<std::byte> data(bytes);
    for (size_t i = 0; i < bytes; ++i) data[i] = byte_at(written_ + i);
    const iovec run{data.data(), bytes};
    ASSERT_EQ(writer_->write({&run, 1}).bytes, bytes);
    written_ += bytes;
    fake_verbs::move_all();
  }

  Conduit::Moved read_some(size_t most) {
    std::vector<std::byte> data(most);
    const iovec run{data.data(), most};
    const Conduit::Moved moved = reader_->read({&run, 1});
    if (moved.result == Result::some)
      got_.insert(got_.end(), data.begin(), data.begin() + moved.bytes);
    return moved;
  }

  bool got_all() const {
    bool right = got_.size() == written_;
    for (size_t i = 0; i < got_.size(); ++i) right &= got_[i] == byte_at(i);
    return right;
  }

  static std::shared_ptr<UpgradeMaker> maker() {
    return make_verbs_upgrades({4096, "", true, &fake_verbs::table()});
  }

  const std::shared_ptr<UpgradeMaker> makers_[2]{maker(), maker()};
  Below below_[2];
  std::unique_ptr<Upgrade> writer_, reader_;
  size_t written_ = 0;
  std::vector<std::byte> got_;
};

// r: a completion is reported to the reader; s: it may read; e: the socket's end is seen.
TEST_F(VerbsEnds, NoByteIsLostInWhateverOrderTheEndIsSeen) {
  constexpr size_t batch = 10, batches = 3;
  int orders = 0;
  for (const bool killed : {false, true}) {
    std::string order = "errrssss";
    do {
      ++orders;
      join();
      written_ = 0;
      for (size_t i = 0; i < batches; ++i) write_batch(batch);
      while (!writer_->delivered()) {
        fake_verbs::move_all();
        (void)fake_verbs::report(at_writer);
      }
      if (killed) writer_.reset();
      const size_t reader = killed ? 0 : at_reader;
      below_[1].now = {killed ? Result::failed : Result::closed, 0, killed ? ECONNRESET : 0};
      Conduit::Moved last{Result::nothing};
      bool is_known_dead = false;
      const auto look = [&] {
        last = read_some(7);
        if (last.result == Result::failed && !std::exchange(is_known_dead, true)) {
          (void)reader_->end();
          last = {Result::nothing};
        }
        if (last.result == Result::some || last.result == Result::nothing) return;
        EXPECT_TRUE(got_all()) << order << ": " << got_.size();
      };
      for (const char each : order) {
        if (each == 'e') reader_->hear();
        if (each == 'r') fake_verbs::report(reader);
        if (each == 's') look();
      }
      int left = 1000;
      while ((last.result == Result::some || last.result == Result::nothing) && --left > 0) {
        fake_verbs::report(reader);
        look();
      }
      ASSERT_GT(left, 0) << order << ": it does not end";
      ASSERT_EQ(last.result, below_[1].now.result) << order;
      ASSERT_TRUE(got_all()) << order;
      EXPECT_EQ(reader_->problem(), "") << order;
    } while (std::ranges::next_permutation(order).found);
  }
  EXPECT_EQ(orders, 2 * 280);
}

// A process that sleeps is woken by what completes after the socket's end.
TEST_F(VerbsEnds, ItDoesNotSleepWhenAllIsReported) {
  join();
  write_batch(10);
  below_[1].now = {Result::closed};
  reader_->hear();
  EXPECT_EQ(read_some(20).result, Result::nothing);
  EXPECT_TRUE(reader_->may_sleep(true, false));
  while (fake_verbs::report(at_reader)) {
  }
  pollfd event{reader_->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 0), 1);
  EXPECT_FALSE(reader_->may_sleep(true, false));
  EXPECT_EQ(read_some(20).bytes, 10U);
  EXPECT_FALSE(reader_->may_sleep(true, false));
  EXPECT_EQ(read_some(20).result, Result::closed);
}

// What the device will never report is not waited for.
TEST_F(VerbsEnds, ALostDeviceReportsNothingAndIsNoHang) {
  join();
  write_batch(10);
  fake_verbs::lose_device();
  below_[1].now = {Result::closed};
  reader_->hear();
  EXPECT_EQ(read_some(20).result, Result::closed);
}

// A failed queue pair reports nothing, whatever else is told of its port.
class VerbsDead : public VerbsEnds, public testing::WithParamInterface<bool> {};

TEST_P(VerbsDead, AFailedQueueBehindADeadPortIsNoHang) {
  join();
  const SluiceVerbsEvent down{SLUICE_VERBS_PORT_DOWN, 1, 0, "down"};
  if (GetParam()) fake_verbs::happen(down);
  fake_verbs::happen({SLUICE_VERBS_QUEUE_FAILED, 0, fake_verbs::number_of(at_reader), "failed"});
  if (!GetParam()) fake_verbs::happen(down);
  below_[1].now = {Result::closed};
  reader_->hear();
  EXPECT_EQ(read_some(20).result, Result::closed);
}

INSTANTIATE_TEST_SUITE_P(Orders, VerbsDead, testing::Bool());

struct Happening {
  const char* name;
  SluiceVerbsEventKind kind;
  const char* says;
};

class VerbsEvents : public VerbsEnds, public testing::WithParamInterface<Happening> {
 protected:
  SluiceVerbsEvent event(size_t queue) const {
    return {static_cast<uint8_t>(GetParam().kind), 1, fake_verbs::number_of(queue), "some text"};
  }
};

TEST_P(VerbsEvents, FailThePairAndAreNamed) {
  join();
  write_batch(10);
  fake_verbs::report(at_reader);
  fake_verbs::happen(event(at_reader));
  reader_->hear();
  EXPECT_EQ(read_some(20).bytes, 10U) << "what came before is read";
  EXPECT_EQ(read_some(20).result, Result::failed);
  EXPECT_FALSE(reader_->may_sleep(true, false));
  for (const char* part : {"fake0", GetParam().says, "some text"}) {
    EXPECT_NE(reader_->problem().find(part), std::string::npos) << reader_->problem();
  }
}

// A new link stays on its socket then, unless only another queue pair has failed.
TEST_P(VerbsEvents, AreRememberedForNewLinks) {
  join();
  fake_verbs::happen(event(at_reader));
  Below below;
  const auto made = makers_[1]->make(below, 0);
  EXPECT_EQ(made.ok(), GetParam().kind == SLUICE_VERBS_QUEUE_FAILED);
}

TEST_P(VerbsEvents, EndOperationsWithTheReason) {
  fake_verbs::reset({});
  TcpOptions options;
  Ranks ranks(
      [&](const ProcessId& self) {
        options.upgrades = {maker()};
        return tcp(options)(self);
      },
      2);
  ASSERT_TRUE(exchange_until(ranks, "verbs"));
  Message message({9, 0, 0, 0}, 8);
  message.receive(ranks.channel(1, 0));
  for (const size_t queue : {0, 1}) fake_verbs::happen(event(queue));
  ASSERT_TRUE(wait_for(ranks.at(1), [&] { return message.done(); }));
  EXPECT_EQ(message.code(), Code::peer_lost);
  EXPECT_NE(message.why().find(GetParam().says), std::string::npos) << message.why();
  EXPECT_NE(message.why().find("rank 0"), std::string::npos) << message.why();
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, VerbsEvents,
    testing::Values(Happening{"QueueFailed", SLUICE_VERBS_QUEUE_FAILED, "the queue pair failed"},
                    Happening{"PortDown", SLUICE_VERBS_PORT_DOWN, "the port is down"},
                    Happening{"DeviceLost", SLUICE_VERBS_DEVICE_LOST, "the device is lost"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(VerbsEnds, EventsOfOthersAndAPortThatCameBackAreNoError) {
  join();
  const uint32_t other = fake_verbs::number_of(at_writer);
  fake_verbs::happen({SLUICE_VERBS_QUEUE_FAILED, 0, other, "other queue"});
  fake_verbs::happen({SLUICE_VERBS_PORT_DOWN, 2, 0, "other port"});
  fake_verbs::happen({SLUICE_VERBS_PORT_DOWN, 1, 0, "down"});
  fake_verbs::happen({SLUICE_VERBS_PORT_UP, 1, 0, "up"});
  fake_verbs::happen({SLUICE_VERBS_OTHER, 1, 0, "other"});
  reader_->hear();
  EXPECT_EQ(reader_->problem(), "");
  EXPECT_EQ(read_some(20).result, Result::nothing);
}

TEST(VerbsPairStates, EveryEventInEveryStateIsAsExpected) {
  using State = VerbsPair::State;
  struct Row {
    State state, error, silence, stop;
  };
  constexpr Row rows[] = {
      {State::working, State::broken, State::hopeless, State::stopped},
      {State::broken, State::broken, State::hopeless, State::stopped},
      {State::hopeless, State::hopeless, State::hopeless, State::silent},
      {State::stopped, State::stopped, State::silent, State::stopped},
      {State::silent, State::silent, State::silent, State::silent},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(VerbsPair::after(row.state, VerbsPair::Event::error), row.error);
    EXPECT_EQ(VerbsPair::after(row.state, VerbsPair::Event::silence), row.silence);
    EXPECT_EQ(VerbsPair::after(row.state, VerbsPair::Event::stop), row.stop);
  }
}

}  // namespace
}  // namespace sluice
