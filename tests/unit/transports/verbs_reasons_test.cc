// SPDX-License-Identifier: BSD-3-Clause
//
// Two ranks that take each other for hosts of their own, and what each is told where they cannot
// use RDMA: an error on both with SLUICE_TRANSPORT=verbs, else a line of the log on both.
#include <string>

#include "src/base/log.h"
#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/tcp_rig.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

struct Side {
  std::string devices;         // SLUICE_VERBS_DEVICES
  size_t ring = 16384;         // SLUICE_VERBS_RING
  bool without_table = false;  // looks for real devices and the module
};

struct Case {
  const char* name;
  Side sides[2];        // rank 0 connects
  size_t lacks;         // the rank that cannot
  std::string because;  // part of its reason
};

class Apart {
 public:
  Apart(const Side (&sides)[2], bool demands) {
    for (const size_t rank : {0, 1}) {
      TcpOptions options;
      options.needs_upgrade = demands;
      const SluiceVerbs* const table = sides[rank].without_table ? nullptr : &fake_verbs::table();
      options.upgrades = {
          make_verbs_upgrades({sides[rank].ring, sides[rank].devices, false, table})};
      endpoints_[rank] = tcp(options)(Ranks::process(rank));
    }
    for (const size_t rank : {0, 1}) {
      AddressBlob blob = address_of(*endpoints_[1 - rank]);
      blob.host = 1 + rank;
      const Peer peer{Ranks::process(1 - rank), blob.encode(), Ranks::label(1 - rank)};
      auto opened = endpoints_[rank]->open({Ranks::process(0), 1}, peer);
      EXPECT_TRUE(opened.ok());
      channels_[rank] = std::move(*opened);
    }
  }

  Channel& channel(size_t rank) { return *channels_[rank]; }

  bool drive(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds()) {
      bool moved = false;
      for (auto& endpoint : endpoints_) moved |= endpoint->progress();
      if (!moved) std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

  // Each sends to the other and receives. False if this hangs.
  bool exchange(Messages& messages, size_t bytes) {
    for (const size_t rank : {0, 1}) {
      add(messages, {calls_, 0, 0, 0}, bytes).fill().send(channel(rank));
      add(messages, {calls_, 0, 0, 0}, bytes).receive(channel(rank));
    }
    ++calls_;
    return drive([&] { return Ranks::all_done(messages); });
  }

 private:
  std::unique_ptr<Endpoint> endpoints_[2];
  std::unique_ptr<Channel> channels_[2];
  uint32_t calls_ = 0;
};

std::vector<Case> cases() {
  const std::string excluded = "device fake0, port 1: excluded by SLUICE_VERBS_DEVICES";
  return {{"ConnectingSideLacksADevice", {{"other"}, {}}, 0, excluded},
          {"AcceptingSideLacksADevice", {{}, {"^fake0"}}, 1, excluded},
          {"ConnectingSideHasNoHardware", {{"", 16384, true}, {}}, 0, "no RDMA device"},
          {"AcceptingSideHasNoHardware", {{}, {"", 16384, true}}, 1, "no RDMA device"},
          {"RingsDiffer", {{"", 4096}, {}}, 1, "ring has another size"}};
}

class Reasons : public testing::TestWithParam<size_t> {
 protected:
  Reasons() : case_(cases()[GetParam()]) { fake_verbs::reset({}); }
  ~Reasons() override { set_log_level(Level::warning); }

  // As the rank says it.
  std::string reason_on(size_t rank) const {
    return rank == case_.lacks ? "on this side: " : "on its side: ";
  }

  const Case case_;
};

TEST_P(Reasons, AreErrorsOnBothSidesIfRdmaIsDemanded) {
  Apart ranks(case_.sides, true);
  std::string why[2];  // messages may pass until both sides know
  for (int i = 0; i < 6; ++i) {
    Messages messages;
    ASSERT_TRUE(ranks.exchange(messages, 1000));
    for (const size_t rank : {0, 1}) {
      Message& received = *messages[2 * rank + 1];
      EXPECT_TRUE(received.ok() || received.code() == Code::unavailable) << received.why();
      if (why[rank].empty()) why[rank] = received.why();
    }
  }
  for (const size_t rank : {0, 1}) {
    const std::string begin = "SLUICE_TRANSPORT=verbs does not allow TCP to rank " +
                              std::to_string(1 - rank) + "; " + reason_on(rank);
    EXPECT_EQ(why[rank].find(begin), 0U) << why[rank];
    EXPECT_NE(why[rank].find(case_.because), std::string::npos) << why[rank];
  }
}

TEST_P(Reasons, AreLoggedOnBothSidesElse) {
  set_log_level(Level::info);
  testing::internal::CaptureStderr();
  {
    Apart ranks(case_.sides, false);
    for (int i = 0; i < 6; ++i) {
      Messages messages;
      ASSERT_TRUE(ranks.exchange(messages, 1000));
      for (auto& message : messages) EXPECT_TRUE(message->ok()) << message->why();
    }
    EXPECT_STREQ(ranks.channel(0).carrier(), "tcp");
    EXPECT_STREQ(ranks.channel(1).carrier(), "tcp");
  }
  const std::string log = testing::internal::GetCapturedStderr();
  for (const size_t rank : {0, 1}) {
    const std::string line =
        "the connection to rank " + std::to_string(1 - rank) + " stays on tcp; " + reason_on(rank);
    const size_t at = log.find(line);
    ASSERT_NE(at, std::string::npos) << log;
    const std::string rest = log.substr(at, log.find('\n', at) - at);
    EXPECT_NE(rest.find(case_.because), std::string::npos) << rest;
    EXPECT_EQ(log.find(line, at + 1), std::string::npos) << "told twice: " << log;
  }
}

INSTANTIATE_TEST_SUITE_P(Sides, Reasons, testing::Range<size_t>(0, 5),
                         [](const auto& info) { return std::string(cases()[info.param].name); });

// Exchanges until the carriers are these. False if that never comes, or a message fails.
bool goes_by(Apart& ranks, const std::string& carrier) {
  for (int i = 0; i < 2000; ++i) {
    const bool there = carrier == ranks.channel(0).carrier();
    if (there && carrier == ranks.channel(1).carrier()) return true;
    Messages messages;
    if (!ranks.exchange(messages, 1000)) return false;
    for (auto& message : messages) {
      if (!message->ok()) return false;
    }
  }
  return false;
}

TEST(ReasonsNot, WhereBothCan) {
  fake_verbs::reset({});
  const Side sides[2]{};
  Apart ranks(sides, true);
  EXPECT_TRUE(goes_by(ranks, "verbs"));
}

// Both can, but what the queues of these ranks write does not arrive.
class TrialLost : public testing::TestWithParam<std::vector<size_t>> {
 protected:
  TrialLost() {
    fake_verbs::Settings settings;
    settings.seed = static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()) + 1;
    settings.lost = GetParam();
    fake_verbs::reset(settings);
  }
  ~TrialLost() override { set_log_level(Level::warning); }

  // Some messages, of which none may fail unless with this reason.
  static std::string exchange_some(Apart& ranks, int times) {
    std::string why;
    for (int i = 0; i < times; ++i) {
      Messages messages;
      EXPECT_TRUE(ranks.exchange(messages, 1000));
      for (auto& message : messages) {
        if (!message->ok() && message->code() == Code::unavailable) why = message->why();
        EXPECT_TRUE(message->ok() || message->code() == Code::unavailable) << message->why();
      }
    }
    return why;
  }

  const Side sides_[2]{};
};

TEST_P(TrialLost, AndTheLinkStaysOnItsSocket) {
  set_log_level(Level::info);
  testing::internal::CaptureStderr();
  {
    Apart ranks(sides_, false);
    EXPECT_EQ(exchange_some(ranks, 50), "");
    EXPECT_EQ(fake_verbs::counts().queues, 2U) << "not decided yet";
    fake_verbs::settings().gives_up = true;
    EXPECT_EQ(exchange_some(ranks, 200), "");
    EXPECT_STREQ(ranks.channel(0).carrier(), "tcp");
    EXPECT_STREQ(ranks.channel(1).carrier(), "tcp");
    EXPECT_EQ(fake_verbs::counts().queues, 0U);
    EXPECT_EQ(fake_verbs::counts().regions, 0U);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  for (const char* peer : {"rank 0", "rank 1"}) {
    const std::string line = std::string("the connection to ") + peer + " stays on tcp; on ";
    const size_t at = log.find(line);
    ASSERT_NE(at, std::string::npos) << log;
    const std::string rest = log.substr(at, log.find('\n', at) - at);
    EXPECT_NE(rest.find("bytes do not cross"), std::string::npos) << rest;
    EXPECT_NE(rest.find("status 12"), std::string::npos) << rest;
    EXPECT_EQ(log.find(line, at + 1), std::string::npos) << "told twice: " << log;
  }
}

TEST_P(TrialLost, IsAnErrorIfRdmaIsDemanded) {
  Apart ranks(sides_, true);
  EXPECT_EQ(exchange_some(ranks, 50), "") << "not decided yet";
  fake_verbs::settings().gives_up = true;
  const std::string why = exchange_some(ranks, 200);
  EXPECT_NE(why.find("SLUICE_TRANSPORT=verbs does not allow TCP to rank"), std::string::npos);
  EXPECT_NE(why.find("bytes do not cross"), std::string::npos) << why;
}

INSTANTIATE_TEST_SUITE_P(Ranks, TrialLost,
                         testing::Values(std::vector<size_t>{0}, std::vector<size_t>{1},
                                         std::vector<size_t>{0, 1}));

TEST(TrialLate, AndTheLinkMovesThen) {
  fake_verbs::reset({});
  const Side sides[2]{};
  Apart ranks(sides, true);
  fake_verbs::hold(true);
  for (int i = 0; i < 50; ++i) {
    Messages messages;
    ASSERT_TRUE(ranks.exchange(messages, 1000));
    for (auto& message : messages) EXPECT_TRUE(message->ok()) << message->why();
  }
  EXPECT_STREQ(ranks.channel(0).carrier(), "tcp");
  EXPECT_STREQ(ranks.channel(1).carrier(), "tcp");
  fake_verbs::hold(false);
  EXPECT_TRUE(goes_by(ranks, "verbs"));
}

}  // namespace
}  // namespace sluice
