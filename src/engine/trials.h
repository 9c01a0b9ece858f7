// SPDX-License-Identifier: BSD-3-Clause
//
// A team's trials: which classes of calls are tried, what is measured of them, and which way the
// next call goes. A class is a collective with an octave of bytes, and whether operands are
// ordered, blocks differ in size, and bits are the same for every algorithm. Rules look at these,
// and they are equal on all ranks. Root and memory do not matter. Calls that CUDA IPC or NCCL could
// do, as a vote of all ranks has found just before (vote.h), are classes of their own.
//
// With SLUICE_CHOICE=guard, the algorithm that the rules have chosen is tried against MPI's
// function, because the rules were measured on few machines and a preload must do no harm where MPI
// is faster. Where a carrier could do the call, it is tried against both. NCCL begins there,
// because the user has asked for it. Only candidates that give the same bits are tried on devices:
// CUDA IPC combines operands in rank order; NCCL's order is its own. Each rank keeps when it
// entered and left a timed call; a call by MPI returns to src/mpi/entries.cc, which ends its
// sample. Before the call after the window the ranks tell each other their samples
// (Team::exchange), and all compute the same choice from them (samples.h).
//
// Until one way has won, trials change the time alone. The bits of a reduction may depend on the
// algorithm. Then the other way is tried aside, on the trial's own memory, before the way in force,
// and its results are dropped. In such a turn, the way in force does the first call alone. The
// other way does the second call twice, and the second time counts. Each rank gets that memory
// before a window begins, and the ranks tell each other; if one lacks it, the window is not held.
// All ranks count the same calls: see CallLease. SLUICE_DELAY slows one candidate in tests.
//
// With `free`, two other algorithms of Sluice's are candidates too (Selection::find_rivals; not on
// devices), and nothing is made aside. (MVAPICH-Plus tunes so while a program runs.)
//
// These calls are not tried. The user has decided about them: a variable, a hint, a rule of
// SLUICE_RULES, SLUICE_REPRODUCIBLE. SLUICE_TLS is set, and MPI sends in clear. SLUICE_TIMEOUT is
// set, and MPI's calls have no deadline. They have no bytes, or 2 GiB or more, in which some MPI
// libraries fail. They are reductions of 64 MiB or more, for which MPI and trials take memory, or
// reductions that is_right_by_mpi does not list (`tests/mpi/test_choice` compares those that it
// lists with MPI's).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/engine/call.h"
#include "src/engine/outcomes.h"
#include "src/engine/samples.h"
#include "src/engine/trial.h"
#include "src/engine/vote.h"

namespace sluice {

struct Knobs;
class Selection;
class Team;
class CallLease;

// A class of calls.
struct CallClass {
  uint32_t key;
  Trial trial;
  int64_t spent = 0;  // by this rank in the first calls, in nanoseconds
  std::array<Sample, Trial::most_candidates* Trial::turns> samples = {};  // this rank's window
  bool had_asides = false;                                                // in it
  CallLease* lease = nullptr;
  // The candidate that does all calls: an earlier job has found that out (outcomes.h).
  std::optional<uint8_t> known = {};
  // Algorithms and routes (routes.h). `ruled` is the number of the rules' algorithm, the latest.
  std::array<const Algorithm*, Trial::most_candidates> candidates = {};
  uint8_t ruled = Trial::first;
  bool is_interchangeable = false;  // any candidate may do a call instead of the choice
  bool is_on_device = false;
  uint32_t windows = 0;

  // The candidate's number; unset if it is none.
  std::optional<uint8_t> number_of(const Algorithm& candidate) const;
};

// Calls that a call cache repeats without asking, all of them by Sluice or all by MPI. Their class
// counts them when the lease ends. So at each decision its count is equal on all ranks, whether or
// not a rank had a lease.
class CallLease {
 public:
  CallLease() = default;
  ~CallLease() { end(); }
  CallLease(const CallLease&) = delete;
  CallLease& operator=(const CallLease&) = delete;

  // Begins. of: nullptr: calls without limit. Ends another lease of the class.
  void begin(CallClass* of);
  void begin_for_mpi(CallClass* of) {
    begin(of);
    std::swap(left_, left_for_mpi_);
  }
  void end();
  // Takes a call of Sluice's. False: none is left.
  bool use() { return --left_ != 0 || refuse(); }
  // To be called then: takes a call of MPI's. False: the call must ask, and the lease ends.
  bool use_for_mpi() { return --left_for_mpi_ != 0 || refuse_for_mpi(); }

 private:
  static constexpr uint32_t unlimited = ~uint32_t{0};

  bool refuse() {
    left_ = 1;
    return false;
  }
  [[gnu::cold]] bool refuse_for_mpi();

  CallClass* of_ = nullptr;
  uint32_t granted_ = 0;
  uint32_t left_ = 1, left_for_mpi_ = 1;  // and one
};

// Memory on which a call is made aside: each the length of the call's vector, or more.
struct AsideMemory {
  std::byte *operand = nullptr, *result = nullptr;
};

// Which way a call goes.
struct Way {
  using Clock = std::chrono::steady_clock;
  // Sluice, MPI or both do the call. If both, the first does it aside: on memory of its own.
  enum class By : uint8_t { sluice, mpi, mpi_then_sluice, sluice_then_mpi };

  By by = By::mpi;
  const Algorithm* algorithm = nullptr;  // of Sluice's part, or CUDA IPC's or NCCL's route
  CallClass* of = nullptr;               // nullptr: there is no trial
  bool is_timed = false;                 // the call, or the first part of it
  bool takes_part = false;               // in the class's trial, timed or not
  AsideMemory aside = {};                // if it is made aside
  bool is_counted = false;               // its part by MPI, for statistics
  uint8_t place = 0;                     // of the sample
  Clock::time_point began = {};
  std::chrono::nanoseconds pretended = {};  // to be added to the sample (Delay)

  void go_by(uint8_t candidate);
  void take_sample();
  bool begins_with_mpi() const { return by == By::mpi || by == By::mpi_then_sluice; }
  // Enclose what is timed. If `end` is not called, the sample is unknown.
  void begin() {
    if (is_timed || is_counted) began = Clock::now();
  }
  void end() {
    if (is_timed) take_sample();
  }
};

class Trials {
 public:
  // hosts: as in Shape. name: of the communicator. All must outlive this.
  Trials(Team& team, const Selection& selection, Rank ranks, std::span<const uint32_t> hosts,
         const Knobs& knobs, const std::string& name);
  ~Trials();

  // Decides about the next call, and counts it. able: the carriers that could do it, as all ranks
  // know. *way: in, as the rules that ship say; way->of stays null if the call is not tried. May
  // block in exchanges of the team, and fail with it. May throw std::bad_alloc.
  Status find_way(const Call& call, const CarrierSet& able, Way* way);
  // What rules test of a call, but the team: calls of one kind are of one class, if the same
  // carriers could do them.
  static uint32_t kind_of(const Call& call);
  // Whether the engine or MPI does the next such call, should these carriers be able to.
  bool go_without(const CarrierSet& able, const Call& call, const Algorithm& ruled) const;
  // Whether the carrier is a candidate for such calls where it could do them.
  bool tries(const Call& call, Carrier carrier, const Algorithm& ruled) const;
  // What earlier jobs have found out decides about classes that have had no call yet. All ranks
  // call this with equal files, or none does. It must outlive this.
  void use(const Outcomes& outcomes) { earlier_ = &outcomes; }
  // Tells what has been found out. team: its id.
  void hand_over(const TeamId& team, Outcomes* outcomes) const;
  // Whether calls are tried at all. Equal on all ranks.
  bool are_on() const { return are_on_; }
  // Leaves the scratch to MPI, which has failed in a call on it and may still write there.
  void abandon_memory();
  // To be called when the communicator is freed. Windows go on with the next one of the same
  // processes: programs make communicators for a few calls each.
  void give_memory_back();

 private:
  bool may_be_tried(const Call& call) const;
  [[gnu::cold]] Challengers find_on_devices(const Call& call, const CarrierSet& able,
                                            const Algorithm& ruled) const;
  static uint32_t key_of(const Call& call, const Challengers& challengers);
  CallClass* find_class(uint32_t key) const;
  CallClass& find_class(const Call& call, const Challengers& challengers, const Algorithm& ruled);
  CallClass& make_class(const Call& call, const Challengers& challengers, const Algorithm& ruled);
  const Algorithm* find_known(uint32_t key, const Call& call, const Algorithm& ruled) const;
  void take_part(const Call& call, const Trial::Next& next, Way* way) const;
  bool may_change_bits(const Call& call) const;
  Outcomes::Class describe(uint32_t key) const;
  Status agree(const Call& call, CallClass& of);
  Status agree_on_time_spent(const Call& call, CallClass& of);
  Status agree_on_memory(const Call& call, CallClass& of);
  bool reserve_scratch(size_t bytes);
  void free_scratch_if_unused();
  Status agree_on_window(const Call& call, CallClass& of);
  using BothTimes = std::array<ExchangeTimes, 2>;
  Status compare_clocks(const Call& call, const BothTimes& mine, std::span<ClockOffset> clocks,
                        int64_t* reference);
  static Trial::Result judge(const CallClass& of, Trial::Result times, int64_t overhead);
  void log_window(const CallClass& of, const Call& call, const Trial::Result& result) const;
  void report(const CallClass& of, const Call& call) const;

  Team& team_;
  const Selection& selection_;
  const Knobs& knobs_;
  const std::string& name_;
  const std::span<const uint32_t> hosts_;
  const bool are_on_;
  const Outcomes* earlier_ = nullptr;
  std::vector<std::unique_ptr<CallClass>> classes_;
  // Of the classes that are in windows: as large as one of them needs. Not touched without need.
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
  int64_t overhead_ = 0;  // nanoseconds that this rank spent on an agreement, at least; 0: none yet
};

}  // namespace sluice
