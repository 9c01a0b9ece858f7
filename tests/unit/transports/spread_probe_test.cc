// SPDX-License-Identifier: BSD-3-Clause
//
// The probe of several connections: its table, and what it chooses in simulated networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "transports/link/spread_probe.h"

namespace sluice::spread_probes {
namespace {

using State = SpreadProbe::State;
using Event = SpreadProbe::Event;
using std::chrono::nanoseconds;

constexpr auto states = static_cast<int>(State::several) + 1;
constexpr auto events = static_cast<int>(Event::tired) + 1;

TEST(SpreadProbeTable, EachStep) {
  const std::set<std::tuple<State, Event, State>> expected = {
      {State::warming, Event::warm, State::alone},
      {State::alone, Event::measured, State::awaiting},
      {State::awaiting, Event::ready, State::joining},
      {State::joining, Event::warm, State::together},
      {State::together, Event::better, State::parting},
      {State::together, Event::worse, State::one},
      {State::parting, Event::warm, State::again},
      {State::again, Event::better, State::several},
      {State::again, Event::worse, State::one},
      {State::resting, Event::rested, State::warming}};
  const std::set<State> tries = {State::warming,  State::alone,   State::awaiting, State::joining,
                                 State::together, State::parting, State::again};
  for (int i = 0; i < states; ++i) {
    for (int k = 0; k < events; ++k) {
      const auto state = static_cast<State>(i);
      const auto event = static_cast<Event>(k);
      State next = state;
      if (event == Event::unclear && tries.contains(state)) next = State::resting;
      if (event == Event::tired && tries.contains(state)) next = State::one;
      for (const auto& [from, on, to] : expected) {
        if (from == state && on == event) next = to;
      }
      EXPECT_EQ(SpreadProbe::step(state, event), next) << "state " << i << ", event " << k;
    }
  }
}

// From each state that is not a choice, some events lead to one, and no event leads away from it.
TEST(SpreadProbeTable, EndsInAChoice) {
  std::set<State> ends = {State::one, State::several};
  for (int k = 0; k < events; ++k) {
    for (const State end : {State::one, State::several}) {
      EXPECT_EQ(SpreadProbe::step(end, static_cast<Event>(k)), end);
    }
  }
  for (int round = 0; round < states; ++round) {
    for (int i = 0; i < states; ++i) {
      for (int k = 0; k < events; ++k) {
        const auto state = static_cast<State>(i);
        if (ends.contains(SpreadProbe::step(state, static_cast<Event>(k)))) ends.insert(state);
      }
    }
  }
  EXPECT_EQ(ends.size(), static_cast<size_t>(states));
}

// What a network is like. Rates in bytes a second.
struct Network {
  double card = 119e6;    // of all links of the process
  double cap = 0;         // of each flow; 0: none
  double noise = 0;       // by this share rates differ from step to step
  double shut = 0;        // for this share of time the receiver's window is shut
  double pause_us = 0;    // that the program computes after each message
  double change_ms = -1;  // from then on, for some time, the card is so much faster
  double changed_ms = 0, change = 1;
  double quiet_ms = 0;   // after that only the first link sends; 0: never
  double switch_us = 0;  // the receiver is late in periods of so long, each other one; 0: never
  size_t ahead = 1;      // messages that the program has posted beside the one that goes
};

constexpr size_t rails = 6;
constexpr size_t message = 256 << 10;
constexpr nanoseconds tick{20'000};

// What one flow, or some of one kind, have carried and are to carry.
Flow flow(uint64_t acknowledged, size_t outstanding) { return {acknowledged, outstanding, {}}; }

// A sender, with its flows to one peer.
class Sender {
 public:
  const SpreadProbe& probe() const { return probe_; }
  size_t messages() const { return messages_; }
  uint64_t acknowledged() const { return alone_.acknowledged + spread_.acknowledged; }
  size_t flows() const {
    return (alone_.outstanding > 0 ? 1u : 0u) + (spread_.outstanding > 0 ? rails : 0u);
  }

  // Posts what the program has ready.
  void post(nanoseconds now, const Network& network, bool neighbours,
            const SpreadProbe::Interfaces& interfaces) {
    while (now >= ready_at_ && outstanding() <= network.ahead * message) {
      look(now, neighbours, interfaces);
      probe_.note_send(message);
      if (probe_.state() == State::awaiting && ++awaited_ > 5) probe_.note_ready(rails);
      (probe_.spreads() ? spread_ : alone_).outstanding += message;
      ++messages_;
      if (network.pause_us > 0) {
        ready_at_ = now + nanoseconds(static_cast<int64_t>(network.pause_us * 1000));
      }
    }
  }
  // A tick passes, in which each flow may carry so many bytes.
  void move(double each_flow, bool is_shut) {
    pass(alone_, 1, each_flow, is_shut);
    pass(spread_, rails, each_flow, is_shut);
  }
  void look(nanoseconds now, bool neighbours, const SpreadProbe::Interfaces& interfaces) {
    (void)probe_.observe({now, now, alone_, spread_, false, neighbours}, interfaces);
  }

 private:
  size_t outstanding() const { return alone_.outstanding + spread_.outstanding; }
  static void pass(Flow& over, size_t flows, double each_flow, bool is_shut) {
    if (over.outstanding == 0) return;
    if (is_shut) {
      over.shut +=
          std::chrono::duration_cast<std::chrono::microseconds>(tick) * static_cast<int64_t>(flows);
      return;
    }
    const auto most = static_cast<size_t>(each_flow * static_cast<double>(flows));
    const size_t bytes = std::min(over.outstanding, most);
    over.outstanding -= bytes;
    over.acknowledged += bytes;
  }

  SpreadProbe probe_;
  Flow alone_, spread_;
  size_t messages_ = 0;
  int awaited_ = 0;
  nanoseconds ready_at_{};
};

// A process with some links; `stagger`: each begins so much later than the one before.
class Simulation {
 public:
  Simulation(const Network& network, size_t links, nanoseconds stagger = {})
      : network_(network), stagger_(stagger), random_(Simulation::seed()) {
    for (size_t i = 0; i < links; ++i) senders_.push_back(std::make_unique<Sender>());
  }
  static unsigned seed() {
    return static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed());
  }

  // Until all have chosen, or for some seconds.
  void run(std::chrono::seconds limit = std::chrono::seconds(60)) {
    for (nanoseconds now{1}; now < limit && !all_decided(); now += tick) step(now);
  }
  size_t chose(State state) const {
    return static_cast<size_t>(std::ranges::count_if(
        senders_, [&](const auto& each) { return each->probe().state() == state; }));
  }
  const Sender& sender() const { return *senders_.front(); }

 private:
  bool all_decided() const {
    if (network_.quiet_ms > 0) return sender().probe().is_decided();
    return chose(State::one) + chose(State::several) == senders_.size();
  }

  static double milliseconds(nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

  bool is_shut(nanoseconds now) {
    const auto period = static_cast<int64_t>(network_.switch_us * 1000);
    if (period > 0 && now.count() / period % 2 == 1) return true;
    return std::bernoulli_distribution(network_.shut)(random_);
  }

  void step(nanoseconds now) {
    size_t flows = 0;
    for (size_t i = 0; i < senders_.size(); ++i) {
      if (now < stagger_ * static_cast<int64_t>(i)) continue;
      if (i > 0 && network_.quiet_ms > 0 && milliseconds(now) > network_.quiet_ms) continue;
      const auto interfaces = [&] { return acknowledged(); };
      const bool neighbours = chose(State::several) > 0;
      senders_[i]->post(now, network_, neighbours, interfaces);
      if (now / tick % 5 == 0) senders_[i]->look(now, neighbours, interfaces);
      flows += senders_[i]->flows();
    }
    if (flows == 0) return;
    const double since = milliseconds(now) - network_.change_ms;
    const bool is_changed = network_.change_ms >= 0 && since >= 0 && since < network_.changed_ms;
    double rate = network_.card / static_cast<double>(flows) * (is_changed ? network_.change : 1);
    if (network_.cap > 0) rate = std::min(rate, network_.cap);
    for (const auto& each : senders_) {
      std::uniform_real_distribution<double> noise(1 - network_.noise, 1 + network_.noise);
      const double seconds = std::chrono::duration<double>(tick).count();
      each->move(rate * seconds * noise(random_), is_shut(now));
    }
  }
  uint64_t acknowledged() const {
    uint64_t bytes = 0;
    for (const auto& each : senders_) bytes += each->acknowledged();
    return bytes;
  }

  const Network network_;
  const nanoseconds stagger_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Sender>> senders_;
};

Simulation simulate(const Network& network, size_t links = 1, nanoseconds stagger = {}) {
  Simulation made(network, links, stagger);
  made.run();
  return made;
}

TEST(SpreadProbe, CappedFlows) {
  const auto done = simulate({.cap = 25e6});
  EXPECT_EQ(done.sender().probe().state(), State::several);
  EXPECT_LT(done.sender().messages() * message, size_t{20} << 20);
  EXPECT_STREQ(done.sender().probe().findings().data(),
               "one connection carries 25 MB/s, 6 carry 119: uses 6");
}

TEST(SpreadProbe, OneFlowFillsTheLink) {
  const auto done = simulate({});
  EXPECT_EQ(done.sender().probe().state(), State::one);
  EXPECT_LT(done.sender().messages() * message, size_t{20} << 20);
  EXPECT_STREQ(done.sender().probe().findings().data(),
               "one connection carries 119 MB/s, 6 carry 119: uses 1");
}

// What was posted before each step of the probe goes the way that was chosen then: beside the six
// the one still has its share.
TEST(SpreadProbe, ManyMessagesAhead) {
  for (const size_t ahead : {4, 30, 100}) {
    const auto capped = simulate({.cap = 25e6, .ahead = ahead});
    EXPECT_STREQ(capped.sender().probe().findings().data(),
                 "one connection carries 25 MB/s, 6 carry 102: uses 6")
        << ahead;
    EXPECT_EQ(simulate({.ahead = ahead}).chose(State::one), 1u) << ahead;
    const auto half = simulate({.cap = 60e6, .ahead = ahead});
    EXPECT_EQ(half.chose(State::several), 1u) << half.sender().probe().findings().data();
  }
}

TEST(SpreadProbe, CapsOfAllKinds) {
  for (const double card : {12e6, 119e6, 1.2e9, 12e9}) {
    for (const double share : {0.05, 0.1, 0.2, 0.4, 0.7}) {
      const auto done = simulate({.card = card, .cap = card * share});
      EXPECT_EQ(done.sender().probe().state(), State::several) << card << ", " << share;
    }
    for (const double share : {0.8, 0.9, 1.0, 2.0}) {
      const auto done = simulate({.card = card, .cap = card * share});
      EXPECT_EQ(done.sender().probe().state(), State::one) << card << ", " << share;
    }
  }
}

TEST(SpreadProbe, Noise) {
  for (const double noise : {0.2, 0.5, 1.0}) {
    EXPECT_EQ(simulate({.noise = noise}).chose(State::one), 1u) << noise;
    EXPECT_EQ(simulate({.cap = 25e6, .noise = noise}).chose(State::several), 1u) << noise;
  }
}

// One window in which the network is slower, or faster, does not mislead it, whenever that is.
TEST(SpreadProbe, OneWindowIsOther) {
  for (double ms = 0; ms < 100; ms += 0.5) {
    const auto slower = simulate({.change_ms = ms, .changed_ms = 15, .change = 0.25});
    EXPECT_EQ(slower.chose(State::several), 0u) << ms;
    const auto faster = simulate({.change_ms = ms, .changed_ms = 3, .change = 2.2});
    EXPECT_EQ(faster.chose(State::several), 0u) << ms;
  }
}

// The program computes between messages.
TEST(SpreadProbe, Pauses) {
  for (const double pause_us : {100.0, 1000.0, 15000.0}) {
    EXPECT_EQ(simulate({.pause_us = pause_us}).chose(State::one), 1u) << pause_us;
    EXPECT_EQ(simulate({.cap = 25e6, .pause_us = pause_us}).chose(State::several), 1u) << pause_us;
  }
}

// A receiver that is always late says nothing; the probe ends with one connection, after some
// tries.
TEST(SpreadProbe, LateReceiver) {
  for (const double cap : {0.0, 25e6}) {
    const auto done = simulate({.cap = cap, .shut = 0.5});
    EXPECT_EQ(done.sender().probe().state(), State::one);
    EXPECT_STREQ(done.sender().probe().findings().data(),
                 "no probe of several connections told anything: uses 1");
    EXPECT_GT(done.sender().messages() * message, SpreadProbe::first_rest);
  }
}

// One that is late now and then does not mislead it: what is late says nothing, the rest is right.
TEST(SpreadProbe, ReceiverThatIsLateAtTimes) {
  for (const double period_us : {20e3, 100e3, 400e3}) {
    EXPECT_EQ(simulate({.switch_us = period_us}).chose(State::several), 0u) << period_us;
  }
  EXPECT_EQ(simulate({.cap = 25e6, .switch_us = 400e3}).chose(State::several), 1u);
}

// Many links share a card that is full: several flows of one link gain at the others' expense.
TEST(SpreadProbe, LinksThatShareTheCard) {
  for (const size_t links : {2, 3, 7}) {
    for (const int64_t stagger_ms : {0, 3, 40}) {
      const auto done = simulate({.card = 1.2e9}, links, std::chrono::milliseconds(stagger_ms));
      EXPECT_EQ(done.chose(State::several), 0u) << links << " links, " << stagger_ms << " ms";
    }
  }
}

// While others fill the card, it is not final that several gain nothing.
TEST(SpreadProbe, CardThatIsFullAtFirst) {
  const auto done = simulate({.cap = 25e6, .quiet_ms = 700}, 12);
  EXPECT_EQ(done.sender().probe().state(), State::several);
}

// They share a card with room, and each flow is capped.
TEST(SpreadProbe, CappedFlowsToMany) {
  for (const size_t links : {2, 3, 7}) {
    for (const int64_t stagger_ms : {0, 3, 40}) {
      const auto done =
          simulate({.card = 1.2e9, .cap = 20e6}, links, std::chrono::milliseconds(stagger_ms));
      EXPECT_EQ(done.chose(State::several), links) << stagger_ms << " ms";
    }
  }
}

// They fill a card that has room for some of them with one connection each: none is left behind.
TEST(SpreadProbe, CappedFlowsFillTheCard) {
  for (const size_t links : {3, 4}) {
    for (const int64_t stagger_ms : {0, 3, 40, 400}) {
      const auto done =
          simulate({.card = 119e6, .cap = 25e6}, links, std::chrono::milliseconds(stagger_ms));
      const size_t chose = done.chose(State::several);
      EXPECT_TRUE(chose == links || chose == 0) << chose << " of " << links << ", " << stagger_ms;
      // (The probes of some may fall on those of others again and again. Then none is decided.)
      EXPECT_TRUE(chose == links || links > 3 || stagger_ms == 40) << stagger_ms;
    }
  }
}

TEST(SpreadProbe, WithoutRailsItGivesUp) {
  SpreadProbe probe;
  const auto none = [] { return uint64_t{0}; };
  nanoseconds now{1};
  uint64_t sent = 0;
  for (; !probe.is_decided() && sent < uint64_t{8} << 30; sent += message) {
    probe.note_send(message);
    now += std::chrono::milliseconds(1);
    (void)probe.observe({now, now, flow(sent, message)}, none);
    EXPECT_FALSE(probe.spreads());
  }
  EXPECT_EQ(probe.state(), State::one);
  EXPECT_GE(sent, SpreadProbe::most_tries * SpreadProbe::most_bytes);
}

// Of each two milliseconds, little goes in the first, in which something is always outstanding, and
// much in the second, in which all arrives. Taking the second sample may take long.
std::string findings_of_turns(std::chrono::milliseconds taking) {
  SpreadProbe probe;
  const auto none = [] { return uint64_t{0}; };
  nanoseconds now{1};
  uint64_t acknowledged = 0;
  for (int i = 0; i < 10'000 && !probe.is_decided(); ++i) {
    now += std::chrono::milliseconds(1);
    acknowledged += i % 2 == 0 ? 10'000 : 100'000;
    const nanoseconds took = i % 2 == 0 ? nanoseconds(0) : taking;
    const Flow used = flow(acknowledged, i % 2 == 0 ? message : 0);
    (void)probe.observe(probe.spreads() ? SpreadProbe::Sample{now, now + took, {}, used}
                                        : SpreadProbe::Sample{now, now + took, used, {}},
                        none);
    probe.note_send(100'000);
    if (probe.state() == State::awaiting) probe.note_ready(rails);
  }
  return probe.findings().data();
}

TEST(SpreadProbe, AllHasArrived) {
  EXPECT_EQ(findings_of_turns({}), "one connection carries 55 MB/s, 6 carry 55: uses 1");
  EXPECT_EQ(findings_of_turns(std::chrono::milliseconds(20)),
            "one connection carries 10 MB/s, 6 carry 10: uses 1");
}

// A rank passes on what comes to it slowly: all has gone long before the next is written. That says
// nothing of what the connections could carry.
TEST(SpreadProbe, WhatComesSlowlySaysNothing) {
  SpreadProbe probe;
  const auto none = [] { return uint64_t{0}; };
  SpreadProbe::Sample sample;
  int slow = 0;
  for (int i = 0; i < 10'000 && !probe.is_decided(); ++i) {
    sample.from = sample.to += std::chrono::milliseconds(10);
    const bool spreads = probe.spreads(), is_slow = spreads && slow < 300;
    slow += is_slow ? 1 : 0;
    Flow& used = spreads ? sample.spread : sample.alone;
    used.acknowledged += spreads && !is_slow ? 1'190'000 : 250'000;
    used.outstanding = is_slow ? 0 : message;
    (spreads ? sample.alone : sample.spread).outstanding = 0;
    sample.spread_waits = is_slow;
    probe.note_send(message);
    if (probe.state() == State::awaiting) probe.note_ready(rails);
    (void)probe.observe(sample, none);
    ASSERT_TRUE(!is_slow || probe.spreads());
  }
  EXPECT_EQ(slow, 300);
  EXPECT_STREQ(probe.findings().data(), "one connection carries 25 MB/s, 6 carry 119: uses 6");
}

// Another connection takes the place of one that broke: its count begins anew.
TEST(SpreadProbe, CountsThatBeginAnew) {
  SpreadProbe probe;
  const auto none = [] { return uint64_t{0}; };
  std::mt19937_64 random(Simulation::seed());
  nanoseconds now{1};
  Flow alone, spread;
  for (int i = 0; i < 100'000 && !probe.is_decided(); ++i) {
    now += std::chrono::microseconds(100);
    const bool spreads = probe.spreads();
    Flow& used = spreads ? spread : alone;
    used.acknowledged += spreads ? 11'900 : 2'500;
    if (random() % 1000 == 0) used.acknowledged = 0;
    alone.outstanding = spreads ? 0 : message;
    spread.outstanding = spreads ? message : 0;
    probe.note_send(10'000);
    if (probe.state() == State::awaiting) probe.note_ready(rails);
    (void)probe.observe({now, now, alone, spread}, none);
  }
  EXPECT_EQ(probe.state(), State::several);
}

}  // namespace
}  // namespace sluice::spread_probes
