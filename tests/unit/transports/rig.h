// SPDX-License-Identifier: BSD-3-Clause
//
// Runs several ranks in one process for transport tests: endpoints, the channels between them, and
// messages filled with a pattern.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "transports/transport.h"

namespace sluice {

using MakeEndpoint = std::function<std::unique_ptr<Endpoint>(const ProcessId&)>;

// A message that owns its memory, in pieces; fill() writes a pattern. If it is destroyed before it
// is done, it withdraws everything from its channel, so it must not outlive the channel.
class Message {
 public:
  // pieces: the number of random pieces; 0: one piece, or none for an empty message.
  Message(const Tag& tag, size_t bytes, size_t pieces = 0, uint64_t seed = 1) : memory_(bytes) {
    std::mt19937_64 random(seed);
    std::vector<size_t> cuts{0, bytes};
    for (size_t i = 1; i < pieces; ++i) cuts.push_back(random() % (bytes + 1));
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size() && (bytes > 0 || pieces > 0); ++i) {
      pieces_.push_back({memory_.data() + cuts[i], cuts[i + 1] - cuts[i]});
    }
    operation.tag = tag;
    operation.bytes = bytes;
    operation.pieces = pieces_;
    operation.queue = &queue_;
    whole_ = {memory_.data(), memory_.size()};
    operation.within = {&whole_, 1};
    operation.registrations = &registrations_;
  }
  ~Message() {
    if (channel_ != nullptr && !done()) channel_->withdraw();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  // Writes a pattern that depends on the tag.
  Message& fill() {
    for (size_t at = 0; at < memory_.size(); at += run(at).size()) {
      std::memcpy(memory_.data() + at, run(at).data(), run(at).size());
    }
    return *this;
  }
  bool holds_pattern() const {
    size_t at = 0;
    while (at < memory_.size() &&
           std::memcmp(memory_.data() + at, run(at).data(), run(at).size()) == 0) {
      at += run(at).size();
    }
    return at == memory_.size();
  }

  void overwrite(std::byte with) { std::ranges::fill(memory_, with); }
  bool holds_only(std::byte what) const {
    return std::ranges::all_of(memory_, [&](std::byte each) { return each == what; });
  }

  void send(Channel& channel) {
    channel_ = &channel;
    done_ = channel.post_send(&operation);
  }
  void receive(Channel& channel) {
    channel_ = &channel;
    done_ = channel.post_recv(&operation);
  }
  bool done() {
    if (queue_.pop_all() != nullptr) {
      EXPECT_FALSE(done_) << "queued though done at once";
      done_ = true;
    }
    return done_;
  }
  bool ok() { return done() && operation.status.ok(); }
  Code code() { return done() ? operation.status.code() : Code::ok; }
  const std::string& why() const { return operation.status.message(); }

  std::byte expected(size_t at) const { return table()[(first() + at) % period]; }

  Operation operation;

 private:
  // Where this message's pattern begins in one long pattern.
  uint64_t first() const {
    const Tag& tag = operation.tag;
    return tag.call * 7919 + tag.ordinal * 104729 + tag.segment * 1299709;
  }
  // The long pattern repeats a table whose length divides no power of two. (Copied and compared in
  // runs, because byte by byte takes sanitizers a tenth of a second per MB.)
  static constexpr size_t period = 65521;
  static const std::vector<std::byte>& table() {
    static const std::vector<std::byte> bytes = [] {
      std::vector<std::byte> made(period);
      for (uint64_t i = 0; i < period; ++i) made[i] = static_cast<std::byte>(i * 2654435761U >> 13);
      return made;
    }();
    return bytes;
  }
  // The expected bytes from `at` to the end of the table or of the message.
  std::span<const std::byte> run(size_t at) const {
    const size_t begin = (first() + at) % period;
    return {table().data() + begin, std::min(period - begin, memory_.size() - at)};
  }

  std::vector<std::byte> memory_;
  std::vector<Bytes> pieces_;
  Bytes whole_;
  Registrations registrations_;
  CompletionQueue queue_;
  Channel* channel_ = nullptr;
  bool done_ = false;
};

using Messages = std::vector<std::unique_ptr<Message>>;

inline Message& add(Messages& messages, const Tag& tag, size_t bytes, size_t pieces = 0) {
  messages.push_back(std::make_unique<Message>(tag, bytes, pieces, messages.size() + 1));
  return *messages.back();
}

// Ranks 0 to n-1, each with an endpoint. Channels are opened at first use.
class Ranks {
 public:
  Ranks(const MakeEndpoint& make, size_t count) {
    for (size_t i = 0; i < count; ++i) endpoints_.push_back(make(process(i)));
    std::vector<Peer> peers;
    for (size_t i = 0; i < count; ++i) peers.push_back(peer(i));
    for (const auto& endpoint : endpoints_) met_.push_back(endpoint->expect(peers));
  }

  static ProcessId process(size_t rank) { return {0x5150, 100 + rank}; }
  static std::string label(size_t rank) { return "rank " + std::to_string(rank); }

  Endpoint& at(size_t rank) { return *endpoints_[rank]; }
  size_t size() const { return endpoints_.size(); }

  Peer peer(size_t rank) { return {process(rank), endpoints_[rank]->address(), label(rank)}; }

  // The channel of `from` to `to`.
  Channel& channel(size_t from, size_t to, uint32_t team = 1) {
    std::unique_ptr<Channel>& made = channels_[{from, to, team}];
    if (!made) {
      auto opened = endpoints_[from]->open(TeamId{process(0), team}, peer(to));
      EXPECT_TRUE(opened.ok()) << opened.status().message();
      made = std::move(*opened);
    }
    return *made;
  }
  void close(size_t from, size_t to, uint32_t team = 1) { channels_.erase({from, to, team}); }

  // Destroys the rank's channels, then its endpoint.
  void leave(size_t rank) {
    std::erase_if(channels_, [&](auto& each) { return std::get<0>(each.first) == rank; });
    endpoints_[rank].reset();
  }

  // One progress() of every rank.
  bool progress() {
    bool moved = false;
    for (auto& endpoint : endpoints_) moved |= endpoint && endpoint->progress();
    return moved;
  }

  // Drives all ranks from this thread until the condition holds. False if the limit passes first.
  // (On a busy machine each yield takes milliseconds, and so many turns too long until an endpoint
  // looks for dead peers by itself. As the engine's waiter does, wait() has it look by the clock.)
  bool drive(const std::function<bool()>& holds, std::chrono::seconds limit = limit_) {
    const auto begin = std::chrono::steady_clock::now();
    auto looked = begin;
    uint32_t idle = 0;
    while (!holds()) {
      idle = progress() ? 0 : idle + 1;
      if (idle >= between_yields_) {
        std::this_thread::yield();
        idle = 0;
      }
      const auto now = std::chrono::steady_clock::now();
      if (now - begin > limit) return false;
      if (now - looked < between_looks_) continue;
      looked = now;
      look_around();
    }
    return true;
  }
  bool drive(Messages& messages) {
    return drive([&] { return all_done(messages); });
  }
  // Drives so long that anything that must not happen would have happened.
  void drive_a_while() {
    for (int turn = 0; turn < 200; ++turn) {
      progress();
      if (turn % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  static bool all_done(Messages& messages) {
    bool done = true;
    for (auto& message : messages) done &= message->done();
    return done;
  }

 private:
  void look_around() {
    for (auto& endpoint : endpoints_) {
      if (endpoint) endpoint->wait(std::chrono::microseconds(0));
    }
  }

  static constexpr std::chrono::seconds limit_{30};
  static constexpr std::chrono::milliseconds between_looks_{100};
  static constexpr uint32_t between_yields_ = 64;  // turns in a row in which nothing moved

  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::shared_ptr<const void>> met_;
  std::map<std::tuple<size_t, size_t, uint32_t>, std::unique_ptr<Channel>> channels_;
};

// For waits that must end by what they wait for: if one sleeps over that, the watchdog ends the
// test.
constexpr std::chrono::hours longer_than_the_watchdog{1};

// Waits like a rank with a thread of its own: drives the endpoint and sleeps between.
inline bool wait_for(Endpoint& endpoint, const std::function<bool()>& holds,
                     std::chrono::seconds limit = std::chrono::seconds(30)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (!endpoint.progress()) endpoint.wait(std::chrono::milliseconds(5));
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

}  // namespace sluice
