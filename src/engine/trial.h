// SPDX-License-Identifier: BSD-3-Clause
//
// A trial finds out which of several candidates carries a class of calls fastest. This is its state
// machine: a pure function of the number of the call in the class and of results that all ranks
// have agreed on, so no two ranks can differ. It knows no clock and exchanges nothing.
//
//   waiting   short jobs pay nothing: trials begin with the class's call 65. Where calls are long,
//             they begin with call 8, before which the ranks tell each other how long they have
//             spent in calls 1 to 7.
//   trying    a window of calls, by all candidates in turns. Before the next call the ranks
//             exchange the samples of the window. A candidate that is clearly faster in two windows
//             in a row becomes the choice. A window takes calls of about one size; others of the
//             class go by the choice meanwhile. If its calls need memory of their own, all ranks
//             must have that first; otherwise there is no window until after the next gap.
//   settled   the choice carries the calls. After a gap the class is tried again. The gap doubles
//             while nothing changes, up to 1024 calls; it is longer where windows cost much.
//
//   closed    the choice stays.
//
// The first call after another candidate's is cold: caches, connections and processors are in the
// other's state. (Of MPI's allgathers of 256 KB between two ranks, it took 67 us after one of
// Sluice's, and 40 after one of its own.) So a turn is a pair of calls, of which only the second
// counts.
//
// Programs make different calls in a fixed order again and again, and some take longer. So turns
// follow the sequence of Thue and Morse, A B B A B A A B. If the program's period is 2, 4 or 8
// calls, all candidates get equal shares of its calls. If it is any other but 17, no candidate gets
// one kind of call in two windows in a row. One more call by the choice precedes the turns. It
// makes the length odd, so that of a program with two calls in turns the next window counts the
// other one. That two windows must agree, and by a wide margin, also keeps equal candidates from
// alternating.
//
// Two windows of short calls may both lie within a disturbance, as when a job has just started and
// two ranks still share a processor: a call then takes a scheduler's tick, hundreds of times its
// time. So after the first window and after each change the gap is at most 1024 calls, or those of
// 50 ms if these are more, whatever a window costs. (This one costs about what each of those before
// it did.) Time is counted in calls of the length that the window found, so no clock is asked.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

class Trial {
 public:
  // Candidates have numbers. The first one does the calls until another has won.
  static constexpr uint8_t first = 0, most_candidates = 4;
  static constexpr uint32_t turns = 4;          // of each candidate in a window
  static constexpr uint32_t calls_in_turn = 2;  // of which the last one is timed
  static constexpr uint32_t most_strays = 64;   // then a window begins anew, with another size
  static constexpr uint32_t calls_before_look =
      7;  // the time spent in them is told before the next
  static constexpr uint32_t calls_before_trying = 64;
  static constexpr std::chrono::milliseconds long_enough{250};  // spent on a rank: try at once
  static constexpr double margin = 1.15;                        // how much faster a winner is
  static constexpr uint32_t first_gap = 256, usual_gap = 1024;  // calls between windows
  static constexpr uint32_t least_wins = 2, most_wins = 8;      // windows in a row, by a challenger
  static constexpr uint32_t most_gap = uint32_t{1} << 24;
  // Of the time of the calls between two windows. (A hundredth in all: the first one comes soon.)
  static constexpr double most_cost = 0.009;
  static constexpr std::chrono::milliseconds settling{50};  // of calls, after a change

  enum class State : uint8_t { waiting, trying, settled, closed };
  // What the ranks must agree on before the next call.
  enum class Due : uint8_t { nothing, time_spent, memory, window };

  // How long calls take, in nanoseconds: between these bounds. Unknown if low is greater.
  struct Bounds {
    double low = 1, high = 0;
    bool is_known() const { return low <= high; }
    bool is_clearly_below(const Bounds& other) const {
      return is_known() && other.is_known() && high * margin <= other.low;
    }
  };
  // Equal on all ranks.
  struct Result {
    std::array<Bounds, most_candidates> by_candidate;  // of most calls
    std::array<double, most_candidates> mean = {};     // of all: a few calls may take very long
    double overhead =
        0;  // nanoseconds that an earlier agreement took, without waiting for late ranks
  };
  struct Next {
    uint8_t candidate;
    bool takes_part;  // in the trial: it is timed, or precedes one that is
    bool is_timed;
    uint8_t place;  // among the window's samples, or among calls 1 to 7; if it is timed
  };

  // Whether the calls of windows need memory that not every rank may have.
  enum class Needs : uint8_t { nothing, memory };

  explicit Trial(uint8_t candidates, Needs needs = Needs::nothing)
      : candidates_(candidates), has_memory_(needs == Needs::nothing), needs_(needs) {}

  Due due();
  void learn_time_spent(std::chrono::nanoseconds spent);
  // all: whether all ranks have it, for the calls of the window; bytes: of the next call.
  void learn_memory(bool all, size_t bytes);
  // In place of it: the choice stays for good.
  void close() { enter(State::closed); }
  void learn(const Result& result);
  // Counts a call of so many bytes, before which nothing is due.
  Next next(size_t bytes);
  // So many calls from the next on are the choice's, not timed, and nothing is due before them.
  // `skip` counts such calls.
  uint32_t uneventful() const;
  void skip(uint32_t calls) { calls_ += calls; }
  // The ranks have given the memory back. A window that has begun goes on once they have it again.
  void lose_memory() { has_memory_ = needs_ == Needs::nothing; }
  bool holds_memory() const { return has_memory_ && needs_ == Needs::memory; }
  // Bytes of the longest call that the window takes; next: of the next call, which may be its
  // first.
  size_t longest_of_window(size_t next) const;

  State state() const { return state_; }
  uint8_t choice() const { return choice_; }
  uint8_t candidates() const { return candidates_; }
  // Of a window.
  uint32_t sample_count() const { return candidates_ * turns; }
  uint32_t window_length() const { return 1 + sample_count() * calls_in_turn; }
  // The candidate of a sample, and of the other call of its turn.
  uint8_t candidate_at(uint32_t place) const;
  // Of the last window whose result was known.
  const Result& last_result() const { return last_; }

 private:
  void enter(State state);
  void begin_window_if_time();
  Next next_of_window();
  bool is_alike(size_t bytes);
  uint8_t find_leader(const Result& result) const;
  void settle(const Result& result, bool has_changed);
  void end_window();
  uint32_t least_gap(const Result& result) const;
  uint32_t settling_calls(const Result& result) const;
  uint32_t needed_wins() const;

  const uint8_t candidates_;
  bool has_memory_;  // or needs none
  const Needs needs_;
  State state_ = State::waiting;
  bool has_looked_ = false;    // at the time spent
  bool has_repeated_ = false;  // a window, because times had shifted
  uint8_t choice_ = first;
  uint8_t leader_ = first;  // the challenger that won the last window; the choice if none
  uint32_t wins_ = 0;       // windows in a row that it won
  uint32_t changes_ = 0;    // of the choice
  uint32_t calls_ = 0;      // in this state; of a window, those that it takes
  size_t bytes_ = 0;        // of the window's first call
  uint32_t strays_ = 0;     // calls of other sizes since
  uint32_t gap_ = first_gap;
  bool is_new_ = true;  // the choice: no window since has been known
  Result last_;
};

}  // namespace sluice
