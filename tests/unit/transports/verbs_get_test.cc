// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that the receiver's card reads from the sender's memory (transports/verbs/reads.h), over
// a network in this process.
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "tests/unit/transports/breaks.h"
#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/tcp_rig.h"
#include "transports/verbs/program_memory.h"
#include "transports/verbs/reads.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

constexpr size_t large = size_t{64} << 10;

class VerbsGet : public testing::Test {
 protected:
  static MakeEndpoint endpoints(VerbsOptions verbs) {
    verbs.local = true;
    verbs.ring = 16 << 10;
    verbs.table = &fake_verbs::table();
    return [verbs](const ProcessId& self) {
      TcpOptions options;
      options.get_least = verbs.get_least;
      options.upgrades = {make_verbs_upgrades(verbs)};
      return tcp(options)(self);
    };
  }
  // Two ranks whose link goes by the device.
  void meet(size_t least = 1000, size_t pinned = size_t{1} << 30,
            const fake_verbs::Settings& settings = {}) {
    fake_verbs::reset(settings);
    VerbsOptions verbs;
    verbs.get_least = least;
    verbs.pinned = pinned;
    verbs.pairs = pairs_;
    ranks_ = std::make_unique<Ranks>(endpoints(verbs), 2);
    ASSERT_TRUE(exchange_until(*ranks_, "verbs"));
    before_ = got();
  }
  // Of rank 0's messages, since they met.
  uint64_t got_since() { return got() - before_; }
  uint64_t got() { return ranks_->at(0).traffic().got; }
  Channel& here() { return ranks_->channel(0, 1); }
  Channel& there() { return ranks_->channel(1, 0); }
  // True if a message passes from rank 0 to rank 1.
  bool pass(uint32_t call, size_t bytes = large, size_t pieces = 0) {
    Message send({call, 0, 0, 0}, bytes, pieces), receive({call, 0, 0, 0}, bytes);
    send.fill().send(here());
    receive.receive(there());
    return ranks_->drive([&] { return send.done() && receive.done(); }) && send.ok() &&
           receive.ok() && receive.holds_pattern();
  }
  // Its reads have begun, and stand still.
  void begin(Message& send, Message& receive) {
    fake_verbs::set_read_steps(1);
    send.fill().send(here());
    receive.receive(there());
    const uint64_t reads = fake_verbs::counts().reads;
    ASSERT_TRUE(ranks_->drive([&] { return fake_verbs::counts().reads > reads; }));
    ranks_->drive_a_while();
    ASSERT_FALSE(receive.done());
    ASSERT_FALSE(send.done());
  }
  void go_on() { fake_verbs::set_read_steps(-1); }

  std::unique_ptr<Ranks> ranks_;
  size_t pairs_ = 1;
  uint64_t before_ = 0;
};

TEST_F(VerbsGet, NoProcessorCopiesAByte) {
  meet();
  for (const bool receives_first : {false, true}) {
    const auto before = fake_verbs::counts();
    Message send({2, receives_first, 0, 0}, large), receive({2, receives_first, 0, 0}, large);
    send.fill();
    if (receives_first) receive.receive(there());
    send.send(here());
    ranks_->drive_a_while();
    if (!receives_first) {
      EXPECT_FALSE(send.done()) << "its memory is not read yet";
      receive.receive(there());
    }
    ASSERT_TRUE(ranks_->drive([&] { return send.ok() && receive.ok(); }));
    EXPECT_TRUE(receive.holds_pattern());
    const auto after = fake_verbs::counts();
    EXPECT_EQ(after.read_bytes - before.read_bytes, large + sizeof(uint64_t));
    EXPECT_LT(after.bytes - before.bytes, 1000) << "the rings have had RGET and FIN only";
  }
  EXPECT_EQ(got_since(), 2 * large);
  EXPECT_EQ(fake_verbs::counts().not_allowed, 0);
}

TEST_F(VerbsGet, ShortOnesAreSent) {
  meet(1000);
  EXPECT_TRUE(pass(2, 999));
  EXPECT_EQ(got_since(), 0);
  EXPECT_TRUE(pass(3, 1000));
  EXPECT_EQ(got_since(), 1000);
}

// A sender lends as many pieces as a receiver reads.
TEST_F(VerbsGet, PiecesOnBothSides) {
  meet();
  size_t whole = 0;
  for (size_t pieces = 1; pieces <= VerbsReads::most_reads + 2; ++pieces) {
    EXPECT_TRUE(pass(2 + static_cast<uint32_t>(pieces), large, pieces));
    whole += pieces <= VerbsReads::most_reads ? large : 0;
    EXPECT_EQ(got_since(), whole) << pieces;
  }
  Message send({90, 0, 0, 0}, large, 3, 5), receive({90, 0, 0, 0}, large, 4, 6);
  send.fill().send(here());
  receive.receive(there());
  ASSERT_TRUE(ranks_->drive([&] { return send.ok() && receive.ok(); }));
  EXPECT_TRUE(receive.holds_pattern());
  EXPECT_EQ(got_since(), whole + large) << "at most six stretches";
}

TEST_F(VerbsGet, ManyAtOnceInBothDirections) {
  meet(100);
  Messages messages;
  for (uint32_t i = 0; i < 3 * VerbsReads::most_gets; ++i) {
    add(messages, {2, i, 0, 0}, 3000).fill().send(here());
    add(messages, {2, i, 0, 0}, 3000).receive(there());
    add(messages, {2, i, 0, 0}, 3000).fill().send(there());
    add(messages, {2, i, 0, 0}, 3000).receive(here());
  }
  ASSERT_TRUE(ranks_->drive(messages));
  for (auto& each : messages) ASSERT_TRUE(each->ok() && each->holds_pattern());
  EXPECT_GT(got_since(), 0);
  EXPECT_EQ(fake_verbs::counts().overruns, 0);
}

// Memory is registered once for all messages of a call, and not for longer.
TEST_F(VerbsGet, RegistrationsEndWithTheCall) {
  meet();
  ASSERT_TRUE(pass(2));
  const size_t regions = fake_verbs::counts().regions;
  {
    Message send({3, 0, 0, 0}, large), receive({3, 0, 0, 0}, large);
    send.fill().send(here());
    receive.receive(there());
    ASSERT_TRUE(ranks_->drive([&] { return send.ok() && receive.ok(); }));
    EXPECT_EQ(fake_verbs::counts().regions, regions + 2);
  }
  EXPECT_EQ(fake_verbs::counts().regions, regions);
}

// What keeps a message from being read has it sent.

struct Hindrance {
  const char* name;
  size_t pinned = size_t{1} << 30;
  int refuse_program = 0, refuse_read = 0;
  uint8_t reads = 16;
};

class VerbsGetHindered : public VerbsGet, public testing::WithParamInterface<Hindrance> {};

TEST_P(VerbsGetHindered, HasEverythingSent) {
  fake_verbs::Settings settings;
  settings.refuse_program = GetParam().refuse_program;
  settings.refuse_read = GetParam().refuse_read;
  settings.reads = GetParam().reads;
  meet(1000, GetParam().pinned, settings);
  for (uint32_t call = 2; call < 12; ++call) EXPECT_TRUE(pass(call));
  EXPECT_EQ(got_since(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, VerbsGetHindered,
                         testing::Values(Hindrance{"bound", 0},
                                         Hindrance{"registering", 1 << 30, 12},
                                         Hindrance{"posting", 1 << 30, 0, 12},
                                         Hindrance{"device", 1 << 30, 0, 0, 0}),
                         [](const auto& info) { return std::string(info.param.name); });

// A call whose memory is more than may be registered at a time has it sent; later ones are read.
TEST_F(VerbsGet, TheBoundHoldsBackOneCallAlone) {
  meet(1000, 2 * large);
  for (uint32_t call = 2; call < 42; ++call) EXPECT_TRUE(pass(call, 3 * large));
  EXPECT_EQ(got_since(), 0);
  EXPECT_TRUE(pass(50));
  EXPECT_EQ(got_since(), large);
}

// Memory that can't be registered, as read-only files that are mapped, doesn't end it for other
// memory.
TEST_F(VerbsGet, WhatCannotBeRegisteredIsSoonForgotten) {
  meet();
  fake_verbs::settings().refuse_program = EFAULT;
  for (uint32_t call = 2; call < 102; ++call) EXPECT_TRUE(pass(call));
  fake_verbs::settings().refuse_program = 0;
  EXPECT_EQ(got_since(), 0);
  for (uint32_t call = 102; call < 202; ++call) EXPECT_TRUE(pass(call));
  EXPECT_GT(got_since(), 30 * large);
}

// A read that fails breaks the queue pair of reads, on both sides, and not the link.
TEST_F(VerbsGet, AReadThatFailsIsSent) {
  meet();
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  begin(send, receive);
  fake_verbs::fail_next(10);
  go_on();
  ASSERT_TRUE(ranks_->drive([&] { return send.ok() && receive.ok(); }));
  EXPECT_TRUE(receive.holds_pattern());
  const uint64_t reads = fake_verbs::counts().reads;
  for (uint32_t call = 3; call < 8; ++call) EXPECT_TRUE(pass(call));
  Message back({9, 0, 0, 0}, large), got({9, 0, 0, 0}, large);
  back.fill().send(there());
  got.receive(here());
  ASSERT_TRUE(ranks_->drive([&] { return back.ok() && got.ok(); }));
  EXPECT_TRUE(got.holds_pattern());
  EXPECT_EQ(fake_verbs::counts().reads, reads);
}

// Several queue pairs.

// Messages go over them in turns; without one of them they go over the others.
TEST_F(VerbsGet, OverSeveralQueuePairs) {
  pairs_ = 3;
  meet();
  EXPECT_EQ(fake_verbs::counts().queues, 2 * (1 + pairs_));
  Messages sends, receives;
  fake_verbs::set_read_steps(0);
  for (uint32_t i = 0; i < pairs_; ++i) {
    add(sends, {2, i, 0, 0}, large).fill().send(here());
    add(receives, {2, i, 0, 0}, large).receive(there());
  }
  ASSERT_TRUE(ranks_->drive([&] { return fake_verbs::queues_with_reads() == pairs_; }));
  go_on();
  ASSERT_TRUE(ranks_->drive(receives) && ranks_->drive(sends));
  for (auto& each : receives) EXPECT_TRUE(each->ok() && each->holds_pattern());
  EXPECT_EQ(got_since(), pairs_ * large);

  fake_verbs::fail_next_read(10);
  EXPECT_TRUE(pass(3)) << "sent";
  EXPECT_EQ(got_since(), pairs_ * large);
  for (uint32_t call = 4; call < 14; ++call) EXPECT_TRUE(pass(call));
  EXPECT_EQ(got_since(), (pairs_ + 10) * large);
}

// Over the ports of two networks. What one of them loses is sent, and then it is not used again.
TEST_F(VerbsGet, OverSeveralPorts) {
  pairs_ = 2;
  for (const bool loses : {false, true}) {
    fake_verbs::Settings settings;
    settings.devices = {{.name = "fake0"}, {.name = "fake1"}};
    settings.devices[1].gids = fake_verbs::Device::roce(204);
    if (loses) settings.dead = {"fake1"};
    settings.gives_up = true;
    meet(1000, size_t{1} << 30, settings);
    for (uint32_t call = 4; call < 14; ++call) EXPECT_TRUE(pass(call));
    EXPECT_EQ(got_since(), (loses ? 9 : 10) * large);
    EXPECT_EQ(fake_verbs::counts().not_allowed, 0) << "keys of another device";
  }
}

// The two sides need not have as many.
TEST_F(VerbsGet, AsManyAsBothHave) {
  fake_verbs::reset({});
  const auto make = [made = size_t{0}](const ProcessId& self) mutable {
    VerbsOptions verbs;
    verbs.get_least = 1000;
    verbs.pairs = made++ == 0 ? 3 : 2;
    return endpoints(verbs)(self);
  };
  ranks_ = std::make_unique<Ranks>(make, 2);
  ASSERT_TRUE(exchange_until(*ranks_, "verbs"));
  EXPECT_EQ(fake_verbs::counts().queues, 2 * (1 + 2));
  for (uint32_t call = 4; call < 8; ++call) EXPECT_TRUE(pass(call));
  EXPECT_EQ(got(), 4 * large);
}

// Withdrawal of a receive.

TEST_F(VerbsGet, AWithdrawnReceiveIsLeftAlone) {
  meet();
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  begin(send, receive);
  there().withdraw();
  receive.overwrite(std::byte{0x5A});
  go_on();
  ranks_->drive_a_while();
  EXPECT_TRUE(receive.holds_only(std::byte{0x5A}));
  EXPECT_FALSE(send.done());
  there().abort("the receiver has given up");
  ASSERT_TRUE(ranks_->drive([&] { return send.done(); }));
  EXPECT_EQ(send.code(), Code::aborted);
}

// The card is done before it has to be stopped: the link's reads go on.
TEST_F(VerbsGet, AWithdrawalWaitsForTheCard) {
  meet();
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  begin(send, receive);
  go_on();
  there().withdraw();
  receive.overwrite(std::byte{0x5A});
  ranks_->drive_a_while();
  EXPECT_TRUE(receive.holds_only(std::byte{0x5A}));
  Channel& other = ranks_->channel(0, 1, 7);
  Message next({3, 0, 0, 0}, large), got({3, 0, 0, 0}, large);
  next.fill().send(other);
  got.receive(ranks_->channel(1, 0, 7));
  ASSERT_TRUE(ranks_->drive([&] { return next.ok() && got.ok(); }));
  EXPECT_EQ(got_since(), large);
}

// Receives of other teams, whose reads end with the queue pair, are sent; also the peer's, which
// would else wait for half a minute.
TEST_F(VerbsGet, AWithdrawalThatBreaksTheReadsOfOthers) {
  meet();
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  Message other({2, 0, 0, 0}, large), other_got({2, 0, 0, 0}, large);
  Message back({2, 0, 0, 0}, large), back_got({2, 0, 0, 0}, large);
  fake_verbs::set_read_steps(0);
  other.fill().send(ranks_->channel(0, 1, 7));
  other_got.receive(ranks_->channel(1, 0, 7));
  back.fill().send(ranks_->channel(1, 0, 7));
  back_got.receive(ranks_->channel(0, 1, 7));
  send.fill().send(here());
  receive.receive(there());
  const uint64_t reads = fake_verbs::counts().reads;
  ASSERT_TRUE(ranks_->drive([&] { return fake_verbs::counts().reads >= reads + 6; }));
  there().withdraw();
  ASSERT_TRUE(
      ranks_->drive([&] { return other.ok() && other_got.ok() && back.ok() && back_got.ok(); }));
  EXPECT_TRUE(other_got.holds_pattern());
  EXPECT_TRUE(back_got.holds_pattern());
  here().withdraw();
}

// Withdrawal of a send.

TEST_F(VerbsGet, TakenBackWhileItIsRead) {
  meet();
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  begin(send, receive);
  here().withdraw();
  send.overwrite(std::byte{0x5A});
  send.operation.registrations->clear();  // (The memory stays: a card's would, too.)
  go_on();
  ranks_->drive_a_while();
  EXPECT_FALSE(receive.done());
  EXPECT_EQ(fake_verbs::counts().not_allowed, 0) << "what is being read stays registered";
  here().abort("the sender has given up");
  ASSERT_TRUE(ranks_->drive([&] { return receive.done(); }));
  EXPECT_EQ(receive.code(), Code::aborted);
  Message next({3, 0, 0, 0}, large), got({3, 0, 0, 0}, large);
  next.fill().send(ranks_->channel(0, 1, 7));
  got.receive(ranks_->channel(1, 0, 7));
  ASSERT_TRUE(ranks_->drive([&] { return next.ok() && got.ok(); }));
  EXPECT_EQ(got_since(), large) << "the reads of the link go on";
}

TEST_F(VerbsGet, AnAbortStopsWhatIsRead) {
  meet();
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  begin(send, receive);
  here().abort("over");
  ASSERT_TRUE(ranks_->drive([&] { return receive.done(); }));
  EXPECT_EQ(receive.code(), Code::aborted);
  receive.overwrite(std::byte{0x5A});
  go_on();
  ranks_->drive_a_while();
  EXPECT_TRUE(receive.holds_only(std::byte{0x5A}));
  here().withdraw();
}

TEST_F(VerbsGet, ThePeersEndStopsWhatIsRead) {
  for (const size_t leaves : {0, 1}) {
    meet();
    auto send = std::make_unique<Message>(Tag{2, 0, 0, 0}, large);
    auto receive = std::make_unique<Message>(Tag{2, 0, 0, 0}, large);
    begin(*send, *receive);
    (leaves == 0 ? send : receive).reset();
    ranks_->leave(leaves);
    Message& left = leaves == 0 ? *receive : *send;
    ASSERT_TRUE(ranks_->drive([&] { return left.done(); }));
    EXPECT_EQ(left.code(), Code::peer_lost);
    left.overwrite(std::byte{0x5A});
    go_on();
    ranks_->drive_a_while();
    EXPECT_TRUE(left.holds_only(std::byte{0x5A}));
  }
}

TEST_F(VerbsGet, ADeviceThatIsLostEndsIt) {
  meet();
  Message send({2, 0, 0, 0}, large), receive({2, 0, 0, 0}, large);
  begin(send, receive);
  fake_verbs::lose_device();
  ASSERT_TRUE(ranks_->drive([&] { return receive.done() && send.done(); }));
  EXPECT_FALSE(receive.ok());
}

// The connection below breaks, and another takes its place.
class VerbsGetBreaks : public VerbsGet, public testing::WithParamInterface<size_t> {};

TEST_P(VerbsGetBreaks, WhatWasBeingReadIsSent) {
  meet();
  Breaker breaker;
  Messages messages;
  fake_verbs::set_read_steps(1);
  for (const size_t from : {0, 1}) {
    for (uint32_t i = 0; i < 3; ++i) {
      add(messages, {2, i, 0, 0}, large).fill().send(ranks_->channel(from, 1 - from));
      if (i < 2) add(messages, {2, i, 0, 0}, large).receive(ranks_->channel(1 - from, from));
    }
  }
  ranks_->drive_a_while();
  const size_t queues = fake_verbs::counts().queues;
  ASSERT_TRUE(breaker.hit(*ranks_, GetParam(), Break::reset));
  // Until one side has noticed, and its reads are gone: the other's fail then.
  ASSERT_TRUE(ranks_->drive([&] {
    for (const size_t rank : {0, 1}) ranks_->at(rank).wait(std::chrono::milliseconds(5));
    return fake_verbs::counts().queues < queues;
  }));
  go_on();
  for (const size_t from : {0, 1}) {
    add(messages, {2, 2, 0, 0}, large).receive(ranks_->channel(1 - from, from));
  }
  ASSERT_TRUE(ranks_->drive(messages));
  for (auto& each : messages) EXPECT_TRUE(each->ok() && each->holds_pattern()) << each->why();
  EXPECT_EQ(got_since(), 0) << "what was lent over the old connection is not read over the new one";
  ASSERT_TRUE(exchange_until(*ranks_, "verbs"));
  const uint64_t before = got();
  Message next({3, 0, 0, 0}, large), receive({3, 0, 0, 0}, large);
  next.fill().send(ranks_->channel(0, 1, 7));
  receive.receive(ranks_->channel(1, 0, 7));
  ASSERT_TRUE(ranks_->drive([&] { return next.ok() && receive.ok(); }));
  EXPECT_EQ(got() - before, large) << "over the new connection messages are read again";
}

INSTANTIATE_TEST_SUITE_P(Sides, VerbsGetBreaks, testing::Values(0, 1));

// Chunks of a long run, and runs of several pieces.
TEST(ProgramMemory, RegistersChunksOnce) {
  fake_verbs::reset({});
  auto ports = survey_verbs(fake_verbs::table(), "");
  ASSERT_TRUE(ports.ok());
  const auto device = VerbsDevice::open(fake_verbs::table(), ports->front());
  ASSERT_TRUE(device.ok());
  constexpr size_t chunk = ProgramMemory::chunk;
  std::vector<std::byte> memory(3 * chunk);
  const Bytes run{memory.data(), memory.size()};
  Registrations registrations;
  ProgramMemory program(3 * chunk);
  const auto parts_of = [&](size_t from, size_t bytes, bool is_written) {
    const Bytes piece{memory.data() + from, bytes};
    Operation message;
    message.pieces = {&piece, 1};
    message.within = {&run, 1};
    message.registrations = &registrations;
    std::vector<Bytes> parts;
    return program.reach(*device, message, is_written, &parts) ? parts.size() : 0;
  };
  EXPECT_EQ(parts_of(0, 1000, false), 1);
  EXPECT_EQ(parts_of(5000, chunk - 5000, false), 1);
  EXPECT_EQ(fake_verbs::counts().regions, 1);
  EXPECT_EQ(parts_of(chunk - 1, 2, false), 2) << "of two chunks";
  EXPECT_EQ(fake_verbs::counts().regions, 2);
  EXPECT_EQ(parts_of(2 * chunk, chunk, true), 1);
  EXPECT_EQ(parts_of(3 * chunk - 8, 8, false), 1) << "what is filled may be lent";
  EXPECT_EQ(fake_verbs::counts().regions, 3);
  EXPECT_EQ(parts_of(0, 8, true), 0) << "the bound is reached";
  registrations.clear();
  EXPECT_EQ(fake_verbs::counts().regions, 0);
  EXPECT_EQ(parts_of(0, 8, true), 1);
}

}  // namespace
}  // namespace sluice
