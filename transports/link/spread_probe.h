// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a sender gains by spreading its large messages over several connections (rails.h). Where
// the network caps each flow, as clouds do, several carry a multiple; where one fills the link,
// more only compete with each other. So with SLUICE_TCP_STREAMS=auto each sender tries both in its
// first large messages to a peer, and keeps what was better. That is its own affair: a receiver
// takes each message as it comes.
//
// What is measured is what the peer's kernel acknowledged, per time in which the connections had
// enough to send. While the program computes, that is not so, and no time counts. Three windows of
// each way are measured, after some bytes that a flow needs to get up to speed. Messages that the
// program posted earlier still go the other way. So each way counts only the bytes of its own
// connections, and the one connection counts none while the others carry some, because they share
// the network then. Over one connection the best counts, over several the middle one: so one
// disturbance does not mislead it, nor does a network that lets bursts pass faster. Several must be
// clearly faster, and also than the one is in three more windows, because buffers grow, and hosts
// are busier when a job begins.
//
// What says nothing is no result: a window in which the peer's receive window was shut, because the
// receiver was late; no full window in many bytes; no rails. Then the probe rests, and begins anew
// after more bytes, a few times.
//
// All links of a host share its network card. If that is full, several connections get a larger
// share of it, at the expense of others, although no flow is capped. So what all else on the host's
// interfaces lost meanwhile may be at most half of what this link gained; what it had is the most
// of all windows, because others try, too. If all try in step, as in
// an alltoall, none gains. While others sent, that one connection was enough is not final either.
// Where another link of the process has chosen several, a link that keeps one would get less than
// its share of a full card: then it does not matter what others lose.
//
// It has no socket and no clock: its owner passes times and bytes. BBR, too, counts delivered bytes
// only over time in which there was enough to send (Cardwell et al., 2016).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "transports/link/flow.h"

namespace sluice {

class SpreadProbe {
 public:
  enum class State : uint8_t {
    warming,   // over one connection: the first bytes do not count
    alone,     // over one connection: windows
    awaiting,  // the other connections are to be made; over one meanwhile
    joining,   // over several: the first bytes do not count
    together,  // over several: windows
    parting,   // several were better; over one again: the first bytes do not count
    again,     // over one again: windows
    resting,   // nothing was found out: over one, for some bytes
    one,       // chosen
    several    // chosen
  };
  enum class Event : uint8_t {
    warm,      // enough bytes have gone
    measured,  // the windows are full
    ready,     // the other connections are there
    better,    // several are, as far as is known
    worse,     // they are not, or not clearly
    unclear,   // it said nothing
    rested,    // enough bytes have gone since
    tired      // unclear for the last time
  };
  // The table. What is not in it changes nothing.
  static State step(State state, Event event);

  // Bytes: that do not count at first, over one and over several connections; of a window, which
  // also has a least time.
  static constexpr uint64_t warm_up = 512 << 10, joint_warm_up = 1 << 20, window_bytes = 1 << 20;
  static constexpr std::chrono::milliseconds window_time{4};
  static constexpr size_t windows = 3;  // of a state
  // Outstanding bytes with which a sender counts as busy. (The last bytes of a message may be
  // acknowledged late.)
  static constexpr size_t least_busy = size_t{32} << 10;
  static constexpr double margin = 1.4;  // how much faster several must be
  // Bytes of large messages in which a state must end; of the first rest, of which each later one
  // is a multiple.
  static constexpr uint64_t most_bytes = 256 << 20, first_rest = 8 << 20, rest_growth = 4;
  static constexpr int most_tries = 4;
  static constexpr size_t most_spoiled = 4;  // windows of a state in which the receiver was late

  struct Sample {
    std::chrono::nanoseconds from{}, to{};  // between these times it was so
    Flow alone{};                           // of the one connection
    Flow spread{};                          // of the others, in sum
    bool spread_waits = false;              // parts for these are still to be written
    bool neighbours = false;                // another link of the process has chosen several
  };
  // Bytes that the host's interfaces have sent so far, of this link and of all else; called at the
  // ends of windows.
  using Interfaces = std::function<uint64_t()>;

  // A large message is to be sent. Spread it if spreads() is true then.
  void note_send(size_t bytes);
  // So many other connections are there.
  void note_ready(size_t rails);
  // What a moment was like; called before each write of more, and often while any is outstanding.
  // True if the choice has been made now.
  bool observe(const Sample& sample, const Interfaces& interfaces);

  State state() const { return state_; }
  bool spreads() const {
    return state_ == State::joining || state_ == State::together || state_ == State::several;
  }
  // observe() is needed.
  bool watches() const {
    return !is_decided() && state_ != State::awaiting && state_ != State::resting;
  }
  bool is_decided() const { return state_ == State::one || state_ == State::several; }
  // Once decided: "one connection carries 24 MB/s, 6 carry 117: uses 6".
  std::array<char, 128> findings() const;

 private:
  // Bytes a second, of this link and of all else.
  struct Rates {
    double here = 0, elsewhere = 0;
  };
  class Window {
   public:
    Window() = default;
    // It begins. host: what the interfaces have sent so far.
    Window(const Sample& sample, uint64_t host);
    // Time goes on between two samples, in which the measured flow was so.
    void add(const Sample& before, const Flow& then, const Sample& now, const Flow& is);
    bool is_full() const { return bytes_ >= window_bytes && busy_ >= window_time; }
    // The receiver was late, on so many connections.
    bool is_spoiled(size_t connections) const;
    // It ends.
    Rates rates(const Sample& sample, uint64_t host) const;

   private:
    std::chrono::nanoseconds began_{}, busy_{}, shut_{};
    uint64_t bytes_ = 0;            // in busy time
    uint64_t here_ = 0, host_ = 0;  // of this link and of all, when it began
  };

  void enter(Event event);
  const Flow& measured(const Sample& sample) const {
    return spreads() ? sample.spread : sample.alone;
  }
  bool warms() const {
    return state_ == State::warming || state_ == State::joining || state_ == State::parting;
  }
  void warm(const Sample& sample);
  void begin_window(const Sample& sample, const Interfaces& interfaces);
  void end_window(const Sample& sample, const Interfaces& interfaces);
  void rest();
  void decide(bool neighbours);

  State state_ = State::warming;
  uint64_t sent_ = 0;                   // bytes of messages in this state
  std::array<Rates, 2> result_{};       // over one connection, over several
  std::array<Rates, windows> found_{};  // in windows of this state
  size_t rails_ = 0;
  int tries_ = 0;  // that said nothing
  uint64_t rest_ = first_rest;
  bool has_last_ = false, in_window_ = false;
  Sample last_;
  uint64_t warm_from_ = 0;  // acknowledged when warming began
  Window window_;
  size_t full_ = 0, spoiled_ = 0;  // windows of this state
};

}  // namespace sluice
