// SPDX-License-Identifier: BSD-3-Clause
//
// The non-blocking collectives of this process that have not ended, and who drives them. There is
// one lock. Whoever starts a call waits for it; whoever drives goes on if another thread has it. No
// rank is waited for while it is held, and MPI does not progress.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/engine/team.h"
#include "src/engine/team_halves.h"
#include "src/mpi/progress_way.h"
#include "src/mpi/real.h"

namespace sluice {

class NonblockingCall;
class PersistentCall;

// Requests of such calls that the program has not yet waited for or tested successfully, and
// persistent ones. While there are none, MPI's own functions do all waits.
extern constinit std::atomic<uint32_t> live_requests;

// What a collective's function does before all else: a bit for each thing.
inline constexpr uint8_t errand_pass = 1;   // MPI does the call (all_pass)
inline constexpr uint8_t errand_drive = 2;  // calls are in flight: they are driven
extern constinit std::atomic<uint8_t> errands;
// Does them. Whether MPI does the call.
[[gnu::cold]] bool passes_after_errand();

class PendingCalls {
 public:
  // process: must outlive this.
  explicit PendingCalls(Process& process) : process_(process), way_(find_progress_way()) {}
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;

  ProgressWay way() const { return way_; }
  // Whether calls run, or have ended and their requests have not been completed. (MPICH's
  // MPI_Waitall aborts if it finds a generalized request that another thread has yet to complete.)
  bool any() const {
    return running_.load(std::memory_order_acquire) > 0 ||
           completing_.load(std::memory_order_acquire) > 0;
  }

  // Starts a call, which is described and placed, and makes its request. Once this succeeds, the
  // call belongs to the request. May throw std::bad_alloc.
  Status start(Team& team, const Algorithm& by, NonblockingCall& call);
  // In place of it. Throws nothing.
  Status fail(Team& team, const Status& cause);

  // Moves bytes, advances all calls, and completes the requests of those that have ended. Returns
  // their number. Never waits. Any thread of the program.
  int drive();

  // These are for a thread of Sluice's. `move` does the same, but completes nothing; true if there
  // is more to do at once. `await_calls` returns once bytes are to be moved, or `wake` was called,
  // at the latest after a second: the number of turns that threads of the program have driven.
  bool move();
  uint32_t await_calls();
  void wake();

  // Called by the request's free function: the program is done with it.
  void forget(NonblockingCall& call);

  // For a persistent request: a part of the team, until it is removed. *free: the cells that it
  // could get (TeamHalves). nullptr: the team can't have more, as all ranks know. May throw
  // std::bad_alloc.
  NonblockingTeam* add(Team& team, FreeCells* free);
  void give_cells(Team& team, NonblockingTeam& part, uint32_t set);
  void remove(Team& team, NonblockingTeam& part);
  // The request exists, until `forget`.
  void add(PersistentCall& call);
  // Starts its call, which is placed. May throw std::bad_alloc.
  Status start(PersistentCall& call);
  // In place of it. Throws nothing.
  Status fail(NonblockingTeam& part, const Status& cause);

  // The communicator of that handle is freed, or its team is replaced. If calls of the team are in
  // flight, it lives on until they have ended; otherwise the caller gets it back.
  std::unique_ptr<Team> adopt(std::unique_ptr<Team> team);
  void note_freed(MPI_Comm comm);
  // Returns when none of the communicator's calls is in flight. MPI progresses.
  void finish(MPI_Comm comm);

  // While calls with operations of the program's are in flight, operations and types that it frees
  // stay. True: it will be freed later.
  bool defer_operation(MPI_Op op) { return defer({op, real().datatype_null, 0}); }
  bool defer_type(MPI_Datatype type) { return defer({real().op_null, type, 0}); }
  // Frees those that may go. Called by threads of the program.
  void free_deferred();

  // A wait of the program's, while calls run.
  class Wait {
   public:
    explicit Wait(PendingCalls& calls);
    ~Wait() { calls_.waiting_.fetch_sub(1, std::memory_order_relaxed); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    // To be called when nothing has ended: other ranks may need this processor.
    void give_way();

   private:
    PendingCalls& calls_;
    uint32_t turns_ = 0;
    std::chrono::steady_clock::time_point spins_until_{};
  };
  // A test of the program's has let calls progress. Tests that follow each other closely are a
  // wait, which lasts until one completes something.
  void note_test(bool has_completed);

  // MPI_Finalize begins: drives all calls to their end, and tells which there were. No others are
  // started.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  class Lock;
  struct Deferred {
    MPI_Op op;
    MPI_Datatype type;
    uint64_t until;  // calls that were started before that one may need it
  };

  bool try_lock() { return !locked_.test_and_set(std::memory_order_acquire); }
  Status begin(NonblockingTeam& part, const Algorithm& by, NonblockingCall& call);
  Status start_requested(NonblockingTeam& half, const Algorithm& by, NonblockingCall& call);
  void note_begun();
  void link(NonblockingCall& call);
  bool turn();
  bool advance_all();
  void watch();
  Clock::duration waited() const;
  bool defer(Deferred what);
  uint64_t oldest_own_operation();
  bool has_calls_of(MPI_Comm comm);
  NonblockingCall* collect_ended();
  int complete(NonblockingCall* ended);
  void drop_idle_teams();
  bool complain_of_live();
  void fail_all();

  Process& process_;
  const ProgressWay way_;
  std::atomic_flag locked_ = ATOMIC_FLAG_INIT;
  std::atomic<uint32_t> running_{0};         // calls that have not ended, or were not collected
  std::atomic<uint32_t> moving_{0};          // of these, those that have not ended
  std::atomic<uint32_t> completing_{0};      // collected; their requests are being completed
  std::atomic<uint32_t> drives_{0};          // by threads of the program
  std::atomic<uint32_t> own_operations_{0};  // live calls with an operation of the program's
  std::atomic<uint32_t> waiting_{0};         // threads in waits of the program's
  // When the last of these began, and the tests that follow each other closely; the last test.
  // Thus no call is ever said to be waited for longer than it is.
  std::atomic<Clock::rep> waiting_since_{0}, testing_since_{0}, tested_{0};
  // The lock guards what follows.
  bool has_begun_ = false;
  uint32_t turns_ = 0;
  uint64_t started_ = 0;                 // calls
  std::vector<NonblockingTeam*> teams_;  // with calls in flight
  std::vector<std::unique_ptr<Team>> adopted_;
  NonblockingCall* ended_ = nullptr;
  NonblockingCall* live_ = nullptr;
  struct {
    std::atomic<bool> any{false};
    std::mutex mutex;
    std::vector<Deferred> all;
  } deferred_;

  friend class NonblockingCall;
};

}  // namespace sluice
