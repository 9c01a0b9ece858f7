// SPDX-License-Identifier: BSD-3-Clause
//
// Two processes that both may dial: all interleavings of what the two and the network between them
// do, by the table of transports/tcp/meeting.h.
#include "transports/tcp/meeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace sluice::meetings {
namespace {

using Side = Meeting::Side;
using State = Meeting::State;
using Event = Meeting::Event;
using Action = Meeting::Action;

constexpr State states[] = {State::apart,   State::waits, State::dials,
                            State::invites, State::met,   State::over};
constexpr Event events[] = {Event::needed,   Event::idle,      Event::urged,   Event::overdue,
                            Event::invited,  Event::connected, Event::greeted, Event::uninvited,
                            Event::short_of, Event::broke,     Event::ended};

// Whatever comes when: a connection that is not taken is closed, or refused with the reason.
TEST(Meeting, TakesNoConnectionButOnce) {
  for (const State state : states) {
    for (const Side side : {Side::asks, Side::answers}) {
      const Event brought = side == Side::asks ? Event::invited : Event::greeted;
      const Event foreign = side == Side::asks ? Event::greeted : Event::invited;
      const Action taken = side == Side::asks ? Action::adopt : Action::accept;
      const Action expected = state == State::met    ? Action::close
                              : state == State::over ? Action::refuse
                                                     : taken;
      const bool never = side == Side::asks && (state == State::waits || state == State::invites);
      if (!never) {
        EXPECT_EQ(Meeting::step(side, state, brought).action, expected);
      }
      EXPECT_EQ(Meeting::step(side, state, foreign).action, Action::close);
    }
  }
}

TEST(Meeting, IsOverForGood) {
  for (const Side side : {Side::asks, Side::answers}) {
    for (const State state : states) {
      EXPECT_EQ(Meeting::step(side, state, Event::ended).next, State::over);
    }
    for (const Event event : events) {
      EXPECT_EQ(Meeting::step(side, State::over, event).next, State::over);
    }
  }
}

// What crosses a connection.
enum class Word : uint8_t { none, greeting, invitation, answer, end };

// A connection that one side has begun to make. Each side has sent some words that the other has
// not read yet, at most two.
struct Line {
  enum class Stage : uint8_t { unused, connecting, up };
  Stage stage = Stage::unused;
  Side by = Side::asks;
  bool asks_open = false, answers_open = false;  // this side has not closed it
  bool greeted = false;                          // the asking side has, and awaits the answer
  bool invitation = false;                       // the answering side has sent one
  bool decoy = false;                            // it leads to a machine that stays silent
  std::array<Word, 2> to_asks{}, to_answers{};
  auto operator<=>(const Line&) const = default;

  static bool push(std::array<Word, 2>& words, Word word) {
    for (Word& each : words) {
      if (each != Word::none) continue;
      each = word;
      return true;
    }
    return false;
  }
  static Word pop(std::array<Word, 2>& words) {
    const Word first = words[0];
    words = {words[1], Word::none};
    return first;
  }
};

constexpr int none = -1;

// How the network is, and how the asking side has to greet.
struct Setting {
  bool asks_passes = true, answers_passes = true;  // connections that this side makes
  bool careful = false;                            // it greets on several, and takes the answered
  bool urged = false;                              // sides do not wait, but are urged to dial
  bool decoy = false;  // each side's first connection leads to another machine
};

struct World {
  static constexpr size_t lines = 4;
  State asks = State::apart, answers = State::apart;
  bool asks_needs = false, answers_needs = false;
  bool rested = false;   // the answering side has needed nothing once more
  bool dropped = false;  // the asking side has had no room for an invitation
  bool asks_misled = false, answers_misled = false;  // this side has dialed the decoy
  bool overdue = false;  // the answering side has invited elsewhere, too
  int asks_met = none, answers_met = none;
  std::array<Line, lines> line{};
  auto operator<=>(const World&) const = default;
};

// All worlds that can follow one.
class Steps {
 public:
  Steps(const World& from, const Setting& setting) : from_(from), setting_(setting) {
    need(Side::asks);
    need(Side::answers);
    dial(Side::asks);
    rest();
    if (from.answers == State::waits && !setting.urged) take(Side::answers, Event::overdue);
    if (from.answers_needs && setting.urged) take(Side::answers, Event::urged);
    if (from.asks_needs && setting.urged) take(Side::asks, Event::urged);
    if (setting.decoy && from.answers == State::invites && !from.overdue) {
      take(Side::answers, Event::overdue);
      all_.back().overdue = true;
    }
    dial(Side::answers);
    for (size_t i = 0; i < World::lines; ++i) {
      connect(i);
      drop(i);
      choose(i);
      read(i, Side::asks);
      read(i, Side::answers);
    }
  }
  const std::vector<World>& all() const { return all_; }

 private:
  static State& state_of(World& world, Side side) {
    return side == Side::asks ? world.asks : world.answers;
  }
  static Action act(World& world, Side side, Event event) {
    const auto step = Meeting::step(side, state_of(world, side), event);
    state_of(world, side) = step.next;
    return step.action;
  }
  void take(Side side, Event event) {
    World next = from_;
    const Action action = act(next, side, event);
    if (action == Action::stop || action == Action::wait) stop(next, side);
    all_.push_back(next);
  }
  void need(Side side) {
    if (side == Side::asks ? from_.asks_needs : from_.answers_needs) return;
    World next = from_;
    (side == Side::asks ? next.asks_needs : next.answers_needs) = true;
    act(next, side, Event::needed);
    all_.push_back(next);
  }
  void rest() {
    if (!from_.answers_needs || from_.rested) return;
    World next = from_;
    next.rested = true;
    next.answers_needs = false;
    if (act(next, Side::answers, Event::idle) == Action::stop) stop(next, Side::answers);
    all_.push_back(next);
  }
  void drop(size_t i) {
    if (from_.dropped || from_.line[i].to_asks[0] != Word::invitation) return;
    World next = from_;
    next.dropped = true;
    close(next, i, Side::asks);
    all_.push_back(next);
  }
  // The asking side has two attempts of its own at a time.
  void dial(Side side) {
    World next = from_;
    if (state_of(next, side) != State::dials) return;
    const auto attempts = std::ranges::count_if(next.line, [&](const Line& each) {
      const bool open = side == Side::asks ? each.asks_open : each.answers_open;
      return each.stage != Line::Stage::unused && each.by == side && open && !each.invitation;
    });
    if (attempts >= (side == Side::asks ? 2 : 1)) return;
    for (Line& each : next.line) {
      if (each.stage != Line::Stage::unused) continue;
      each = {Line::Stage::connecting, side, side == Side::asks, side == Side::answers};
      bool& misled = side == Side::asks ? next.asks_misled : next.answers_misled;
      each.decoy = setting_.decoy && !misled;
      misled |= setting_.decoy;
      all_.push_back(next);
      return;
    }
  }
  static void close(World& world, size_t i, Side side) {
    Line& line = world.line[i];
    bool& open = side == Side::asks ? line.asks_open : line.answers_open;
    if (!open) return;
    open = false;
    if (line.stage == Line::Stage::up) {
      Line::push(side == Side::asks ? line.to_answers : line.to_asks, Word::end);
    }
    clear(line);
  }
  // What nobody reads any more is gone; the place may be used again.
  static void clear(Line& line) {
    if (!line.asks_open) line.to_asks = {};
    if (!line.answers_open) line.to_answers = {};
    if (!line.asks_open && !line.answers_open) line = {};
  }
  // Ends the side's own attempts but for one connection.
  static void stop(World& world, Side side, int but = none) {
    for (size_t i = 0; i < World::lines; ++i) {
      const Line& line = world.line[i];
      if (static_cast<int>(i) == but || line.stage == Line::Stage::unused) continue;
      const bool own = side == Side::asks ? line.by == Side::asks || adopted(line)
                                          : line.by == Side::answers && !line.invitation;
      if (own) close(world, i, side);
    }
  }
  // The kernels connect the two, if the network lets that pass. The listening side has no choice.
  void connect(size_t i) {
    if (from_.line[i].stage != Line::Stage::connecting) return;
    const bool decoy = from_.line[i].decoy;
    const bool passes =
        from_.line[i].by == Side::asks ? setting_.asks_passes : setting_.answers_passes;
    if (!(passes || decoy)) return;
    World next = from_;
    Line& line = next.line[i];
    line.stage = Line::Stage::up;
    if (!decoy) line.asks_open = line.answers_open = true;
    if (line.by == Side::answers) {
      line.invitation = true;
      if (!decoy) Line::push(line.to_asks, Word::invitation);
      EXPECT_EQ(act(next, Side::answers, Event::connected), Action::invite);
    }
    all_.push_back(next);
  }
  // The asking side's dialer goes on with a connection: its own, or one that it has adopted.
  void choose(size_t i) {
    const Line& line = from_.line[i];
    const bool own = line.by == Side::asks || adopted(line);
    if (line.stage != Line::Stage::up || !line.asks_open || line.greeted || !own) return;
    if (from_.asks != State::dials) return;
    World next = from_;
    next.line[i].greeted = true;
    if (!line.decoy) Line::push(next.line[i].to_answers, Word::greeting);
    if (!setting_.careful && !line.decoy) meet(next, i);
    all_.push_back(next);
  }
  static bool adopted(const Line& line) {
    return line.by == Side::answers && line.to_asks[0] != Word::invitation;
  }
  static void meet(World& world, size_t i) {
    EXPECT_EQ(act(world, Side::asks, Event::connected), Action::greet);
    world.asks_met = static_cast<int>(i);
    stop(world, Side::asks, world.asks_met);
  }
  void read(size_t i, Side side) {
    World next = from_;
    Line& line = next.line[i];
    const bool open = side == Side::asks ? line.asks_open : line.answers_open;
    if (line.stage != Line::Stage::up || !open) return;
    const Word word = Line::pop(side == Side::asks ? line.to_asks : line.to_answers);
    if (word == Word::none) return;
    side == Side::asks ? asks_reads(next, i, word) : answers_reads(next, i, word);
    all_.push_back(next);
  }
  static void asks_reads(World& world, size_t i, Word word) {
    if (word == Word::invitation) {
      if (act(world, Side::asks, Event::invited) != Action::adopt) close(world, i, Side::asks);
    } else if (word == Word::answer) {
      if (world.asks == State::dials) meet(world, i);
    } else if (world.asks_met != static_cast<int>(i)) {
      close(world, i, Side::asks);  // its attempt has come to nothing
    } else {
      ADD_FAILURE() << "the asking side's connection was closed";
    }
  }
  static void answers_reads(World& world, size_t i, Word word) {
    Line& line = world.line[i];
    if (word == Word::greeting) {
      if (act(world, Side::answers, Event::greeted) != Action::accept) {
        return close(world, i, Side::answers);
      }
      world.answers_met = static_cast<int>(i);
      Line::push(line.to_asks, Word::answer);
      for (size_t other = 0; other < World::lines; ++other) {
        const bool own = world.line[other].by == Side::answers;
        if (other != i && own) close(world, other, Side::answers);
      }
      return;
    }
    if (world.answers_met == static_cast<int>(i)) {
      ADD_FAILURE() << "the answering side's connection was closed";
    }
    const bool invited = line.invitation;
    close(world, i, Side::answers);
    if (invited) act(world, Side::answers, Event::uninvited);
  }

  const World from_;
  const Setting setting_;
  std::vector<World> all_;
};

// Both have chosen, and not the same. (A careful asking side has chosen once it is answered.)
bool differ(const World& world) {
  return world.asks_met != none && world.answers_met != none && world.asks_met != world.answers_met;
}

struct Walk {
  size_t worlds = 0, ends = 0;
};

Walk walk(const Setting& setting) {
  std::set<World> seen{World{}};
  std::deque<World> to_do{World{}};
  Walk walk;
  const bool passes = setting.asks_passes || setting.answers_passes;
  while (!to_do.empty()) {
    const World world = to_do.front();
    to_do.pop_front();
    ++walk.worlds;
    if (differ(world)) {
      ADD_FAILURE() << "different connections";
      return walk;
    }
    const Steps steps(world, setting);
    const bool moves =
        std::ranges::any_of(steps.all(), [&](const World& next) { return next != world; });
    if (!moves) {
      ++walk.ends;
      EXPECT_EQ(world.asks_met != none, passes);
      EXPECT_EQ(world.answers_met != none, passes);
    }
    for (const World& next : steps.all()) {
      if (seen.insert(next).second) to_do.push_back(next);
    }
    if (testing::Test::HasFailure()) return walk;
  }
  return walk;
}

TEST(Meeting, EndsOnOneConnectionWhateverTheOrder) {
  for (int bits = 0; bits < 32; ++bits) {
    const Setting setting{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0,
                          (bits & 16) != 0};
    const Walk done = walk(setting);
    EXPECT_GT(done.ends, 0U) << bits;
    EXPECT_GT(done.worlds, (bits & 3) == 3 ? 1000U : 20U) << bits;
  }
}

}  // namespace
}  // namespace sluice::meetings
