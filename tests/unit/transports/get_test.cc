// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that the receiver gets from the sender's memory (transports/link/loans.h), over links in
// shared memory.
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/unit/transports/upgrade_rig.h"
#include "transports/link/loans.h"

namespace sluice {
namespace {

constexpr size_t large = size_t{256} << 10;

// What a test does when a process reads its peer's memory; false: the read fails.
using OnRead = std::function<bool(const Region&)>;

class WatchedMemory final : public AddressedMemory {
 public:
  WatchedMemory(AddressedMemory& real, const OnRead& on_read) : real_(real), on_read_(on_read) {}
  size_t least() const override { return real_.least(); }
  bool read(const Region& from, std::byte* to) override {
    return (!on_read_ || on_read_(from)) && real_.read(from, to);
  }

 private:
  AddressedMemory& real_;
  const OnRead& on_read_;
};

// Shared memory, whose reads of the peer's memory a test sees.
class WatchedUpgrade final : public Upgrade {
 public:
  WatchedUpgrade(std::unique_ptr<Upgrade> real, const OnRead& on_read)
      : real_(std::move(real)), on_read_(on_read) {}
  const char* name() const override { return real_->name(); }
  Status accepted(std::span<const std::byte> answer) override { return real_->accepted(answer); }
  void take_base() override { real_->take_base(); }
  Moved write(std::span<const iovec> runs) override { return real_->write(runs); }
  Moved read(std::span<const iovec> runs) override { return real_->read(runs); }
  std::string problem() const override { return real_->problem(); }
  bool may_sleep(bool reads, bool writes) override { return real_->may_sleep(reads, writes); }
  void awake(bool any) override { real_->awake(any); }
  bool hear() override { return real_->hear(); }
  PeerMemory* memory() override {
    auto* const real = static_cast<AddressedMemory*>(real_->memory());
    if (!real) return nullptr;
    if (!watched_) watched_ = std::make_unique<WatchedMemory>(*real, on_read_);
    return watched_.get();
  }

 private:
  const std::unique_ptr<Upgrade> real_;
  const OnRead& on_read_;
  std::unique_ptr<WatchedMemory> watched_;
};

class WatchedMaker final : public UpgradeMaker {
 public:
  explicit WatchedMaker(const OnRead& on_read) : on_read_(on_read) {}
  uint8_t id() const override { return real_->id(); }
  bool serves(bool same_host) const override { return same_host; }
  bool exposes() const override { return false; }
  Result<Made> make(Conduit& base, size_t choice) override {
    return watched(real_->make(base, choice));
  }
  Result<Made> attach(std::span<const std::byte> offer, Conduit& base) override {
    return watched(real_->attach(offer, base));
  }

 private:
  Result<Made> watched(Result<Made> made) {
    if (made.ok())
      made->upgrade = std::make_unique<WatchedUpgrade>(std::move(made->upgrade), on_read_);
    return made;
  }

  const std::shared_ptr<UpgradeMaker> real_ = make_shm_upgrades();
  const OnRead& on_read_;
};

class Get : public testing::Test {
 protected:
  MakeEndpoint watched(size_t least = 1000) {
    TcpOptions options;
    options.upgrades = {std::make_shared<WatchedMaker>(on_read_)};
    options.get_least = least;
    return tcp(options);
  }
  // Two ranks whose link is in shared memory.
  void meet(const MakeEndpoint& make) {
    ranks_ = std::make_unique<Ranks>(make, 2);
    ASSERT_TRUE(exchange_until(*ranks_, "shm"));
  }
  uint64_t got() { return ranks_->at(0).traffic().got; }
  uint64_t inlined() { return ranks_->at(0).traffic().inlined; }
  Channel& here() { return ranks_->channel(0, 1); }
  Channel& there() { return ranks_->channel(1, 0); }
  void drive_a_while() { ranks_->drive_a_while(); }

  OnRead on_read_;
  std::unique_ptr<Ranks> ranks_;
};

TEST_F(Get, WhateverIsPostedFirst) {
  meet(watched());
  for (const bool receives_first : {false, true}) {
    const uint64_t before = got();
    Message send({2, receives_first, 0, 0}, large), receive({2, receives_first, 0, 0}, large);
    send.fill();
    if (receives_first) receive.receive(there());
    send.send(here());
    drive_a_while();
    if (!receives_first) {
      EXPECT_FALSE(send.done()) << "its memory is not read yet";
      receive.receive(there());
    }
    ASSERT_TRUE(ranks_->drive([&] { return send.ok() && receive.ok(); }));
    EXPECT_TRUE(receive.holds_pattern());
    EXPECT_EQ(got() - before, large);
  }
}

TEST_F(Get, PiecesOnBothSides) {
  meet(watched());
  for (size_t pieces = 1; pieces <= most_regions + 2; ++pieces) {
    const uint64_t before = got();
    const Tag tag{2, static_cast<uint32_t>(pieces), 0, 0};
    Message send(tag, large, pieces, pieces), receive(tag, large, 20 - pieces, 7 * pieces);
    send.fill().send(here());
    receive.receive(there());
    ASSERT_TRUE(ranks_->drive([&] { return send.ok() && receive.ok(); }));
    EXPECT_TRUE(receive.holds_pattern());
    EXPECT_EQ(got() - before, pieces <= most_regions ? large : 0) << pieces;
  }
}

TEST_F(Get, ShortOnesAreSent) {
  meet(watched(1000));
  const uint64_t before = got();
  ASSERT_TRUE(exchange(*ranks_, 2, 999));
  EXPECT_EQ(got(), before);
  ASSERT_TRUE(exchange(*ranks_, 3, 1000));
  EXPECT_EQ(got(), before + 1000);
}

// After a few in a row that cannot be read, nothing more of the call is lent.
TEST_F(Get, WhatCannotBeReadIsSent) {
  meet(watched());
  int reads = 0;
  on_read_ = [&](const Region&) { return ++reads < 0; };
  for (uint32_t i = 0; i < 10; ++i) {
    Message send({2, i, 0, 0}, large), receive({2, i, 0, 0}, large);
    send.fill().send(here());
    receive.receive(there());
    ASSERT_TRUE(ranks_->drive([&] { return send.ok() && receive.ok(); }));
    EXPECT_TRUE(receive.holds_pattern());
  }
  EXPECT_EQ(got(), 0);
  EXPECT_GE(inlined(), 10 * large);
  EXPECT_EQ(reads, 4);
  on_read_ = {};
  Message send({3, 0, 0, 0}, large), receive({3, 0, 0, 0}, large);
  send.fill().send(here());
  receive.receive(there());
  ASSERT_TRUE(ranks_->drive([&] { return send.ok() && receive.ok(); }));
  EXPECT_EQ(got(), large);
}

// One that can be read in between starts the count anew.
TEST_F(Get, SomeThatCannotBeReadDoNotEndIt) {
  meet(watched());
  for (uint32_t i = 0; i < 20; ++i) {
    on_read_ = [&](const Region&) { return i % 4 == 3; };
    Message send({2, i, 0, 0}, large), receive({2, i, 0, 0}, large);
    send.fill().send(here());
    receive.receive(there());
    ASSERT_TRUE(ranks_->drive([&] { return send.ok() && receive.ok(); }));
    EXPECT_TRUE(receive.holds_pattern());
  }
  EXPECT_EQ(got(), 5 * large);
}

TEST_F(Get, AnotherLengthIsAnErrorThatNamesBoth) {
  meet(watched());
  for (const bool receives_first : {false, true}) {
    Message send({2, receives_first, 0, 0}, large), receive({2, receives_first, 0, 0}, large - 8);
    if (receives_first) receive.receive(there());
    send.fill().send(here());
    drive_a_while();
    if (!receives_first) receive.receive(there());
    ASSERT_TRUE(ranks_->drive([&] { return send.done() && receive.done(); }));
    EXPECT_EQ(receive.code(), Code::mismatch);
    EXPECT_EQ(receive.operation.seen_bytes, large);
    EXPECT_TRUE(send.ok());
  }
}

// The sender gives its call up while the receiver copies, and reuses its memory: the receiver must
// not take what it has read for the message. Once the sender's abort comes, its receive ends.
TEST_F(Get, TakenBackWhileItIsRead) {
  meet(watched());
  Message receive({2, 0, 0, 0}, large);
  auto send = std::make_unique<Message>(Tag{2, 0, 0, 0}, large);
  send->fill().send(here());
  bool reading = false;
  on_read_ = [&](const Region& region) {
    if (region.bytes == large && !std::exchange(reading, true)) {
      here().withdraw();
      send.reset();
    }
    return true;
  };
  drive_a_while();
  receive.receive(there());
  drive_a_while();
  EXPECT_FALSE(receive.done());
  here().abort("the sender has given up");
  ASSERT_TRUE(ranks_->drive([&] { return receive.done(); }));
  EXPECT_EQ(receive.code(), Code::aborted);
}

TEST_F(Get, TakenBackBeforeItIsRead) {
  meet(watched());
  Message receive({2, 0, 0, 0}, large);
  {
    Message send({2, 0, 0, 0}, large);
    send.fill().send(here());
    drive_a_while();
  }
  receive.receive(there());
  drive_a_while();
  EXPECT_FALSE(receive.done());
}

// A receiver that gives its call up has nothing in its memory changed afterwards.
TEST_F(Get, AWithdrawnReceiveIsLeftAlone) {
  meet(watched());
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  receive.receive(there());
  there().withdraw();
  send.fill().send(here());
  drive_a_while();
  EXPECT_FALSE(receive.holds_pattern());
  EXPECT_FALSE(send.done());
  there().abort("the receiver has given up");
  ASSERT_TRUE(ranks_->drive([&] { return send.done(); }));
  EXPECT_EQ(send.code(), Code::aborted);
}

// A receiver that has nothing more to do leaves its endpoint alone. So FIN must have left by then,
// although the ring was full of messages that the sender has not read.
TEST_F(Get, AReceiveIsCompleteWhenItsSenderCanKnow) {
  meet(watched(large));
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  send.fill().send(here());
  ranks_->at(0).progress();
  Messages others;
  for (uint32_t i = 1; i < 5; ++i) add(others, {2, i, 0, 0}, 100000).fill().send(there());
  receive.receive(there());
  for (int turn = 0; turn < 100; ++turn) ranks_->at(1).progress();
  EXPECT_TRUE(receive.holds_pattern());
  EXPECT_FALSE(receive.done());
  for (uint32_t i = 1; i < 5; ++i) add(others, {2, i, 0, 0}, 100000).receive(here());
  ASSERT_TRUE(ranks_->drive([&] { return receive.ok(); }));
  for (int turn = 0; turn < 100; ++turn) ranks_->at(0).progress();
  EXPECT_TRUE(send.ok());
  ASSERT_TRUE(ranks_->drive(others));
}

// The same with a failure meanwhile: the receive ends, once.
TEST_F(Get, AReceiveThatIsWithdrawnBeforeItsSenderKnows) {
  meet(watched(large));
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  send.fill().send(here());
  ranks_->at(0).progress();
  Messages others;
  for (uint32_t i = 1; i < 5; ++i) add(others, {2, i, 0, 0}, 100000).fill().send(there());
  receive.receive(there());
  for (int turn = 0; turn < 100; ++turn) ranks_->at(1).progress();
  EXPECT_FALSE(receive.done());
  here().abort("over");
  ASSERT_TRUE(ranks_->drive([&] { return receive.done(); }));
  EXPECT_EQ(receive.code(), Code::aborted);
  there().withdraw();
  drive_a_while();
}

TEST_F(Get, AnAbortEndsWhatIsLent) {
  meet(watched());
  Message send({2, 0, 0, 0}, large);
  send.fill().send(here());
  drive_a_while();
  there().abort("over");
  ASSERT_TRUE(ranks_->drive([&] { return send.done(); }));
  EXPECT_EQ(send.code(), Code::aborted);
}

TEST_F(Get, ThePeersEndEndsWhatIsLent) {
  meet(watched());
  Message send({2, 0, 0, 0}, large);
  send.fill().send(here());
  drive_a_while();
  ranks_->leave(1);
  ASSERT_TRUE(ranks_->drive([&] { return send.done(); }));
  EXPECT_EQ(send.code(), Code::peer_lost);
}

// More loans than there are words: the rest is sent.
TEST_F(Get, MoreThanCanBeLent) {
  meet(watched(1));
  Messages messages;
  const uint32_t count = Loans::most + 100;
  for (uint32_t i = 0; i < count; ++i) add(messages, {2, i, 0, 0}, 100).fill().send(here());
  drive_a_while();
  for (uint32_t i = 0; i < count; ++i) add(messages, {2, i, 0, 0}, 100).receive(there());
  ASSERT_TRUE(ranks_->drive(messages));
  for (auto& message : messages) ASSERT_TRUE(message->ok() && message->holds_pattern());
  EXPECT_GE(got(), 100 * Loans::most);
  EXPECT_GE(inlined(), 100 * 100U);
}

TEST_F(Get, NotWhereTheUserForbidsIt) {
  TcpOptions options;
  options.upgrades = {make_shm_upgrades(false)};
  options.get_least = 1000;
  meet(tcp(options));
  ASSERT_TRUE(exchange(*ranks_, 2, large));
  EXPECT_EQ(got(), 0);
}

TEST(Loans, ValuesAreNeverUsedAgain) {
  Loans loans;
  std::set<uint64_t> seen;
  for (int i = 0; i < 5000; ++i) {
    LoanWord* const word = loans.begin();
    ASSERT_NE(word, nullptr);
    EXPECT_NE(word->load(), 0);
    EXPECT_TRUE(seen.insert(word->load()).second);
    loans.end(word);
    EXPECT_EQ(word->load(), 0);
  }
}

TEST(Loans, WordsAreBounded) {
  Loans loans;
  std::set<LoanWord*> words;
  for (size_t i = 0; i < Loans::most; ++i) words.insert(loans.begin());
  EXPECT_EQ(words.size(), Loans::most);
  EXPECT_EQ(words.count(nullptr), 0);
  EXPECT_EQ(loans.begin(), nullptr);
  loans.end(*words.begin());
  EXPECT_EQ(loans.begin(), *words.begin());
}

std::string text_of(const LentMessage& lent) {
  const auto payload = encode(lent);
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

TEST(Loans, WhatIsNoMessageIsFound) {
  const LentMessage lent{9, 10, 11, 12, {{13, 100, 1}, {14, 200, 2}}};
  const std::string text = text_of(lent);
  const auto read = decode_lent(text, 300);
  ASSERT_TRUE(read);
  EXPECT_EQ(text_of(*read), text);
  for (const size_t bytes : {0, 1, 299, 301}) EXPECT_FALSE(decode_lent(text, bytes)) << bytes;
  for (size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_FALSE(decode_lent(text.substr(0, cut), 300)) << cut;
  }
  EXPECT_FALSE(decode_lent(text + std::string(24, '\0'), 300)) << "a region of no bytes";
  EXPECT_FALSE(decode_lent(text_of({0, 1, 0, 2, {{1, ~uint64_t{0}}, {2, 2}}}), 1)) << "overflows";
  EXPECT_FALSE(decode_lent(text_of({0, 1, 0, 2, std::vector<Region>(most_regions + 1, {1, 1})}),
                           most_regions + 1));
}

}  // namespace
}  // namespace sluice
