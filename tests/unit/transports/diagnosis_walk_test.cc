// SPDX-License-Identifier: BSD-3-Clause
//
// Two links that act by the table of diagnoses, and all that can happen to them: connections that
// break before and after they are ready, outages, bytes that are lost or come late, a process that
// ends, a side that gives up for a reason of its own. In all interleavings, neither waits for ever,
// and neither gives up for a cause that is not true.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <vector>

#include "transports/link/diagnosis.h"

namespace sluice::diagnosing_two {
namespace {

using Side = Diagnosis::Side;
using Stage = Diagnosis::Stage;
using Sign = Diagnosis::Sign;
using Bytes = Diagnosis::Bytes;
using Limit = Diagnosis::Limit;
using Remedy = Diagnosis::Remedy;
using Cause = Diagnosis::Cause;

enum class Fate : uint8_t { lives, over, dead };  // over: its link

struct End {
  Fate fate = Fate::lives;
  Stage stage = Stage::unmet;
  uint8_t connection = 0;    // its number; 0: none
  Sign due = Sign::nothing;  // what its end of the connection is about to show
  auto operator<=>(const End&) const = default;
};

struct World {
  std::array<End, 2> end;     // the asking side's first
  uint8_t connections = 0;    // so far
  Bytes bytes = Bytes::none;  // what has become of frames on connections that broke
  bool down = false;          // the network passes nothing
  bool unproved = false;      // the answering side misses a last proof
  bool has_broken = false;    // a connection, so far
  uint8_t harms = 0;          // so far
  auto operator<=>(const World&) const = default;
};

struct Setting {
  uint8_t harms;
  bool encrypts;   // a connection has an opening
  bool same_host;  // the answering side sees whether the other listens
};

// All worlds that can follow one.
class Steps {
 public:
  Steps(const World& from, const Setting& setting) : from_(from), setting_(setting) {
    pass_time();
    for (const size_t side : {0, 1}) {
      if (from_.end[side].fate != Fate::lives) continue;
      notice(side);
      react(side);
      open(side);
      meet_silence(side);
      seek(side);
    }
    healing = all.size();
    if (from_.harms == setting_.harms) return;
    begin_outage();
    for (const size_t side : {0, 1}) end_link(side);
    break_off();
  }
  std::vector<World> all;
  size_t healing = 0;  // of these, that no harm brings about

 private:
  World harm() const {
    World next = from_;
    ++next.harms;
    return next;
  }
  static bool share(const World& world) {
    const auto& [asks, answers] = world.end;
    return asks.connection != 0 && asks.connection == answers.connection;
  }

  // What the table says, and what becomes of the side by it. The cause must be true. (What is lost
  // shows by the counts.)
  Remedy judge(World& world, size_t side, Sign sign, Limit limit = Limit::running) {
    const bool counted = sign == Sign::back || world.bytes != Bytes::lost;
    return judge(world, side, sign, limit, counted ? world.bytes : Bytes::none);
  }
  Remedy judge(World& world, size_t side, Sign sign, Limit limit, Bytes bytes) {
    End& end = world.end[side];
    const Diagnosis found =
        Diagnosis::of({side == 0 ? Side::asks : Side::answers, end.stage, sign, bytes, limit});
    EXPECT_TRUE(found.remedy != Remedy::none) << int(end.stage) << " " << int(sign);
    if (found.remedy == Remedy::part) end = {Fate::lives, Stage::parted, 0, Sign::nothing};
    if (found.remedy == Remedy::give_up) {
      EXPECT_TRUE(is_true(world, side, found.cause, limit)) << int(found.cause);
      end = {Fate::over, Stage::unmet, 0, Sign::nothing};
    }
    return found.remedy;
  }
  static bool is_true(const World& world, size_t side, Cause cause, Limit limit) {
    const Fate other = world.end[1 - side].fate;
    switch (cause) {
      case Cause::unreached:
        return world.down || other == Fate::dead;
      case Cause::refused:
        return other == Fate::over;
      case Cause::refused_since:  // and what it said before has been read
        return other == Fate::over && world.bytes != Bytes::coming;
      case Cause::absent_since:
        return other == Fate::dead && world.bytes != Bytes::coming;
      case Cause::never_came:
        return other == Fate::dead;
      case Cause::unproved:
        return world.unproved;
      case Cause::broke_opening:
        return world.has_broken && world.end[side].stage == Stage::opening;
      case Cause::stalled:
        return world.down;
      case Cause::silent:
      case Cause::silent_since:
        return world.down && limit == Limit::passed;
      case Cause::ended:
        return other != Fate::lives;
      case Cause::lost:
        return world.bytes == Bytes::lost;
      default:
        return false;
    }
  }

  // What does no harm.

  void pass_time() {
    World next = from_;
    if (from_.down) {
      next.down = false;
      all.push_back(next);
    }
    if (from_.bytes != Bytes::coming) return;
    next = from_;
    next.bytes = Bytes::none;
    all.push_back(next);
  }
  // The other side's end of the connection is no more, and its kernel says so.
  void notice(size_t side) {
    const End& own = from_.end[side];
    const End& other = from_.end[1 - side];
    if (own.connection == 0 || share(from_) || own.due != Sign::nothing || from_.down) return;
    for (const Sign sign : {Sign::ended, Sign::broke}) {
      if (sign == Sign::ended && other.fate == Fate::lives) continue;
      if (sign == Sign::broke && other.fate == Fate::over) continue;
      World next = from_;
      next.end[side].due = sign;
      next.has_broken |= sign == Sign::broke;
      all.push_back(next);
    }
  }
  void react(size_t side) {
    if (from_.end[side].due == Sign::nothing) return;
    World next = from_;
    (void)judge(next, side, from_.end[side].due);
    all.push_back(next);
  }
  // The handshake of its filter ends.
  void open(size_t side) {
    if (from_.end[side].stage != Stage::opening || !share(from_) || from_.down) return;
    World next = from_;
    next.end[side].stage = Stage::open;
    all.push_back(next);
  }
  // While nothing passes a limit may, if the side has a connection or not.
  void meet_silence(size_t side) {
    if (!from_.down) return;
    World next = from_;
    (void)judge(next, side, Sign::silent, Limit::passed);
    all.push_back(next);
    if (from_.end[side].stage != Stage::opening) return;
    next = from_;
    (void)judge(next, side, Sign::stalled);
    all.push_back(next);
  }

  // Without a connection, a side dials, or waits and invites.
  void seek(size_t side) {
    const End& own = from_.end[side];
    if (own.stage != Stage::unmet && own.stage != Stage::parted) return;
    const Fate other = from_.end[1 - side].fate;
    if (side == 1 && own.stage == Stage::unmet) await_first(side);
    for (const Limit limit : {Limit::running, Limit::passed}) {
      // What comes may be the other's, and then keeps this side from nothing.
      World next = from_;
      const Remedy waits = judge(next, side, Sign::nothing, limit);
      EXPECT_TRUE(waits == Remedy::wait || from_.bytes != Bytes::coming ||
                  own.stage == Stage::unmet);
      const Remedy remedy = judge(next, side, Sign::nothing, limit, Bytes::none);
      if (remedy == Remedy::wait) continue;
      EXPECT_EQ(remedy, side == 0 ? Remedy::dial : Remedy::invite);
      if (from_.down) {
        (void)judge(next, side, Sign::silent);
      } else if (other == Fate::dead) {
        (void)judge(next, side, Sign::absent, limit);
      } else if (other == Fate::over) {
        (void)judge(next, side, Sign::refused);
      } else {
        reach(side);
      }
      if (next != from_) all.push_back(next);
    }
  }
  void await_first(size_t side) {
    World next = from_;
    const Stage other = from_.end[0].stage;
    if (from_.end[0].fate == Fate::dead && setting_.same_host) {
      (void)judge(next, side, Sign::deserted);
      all.push_back(next);
    }
    // The asking side does not come again: it takes the first connection for made.
    if (!from_.unproved || (from_.end[0].fate == Fate::lives && other == Stage::unmet)) return;
    for (const Limit limit : {Limit::running, Limit::passed}) {
      next = from_;
      (void)judge(next, side, Sign::unproved, limit);
      if (next != from_) all.push_back(next);
    }
  }
  // It reaches the other, which lives.
  void reach(size_t side) {
    const Stage own = from_.end[side].stage, other = from_.end[1 - side].stage;
    if (own == Stage::unmet && other == Stage::unmet) return meet();
    if (own != Stage::parted || (other != Stage::open && other != Stage::parted)) return;
    World next = from_;
    if (other == Stage::open && judge(next, 1 - side, Sign::back) != Remedy::part) return;
    const Remedy first = judge(next, 0, Sign::back);
    EXPECT_EQ(first == Remedy::wait, from_.bytes == Bytes::coming);
    EXPECT_EQ(first == Remedy::resume, from_.bytes == Bytes::none);
    if (first == Remedy::resume) {
      connect(next, 0, Stage::open, ++next.connections);
      lose_last_words(next);
      if (judge(next, 1, Sign::back) == Remedy::resume) {
        connect(next, 1, Stage::open, next.connections);
      }
    }
    all.push_back(next);
  }
  void meet() {
    World next = from_;
    const Stage first = setting_.encrypts ? Stage::opening : Stage::open;
    connect(next, 0, first, ++next.connections);
    lose_last_words(next);
    connect(next, 1, first, next.connections);
    next.unproved = false;
    all.push_back(next);
  }
  static void connect(World& world, size_t side, Stage stage, uint8_t number) {
    world.end[side] = {Fate::lives, stage, number, Sign::nothing};
  }
  // The asking side has its connection, which breaks before the other has its own.
  void lose_last_words(World next) {
    if (next.harms == setting_.harms) return;
    ++next.harms;
    next.has_broken = true;
    next.end[0].due = Sign::broke;
    next.unproved = next.end[1].stage == Stage::unmet;
    harmed_.push_back(next);
  }

  // What does.

  void begin_outage() {
    all.insert(all.end(), harmed_.begin(), harmed_.end());
    if (from_.down) return;
    World next = harm();
    next.down = true;
    all.push_back(next);
  }
  // Its process ends, or it lacks something.
  void end_link(size_t side) {
    if (from_.end[side].fate == Fate::dead) return;
    for (const Fate fate : {Fate::over, Fate::dead}) {
      if (from_.end[side].fate == fate) continue;
      World next = harm();
      next.end[side] = {fate, Stage::unmet, 0, Sign::nothing};
      all.push_back(next);
    }
  }
  // One side may notice it later.
  void break_off() {
    if (!share(from_)) return;
    const auto is_open = [](const End& each) { return each.stage == Stage::open; };
    for (const Bytes bytes : {Bytes::none, Bytes::coming, Bytes::lost}) {
      if (bytes != Bytes::none && !std::ranges::all_of(from_.end, is_open)) continue;
      for (const unsigned who : {1U, 2U, 3U}) {
        World next = harm();
        next.has_broken = true;
        next.bytes = std::max(next.bytes, bytes);
        for (const size_t side : {0, 1}) {
          if ((who >> side & 1) != 0) next.end[side].due = Sign::broke;
        }
        all.push_back(next);
      }
    }
  }

  const World from_;
  const Setting setting_;
  std::vector<World> harmed_;
};

// Nothing more is to come: both have one connection, or each that lives has given up.
bool is_settled(const World& world) {
  const auto& [asks, answers] = world.end;
  const auto is_sound = [](const End& each) {
    return each.stage == Stage::open && each.due == Sign::nothing;
  };
  const bool connected = asks.connection == answers.connection && is_sound(asks) &&
                         is_sound(answers) && asks.fate == Fate::lives;
  return connected || (asks.fate != Fate::lives && answers.fate != Fate::lives);
}

struct Walk {
  size_t worlds = 0, connected = 0, given_up = 0, stuck = 0;
};

Walk walk(const Setting& setting) {
  std::map<World, size_t> number{{World{}, 0}};
  std::deque<World> to_do{World{}};
  std::vector<std::vector<size_t>> before{{}};
  std::vector<size_t> settled;
  Walk walk;
  while (!to_do.empty() && !testing::Test::HasFailure()) {
    const World world = to_do.front();
    to_do.pop_front();
    const size_t own = number[world];
    if (is_settled(world)) {
      settled.push_back(own);
      ++(world.end[0].fate == Fate::lives ? walk.connected : walk.given_up);
    }
    const Steps steps(world, setting);
    for (size_t i = 0; i < steps.all.size(); ++i) {
      const auto [found, is_new] = number.try_emplace(steps.all[i], before.size());
      if (is_new) {
        before.emplace_back();
        to_do.push_back(steps.all[i]);
      }
      if (i < steps.healing) before[found->second].push_back(own);
    }
  }
  walk.worlds = before.size();
  std::vector<bool> settles(before.size(), false);
  for (std::vector<size_t> next = settled; !next.empty();) {
    const size_t one = next.back();
    next.pop_back();
    if (settles[one]) continue;
    settles[one] = true;
    next.insert(next.end(), before[one].begin(), before[one].end());
  }
  walk.stuck = static_cast<size_t>(std::ranges::count(settles, false));
  return walk;
}

TEST(DiagnosisOfTwo, IsTrueAndLeavesNobodyWaiting) {
  for (const bool encrypts : {false, true}) {
    for (const bool same_host : {false, true}) {
      const Walk done = walk({3, encrypts, same_host});
      EXPECT_EQ(done.stuck, 0U);
      EXPECT_GT(done.connected, 4U);
      EXPECT_GT(done.given_up, 4U);
      EXPECT_GT(done.worlds, 300U);
      std::printf("%s%s: %zu worlds\n", encrypts ? "encrypted" : "in clear",
                  same_host ? ", on one host" : "", done.worlds);
    }
  }
}

}  // namespace
}  // namespace sluice::diagnosing_two
