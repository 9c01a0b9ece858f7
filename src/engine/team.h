// SPDX-License-Identifier: BSD-3-Clause
//
// The engine as its callers see it: a Process, made once; a Team for each communicator; Calls that
// a team runs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "src/base/knobs.h"
#include "src/base/status.h"
#include "src/engine/acquaintances.h"
#include "src/engine/call.h"
#include "src/engine/hints.h"
#include "src/engine/localities.h"
#include "src/engine/rules.h"
#include "src/engine/shelf.h"
#include "src/engine/statistics.h"
#include "src/engine/waiter.h"
#include "transports/arena.h"
#include "transports/transport.h"

namespace sluice {

// Memory for telling others that there is none. Any thread may use it.
class Reserve {
 public:
  ~Reserve() { release(); }
  void fill() {
    if (held_.load(std::memory_order_relaxed)) return;
    delete[] held_.exchange(new (std::nothrow) std::byte[bytes]);
  }
  void release() { delete[] held_.exchange(nullptr); }

 private:
  static constexpr size_t bytes = size_t{64} << 10;  // of the heap, not a mapping of its own
  std::atomic<std::byte*> held_{nullptr};
};

// What a process brings: wired together once by the composition root (src/mpi, or a test); lives
// longer than its teams.
struct Process {
  ProcessId id;
  Knobs knobs;
  std::string settings;  // agreed_settings(): what must be equal on all ranks
  std::string version;   // of the library
  std::string label;     // "pid 4711 on host n12"
  std::unique_ptr<Endpoint>
      endpoint;        // may be null: `unable` says what this process lacks, and MPI
  std::string unable;  // keeps all; if it says nothing, settings make no sense
  std::unique_ptr<ArenaSource> arenas;  // null: no shared memory
  uint64_t host = 0;                    // see Hello
  Selector selector;
  Poke poke;
  RoundTrips round_trips;
  Locate locate;  // empty: nothing is known of where ranks are
  Company company;
  Statistics statistics;
  std::atomic<uint32_t> teams_formed{0};
  std::atomic<bool> warned_of_mpi{false};  // that it does what should be reproducible
  std::atomic<bool> warned_of_lack{false};
  const Status no_memory{Code::memory, "no memory to set it up"};  // made while there is some
  std::once_flag introduced;
  std::vector<std::byte> introduction;  // a Hello, packed when first needed
  Shelf shelf;
  Acquaintances acquaintances;
  Reserve reserve;
};

// How the ranks of a team reach each other before they have a team: by MPI, or by threads in tests.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  virtual Rank rank() const = 0;
  virtual Rank size() const = 0;
  // Everybody's `mine` (of one length on all ranks) in rank order into `all`, which is zeroed
  // before. Blocks until all ranks have come, while MPI progresses; reports after some seconds what
  // it waits for, and again after twice as long. An error is one of MPI's. Throws nothing.
  virtual Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Equal where the ranks are the same processes in the same order, and mostly where they are not,
  // different. Local.
  virtual uint64_t mark() const = 0;
};

class Team {
 public:
  // Collective over the bootstrap's ranks: exchanges addresses and settings. The value is nullptr
  // where all ranks agreed that MPI keeps this communicator (a rank lacks what connections take, or
  // ranks differ and SLUICE_ON_MISMATCH=mpi on all of them): a warning says why. An error, on all
  // ranks, where ranks differ and SLUICE_ON_MISMATCH=abort on any, and where a rank has no memory
  // for it or an earlier call on the communicator failed there (stay_away). Blocks until all ranks
  // have come.
  // name: of the communicator, for people. *hints: what the program asked for on this rank; left
  // are those in force, the ones that all ranks gave and that make sense. The leader warns of the
  // others. (Asked for MPI, the value is nullptr too.)
  static Result<std::unique_ptr<Team>> form(Process& process, Bootstrap& bootstrap,
                                            const std::string& name, Hints* hints);
  // In place of `form`, where this rank will not: an earlier call on the communicator failed here.
  // The others, for which it waits, learn it. False: there was no memory even for that, and nothing
  // has happened.
  [[nodiscard]] static bool stay_away(Process& process, Bootstrap& bootstrap);
  // In place of its end, when its communicator is freed in good order: it is kept for another of
  // the same processes in the same order. The process's endpoint must outlive its shelf's teams.
  static void retire(Process& process, std::unique_ptr<Team> team);
  virtual ~Team() = default;

  virtual Rank rank() const = 0;
  virtual Rank size() const = 0;

  // What runs such a call: the same for all calls that differ in their memory alone. nullptr: all
  // ranks hand it to MPI. Equal on all ranks.
  virtual const Algorithm* choose(const Call& call) = 0;
  bool carries(const Call& call) { return choose(call) != nullptr; }

  // Runs it by the algorithm that `choose` gave for such a call; returns when this rank's part is
  // done. Errors are sticky: the team is broken from then on and its peers are told. The message
  // names the collective and the ranks concerned. One thread at a time.
  virtual Status run_by(const Algorithm& algorithm, const Call& call) = 0;
  Status run(const Call& call) { return run_by(*choose(call), call); }

  // In place of `run`, where this rank can't take part in a call that the others are about to run
  // (no memory to pack its data, say): breaks the team in the same way. The peers are told as far
  // as there are connections to them, or can be. `cause` names the call; nothing is thrown.
  virtual Status refuse(const Status& cause) = 0;
};

}  // namespace sluice
