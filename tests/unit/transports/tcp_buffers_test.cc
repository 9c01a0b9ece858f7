// SPDX-License-Identifier: BSD-3-Clause
//
// The queues for incoming and outgoing bytes of a connection, over an in-memory conduit. A read or
// write may end at any byte.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/unit/transports/rig.h"
#include "transports/link/inbox.h"
#include "transports/link/outbox.h"
#include "transports/pieces.h"

namespace sluice {
namespace {

using ByteVector = std::vector<std::byte>;

// Stores what is written, and returns what it was filled with, at most `limit` bytes a call. A call
// with more than `most_runs` runs fails.
class Memory final : public Conduit {
 public:
  explicit Memory(size_t most_runs) : most_runs_(most_runs) {}

  const char* name() const override { return "memory"; }

  Moved write(std::span<const iovec> runs) override {
    return move(runs, limit, [&](std::byte* data, size_t size) {
      written.insert(written.end(), data, data + size);
      held += holds ? size : 0;
    });
  }
  Moved read(std::span<const iovec> runs) override {
    return move(runs, std::min(limit, to_read.size() - at_), [&](std::byte* data, size_t size) {
      std::copy_n(to_read.begin() + static_cast<ptrdiff_t>(at_), size, data);
      at_ += size;
    });
  }

  // Of all bytes written, the last so many have not left.
  size_t unsent() const override { return held; }
  Moved flush() override {
    const size_t moved = std::min(held, leaves);
    held -= moved;
    if (moved == 0) return {Moved::Result::nothing};
    return {Moved::Result::some, moved};
  }

  size_t limit = ~size_t{0};
  size_t held = 0, leaves = 0;
  bool holds = false;  // what is written from now on
  ByteVector written, to_read;

 private:
  template <typename Move>
  Moved move(std::span<const iovec> runs, size_t left, Move move_run) {
    if (runs.size() > most_runs_) return {Moved::Result::failed, 0, EINVAL};
    const size_t before = left;
    for (const iovec& run : runs) {
      const size_t size = std::min(run.iov_len, left);
      move_run(static_cast<std::byte*>(run.iov_base), size);
      left -= size;
    }
    if (left == before) return {Moved::Result::nothing};
    return {Moved::Result::some, before - left};
  }

  const size_t most_runs_;
  size_t at_ = 0;
};

ByteVector pattern(const Tag& tag, size_t bytes) {
  const Message message(tag, 0);
  ByteVector made(bytes);
  for (size_t i = 0; i < bytes; ++i) made[i] = message.expected(i);
  return made;
}

// `count` pieces of `size` bytes each.
struct Pieces {
  Pieces(size_t count, size_t size) : memory(count * size) {
    for (size_t i = 0; i < count; ++i) pieces.push_back({memory.data() + i * size, size});
  }
  ByteVector memory;
  std::vector<Bytes> pieces;
};

// Reads a payload into `target`, followed by other bytes, at most `limit` bytes a read.
void expect_read(Pieces& target, size_t limit) {
  constexpr size_t behind = 20;
  const size_t due = target.memory.size();
  Memory conduit(Inbox::max_runs);
  conduit.limit = limit;
  conduit.to_read = pattern({1, 0, 0, 0}, due + behind);
  Inbox inbox;
  size_t moved = 0;
  while (moved < due || inbox.size() < behind) {
    const ConstPieces pieces = moved < due ? ConstPieces(target.pieces) : ConstPieces();
    const Inbox::Read read = inbox.read(conduit, pieces, moved, Inbox::capacity);
    ASSERT_EQ(read.result, Conduit::Moved::Result::some) << moved << " of " << due << " bytes";
    moved += read.straight;
    const size_t deposited = std::min(inbox.size(), due - moved);
    scatter(target.pieces, moved, inbox.data(), deposited);
    inbox.consume(deposited);
    moved += deposited;
  }
  EXPECT_TRUE(std::equal(target.memory.begin(), target.memory.end(), conduit.to_read.begin()));
  EXPECT_EQ(inbox.size(), behind);
  EXPECT_EQ(std::memcmp(inbox.data(), conduit.to_read.data() + due, behind), 0);
}

// As many pieces as one read can take, one fewer, one more, and so on.
TEST(TcpInbox, AnyNumberOfPieces) {
  for (const size_t size : {size_t{3}, size_t{1000}}) {
    for (size_t count = 0; count <= 2 * Inbox::max_runs + 1; ++count) {
      for (const size_t limit : {~size_t{0}, size_t{777}}) {
        Pieces target(count, size);
        ASSERT_NO_FATAL_FAILURE(expect_read(target, limit)) << count << " of " << size << " bytes";
      }
    }
  }
}

// Unconsumed bytes reduce the room for the next read.
TEST(TcpInbox, HoldsSoMuchAndNoMore) {
  Memory conduit(Inbox::max_runs);
  conduit.to_read = pattern({1, 0, 0, 0}, 3 * Inbox::capacity);
  Inbox inbox;
  size_t consumed = 0;
  for (const size_t left : {size_t{0}, size_t{47}, Inbox::capacity - 1, Inbox::capacity}) {
    const Inbox::Read read = inbox.read(conduit, {}, 0, Inbox::capacity);
    ASSERT_EQ(inbox.size(), Inbox::capacity);
    EXPECT_FALSE(read.drained);
    EXPECT_EQ(std::memcmp(inbox.data(), conduit.to_read.data() + consumed, inbox.size()), 0);
    if (left == Inbox::capacity) break;
    inbox.consume(inbox.size() - left);
    consumed += Inbox::capacity - left;
  }
}

TEST(TcpFrame, WithAnythingUnknownIsNone) {
  const auto is_frame = [](const Frame& frame, size_t changed = 0, uint8_t to = 0) {
    std::byte bytes[Frame::bytes];
    frame.encode(bytes);
    if (changed > 0) bytes[changed] = std::byte{to};
    Frame decoded;
    return decoded.decode(bytes);
  };
  for (uint8_t type = 0; type < 20; ++type) {
    const Frame empty{static_cast<FrameType>(type)};
    const bool known = type >= 1 && type <= 15;
    EXPECT_EQ(is_frame(empty), known) << int{type};
    EXPECT_FALSE(is_frame(empty, 1, 2)) << "a flag";
    EXPECT_FALSE(is_frame(empty, 1, 0x80)) << "a flag";
    EXPECT_EQ(is_frame(empty, 2, 1), known) << "a part of a team";
    Frame full = empty;
    full.length = 1;
    const bool has_payload = empty.type == FrameType::data || empty.type == FrameType::abort ||
                             empty.type == FrameType::offer || empty.type == FrameType::accept ||
                             empty.type == FrameType::decline || empty.type == FrameType::spread ||
                             empty.type == FrameType::rget;
    EXPECT_EQ(is_frame(full), has_payload) << int{type};
  }
}

// Sends of two teams in the given order, and the bytes expected on the wire.
class TcpOutbox : public testing::Test {
 protected:
  static constexpr TeamId first{{1, 2}, 3}, second{{1, 2}, 4};

  struct Send {
    Send(const TeamId& team, uint32_t call, size_t count, size_t size)
        : payload(count, size), frame{FrameType::data,
                                      true,
                                      static_cast<uint32_t>(count * size),
                                      team,
                                      {call, 0, 0, 0},
                                      call} {
      payload.memory = pattern(frame.tag, payload.memory.size());
      for (size_t i = 0; i < count; ++i) payload.pieces[i].data = payload.memory.data() + i * size;
      operation.tag = frame.tag;
      operation.pieces = payload.pieces;
      operation.bytes = frame.length;
    }
    ByteVector on_wire() const {
      ByteVector bytes(Frame::bytes);
      frame.encode(bytes.data());
      const ByteVector sent = pattern(frame.tag, frame.length);
      bytes.insert(bytes.end(), sent.begin(), sent.end());
      return bytes;
    }
    Pieces payload;
    Frame frame;
    Operation operation;
  };

  void queue(Send& send) { out_.push({send.frame, &send.operation}); }
  // Flushes while the conduit takes bytes.
  void flush() {
    Outbox::Flushed flushed;
    do {
      flushed = out_.flush(conduit_);
      ASSERT_NE(flushed.result, Outbox::Result::failed);
      for (const Operation* each = flushed.done; each != nullptr; each = each->next) ++done_;
    } while (flushed.moved && flushed.result != Outbox::Result::drained);
  }

  void push_shift() {
    Outgoing shift{Frame{FrameType::shift}};
    shift.last = true;
    out_.push(std::move(shift));
  }

  Memory conduit_{Outbox::max_runs};
  Outbox out_;
  size_t done_ = 0;
};

TEST_F(TcpOutbox, AnyNumberOfPieces) {
  for (const size_t size : {size_t{3}, size_t{256}, size_t{257}}) {
    for (size_t count = 0; count <= 2 * Outbox::max_runs + 1; ++count) {
      Send send(first, 1, count, size), behind(second, 2, 1, 10);
      conduit_.written.clear();
      queue(send);
      queue(behind);
      ASSERT_NO_FATAL_FAILURE(flush()) << count << " of " << size << " bytes";
      ByteVector expected = send.on_wire();
      const ByteVector last = behind.on_wire();
      expected.insert(expected.end(), last.begin(), last.end());
      ASSERT_EQ(conduit_.written, expected) << count << " of " << size << " bytes";
    }
  }
}

// So many frames that sent ones must free their room before the last is sent.
// The frame of a message that is spread is a part of its send, and leaves in any case.
TEST_F(TcpOutbox, AFrameMayBeAPartOfASend) {
  Operation send;
  send.tag = {1, 0, 0, 0};
  const auto push = [&](size_t parts) {
    send.parts = parts;
    Frame frame{FrameType::spread};
    frame.team = first;
    frame.tag = send.tag;
    out_.push(frame, ByteVector(16), false, &send);
  };
  push(2);
  flush();
  EXPECT_EQ(done_, 1U);
  for (const size_t parts : {2, 1}) {
    push(parts);
    const Outbox::GivenUp given = out_.withdraw(first, std::nullopt);
    EXPECT_EQ(given.sends, parts == 1 ? &send : nullptr);
    EXPECT_EQ(send.parts, parts - 1);
    EXPECT_FALSE(out_.empty());
    flush();
    EXPECT_TRUE(out_.empty());
    EXPECT_EQ(done_, 1U);
  }
}

TEST_F(TcpOutbox, ManyFrames) {
  std::vector<std::unique_ptr<Send>> sends;
  ByteVector expected;
  for (uint32_t call = 0; call < 1000; ++call) {
    sends.push_back(std::make_unique<Send>(first, call, 1, 10));
    queue(*sends.back());
    const ByteVector bytes = sends.back()->on_wire();
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  conduit_.limit = 1001;
  ASSERT_NO_FATAL_FAILURE(flush());
  ASSERT_EQ(conduit_.written, expected);
  EXPECT_EQ(done_, sends.size());
}

// Frames queued behind a shift stay in the queue: they leave by the new conduit.
TEST_F(TcpOutbox, StopsBehindAShift) {
  Send before(first, 1, 1, 10), behind(first, 2, 1, 10);
  queue(before);
  push_shift();
  queue(behind);
  EXPECT_EQ(out_.flush(conduit_).result, Outbox::Result::shifted);
  EXPECT_EQ(conduit_.written.size(), before.on_wire().size() + Frame::bytes);
  conduit_.written.clear();
  EXPECT_EQ(out_.flush(conduit_).result, Outbox::Result::drained);
  EXPECT_EQ(conduit_.written, behind.on_wire());
}

// What the conduit has taken is done when it has left, byte by byte.
TEST_F(TcpOutbox, SendsAreDoneWhenTheirBytesHaveLeft) {
  constexpr size_t frame = Frame::bytes + 10;
  Send one(first, 1, 1, 10), two(first, 2, 1, 10);
  queue(one);
  queue(two);
  conduit_.holds = true;
  EXPECT_EQ(out_.flush(conduit_).result, Outbox::Result::blocked);
  EXPECT_EQ(conduit_.written.size(), 2 * frame);
  conduit_.leaves = 1;
  for (size_t left = 1; left <= 2 * frame; ++left) {
    EXPECT_FALSE(out_.empty());
    const Outbox::Flushed flushed = out_.flush(conduit_);
    EXPECT_EQ(flushed.done != nullptr, left == frame || left == 2 * frame) << left;
    EXPECT_EQ(flushed.result == Outbox::Result::drained, left == 2 * frame) << left;
  }
  EXPECT_TRUE(out_.empty());
}

// The other conduit is not used before the last byte has left this one.
TEST_F(TcpOutbox, AShiftWaitsForWhatHasNotLeft) {
  Send before(first, 1, 1, 10), behind(first, 2, 1, 10);
  queue(before);
  push_shift();
  queue(behind);
  conduit_.holds = true;
  EXPECT_EQ(out_.flush(conduit_).result, Outbox::Result::blocked);
  conduit_.leaves = conduit_.held - 1;
  EXPECT_EQ(out_.flush(conduit_).result, Outbox::Result::blocked);
  EXPECT_EQ(conduit_.held, 1U);
  EXPECT_EQ(out_.flush(conduit_).result, Outbox::Result::shifted);
  EXPECT_EQ(conduit_.written.size(), before.on_wire().size() + Frame::bytes);
}

// Withdrawn sends that the conduit has taken are the caller's again, and leave all the same.
TEST_F(TcpOutbox, WithdrawnWhileHeld) {
  Send one(first, 1, 1, 10), two(second, 2, 1, 10);
  queue(one);
  queue(two);
  conduit_.holds = true;
  (void)out_.flush(conduit_);
  const Outbox::GivenUp given = out_.withdraw(first, std::nullopt);
  ASSERT_NE(given.sends, nullptr);
  EXPECT_EQ(given.sends->next, nullptr);
  EXPECT_EQ(given.charge, 0U);
  EXPECT_FALSE(out_.empty());
  conduit_.leaves = conduit_.held;
  ASSERT_NO_FATAL_FAILURE(flush());
  EXPECT_EQ(done_, 1U);
  EXPECT_TRUE(out_.empty());
}

// After some bytes have been sent, two of the team's sends are withdrawn. A frame that has begun,
// perhaps only with part of its header, is finished from a copy; other withdrawn frames are
// removed. The remaining frame is sent as it is.
TEST_F(TcpOutbox, WithdrawnAfterAnyByte) {
  constexpr size_t size = 20, frame = Frame::bytes + size;
  for (size_t gone = 0; gone < 3 * frame; ++gone) {
    SCOPED_TRACE(testing::Message() << "after " << gone << " bytes");
    Send one(first, 1, 2, size / 2), two(first, 2, 1, size), stays(second, 3, 1, size);
    ByteVector expected;
    const auto expect = [&](const Send& send) {
      const ByteVector bytes = send.on_wire();
      expected.insert(expected.end(), bytes.begin(), bytes.end());
    };
    if (gone > 0) expect(one);
    if (gone > frame) expect(two);
    expect(stays);
    out_.clear();
    conduit_.written.clear();
    done_ = 0;
    for (Send* each : {&one, &two, &stays}) queue(*each);
    conduit_.limit = gone;
    Outbox::Flushed flushed = out_.flush(conduit_);
    for (const Operation* each = flushed.done; each != nullptr; each = each->next) ++done_;
    ASSERT_EQ(done_, gone / frame);
    conduit_.limit = ~size_t{0};

    const Outbox::GivenUp given = out_.withdraw(first, std::nullopt);
    size_t sends = 0;
    for (const Operation* each = given.sends; each != nullptr; each = each->next) ++sends;
    const size_t whole = gone / frame, begun = (gone + frame - 1) / frame;
    EXPECT_EQ(sends, whole < 2 ? 2 - whole : 0);
    const size_t taken_out = begun < 2 ? 2 - begun : 0;
    EXPECT_EQ(given.charge, taken_out * frame);
    EXPECT_EQ(given.credit, taken_out == 2 ? 1U + 2U : taken_out == 1 ? 2U : 0U);
    for (Send* each : {&one, &two}) std::ranges::fill(each->payload.memory, std::byte{0xEE});

    ASSERT_NO_FATAL_FAILURE(flush());
    ASSERT_EQ(conduit_.written, expected);
    EXPECT_EQ(done_, whole + 1);
  }
}

}  // namespace
}  // namespace sluice
