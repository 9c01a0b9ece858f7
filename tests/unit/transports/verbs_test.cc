// SPDX-License-Identifier: BSD-3-Clause
//
// Queue pairs over a network that is late, and everything that can go wrong with them.
#include <poll.h>

#include <cerrno>
#include <numeric>
#include <string>

#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/tcp_rig.h"
#include "transports/verbs/pair.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

using fake_verbs::counts;
using fake_verbs::Settings;

class Verbs : public testing::Test {
 protected:
  Verbs()
      : seed_(static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()) + 1),
        random_(seed_) {}
  ~Verbs() override {
    const auto now = counts();
    EXPECT_EQ(now.no_receive, 0U);
    EXPECT_EQ(now.overruns, 0U);
    EXPECT_EQ(now.not_allowed, 0U);
    EXPECT_EQ(now.split, 0U);
  }

  void begin(Settings settings = {}) {
    settings.seed = seed_;
    fake_verbs::reset(settings);
  }

  static Result<std::shared_ptr<VerbsDevice>> nearest() {
    auto ports = survey_verbs(fake_verbs::table(), "");
    EXPECT_TRUE(ports.ok());
    return VerbsDevice::open(fake_verbs::table(), ports->at(0));
  }

  // Two sides, connected.
  void join(size_t ring, Settings settings = {}) {
    begin(settings);
    auto device = nearest();
    ASSERT_TRUE(device.ok()) << device.status().message();
    for (auto* side : {&a_, &b_}) {
      auto made = VerbsPair::make(*device, ring);
      ASSERT_TRUE(made.ok()) << made.status().message();
      *side = std::move(*made);
    }
    ASSERT_TRUE(a_->connect(b_->end(), this).ok());
    ASSERT_TRUE(b_->connect(a_->end(), this).ok());
  }

  struct Flow {
    VerbsPair *from, *to;
    size_t bytes, sent = 0, came = 0;
    bool wrong = false;
  };

  static std::byte byte_at(size_t at) { return static_cast<std::byte>(at * 2654435761U >> 11); }

  void send_some(Flow& flow, size_t most) {
    std::vector<std::byte> data(std::min(most, flow.bytes - flow.sent));
    for (size_t i = 0; i < data.size(); ++i) data[i] = byte_at(flow.sent + i);
    const size_t cut = data.empty() ? 0 : random_() % data.size();
    const iovec runs[] = {{data.data(), cut}, {data.data() + cut, data.size() - cut}};
    flow.sent += flow.from->write(runs);
  }

  void receive_some(Flow& flow, size_t most) {
    std::vector<std::byte> data(most);
    const size_t cut = random_() % (most + 1);
    const iovec runs[] = {{data.data(), cut}, {data.data() + cut, most - cut}};
    const size_t got = flow.to->read(runs);
    for (size_t i = 0; i < got; ++i) flow.wrong |= data[i] != byte_at(flow.came + i);
    flow.came += got;
  }

  // Moves random parts until everything has come. False if it stands still.
  bool move_all(std::vector<Flow> flows, size_t most) {
    for (int idle = 0; idle < 20000; ++idle) {
      bool done = true;
      for (Flow& flow : flows) {
        const size_t before = flow.sent + flow.came;
        if (random_() % 3 != 0) send_some(flow, 1 + random_() % most);
        if (random_() % 3 != 0) receive_some(flow, 1 + random_() % most);
        if (flow.sent + flow.came > before) idle = 0;
        if (flow.wrong || flow.from->error() != 0 || flow.to->error() != 0) return false;
        done &= flow.came == flow.bytes;
      }
      if (done) return true;
    }
    return false;
  }

  static bool wait_delivered(VerbsPair& pair) {
    for (int i = 0; i < 100000; ++i) {
      if (pair.delivered()) return true;
    }
    return false;
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  std::unique_ptr<VerbsPair> a_, b_;
};

TEST_F(Verbs, AnySizesInBothDirections) {
  for (const size_t ring : {256, 1000, 4096, 65536}) {
    join(ring);
    const size_t bytes = 30 * ring;
    EXPECT_TRUE(move_all({{a_.get(), b_.get(), bytes}, {b_.get(), a_.get(), bytes}}, ring))
        << "seed " << seed_ << ", ring " << ring;
    EXPECT_TRUE(wait_delivered(*a_));
    EXPECT_TRUE(wait_delivered(*b_));
  }
}

TEST_F(Verbs, OneDirectionLivesOnCreditsAlone) {
  join(256);
  EXPECT_TRUE(move_all({{a_.get(), b_.get(), 20000}}, 7)) << "seed " << seed_;
}

TEST_F(Verbs, ManyBatchesOfOneByte) {
  join(65536);
  EXPECT_TRUE(move_all({{a_.get(), b_.get(), 3000}, {b_.get(), a_.get(), 3000}}, 1))
      << "seed " << seed_;
}

TEST_F(Verbs, LongWritesAreSplit) {
  Settings settings;
  settings.max_message = 7;
  join(4096, settings);
  EXPECT_TRUE(move_all({{a_.get(), b_.get(), 20000}, {b_.get(), a_.get(), 20000}}, 3000))
      << "seed " << seed_;
}

TEST_F(Verbs, WithoutAReaderTheWriterStopsAtTheRing) {
  join(1024);
  Flow flow{a_.get(), b_.get(), 100000};
  for (int i = 0; i < 1000; ++i) send_some(flow, 1000);
  EXPECT_EQ(flow.sent, 1024U);
  for (int i = 0; i < 1000; ++i) receive_some(flow, 100);
  EXPECT_EQ(flow.came, 1024U);
  EXPECT_FALSE(flow.wrong);
  Flow bytewise{b_.get(), a_.get(), 100000};
  for (int i = 0; i < 1000; ++i) send_some(bytewise, 1);
  EXPECT_EQ(bytewise.sent, size_t{VerbsPair::max_batches});
}

TEST_F(Verbs, FewWritesAreSignalled) {
  join(65536);
  ASSERT_TRUE(move_all({{a_.get(), b_.get(), 2000}, {b_.get(), a_.get(), 2000}}, 1));
  const auto now = counts();
  EXPECT_LE(now.signalled * 16, now.writes);
  EXPECT_GE(now.inlined, 4000U);
}

// What a message costs when two sides send it to and fro. Nothing is moved but between their turns,
// so that no number depends on time.
TEST_F(Verbs, WhatAMessageCosts) {
  struct Cost {
    size_t bytes;
    int turns;  // messages, in both directions together
    uint64_t writes, signalled, immediates;
  };
  // 8 B, 8 KB: a write each, whose immediate has the credit for the answer. 1 MB: 64 batches, each
  // signalled, and the reader gives a credit for each of 16 full rings; one of 16 is signalled.
  const Cost costs[] = {{8, 1600, 1600, 100, 1600},
                        {8 << 10, 1600, 1600, 800, 1600},
                        {1 << 20, 16, 16 * 80, 16 * 65, 16 * 80}};
  for (const Cost& cost : costs) {
    join(64 << 10);
    fake_verbs::hold(true);
    const auto before = counts();
    for (int turn = 0; turn < cost.turns; ++turn) {
      VerbsPair* const sides[] = {a_.get(), b_.get()};
      Flow flow{sides[turn % 2], sides[1 - turn % 2], cost.bytes};
      for (int idle = 0; flow.came < flow.bytes && idle < 1000; ++idle) {
        send_some(flow, flow.bytes);
        fake_verbs::step(500);
        receive_some(flow, flow.bytes);
        fake_verbs::step(500);
      }
      ASSERT_EQ(flow.came, cost.bytes);
      EXPECT_FALSE(flow.wrong);
    }
    a_->poll();
    b_->poll();
    const auto now = counts();
    EXPECT_EQ(now.bytes - before.bytes, cost.bytes * static_cast<size_t>(cost.turns));
    EXPECT_EQ(now.writes - before.writes, cost.writes) << cost.bytes;
    EXPECT_EQ(now.signalled - before.signalled, cost.signalled) << cost.bytes;
    EXPECT_EQ(now.completions - before.completions, cost.signalled + cost.immediates) << cost.bytes;
  }
}

TEST_F(Verbs, NothingIsDeliveredBeforeItCompletes) {
  join(4096);
  fake_verbs::hold(true);
  Flow flow{a_.get(), b_.get(), 100};
  send_some(flow, 100);
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(a_->delivered());
  fake_verbs::hold(false);
  EXPECT_TRUE(wait_delivered(*a_));
}

TEST_F(Verbs, EveryErrorBreaksThePairAndLeavesWhatCame) {
  for (int status = 1; status <= fake_verbs::last_status; ++status) {
    join(4096);
    Flow flow{b_.get(), a_.get(), 50};
    send_some(flow, 50);
    ASSERT_TRUE(wait_delivered(*b_));
    for (int i = 0; i < 1000; ++i) fake_verbs::step(1);
    fake_verbs::fail_next(status);
    Flow failing{a_.get(), b_.get(), 100000};
    for (int i = 0; i < 1000 && a_->error() == 0; ++i) send_some(failing, 100);
    EXPECT_EQ(a_->error(), ECONNRESET);
    EXPECT_NE(a_->failure().find("fake0"), std::string::npos);
    EXPECT_NE(a_->failure().find("status " + std::to_string(status)), std::string::npos)
        << a_->failure();
    receive_some(flow, 100);
    EXPECT_EQ(flow.came, 50U);
    EXPECT_FALSE(flow.wrong);
    EXPECT_TRUE(a_->delivered());
    EXPECT_FALSE(a_->sleeps(true, true));
  }
}

TEST_F(Verbs, ImpossibleImmediatesAreErrors) {
  for (const uint32_t immediate : {5000U, 1U << 20}) {
    join(4096);
    fake_verbs::forge(immediate);
    a_->poll();
    EXPECT_EQ(a_->error(), EPROTO) << immediate;
    EXPECT_EQ(a_->readable(), 0U);
  }
}

TEST_F(Verbs, ASleeperIsWokenByEvents) {
  for (const bool doubled : {false, true}) {
    Settings settings;
    settings.double_events = doubled;
    join(4096, settings);
    fake_verbs::hold(true);
    ASSERT_TRUE(b_->sleeps(true, false));
    pollfd event{b_->descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&event, 1, 0), 0);
    Flow flow{a_.get(), b_.get(), 10};
    send_some(flow, 10);
    fake_verbs::step(1000);
    EXPECT_EQ(poll(&event, 1, 0), 1);
    b_->awake();
    EXPECT_FALSE(b_->sleeps(true, false)) << "there is something to read";
    while (flow.came < 10) receive_some(flow, 10);
    ASSERT_TRUE(b_->sleeps(true, false));
    EXPECT_EQ(poll(&event, 1, 0), 0) << "an old event";
  }
}

// To arm is a system call on some devices. What a completion has disarmed is armed again, although
// nothing has come to read, because its event may have been taken.
TEST_F(Verbs, ASleeperArmsAgainOnlyAfterACompletion) {
  join(4096);
  fake_verbs::hold(true);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(b_->sleeps(true, false));
  EXPECT_EQ(counts().arms, 1U);
  for (int i = 0; i < 16; ++i) {
    Flow own{b_.get(), a_.get(), 1};
    send_some(own, 1);
  }
  fake_verbs::step(1000);
  b_->awake();
  ASSERT_TRUE(b_->sleeps(true, false));
  EXPECT_EQ(counts().arms, 2U);
  Flow flow{a_.get(), b_.get(), 10};
  send_some(flow, 10);
  fake_verbs::step(1000);
  pollfd event{b_->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 0), 1);
}

// One descriptor serves all pairs of a device. What wakes one is not taken by another that goes to
// sleep after it.
TEST_F(Verbs, NoSleeperTakesTheEventOfAnother) {
  join(4096);
  fake_verbs::hold(true);
  ASSERT_EQ(a_->descriptor(), b_->descriptor());
  ASSERT_TRUE(b_->sleeps(true, false));
  Flow flow{a_.get(), b_.get(), 10};
  send_some(flow, 10);
  fake_verbs::step(1000);
  (void)a_->sleeps(true, false);
  pollfd event{b_->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 0), 1);
  a_->awake();
  b_->awake();
  EXPECT_EQ(poll(&event, 1, 0), 0) << "taken once";
  receive_some(flow, 10);
  EXPECT_EQ(flow.came, 10U);
}

TEST_F(Verbs, ALostEventIsSeenAtTheNextLook) {
  Settings settings;
  settings.lose_events = true;
  join(4096, settings);
  fake_verbs::hold(true);
  ASSERT_TRUE(b_->sleeps(true, false));
  Flow flow{a_.get(), b_.get(), 10};
  send_some(flow, 10);
  fake_verbs::step(1000);
  EXPECT_FALSE(b_->sleeps(true, false));
  receive_some(flow, 10);
  EXPECT_EQ(flow.came, 10U);
  fake_verbs::settings().lose_events = false;
  ASSERT_TRUE(b_->sleeps(true, false));
  Flow more{a_.get(), b_.get(), 10};
  send_some(more, 10);
  fake_verbs::step(1000);
  pollfd event{b_->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 0), 1) << "armed again";
}

TEST_F(Verbs, RefusedRegistrationNamesTheLimit) {
  Settings settings;
  settings.refuse_region = ENOMEM;
  begin(settings);
  rlimit before{};
  getrlimit(RLIMIT_MEMLOCK, &before);
  const rlimit low{std::min<rlim_t>(before.rlim_max, 64 << 10), before.rlim_max};
  setrlimit(RLIMIT_MEMLOCK, &low);
  auto device = nearest();
  ASSERT_TRUE(device.ok());
  const auto made = VerbsPair::make(*device, 4096);
  setrlimit(RLIMIT_MEMLOCK, &before);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("ulimit -l"), std::string::npos)
      << made.status().message();
}

TEST_F(Verbs, EndsThatDoNotReachEachOtherAreRefused) {
  join(4096);
  const auto refusal = [&](auto change) {
    VerbsPair::End end = b_->end();
    change(end);
    return a_->connect(end, this).message();
  };
  using End = VerbsPair::End;
  EXPECT_NE(refusal([](End& end) { end.ethernet = 0; }).find("another network"), std::string::npos);
  EXPECT_NE(refusal([](End& end) { end.ring_bytes = 8192; }).find("size"), std::string::npos);
  EXPECT_NE(refusal([](End& end) { end.gid_kind = SLUICE_GID_ROCE_1; }).find("kind"),
            std::string::npos);
  EXPECT_NE(refusal([](End& end) { end.magic = 0; }).find("kind"), std::string::npos);
}

TcpOptions over_verbs() {
  TcpOptions options;
  VerbsOptions verbs;
  verbs.local = true;
  verbs.ring = 16384;
  verbs.table = &fake_verbs::table();
  options.upgrades = {make_verbs_upgrades(verbs)};
  return options;
}

TEST_F(Verbs, LinksMoveToItAndLeaveNothing) {
  begin();
  {
    Ranks ranks(tcp(over_verbs()), 2);
    ASSERT_TRUE(exchange_until(ranks, "verbs")) << "seed " << seed_;
    ASSERT_TRUE(exchange(ranks, 1, 300000));
    EXPECT_EQ(counts().queues, 2U);
  }
  EXPECT_EQ(counts().queues, 0U);
  EXPECT_EQ(counts().regions, 0U);
}

// An opened device has a descriptor for all links together, beside their sockets. (These ranks have
// one maker, thus one device.)
TEST_F(Verbs, LinksShareADescriptor) {
  begin();
  const auto opened = [](const MakeEndpoint& make) {
    const size_t before = descriptors().size();
    Ranks ranks(make, 4);
    for (int i = 0; i < 300; ++i) {
      Messages messages;
      for (size_t from = 0; from < 4; ++from) {
        for (size_t to = 0; to < 4; ++to) {
          if (from == to) continue;
          add(messages, {1, 0, 0, 0}, 10).fill().send(ranks.channel(from, to));
          add(messages, {1, 0, 0, 0}, 10).receive(ranks.channel(to, from));
        }
      }
      EXPECT_TRUE(ranks.drive(messages));
    }
    EXPECT_STREQ(ranks.channel(2, 3).carrier(), counts().queues > 0 ? "verbs" : "tcp");
    return descriptors().size() - before;
  };
  const size_t over_sockets = opened(tcp());
  EXPECT_EQ(opened(tcp(over_verbs())), over_sockets + 1);
}

TEST_F(Verbs, LinksStayOnTheSocketWithoutMemory) {
  Settings settings;
  settings.refuse_region = EPERM;
  begin(settings);
  Ranks ranks(tcp(over_verbs()), 2);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(exchange(ranks));
  EXPECT_STREQ(ranks.channel(0, 1).carrier(), "tcp");
}

TEST_F(Verbs, AnErrorEndsTheLinkAndIsNamed) {
  begin();
  Ranks ranks(tcp(over_verbs()), 2);
  ASSERT_TRUE(exchange_until(ranks, "verbs"));
  fake_verbs::fail_next(12);
  Messages messages;
  add(messages, {2, 0, 0, 0}, 100).fill().send(ranks.channel(0, 1));
  add(messages, {3, 0, 0, 0}, 100).receive(ranks.channel(0, 1));
  ASSERT_TRUE(ranks.drive([&] { return messages[1]->done(); }));
  EXPECT_EQ(messages[1]->code(), Code::peer_lost);
  EXPECT_NE(messages[1]->why().find("status 12"), std::string::npos) << messages[1]->why();
  EXPECT_NE(messages[1]->why().find("rank 1"), std::string::npos) << messages[1]->why();
}

// A process that ends takes its queue pairs along, with what the card has not sent yet.
TEST_F(Verbs, AnAbortIsToldWhenItIsDelivered) {
  begin();
  Ranks ranks(tcp(over_verbs()), 2);
  ASSERT_TRUE(exchange_until(ranks, "verbs"));
  Channel& channel = ranks.channel(0, 1);
  Message receive({2, 0, 0, 0}, 8);
  receive.receive(ranks.channel(1, 0));
  fake_verbs::hold(true);
  channel.abort("disk on fire");
  ranks.drive_a_while();
  EXPECT_FALSE(channel.abort_sent());
  fake_verbs::hold(false);
  EXPECT_TRUE(ranks.drive([&] { return channel.abort_sent() && receive.done(); }));
  EXPECT_EQ(receive.code(), Code::aborted);
}

// A base over which the peer may still send frames.
class Untouched : public Conduit {
 public:
  const char* name() const override { return "untouched"; }
  Moved write(std::span<const iovec>) override { return {Moved::Result::nothing}; }
  Moved read(std::span<const iovec>) override {
    ++reads;
    return {Moved::Result::nothing};
  }
  int reads = 0;
};

// Between this side's SHIFT and the peer's, an ABORT may lie in the socket.
TEST_F(Verbs, AWriteThatFailsLeavesTheBaseAlone) {
  begin();
  Untouched base, other_base;
  const auto makers = over_verbs().upgrades;
  auto made = makers[0]->make(base, 0);
  ASSERT_TRUE(made.ok()) << made.status().message();
  auto attached = makers[0]->attach(made->offer, other_base);
  ASSERT_TRUE(attached.ok()) << attached.status().message();
  Upgrade& upgrade = *made->upgrade;
  ASSERT_TRUE(upgrade.accepted(attached->offer).ok());
  fake_verbs::fail_next(12);
  char byte = 7;
  const iovec run{&byte, 1};
  Conduit::Moved wrote{};
  for (int i = 0; i < 1000 && wrote.result != Conduit::Moved::Result::failed; ++i) {
    wrote = upgrade.write({&run, 1});
  }
  EXPECT_EQ(wrote.result, Conduit::Moved::Result::failed);
  EXPECT_EQ(wrote.error, ECONNRESET);
  EXPECT_EQ(base.reads, 0);
  EXPECT_EQ(upgrade.problem(), "");
  EXPECT_EQ(upgrade.read({&run, 1}).result, Conduit::Moved::Result::failed);
  EXPECT_NE(upgrade.problem().find("status 12"), std::string::npos) << upgrade.problem();
}

}  // namespace
}  // namespace sluice
