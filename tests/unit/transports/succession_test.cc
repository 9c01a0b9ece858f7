// SPDX-License-Identifier: BSD-3-Clause
//
// Two processes whose connection breaks, again while they look for another: all interleavings of
// what the two, their kernels and the network do, by Resumption::takes. Greetings, answers and
// confirmations may come as late as they can.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "transports/link/resumption.h"

namespace sluice::succession {
namespace {

using Side = Meeting::Side;

// What crosses a connection; `reset` and `fin` are its end, and come last.
enum class Word : uint8_t { none, greeting, answer, confirmation, invitation, reset, fin };
using Words = std::array<Word, 3>;

bool push(Words& words, Word word) {
  const auto free = std::ranges::find(words, Word::none);
  if (free == words.end()) return false;
  *free = word;
  return true;
}

constexpr size_t lines = 4;
constexpr int8_t nowhere = -1;

struct Line {
  bool used = false;
  bool open[2] = {false, false};   // of each side: it has not closed it, or seen its end
  Words to[2] = {};                // that this side has not read
  bool attempt = false;            // the asking side has greeted, and awaits the answer
  uint8_t search = 0, broken = 0;  // what the greeting and the invitation say
  bool answered = false;
  auto operator<=>(const Line&) const = default;
};

struct End {
  bool whole = true;
  int8_t in_place = 0;
  uint8_t number = 0;
  auto operator<=>(const End&) const = default;
};

struct World {
  End end[2];
  uint8_t searches = 0;
  bool searching = false;
  uint8_t breaks = 0;  // so far
  std::array<Line, lines> line{};
  auto operator<=>(const World&) const = default;

  World() { line[0] = {true, {true, true}}; }
  End& asks() { return end[0]; }
  End& answers() { return end[1]; }
};

struct Setting {
  uint8_t breaks;
  bool invites;  // the answering side looks for the other, too
};

constexpr size_t index(Side side) { return side == Side::asks ? 0 : 1; }

// All worlds that can follow one.
class Steps {
 public:
  Steps(const World& from, const Setting& setting) : from_(from), setting_(setting) {
    for (size_t i = 0; i < lines; ++i) {
      break_off(i, true, true);
      break_off(i, true, false);
      break_off(i, false, true);
      notice(i, 0);
      notice(i, 1);
      read(i, 0);
      read(i, 1);
    }
    attempt();
    invite();
  }
  std::vector<World> all;

 private:
  static Line& line_of(World& world, size_t i) { return world.line[i]; }

  // The network ends a connection; one side may hear nothing of it.
  void break_off(size_t i, bool asks_sees, bool answers_sees) {
    if (from_.breaks == setting_.breaks) return;
    const Line& line = from_.line[i];
    if (!line.used || !line.open[0] || !line.open[1]) return;
    World next = from_;
    ++next.breaks;
    if (asks_sees) see_reset(next, i, 0);
    if (answers_sees) see_reset(next, i, 1);
    all.push_back(next);
  }
  // The side has read what came before the reset.
  static void see_reset(World& world, size_t i, size_t side) {
    if (push(world.line[i].to[side], Word::reset)) return;
    world.line[i].to[side] = {Word::reset};  // it takes what was not read with it
  }
  // The other side has closed its end long ago, and its kernel answers whatever comes with a reset.
  void notice(size_t i, size_t side) {
    const Line& line = from_.line[i];
    if (!line.used || !line.open[side] || line.open[1 - side]) return;
    if (std::ranges::any_of(line.to[side], [](Word word) { return word >= Word::reset; })) return;
    World next = from_;
    see_reset(next, i, side);
    all.push_back(next);
  }
  // This side closes its end.
  static void close(World& world, size_t i, size_t side, Word how) {
    Line& line = world.line[i];
    line.open[side] = false;
    line.to[side] = {};
    if (side == 0) line.attempt = false;
    if (!line.open[1 - side]) {
      line = {};
    } else if (!push(line.to[1 - side], how)) {
      line.to[1 - side] = {how};
    }
  }
  static void say(World& world, size_t i, size_t side, Word word) {
    Line& line = world.line[i];
    const bool is_cut = std::ranges::any_of(
        line.to[side], [](Word each) { return each >= Word::reset; });  // it reaches nobody
    if (line.open[1 - side] && !std::ranges::count(line.to[1 - side], Word::reset) && !is_cut) {
      (void)push(line.to[1 - side], word);
    }
  }
  static bool takes(const World& world, Side side, uint8_t number) {
    const End& end = world.end[index(side)];
    Resumption link;
    (void)link.enter(Resumption::Event::opened);
    if (!end.whole) (void)link.enter(Resumption::Event::broke);
    link.bring(end.number);
    return link.takes(side, number);
  }
  static void part(World& world, size_t side) {
    End& end = world.end[side];
    const End& other = world.end[1 - side];
    EXPECT_FALSE(end.whole && other.whole && end.in_place == other.in_place)
        << "the connection in use is dropped";
    if (end.whole) close(world, static_cast<size_t>(end.in_place), side, Word::reset);
    end.whole = false;
    end.in_place = nowhere;
  }
  static int8_t free_line(World& world) {
    for (size_t i = 0; i < lines; ++i) {
      if (!world.line[i].used) return static_cast<int8_t>(i);
    }
    return nowhere;
  }
  static bool has_attempts(const World& world) {
    return std::ranges::any_of(world.line, [](const Line& each) { return each.attempt; });
  }
  // What it greets with is a new search if none is under way.
  static void greet(World& world, size_t i) {
    if (!has_attempts(world)) world.searching = false;
    if (!world.searching) ++world.searches;
    world.searching = true;
    world.line[i].attempt = true;
    world.line[i].search = world.searches;
    say(world, i, 0, Word::greeting);
  }
  void attempt() {
    World next = from_;
    const auto count =
        std::ranges::count_if(next.line, [](const Line& each) { return each.attempt; });
    const int8_t i = free_line(next);
    if (next.asks().whole || count >= 2 || i == nowhere) return;
    line_of(next, static_cast<size_t>(i)) = {true, {true, true}};
    greet(next, static_cast<size_t>(i));
    all.push_back(next);
  }
  void invite() {
    World next = from_;
    const int8_t i = free_line(next);
    const bool invited = std::ranges::any_of(next.line, [](const Line& each) {
      return each.open[1] && std::ranges::count(each.to[0], Word::invitation) > 0;
    });
    if (!setting_.invites || next.answers().whole || invited || i == nowhere) return;
    Line& line = line_of(next, static_cast<size_t>(i)) = {true, {true, true}};
    line.broken = next.answers().number;
    say(next, static_cast<size_t>(i), 1, Word::invitation);
    all.push_back(next);
  }

  void read(size_t i, size_t side) {
    World next = from_;
    Line& line = next.line[i];
    if (!line.used || !line.open[side] || line.to[side][0] == Word::none) return;
    const Word word = line.to[side][0];
    std::ranges::rotate(line.to[side], line.to[side].begin() + 1);
    line.to[side].back() = Word::none;
    if (word >= Word::reset) {
      end(next, i, side, word);
    } else {
      side == 0 ? asks_reads(next, i, word) : answers_reads(next, i, word);
    }
    all.push_back(next);
  }
  static void end(World& world, size_t i, size_t side, Word how) {
    End& end = world.end[side];
    const bool in_place = end.whole && end.in_place == static_cast<int8_t>(i);
    if (how == Word::fin) {
      EXPECT_FALSE(in_place) << "a link has ended though both processes live";
    }
    if (in_place) {
      end.whole = false;
      end.in_place = nowhere;
    }
    Line& line = world.line[i];
    line.open[side] = false;
    line.to[side] = {};
    if (side == 0) line.attempt = false;
    if (!line.open[1 - side]) line = {};
  }
  static void asks_reads(World& world, size_t i, Word word) {
    if (word == Word::invitation) {
      if (!takes(world, Side::asks, world.line[i].broken)) return close(world, i, 0, Word::fin);
      part(world, 0);
      return greet(world, i);
    }
    if (!world.line[i].attempt) return;
    for (size_t other = 0; other < lines; ++other) {
      if (other != i && world.line[other].attempt) close(world, other, 0, Word::reset);
    }
    world.line[i].attempt = false;
    world.searching = false;
    world.asks() = {true, static_cast<int8_t>(i), world.line[i].search};
    say(world, i, 0, Word::confirmation);
  }
  static void answers_reads(World& world, size_t i, Word word) {
    Line& line = world.line[i];
    if (!takes(world, Side::answers, line.search)) {
      return close(world, i, 1, line.answered ? Word::reset : Word::fin);
    }
    part(world, 1);
    if (word == Word::greeting) {
      world.line[i].answered = true;
      return say(world, i, 1, Word::answer);
    }
    world.answers() = {true, static_cast<int8_t>(i), world.line[i].search};
  }

  const World from_;
  const Setting setting_;
};

bool is_good(const World& world) {
  const auto& [asks, answers] = world.end;
  return asks.whole && answers.whole && asks.in_place == answers.in_place &&
         asks.number == answers.number;
}

struct Walk {
  size_t worlds = 0, good = 0, stuck = 0;
};

// From every world that can be reached, a good one can be, in which nothing more happens.
Walk walk(const Setting& setting) {
  std::map<World, size_t> number{{World{}, 0}};
  std::deque<World> to_do{World{}};
  std::vector<std::vector<size_t>> before{{}};
  std::vector<size_t> good;
  while (!to_do.empty() && !testing::Test::HasFailure()) {
    const World world = to_do.front();
    to_do.pop_front();
    const size_t own = number[world];
    EXPECT_LE(world.end[1].number, world.end[0].number);
    const Steps steps(world, setting);
    if (is_good(world)) good.push_back(own);
    for (const World& next : steps.all) {
      const auto [found, is_new] = number.try_emplace(next, before.size());
      if (is_new) {
        before.emplace_back();
        to_do.push_back(next);
      }
      before[found->second].push_back(own);
    }
  }
  Walk walk{before.size(), good.size()};
  std::vector<bool> reaches(before.size(), false);
  for (std::vector<size_t> next = good; !next.empty();) {
    const size_t one = next.back();
    next.pop_back();
    if (reaches[one]) continue;
    reaches[one] = true;
    next.insert(next.end(), before[one].begin(), before[one].end());
  }
  walk.stuck = static_cast<size_t>(std::ranges::count(reaches, false));
  return walk;
}

TEST(Succession, EndsOnOneConnectionWhateverTheOrder) {
  for (const Setting& setting : {Setting{1, false}, Setting{1, true}, Setting{2, false},
                                 Setting{2, true}, Setting{3, false}}) {
    const Walk done = walk(setting);
    EXPECT_EQ(done.stuck, 0U);
    EXPECT_GT(done.good, 1U);
    EXPECT_GT(done.worlds, 40U);
    RecordProperty("worlds", static_cast<int>(done.worlds));
    std::printf("%d breaks%s: %zu worlds\n", setting.breaks, setting.invites ? ", invited" : "",
                done.worlds);
  }
}

}  // namespace
}  // namespace sluice::succession
