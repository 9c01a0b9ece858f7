// SPDX-License-Identifier: BSD-3-Clause
//
// The transport contract: how bytes move between two processes.
//
//   Endpoint   one process's end of a transport; owns the listening sockets and all connections
//   (link)     the connection of two processes, shared by all teams; internal to a transport
//   Channel    one team's stream to one peer over the link: posted operations and the team's window
//
// Only Endpoint::wait blocks. The calling threads make all progress: bytes move in post_*, if they
// can move at once, and in Endpoint::progress. Nothing here includes an algorithm, a reduction or
// MPI.
//
// Messages and frames. A message is what one operation posts, at most Caps::max_message bytes. The
// engine cuts longer ones into segments, each of which is a message. Messages match on (team, call,
// ordinal, segment), never on the order of posting. Every message says which collective it belongs
// to (Tag::signature), and how much data that has (Tag::size), so that ranks that disagree get an
// error.
//
// Flow control. Each channel has a window: the bytes (payload and header) that the peer may have
// sent and the receiver not yet placed. It opens again as messages are placed in posted receives.
// So unexpected messages take bounded memory, and one team cannot block another. A message of any
// size that finds no room in the window goes by rendezvous: the sender announces it (RTS) and sends
// it when its receive is posted (CTS). So if a send and its receive are both posted, they always
// complete, whatever else is pending. An unexpected message (its receive is not posted)
// stays in the link while nothing behind it is needed. It is then copied aside, at most one window
// of bytes for a channel. A link with anything pending is also read while it can't send, so two
// sides that both send first do not deadlock. A link whose peer has ended is read once, to its end.
//
// Threads. Several threads may call an endpoint at once, but a channel takes one thread at a time.
// Whichever thread makes progress puts completed operations into their queues.
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
#include "transports/registrations.h"

namespace sluice {

// A process, for as long as it lives: random and never reused, unlike handles and ranks.
struct ProcessId {
  uint64_t high = 0, low = 0;
  auto operator<=>(const ProcessId&) const = default;
};

// A team, the same on all its ranks: the process of its leader (rank 0), and a count of that
// process's own. Each part of a team has channels and an order of calls of its own: 0 the calls
// that block, the others as the engine says (TeamHalves).
struct TeamId {
  ProcessId leader;
  uint32_t number = 0;
  uint16_t part = 0;
  auto operator<=>(const TeamId&) const = default;
};

// What a message belongs to. Messages match on call, ordinal and segment. `signature` and `size`
// must be equal on messages that match, and `signature` on all messages of a call.
struct Tag {
  uint32_t call = 0;       // in the team; rises with each collective
  uint32_t ordinal = 0;    // n-th message between the two ranks in this direction within the call
  uint32_t segment = 0;    // n-th piece of that message
  uint32_t signature = 0;  // opaque here: the collective and its root; see engine
  // Bytes: of the call, the same on all its messages; or with this bit, of the message that this is
  // a piece of.
  static constexpr uint64_t of_message = uint64_t{1} << 63;
  uint64_t size{};

  // Set in `call` if the message belongs to a second exchange of the collective.
  static constexpr uint32_t second_exchange = uint32_t{1} << 31;

  uint32_t number_of_call() const { return call & ~second_exchange; }
  uint64_t size_of_call() const { return (size & of_message) != 0 ? 0 : size; }
};

// One piece of a message's memory. Pieces are gathered from, or scattered to, in order.
struct Bytes {
  std::byte* data = nullptr;  // not written to by sends
  size_t size = 0;
};

class CompletionQueue;

// Holds the loan's value while the peer may get a send's message from its memory, else 0
// (transports/link/loans.h).
using LoanWord = std::atomic<uint64_t>;

// One posted send or receive. The caller that posts it owns it. It and its buffers must not move
// until it is done.
struct Operation {
  // Set by the caller.
  Tag tag;
  std::span<const Bytes> pieces;
  size_t bytes = 0;  // the sum of the pieces
  CompletionQueue* queue = nullptr;
  // Where the pieces lie, in order, as far as a network card may access this memory as long as the
  // call lasts, and what of the call's memory is registered with it. nullptr: it may not.
  std::span<const Bytes> within{};
  Registrations* registrations = nullptr;
  // Set when done.
  Status status;
  // With Code::mismatch: what the peer's message says of itself (Tag::signature, Tag::size, its
  // length); the owner makes an error message of it.
  uint32_t seen_signature = 0;
  uint64_t seen_size = 0;
  size_t seen_bytes = 0;
  // Used by the transport while posted; by the queue when done.
  Operation* next = nullptr;
  // Of a send that is spread: its parts that have not left, and its frame. Of a receive: 1 once the
  // sender has been told of it (CTS).
  size_t parts = 0;
  LoanWord* loan = nullptr;  // of a send that is lent

  // The message, or a part of it, has left. True if that is all.
  bool note_left() { return parts == 0 || --parts == 0; }
};

// Operations that are done, for one owner. Any thread pushes, the owner takes. Wait-free except
// that a push may retry.
class CompletionQueue {
 public:
  void push(Operation* operation) {
    Operation* head = head_.load(std::memory_order_relaxed);
    do {
      operation->next = head;
    } while (!head_.compare_exchange_weak(head, operation, std::memory_order_release,
                                          std::memory_order_relaxed));
  }
  // All operations done since the last call, linked by `next`, latest first; nullptr if none.
  Operation* pop_all() {
    if (!head_.load(std::memory_order_relaxed)) return nullptr;
    return head_.exchange(nullptr, std::memory_order_acquire);
  }

 private:
  std::atomic<Operation*> head_{nullptr};
};

// How to reach another process: what its Endpoint::address returned, and a name for error messages.
struct Peer {
  ProcessId process;
  std::vector<std::byte> address;
  std::string label;   // "pid 4711 on host n12"
  std::string host{};  // "n12"; empty: not known
};

class Channel {
 public:
  virtual ~Channel() = default;  // nothing may be pending: withdraw() first

  // True: the operation is done (see operation->status) and does not enter the queue. False: it
  // enters its queue when done. A send is done when the kernel, shared memory or the network card
  // has its last byte, a receive when its last byte is in place. It is a mismatch if the message
  // has another length or size than posted or, in the same call, another `signature` or size of the
  // call; the error contains both values. Errors of a link are sticky: they end every pending and
  // later operation, except receives of messages that had arrived whole by then. The operation may
  // be posted again once it is done.
  virtual bool post_send(Operation* operation) = 0;
  virtual bool post_recv(Operation* operation) = 0;

  // Gives up all pending operations. After that, this channel touches none of its operations and
  // buffers, and no operation enters a queue. (A partly sent frame is completed from a copy, so the
  // link stays usable.) Messages that arrive later for these receives are dropped: the team can't
  // be used any more, and the caller must close its channel.
  virtual void withdraw() = 0;

  // Tells the peer, once, that this team has failed, and why. The peer's pending and later
  // operations of the team end with Code::aborted and this cause. Never blocks. Best effort:
  // without a connection, the abort is sent when one is made, if the endpoint is still driven.
  virtual void abort(const std::string& cause) = 0;
  // Whether the abort has been sent, or never will be: the endpoint need not be driven for it any
  // more.
  virtual bool abort_sent() const { return true; }

  // Code::aborted and the cause, if the peer has sent an abort. Reads from the link even with
  // nothing pending, and sets unexpected messages aside; used during long waits on other ranks.
  virtual Status aborted_by_peer() = 0;

  // The sticky error of the link, if it has failed. Reads from the link, like the one before.
  virtual Status failure() { return {}; }

  // What moves the bytes now, for log lines: "tcp", or "shm" once the link has left its socket.
  virtual const char* carrier() const = 0;
};

struct Caps {
  size_t max_message = 0;  // bytes of one posted message
};

// Bytes of the messages that a process has sent, by the way they went.
struct Traffic {
  uint64_t inlined = 0;  // through a connection
  uint64_t spread = 0;   // over several
  uint64_t got = 0;      // the receiver got them from this process's memory
};

class Endpoint {
 public:
  // Sends BYE on all links and closes them; a peer that still expects a message sees a lost
  // process. May wait some seconds until the peers' kernels have what was sent. Best called when
  // the peers can't expect any more messages, that is, after MPI's own MPI_Finalize.
  virtual ~Endpoint() = default;

  virtual const char* name() const = 0;  // "tcp"
  virtual Caps caps() const = 0;
  virtual Traffic traffic() const { return {}; }

  // At most 186 bytes. The caller gives it to peers by other means (Peer::address).
  virtual std::vector<std::byte> address() const = 0;

  // Tells the endpoint that these peers may connect, as long as the returned object lives, which
  // may outlive the endpoint. A team calls this when it is formed; until then a peer's connection
  // waits. Throws std::bad_alloc, with no effect.
  virtual std::shared_ptr<const void> expect(std::span<const Peer> peers) {
    (void)peers;
    return nullptr;
  }

  // The team's stream to that peer. The link behind it may exist already for another team. If not,
  // either process connects (transports/tcp/meeting.h). To be called at most once for each team and
  // peer. An error says what is wrong with the address. If the peer can't be reached, operations
  // fail within the connect deadline.
  virtual Result<std::unique_ptr<Channel>> open(const TeamId& team, const Peer& peer) = 0;

  // Whether a link to that process is connected, or has been. If so, a stream to it costs no
  // connection.
  virtual bool has_met(const ProcessId& process) {
    (void)process;
    return false;
  }

  // Whether this process has descriptors for further connections now. Makes system calls.
  virtual bool can_connect() = 0;

  // Moves what can be moved now, on all links with anything pending. True if anything moved.
  virtual bool progress() = 0;

  // Sleeps until progress() may have something to do, at most `limit`. May return early.
  virtual void wait(std::chrono::microseconds limit) = 0;

  // Sends BYE on all links. No operation may be posted after this. Peers may still read what was
  // sent.
  virtual void say_bye() = 0;
};

}  // namespace sluice
