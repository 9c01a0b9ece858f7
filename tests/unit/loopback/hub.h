// SPDX-License-Identifier: BSD-3-Clause
//
// Internal to the loopback transport: the state that its endpoints share, under one lock.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/loopback/loopback.h"
#include "transports/call_check.h"
#include "transports/tag_table.h"
#include "transports/transport.h"

namespace sluice {

// A process.
struct LoopbackNode {
  enum class Life { present, finished, dead };
  Life life = Life::present;
  uint64_t events = 0;  // completed operations
  uint64_t seen = 0;    // of those, seen by progress()
  std::condition_variable changed;
};

// An unexpected message: a copy if the window had room, else still in its sender's memory.
struct UnexpectedLoopback {
  Tag tag;
  size_t bytes = 0;
  UnexpectedLoopback* next = nullptr;
  std::unique_ptr<std::byte[]> copy;
  Operation* sender = nullptr;
};

struct LoopbackKey {
  TeamId team;
  ProcessId owner, peer;
  auto operator<=>(const LoopbackKey&) const = default;
};

// One process's end of a channel. Made by the side that needs it first, deleted when both channels
// are closed.
struct LoopbackEnd {
  ~LoopbackEnd();

  LoopbackKey key;
  bool closed = false;  // its channel is closed

  LoopbackNode* owner = nullptr;
  LoopbackNode* peer = nullptr;
  LoopbackEnd* other = nullptr;
  std::string label;                     // of the peer
  TagTable<Operation> posted;            // receives
  TagTable<UnexpectedLoopback> arrived;  // unexpected messages
  size_t set_aside = 0;                  // bytes of the window in use
  CallCheck call_check;
  Status aborted;  // set by the peer's abort; the channel carries nothing after it
};

struct LoopbackHub::State {
  struct Travelling {
    LoopbackEnd* from;
    Operation* send;
  };

  explicit State(const LoopbackOptions& options) : options(options), random(options.seed) {}

  // Call all of these with the lock held.
  LoopbackEnd& end(const LoopbackKey& key);
  void close(LoopbackEnd& end);
  bool send(LoopbackEnd& from, Operation* operation);
  bool receive(LoopbackEnd& at, Operation* operation);
  bool under_way(const LoopbackNode& node) const;
  void move_some(const LoopbackNode& node);
  void withdraw(LoopbackEnd& end);
  void abort(LoopbackEnd& end, const std::string& cause);
  void leave(LoopbackNode& node, LoopbackNode::Life life);

  const LoopbackOptions options;
  std::mutex lock;

  std::map<ProcessId, LoopbackNode> nodes;
  std::map<LoopbackKey, LoopbackEnd> ends;
  std::vector<Travelling> travelling;  // sends in transit; only with a seed
  uint64_t messages = 0;               // all sends so far

 private:
  bool deliver(LoopbackEnd& from, Operation* send);
  bool set_aside(LoopbackEnd& to, Operation* send);
  template <typename Predicate>
  Operation* take_sends(LoopbackEnd& from, Predicate matches);
  void take(LoopbackEnd& at, UnexpectedLoopback& unexpected, Operation* receive);
  void disagree(LoopbackEnd& end, const Tag& theirs);
  void end_all(LoopbackEnd& end, const Status& status);
  void finish(LoopbackNode& node, Operation* operation);
  Status usable(const LoopbackEnd& end) const;

  std::mt19937_64 random;
};

}  // namespace sluice
