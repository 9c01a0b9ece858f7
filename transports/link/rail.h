// SPDX-License-Identifier: BSD-3-Clause
//
// A rail: a connection beside the link's own that carries parts of large messages, and nothing
// else: no frame, no header. The SPREAD frames on the link's own connection say, in order, which
// bytes come next. So it is read straight into place, and only while parts are due. It calls
// nobody: what it found is what its functions return.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transports/link/conduit_stack.h"
#include "transports/link/flow.h"
#include "transports/link/shortage.h"
#include "transports/link/spread.h"
#include "transports/link/stream.h"
#include "transports/link/vigil.h"
#include "transports/link/watch.h"
#include "transports/tcp/dialer.h"
#include "transports/transport.h"

namespace sluice {

// A message that comes in parts.
struct SpreadReceive {
  ReceiveInProgress at;
  size_t missing = 0;                  // bytes
  std::unique_ptr<std::byte[]> aside;  // it began as an unexpected message; its receive gets it at
                                       // the end
};

class Rail {
 public:
  // Asking side: while it dials, parts may be due already, because the peer may send on it at once.
  Rail(uint32_t number, std::unique_ptr<Dialer> dialer)
      : number_(number), dialer_(std::move(dialer)) {}
  // Connected, and both sides have greeted. filters: see connect.
  Rail(uint32_t number, Socket socket, bool within_host, bool filters, Vigil::Duration peer_timeout)
      : number_(number) {
    connect(std::move(socket), within_host, filters, peer_timeout);
    confirm();
  }
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  uint32_t number() const { return number_; }
  Dialer* dialer() const { return dialer_.get(); }
  // Connected, and not without the filter that it needs.
  bool is_open() const { return conduits_ && !conduits_.lacks_filter(); }
  // The peer has it, as far as is known, so parts may be sent.
  bool may_send() const { return is_open() && is_confirmed_; }
  void confirm() { is_confirmed_ = true; }
  // The dialer has connected. filters: the rail carries nothing before a filter has been added.
  // peer_timeout: for keepalive.
  void connect(Socket socket, bool within_host, bool filters, Vigil::Duration peer_timeout);
  ConduitStack& conduits() { return conduits_; }
  const ConduitStack& conduits() const { return conduits_; }

  // What it carries, if a part may be sent now, and would arrive, as far as the kernel knows; makes
  // system calls. limit: as of a Doubt. May throw std::bad_alloc; if it does not, the next push
  // does not either.
  std::optional<Load> load(Vigil::Duration limit);
  // A part of a send, whose Operation::parts counts it.
  void push(Operation* send, const TeamId& team, size_t offset, size_t bytes);
  // The next bytes that come are these of the message. May throw std::bad_alloc.
  void expect(SpreadReceive* receive, size_t offset, size_t bytes);

  bool has_parts() const { return !out_.empty(); }
  bool sends() const { return has_parts() || conduits_.filter_waits(); }
  bool may_flush() const { return sends() && !is_full_; }
  bool is_due() const { return !due_.empty(); }
  // Bytes that parts have had so far, sent and received.
  uint64_t carried() const { return taken_ + received_; }

  struct Outcome {
    bool moved = false;
    bool ended = false;
    std::string how{};          // it ended
    Diagnosis::Sign sign{};     // the same
    bool ran_short = false;     // because this host's kernel lacks memory
    Operation* done = nullptr;  // sends that have left whole, linked by `next`
    bool unfinished = false;    // reading stopped although it could go on
  };
  // Sends what the conduit takes. most_shortage: how long the kernel may lack memory for that.
  Outcome flush(Shortage::Clock::duration most_shortage);
  // Reads what is due and has come; counts it in SpreadReceive::missing.
  Outcome read();
  // Whether it has ended, and everything that came before has been read, but for what is no part of
  // a message (a filter's handshake). Makes a system call.
  bool has_ended();
  // How poll should look at it; reads: the link reads now. Without a socket, descriptor -1.
  pollfd poll_for(bool reads) const;
  // Whether a poll with that has found anything.
  void note_events(int events) { is_ready_ = events != 0; }
  bool is_ready() const { return is_ready_; }
  // What is due can be read although poll may say nothing.
  bool is_buffered() const { return is_due() && is_open() && conduits_.way_in().buffered(); }
  // Called about twice a second while it is due, or sends (watch.h).
  Diagnosis::Sign judge(const Connector& connector, Vigil::Duration limit);
  Vigil::Duration silence() const { return watch_.silence(); }
  void rest() { watch_.rest(); }
  // All that was pushed has left this process, and as far as is known, arrived.
  bool is_delivered();

  // Gives up the parts of the team's sends, all or those of one call: completes them from copies,
  // because the peer counts on them. Returns the sends that have no part left, linked by `next`.
  struct GivenUp {
    Operation* sends = nullptr;
    bool torn = false;  // no memory for a copy
  };
  GivenUp withdraw(const TeamId& team, std::optional<uint32_t> call);

 private:
  struct Outgoing {
    Operation* send;  // nullptr: given up
    TeamId team;
    size_t offset, bytes;                 // in the message
    size_t taken = 0;                     // by the conduit
    uint64_t end = 0;                     // of all bytes taken, once all of these are
    std::unique_ptr<std::byte[]> copy{};  // of the bytes that were not taken when it was given up
    size_t copied_from = 0;
  };
  struct Due {
    SpreadReceive* receive;
    size_t offset, bytes;  // in the message; those still to come
  };
  class Runs;

  size_t queued() const;
  void fill(Runs& runs) const;
  void note_taken(size_t bytes);
  void complete(Outcome& outcome);
  void stop(const Conduit& conduit, const Conduit::Moved& moved,
            Shortage::Clock::duration most_shortage, Outcome& outcome);
  void end(const Conduit& conduit, const Conduit::Moved& moved, Outcome& outcome) const;
  void place(Runs& runs, std::span<std::byte> spare, bool* copies) const;
  void note_received(size_t bytes, const std::byte* copied);

  const uint32_t number_;
  std::unique_ptr<Dialer> dialer_;
  ConduitStack conduits_;
  std::vector<Outgoing> out_;
  size_t first_ = 0;  // in out_: the first that is not taken whole
  bool is_confirmed_ = false;
  bool is_full_ = false;   // the conduit took less than offered last time
  bool is_ready_ = false;  // poll says so
  Shortage shortage_;      // to send
  Watch watch_;
  Doubt doubt_;
  std::deque<Due> due_;
  uint64_t taken_ = 0, received_ = 0;
};

}  // namespace sluice
