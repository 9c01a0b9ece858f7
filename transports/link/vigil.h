// SPDX-License-Identifier: BSD-3-Clause
//
// When a silent host is taken for dead. A rank that computes says nothing for hours, but its host's
// kernel acknowledges data and answers keepalive probes. Only the time in which this process waits
// for the peer counts: an outage while ranks compute does no harm if the network is back when a
// call needs it. The same limit tunes keepalive, which otherwise ends idle connections by limits of
// its own.
#pragma once

#include <bit>
#include <chrono>
#include <cstdint>

#include "transports/tcp/socket.h"

namespace sluice {

class Vigil {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::milliseconds;

  // If silence_at was not called for so long, this process did not wait for the peer: the program
  // computes while a call is under way.
  static constexpr Duration longest_gap{2000};
  // Retransmissions and probes without an answer until a host can be dead.
  static constexpr unsigned least_tries = 3;
  // For how long a silent host is asked over other connections before it is taken for dead (Watch).
  static constexpr Duration time_to_ask{2000};

  // What the kernel says of a connection.
  struct Signs {
    Duration silence;    // since the peer's kernel has acknowledged anything
    unsigned tries = 0;  // retransmissions and probes since
  };

  // Called about twice a second while something of the link is pending. Returns how long the host
  // has not answered in this vigil, if it is to be taken for dead; else 0. limit: 0: never. A host
  // is dead only if a retransmission or probe during this wait went unanswered: the network may
  // just have come back.
  Duration silence_at(Clock::time_point now, const Signs& signs, Duration limit);
  // It answers on another connection: what follows is another wait.
  void pardon(Clock::time_point now, const Signs& signs);
  // Since then it has not answered on this one.
  bool is_pardoned() const { return is_pardoned_; }
  // Nothing is pending: what follows is another wait.
  void rest() { looked_ = {}; }

 private:
  Clock::time_point since_{}, looked_{};
  unsigned tries_before_ = 0;  // of those that the kernel counts
  bool is_pardoned_ = false;
};

// Has the kernel probe an idle connection about six times in the limit, at least every 10 s. The
// kernel ends a dead connection a little later than the watch, so during a call the watch decides,
// and says why. The link makes a connection that ended between calls again. limit: 0: as of a
// minute.
void keep_alive(const Socket& socket, Vigil::Duration limit);

// Keeps an idle connection from being used while it may be gone. After an outage one end's kernel
// may have ended it, and the other's not yet: what that end sends then is answered by a reset, and
// lost. The kernel tells: while its probes, or what it has sent again, are unanswered, nothing is
// sent.
class Doubt {
 public:
  // Called before a send: whether to hold it back. If so, the kernel probes at once and then every
  // second, or less often if it would otherwise end the connection before the limit (as in
  // keep_alive): bytes from the peer may still arrive. Makes a system call after a pause of about a
  // second or a half; between messages that follow each other a lost packet is no reason to doubt.
  bool forbids(const Socket& socket, Vigil::Duration limit) {
    return is_due() && ask(socket, limit);
  }
  // Whether forbids() may say yes; cheap.
  bool is_due() const { return period() != used_in_; }
  // Whether the latest answer was yes. The kernel's next news may change it: poll tells of a reset,
  // but not of a probe's answer.
  bool lasts() const { return lasts_; }

 private:
  // The number of this quarter of a second or so, by a counter that one instruction reads, because
  // a clock takes a hundred.
  static uint64_t period() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc() >> 29;  // at 1 to 4 GHz
#elif defined(__aarch64__)
    uint64_t count, frequency;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    asm("mrs %0, cntfrq_el0" : "=r"(frequency));
    return count >> (std::bit_width(frequency) - 2);
#else
    return static_cast<uint64_t>(Vigil::Clock::now().time_since_epoch() / Vigil::Duration(300));
#endif
  }
  static constexpr uint64_t pause = 2;  // whole periods

  bool ask(const Socket& socket, Vigil::Duration limit);
  bool is_justified(const Socket& socket, Vigil::Duration limit);

  uint64_t used_in_ = 0;  // the period of the last use; 0: never, or the doubt lasts
  bool lasts_ = false;
};

// What the kernel says of it. False if it is no TCP socket.
bool ask_kernel(const Socket& socket, Vigil::Signs* signs);

}  // namespace sluice
