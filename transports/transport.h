// SPDX-License-Identifier: BSD-3-Clause
//
// The transport contract: how bytes move between two processes.
//
//   Endpoint   a process's end of one transport; owns what it listens on and all connections
//   (link)     the one connection of two processes, shared by all teams; a transport's own affair
//   Channel    one team's stream to one peer over the link: what is posted, and the team's window
//
// Nothing here blocks except Endpoint::wait. The caller's thread drives everything: bytes move in
// post_*, when they can at once, and in Endpoint::progress. Nothing here includes an algorithm, a
// reduction or MPI.
//
// Messages and frames. A message is what one operation posts: at most Caps::max_message bytes
// (longer ones are cut into segments by the engine, which are messages of their own). Messages
// match on (team, call, ordinal, segment), never on the order of posting. Every message says what
// it belongs to (Tag::what), so that ranks that disagree are told.
//
// Flow control. Each channel has a window: bytes (payload and header) which the peer may have sent
// and the receiver not yet placed. It opens again as messages are placed in posted receives. A
// message that finds no room in it, of any size, goes by appointment: it is announced, and sent
// when its receive is posted. So a send and its receive that are both posted always come together,
// whatever else waits. What arrives before its receive is posted stays in the link for as long as
// nothing behind it is wanted there, and is then set aside, never more than a window for a team. A
// link on which anything is pending is also read, even if it can't send: two sides that both send
// first do not deadlock. And so is one whose peer has ended, once, to its end.
//
// Threads. An endpoint may be called from several threads at once, and a channel from one thread
// at a time. Completions reach their queue from whichever thread drove.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

// A process, for as long as it lives: random, never reused; handles and ranks do not name
// processes.
struct ProcessId {
  uint64_t high = 0, low = 0;
  auto operator<=>(const ProcessId&) const = default;
};

// A team, the same on all its ranks: the process of its leader (rank 0), and that process's own
// count.
struct TeamId {
  ProcessId leader;
  uint32_t number = 0;
  auto operator<=>(const TeamId&) const = default;
};

// What a message belongs to. All but `what` is matched on; `what` must be equal where the rest is.
struct Tag {
  uint32_t call = 0;     // of the team: rises from one collective, or part of one, to the next
  uint32_t ordinal = 0;  // n-th message between the two ranks in this direction within the call
  uint32_t segment = 0;  // n-th piece of that message
  uint32_t what = 0;     // opaque here: which collective with which root; see engine
};

// Memory of a message: gathered from, or scattered to, in order.
struct Bytes {
  std::byte* data = nullptr;  // not written to by sends
  size_t size = 0;
};

class CompletionQueue;

// One posted send or receive. Its memory is the poster's; it and the buffers stay put until it is
// done.
struct Operation {
  // Set by the poster.
  Tag tag;
  std::span<const Bytes> pieces;
  size_t bytes = 0;  // the sum of the pieces
  CompletionQueue* queue = nullptr;
  // Set when done.
  Status status;
  // With Code::mismatch: what the peer's message says of itself, for the owner to put into words.
  uint32_t seen_what = 0;
  size_t seen_bytes = 0;
  // The transport's while posted; the queue's when done.
  Operation* next = nullptr;
  size_t moved = 0;
  bool framed = false;
};

// Operations that are done, for one owner: pushed by any thread, taken by the owner. Wait-free but
// for retries of a push.
class CompletionQueue {
 public:
  void push(Operation* operation) {
    Operation* head = head_.load(std::memory_order_relaxed);
    do {
      operation->next = head;
    } while (!head_.compare_exchange_weak(head, operation, std::memory_order_release,
                                          std::memory_order_relaxed));
  }
  // All done since the last call, latest first, linked by `next`; nullptr if none.
  Operation* take() {
    if (!head_.load(std::memory_order_relaxed)) return nullptr;
    return head_.exchange(nullptr, std::memory_order_acquire);
  }

 private:
  std::atomic<Operation*> head_{nullptr};
};

// How another process is reached: what it gave out through Endpoint::address, and a name for
// messages to people.
struct Peer {
  ProcessId process;
  std::vector<std::byte> address;
  std::string label;  // "pid 4711 on host n12"
};

class Channel {
 public:
  virtual ~Channel() = default;  // nothing may be pending: withdraw() first

  // True: done already (operation->status says how), and not put in the queue. False: it will be
  // put in its queue when done. A send is done when its last byte is in the hands of the kernel or
  // the card, a receive when its last byte is in place. A message of another length than posted, or
  // of another `what` in the same call, is a mismatch: both values are given in the message. Errors
  // of a link are sticky: every pending and later operation ends with them, but for receives of
  // what had come whole by then. The operation may be posted again once it is done.
  virtual bool post_send(Operation* operation) = 0;
  virtual bool post_recv(Operation* operation) = 0;

  // Gives up all that is pending here; on return no operation and no buffer of this channel is
  // touched any more and none of its operations will be queued. (A frame sent in part is finished
  // from a copy, the link stays good.) What still comes for the receives is not kept for others:
  // the team is done for, and its channel to be closed.
  virtual void withdraw() = 0;

  // Tells the peer that this team is done for, and why, once; the peer's pending and later
  // operations of the team end with Code::aborted and this cause. Never blocks; best effort: where
  // there is no connection yet it goes as one comes about, while the endpoint is driven.
  virtual void abort(const std::string& cause) = 0;
  // Whether it has gone, or never will: no need to drive the endpoint for it any longer.
  virtual bool told() const { return true; }

  // Code::aborted and the cause, if the peer has said so (see abort). For who waits long, for
  // others: looks at what has come though nothing is pending here, and sets it aside.
  virtual Status told_by_peer() = 0;

  // What moves its bytes now, for people: "tcp"; "shm" once a link has left its socket.
  virtual const char* carrier() const = 0;
};

struct Caps {
  size_t max_message = 0;  // bytes of one posted message
};

class Endpoint {
 public:
  // Says BYE on all links and closes them: a peer that still expected something sees a process that
  // is gone. May wait, some seconds at most, until what was sent is in the peers' hands: best
  // called when they can't expect anything any more, after MPI's own MPI_Finalize.
  virtual ~Endpoint() = default;

  virtual const char* name() const = 0;  // "tcp"
  virtual Caps caps() const = 0;

  // Under 160 bytes, to be given to peers by other means (Peer::address).
  virtual std::vector<std::byte> address() const = 0;

  // The team's stream to that peer. The connection behind it is made when first needed, from one
  // side that both know (the lower ProcessId), or was made for another team. To be called at most
  // once for a team and peer. An error says what is wrong with the address; a peer that can't be
  // reached shows in the operations, within the connect deadline.
  virtual Result<std::unique_ptr<Channel>> open(const TeamId& team, const Peer& peer) = 0;

  // Whether this process has what connections to some further peers take, now. System calls.
  virtual bool can_connect() = 0;

  // Moves what can be moved now, for all links that have anything pending. True if anything moved.
  virtual bool progress() = 0;

  // Sleeps until progress may have something to do, at most so long. May return early.
  virtual void wait(std::chrono::microseconds limit) = 0;

  // Sends BYE on all links: no operation may be posted after this. Peers may still read what they
  // were sent.
  virtual void say_bye() = 0;
};

}  // namespace sluice
