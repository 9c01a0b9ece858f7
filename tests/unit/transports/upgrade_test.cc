// SPDX-License-Identifier: BSD-3-Clause
//
// Links that are upgraded to shared memory: when they are, when they stay on sockets, what still
// uses the socket, wake-ups, and death of the peer.
#include "transports/shm/upgrade.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <numeric>
#include <optional>

#include "tests/unit/transports/tcp_played.h"
#include "tests/unit/transports/upgrade_rig.h"
#include "transports/shm/ring.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string carriers(Ranks& ranks, uint32_t team = 1) {
  return ranks.channel(0, 1, team).carrier() + std::string(" ") +
         ranks.channel(1, 0, team).carrier();
}

bool exchange_some(Ranks& ranks, int times = 6) {
  bool good = true;
  for (int i = 0; i < times; ++i) good &= exchange(ranks);
  return good;
}

// The bytes that all sockets of this process have sent so far.
uint64_t bytes_over_sockets() {
  uint64_t bytes = 0;
  for (const int fd : descriptors()) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) bytes += info.tcpi_bytes_sent;
  }
  return bytes;
}

// The addresses at which this process maps ring memory.
std::vector<std::byte*> mappings() {
  std::vector<std::byte*> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:sluice") == std::string::npos) continue;
    found.push_back(reinterpret_cast<std::byte*>(std::stoull(line, nullptr, 16)));
  }
  return found;
}

TEST(Upgrade, IsTakenAfterAFewMessages) {
  Ranks ranks(shm(), 2);
  ASSERT_TRUE(exchange_some(ranks));
  EXPECT_EQ(carriers(ranks), "shm shm");
  const uint64_t before = bytes_over_sockets();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(exchange(ranks, 1, 100000));
  EXPECT_EQ(bytes_over_sockets(), before);
}

TEST(Upgrade, LeavesNothing) {
  const std::set<int> before = descriptors();
  {
    Ranks plain(tcp(), 3);
    ASSERT_TRUE(exchange_some(plain));
    const size_t with_sockets = descriptors().size();
    Ranks ranks(shm(), 3);
    ASSERT_TRUE(exchange_some(ranks));
    ASSERT_EQ(carriers(ranks), "shm shm");
    EXPECT_EQ(descriptors().size() - with_sockets, with_sockets - before.size());
    EXPECT_EQ(mappings().size(), 2U);
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(mappings().size(), 0U);
}

TEST(Upgrade, WhileOfferedNothingIsInherited) {
  const std::set<int> before = descriptors();
  Ranks ranks(shm(), 2);
  Message send({1, 0, 0, 0}, 8), receive({1, 0, 0, 0}, 8), back({1, 0, 0, 0}, 8);
  send.send(ranks.channel(0, 1));
  receive.receive(ranks.channel(1, 0));
  back.receive(ranks.channel(0, 1));
  ASSERT_TRUE(ranks.drive([&] { return receive.done() && mappings().size() == 1; }));
  for (const int fd : descriptors()) {
    EXPECT_TRUE(before.contains(fd) || (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) << fd;
  }
}

// A rank that only sends or only receives also upgrades its link.
TEST(Upgrade, OneWayTrafficTakesItToo) {
  for (const size_t from : {0, 1}) {
    Ranks ranks(shm(), 2);
    for (uint32_t call = 0; call < 100; ++call) {
      Message send({call, 0, 0, 0}, 8), receive({call, 0, 0, 0}, 8);
      send.fill().send(ranks.channel(from, 1 - from));
      receive.receive(ranks.channel(1 - from, from));
      ASSERT_TRUE(ranks.drive([&] { return send.done() && receive.done(); }));
      ASSERT_TRUE(receive.ok() && receive.holds_pattern());
    }
    EXPECT_STREQ(ranks.channel(from, 1 - from).carrier(), "shm") << from;
  }
}

// Frames of all sizes are in flight in both directions when each side leaves the socket.
class ShiftUnderTraffic : public testing::TestWithParam<size_t> {};

TEST_P(ShiftUnderTraffic, NothingIsLostOrSwapped) {
  const auto seed = static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed + GetParam());
  for (int round = 0; round < 30; ++round) {
    TcpOptions options = with_upgrades();
    options.socket_buffer = GetParam();
    Ranks ranks(tcp(options), 2);
    Messages messages;
    std::vector<std::pair<size_t, uint32_t>> order;
    for (uint32_t i = 0; i < 60; ++i) {
      const size_t bytes = random() % (i % 7 == 0 ? 200000 : 300);
      for (const size_t rank : {0, 1}) {
        add(messages, {1, i, static_cast<uint32_t>(rank), 0}, bytes).fill();
        add(messages, {1, i, static_cast<uint32_t>(rank), 0}, bytes);
      }
    }
    // Messages 4i and 4i+2 are sends of ranks 0 and 1; 4i+1 and 4i+3 are their receives.
    std::vector<size_t> turns(messages.size());
    std::iota(turns.begin(), turns.end(), 0);
    std::shuffle(turns.begin(), turns.end(), random);
    for (const size_t turn : turns) {
      const size_t sender = turn % 4 / 2;
      if (turn % 2 == 0) {
        messages[turn]->send(ranks.channel(sender, 1 - sender));
      } else {
        messages[turn]->receive(ranks.channel(1 - sender, sender));
      }
      if (random() % 3 == 0) ranks.at(random() % 2).progress();
    }
    ASSERT_TRUE(ranks.drive(messages));
    for (auto& message : messages) {
      ASSERT_TRUE(message->ok() && message->holds_pattern()) << message->why();
    }
    ASSERT_TRUE(exchange_some(ranks));
    EXPECT_EQ(carriers(ranks), "shm shm");
  }
}

INSTANTIATE_TEST_SUITE_P(Buffers, ShiftUnderTraffic, testing::Values(0, 4096, 65536));

// Offers shared memory as another maker's, of which one step fails.
class Unable final : public UpgradeMaker {
 public:
  enum class Step { make, attach, accept, none };
  explicit Unable(Step fails, uint8_t id = 1) : fails_(fails), id_(id) {}
  uint8_t id() const override { return id_; }
  bool serves(bool same_host) const override { return same_host; }
  bool exposes() const override { return false; }
  Result<Made> make(Conduit& base, size_t choice) override {
    if (fails_ == Step::make) return Status(Code::unavailable, "no");
    return real_->make(base, choice);
  }
  Result<Made> attach(std::span<const std::byte> offer, Conduit& base) override {
    if (fails_ == Step::attach) return Status(Code::unavailable, "no");
    auto made = real_->attach(offer, base);
    if (made.ok() && fails_ == Step::accept) made->offer.resize(max_offer);
    return made;
  }

 private:
  const std::shared_ptr<UpgradeMaker> real_ = make_shm_upgrades();
  const Step fails_;
  const uint8_t id_;
};

using Makers = std::vector<std::shared_ptr<UpgradeMaker>>;

MakeEndpoint with_makers(const Makers (&makers)[2]) {
  return [&, rank = size_t{0}](const ProcessId& self) mutable {
    TcpOptions options;
    options.upgrades = makers[rank++];
    return tcp(options)(self);
  };
}

class OneSideCant : public testing::TestWithParam<int> {};

TEST_P(OneSideCant, AndTheLinkStaysOnItsSocket) {
  Makers makers[2] = {{make_shm_upgrades()}, {make_shm_upgrades()}};
  if (GetParam() == 0) makers[0].clear();
  if (GetParam() == 1) makers[1].clear();
  if (GetParam() == 2) makers[0] = {std::make_shared<Unable>(Unable::Step::make)};
  if (GetParam() == 3) makers[1] = {std::make_shared<Unable>(Unable::Step::attach)};
  if (GetParam() == 4) makers[1] = {std::make_shared<Unable>(Unable::Step::accept)};
  Ranks ranks(with_makers(makers), 2);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(exchange(ranks, 1, 10000));
  EXPECT_EQ(carriers(ranks), "tcp tcp");
  EXPECT_EQ(mappings().size(), 0U);
  EXPECT_GT(bytes_over_sockets(), 400000U);
}

INSTANTIATE_TEST_SUITE_P(Sides, OneSideCant, testing::Range(0, 5));

// Whatever step of the first maker's fails, the second maker's upgrade is taken.
TEST(Upgrade, TheNextMakerIsOffered) {
  using Step = Unable::Step;
  for (const Step fails : {Step::make, Step::attach, Step::accept}) {
    const bool here = fails == Step::make;
    const Makers makers[2] = {
        {std::make_shared<Unable>(here ? fails : Step::none, 9), make_shm_upgrades()},
        {make_shm_upgrades(), std::make_shared<Unable>(here ? Step::none : fails, 9)}};
    Ranks ranks(with_makers(makers), 2);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(exchange(ranks, 1, 10000));
    EXPECT_EQ(carriers(ranks), "shm shm") << static_cast<int>(fails);
    EXPECT_EQ(mappings().size(), 2U);
  }
}

// A forked child uses the sockets' numbers for something else; the parent's links must not change.
TEST(Upgrade, AChildHasNoSockets) {
  const std::set<int> before = descriptors();
  Ranks ranks(shm(), 2);
  ASSERT_TRUE(exchange_some(ranks));
  const pid_t child = fork();
  if (child == 0) {
    int sockets = 0;
    struct stat about {};
    for (const int fd : descriptors()) {
      sockets += !before.contains(fd) && fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
    }
    _exit(sockets);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(exchange_some(ranks));
}

// The peer can write to the shared memory, so counts found there must be checked.
TEST(Upgrade, ACountThatLiesEndsTheLink) {
  Ranks ranks(shm(), 2);
  ASSERT_TRUE(exchange_some(ranks));
  ASSERT_EQ(carriers(ranks), "shm shm");
  Message receive({9, 0, 0, 0}, 8);
  receive.receive(ranks.channel(1, 0));
  auto* const first = reinterpret_cast<Ring*>(mappings().at(0));
  ASSERT_GT(first->written.load(), 0U);
  first->written = ~uint64_t{0};
  ASSERT_TRUE(ranks.drive([&] { return receive.done(); }));
  EXPECT_EQ(receive.code(), Code::peer_lost);
}

// An endpoint that may upgrade links, and a simulated peer.
class UpgradePlayed : public TcpPlayed {
 protected:
  UpgradePlayed() : TcpPlayed(with_upgrades()) {}

  void offer(Stranger& peer, const std::vector<std::byte>& words) {
    std::vector<std::byte> text{std::byte{1}};
    text.insert(text.end(), words.begin(), words.end());
    offer_text(peer, text);
  }
  void offer_text(Stranger& peer, const std::vector<std::byte>& text) {
    say(peer, {FrameType::offer, false, static_cast<uint32_t>(text.size())});
    peer.say(text.data(), text.size());
  }
  // Reads the next message, with all that comes before it.
  void let_read(Stranger& peer, uint32_t ordinal) {
    Message message({1, ordinal, 0, 0}, 0);
    say(peer, data(0, ordinal));
    message.receive(*channel_);
    EXPECT_TRUE(done_in(message, seconds(5)));
    status_ = message.operation.status;
  }
  // An offer made by this process with the real implementation.
  UpgradeMaker::Made made() {
    auto made = make_shm_upgrades()->make(base_, 0);
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }

  const Socket none_;
  SocketConduit base_{none_};

  Status status_;
};

TEST_F(UpgradePlayed, OffersThatMakeNoSenseAreDeclined) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  auto real = made();
  std::vector<std::vector<std::byte>> offers{{}, {std::byte{1}}};
  offers.push_back(real.offer);
  offers.back()[8] ^= std::byte{1};  // another inode
  offers.push_back(real.offer);
  offers.back().push_back(std::byte{0});
  offers.emplace_back(size_t{5000}, std::byte{7});
  offers.push_back(real.offer);
  offers.back()[16] = std::byte{1};  // a name
  offers.push_back(real.offer);
  offers.back()[31] ^= std::byte{1};  // another descriptor
  uint32_t ordinal = 1;
  for (const auto& words : offers) {
    offer(peer, words);
    let_read(peer, ordinal++);
    EXPECT_TRUE(status_.ok()) << status_.message();
    EXPECT_EQ(hear(peer).type, FrameType::decline) << ordinal;
  }
  for (const auto& text : {std::vector<std::byte>{}, {std::byte{99}}, {std::byte{0}}}) {
    offer_text(peer, text);
    let_read(peer, ordinal++);
    EXPECT_EQ(hear(peer).type, FrameType::decline) << ordinal;
  }
  EXPECT_EQ(mappings().size(), 1U);
}

TEST_F(UpgradePlayed, ATrueOfferIsTaken) {
  Stranger peer(blob_.entries[0]);
  greet(peer);
  auto real = made();
  offer(peer, real.offer);
  let_read(peer, 1);
  EXPECT_EQ(hear(peer).type, FrameType::accept);
  EXPECT_EQ(mappings().size(), 2U);
  say(peer, {FrameType::shift});
  real.upgrade->take_base();
  std::array<std::byte, Frame::bytes> bytes{};
  data(0, 7).encode(bytes.data());
  const iovec run{bytes.data(), bytes.size()};
  EXPECT_EQ(real.upgrade->write({&run, 1}).bytes, bytes.size());
  Message message({1, 7, 0, 0}, 0);
  message.receive(*channel_);
  EXPECT_TRUE(done_in(message, seconds(5)));
  EXPECT_TRUE(message.ok());
  EXPECT_EQ(hear(peer).type, FrameType::shift);
}

// Frames of a peer that has not proved that it knows the key are not processed.
TEST_F(UpgradePlayed, AStrangersOfferIsNotLookedAt) {
  Stranger peer(blob_.entries[0]);
  auto real = made();
  Greeting hello = greeting();
  hello.key = {};
  peer.say(hello);
  Message message({1, 0, 0, 0}, 0);
  message.receive(*channel_);
  progress_a_while();
  EXPECT_TRUE(peer.sent_away());
  Stranger second(blob_.entries[0]);
  offer(second, real.offer);
  progress_a_while();
  EXPECT_TRUE(second.sent_away());
  EXPECT_EQ(mappings().size(), 1U);
}

}  // namespace
}  // namespace sluice
