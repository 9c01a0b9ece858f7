// SPDX-License-Identifier: BSD-3-Clause
//
// The engine's interface: a Process, made once; a Team for each communicator; Calls that a team
// runs.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "src/base/knobs.h"
#include "src/base/status.h"
#include "src/engine/call.h"
#include "src/engine/copy_wait.h"
#include "src/engine/delay.h"
#include "src/engine/device_work.h"
#include "src/engine/hints.h"
#include "src/engine/localities.h"
#include "src/engine/outcomes.h"
#include "src/engine/routes.h"
#include "src/engine/rules.h"
#include "src/engine/statistics.h"
#include "src/engine/team_cache.h"
#include "src/engine/trials.h"
#include "src/engine/waiter.h"
#include "transports/shm/arena.h"
#include "transports/transport.h"

namespace sluice {

// Memory held in reserve, so that a rank that has run out of memory can still tell the others. Any
// thread may use it.
class Reserve {
 public:
  ~Reserve() { release(); }
  void fill() {
    if (held_.load(std::memory_order_relaxed)) return;
    delete[] held_.exchange(new (std::nothrow) std::byte[bytes]);
  }
  void release() { delete[] held_.exchange(nullptr); }

 private:
  static constexpr size_t bytes = size_t{64} << 10;  // small enough to come from the heap
  std::atomic<std::byte*> held_{nullptr};
};

class Executor;
class TeamHalves;

// What the teams of a process share. The composition root (src/mpi, or a test) makes it once. It
// must outlive its teams.
struct Process {
  ProcessId id;
  Knobs knobs;
  std::string settings;  // agreed_settings(): what must be equal on all ranks
  std::string version;   // of the library
  std::string label;     // "pid 4711 on host n12"
  // The endpoint may be null. `unable` then says what this process lacks, and MPI keeps all
  // communicators. If `unable` is empty, the settings are invalid.
  std::unique_ptr<Endpoint> endpoint;
  std::string unable;
  std::unique_ptr<ArenaSource> arenas;  // null: no shared memory
  uint64_t host = 0;                    // see Hello
  Selector selector;
  Delay delay;  // of each of its teams
  // How often a rank that waits checks for the failures of others. Tests have their own.
  std::chrono::nanoseconds between_checks = std::chrono::milliseconds(500);
  ProgressMpi progress_mpi;
  RoundTrips round_trips;
  Locate locate;                       // empty: localities are not known
  std::function<bool()> sees_devices;  // whether a driver of devices is loaded; empty: none is
  Oversubscription oversubscription;
  Statistics statistics;
  Outcomes outcomes;  // read before the first team is set up
  std::atomic<uint32_t> teams_formed{0};
  std::atomic<bool> warned_of_mpi{false};  // that MPI does what should be reproducible
  std::atomic<bool> warned_of_lack{false};
  std::atomic<bool> warned_of_choices{false};  // that ranks have other files of choices
  // Made while there is memory.
  const Status no_memory{Code::memory, "no memory to set it up"};
  const Status no_memory_for_call{Code::memory, "no memory for a call"};
  std::mutex introducing;
  std::vector<std::byte> introduction;  // a Hello, packed when first needed
  TeamCache team_cache;
  KnownGroups known_groups;
  Reserve reserve;
};

// How the ranks of a team exchange data before there is a team: by MPI, or by threads in tests.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  virtual Rank rank() const = 0;
  virtual Rank size() const = 0;
  // Gathers all ranks' `mine` (of one length on all) in rank order into `all`, which the caller
  // has zeroed. Blocks until all ranks have come, while MPI progresses. Reports after some seconds
  // what it waits for, and again after twice as long. An error is one of MPI's. Throws nothing.
  virtual Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // The group fingerprint: equal for the same processes in the same order, and mostly different for
  // others. Local.
  virtual uint64_t group_fingerprint() const = 0;
};

// (A team waits for the copies of its calls: at any time, also before and after `run`, and inside.)
class Team : public CopyWait {
 public:
  // Sets a team up. Collective over the bootstrap's ranks, which exchange addresses and settings;
  // blocks until all have come. The value is nullptr if all ranks agreed that MPI keeps this
  // communicator. Either hints ask for that, or a rank lacks the resources for connections, or
  // ranks differ in settings or version and all have SLUICE_ON_MISMATCH=mpi (a warning says why).
  // An error, on all ranks, if ranks differ and SLUICE_ON_MISMATCH=abort on any, if a rank has no
  // memory for it, or if an earlier call on the communicator failed on a rank (report_failed_rank).
  // name: of the communicator, for messages. *hints: in, those that the program gave on this rank;
  // out, those in force: all ranks gave them, and they are valid. The leader warns of the others.
  static Result<std::unique_ptr<Team>> form(Process& process, Bootstrap& bootstrap,
                                            const std::string& name, Hints* hints);
  // To be called in place of `form` if an earlier call on the communicator failed on this rank.
  // Waits for the other ranks and tells them. False: there was no memory even for that, and
  // nothing was sent.
  [[nodiscard]] static bool report_failed_rank(Process& process, Bootstrap& bootstrap);
  // To be called when a team's communicator is freed, in place of the destructor. Puts the team
  // into the team cache, for another communicator of the same processes in the same order; ends it
  // if it can't serve another. The process's endpoint must outlive the cached teams.
  static void retire(Process& process, std::unique_ptr<Team> team);
  virtual Rank rank() const = 0;
  virtual Rank size() const = 0;

  // The algorithm for a call; all calls that differ only in their memory have the same one.
  // nullptr: all ranks hand the call to MPI. Equal on all ranks.
  virtual const Algorithm* choose(const Call& call) = 0;
  bool carries(const Call& call) { return choose(call) != nullptr; }

  // Which way the next call goes, which depends on trials (trials.h) also. To be called once for
  // each call that is not made under a lease, in the order of calls. able: the carriers outside the
  // engine that could do it, as all ranks know. Equal on all ranks. May block in exchanges of the
  // team, and fail as a call does; may throw std::bad_alloc.
  virtual Status find_way(const Call& call, const CarrierSet& able, Way* way) = 0;
  // To be called when MPI has failed in a call that was made aside, on Way::aside.
  virtual void abandon_trial_memory() = 0;
  // To be called when MPI has done a call (of such a collective and so many bytes), if its way is
  // counted. Throws nothing.
  void count_mpi(Collective collective, size_t bytes, Way::Clock::time_point began) {
    Call call;
    call.collective = collective;
    call.bytes = bytes;
    count(routes::mpi, call, began);
  }

  // Runs the call by the algorithm that `choose` returned for it. Blocks until this rank's part is
  // done. Errors are sticky: the team is broken from then on, and its peers are told. The message
  // names the collective and the ranks concerned. One thread at a time. May throw std::bad_alloc;
  // the caller then calls `fail_call`.
  virtual Status run_by(const Algorithm& algorithm, const Call& call) = 0;
  Status run(const Call& call) { return run_by(*choose(call), call); }

  // What a call with a device would need of it if that algorithm, which has a plan, ran it. To be
  // called between calls; may throw std::bad_alloc.
  virtual DeviceNeeds measure(const Algorithm& algorithm, const Call& call) = 0;

  // Like `run_by`, but runs the call by an executor outside the engine on which all ranks have
  // agreed. Statistics show the algorithm's name.
  virtual Status run_with(Executor& executor, const Algorithm& name, const Call& call) = 0;

  // For statistics: to be called when the caller has carried a call by its own means. Throws
  // nothing.
  virtual void count(const Algorithm& name, const Call& call, Way::Clock::time_point began) = 0;
  // Adds what it has counted so far to the process's statistics. May throw std::bad_alloc.
  virtual void hand_over_counts() = 0;

  // An exchange of the team's own, before a call that all ranks are about to make: gathers all
  // ranks' `mine` (of one length on all) in rank order into `all`. It has a place in the order of
  // calls, but counts as none. Blocks, and fails, as a call does; a rank that is in another call
  // gets a mismatch. One longer than `exchange_at_once` bytes of each rank is cut. May throw
  // std::bad_alloc, before this rank has taken part.
  static constexpr size_t exchange_at_once = 96;  // shared memory reserves nothing for it
  Status exchange(const Call& before, std::span<const std::byte> mine, std::span<std::byte> all) {
    return exchange(before, mine, all, nullptr);
  }
  // times: gets those of its pieces.
  virtual Status exchange(const Call& before, std::span<const std::byte> mine,
                          std::span<std::byte> all, std::vector<ExchangeTimes>* times) = 0;

  // Whether a carrier may do such calls, should all ranks' data be on devices. Equal on all ranks.
  enum class Say : uint8_t {
    no,        // a knob or a hint says how the collective is done
    if_named,  // only if the user has named the carrier
    if_fast,   // trials may try it, too
  };
  virtual Say say_of(const Call& call, Carrier carrier) = 0;
  // Whether the next such call is not made by these carriers, should they be able: they have lost
  // such calls by trial, and the trial is not due. `find_way` will say so. Equal on all ranks.
  virtual bool goes_without(const CarrierSet& able, const Call& call) = 0;
  virtual const ProcessId& process(Rank rank) const = 0;
  // Whether its ranks are on several hosts, as far as is known. Equal on all ranks.
  virtual bool spans_hosts() const = 0;
  // Whether a driver of devices was loaded on a rank when the communicator's team was set up. Equal
  // on all ranks.
  virtual bool sees_devices() const = 0;

  // To be called in place of `run` if this rank can't take part in a call that the others are about
  // to run (for example, it has no memory to pack its data). Breaks the team in the same way. Tells
  // the peers that it is connected to, or can connect to. `cause` names the call. Throws nothing.
  virtual Status fail_call(const Status& cause) = 0;

  // The algorithm for a call in flight, which has a plan, or goes through cells, if it has_cells;
  // nullptr: all ranks hand the call to MPI. Equal on all ranks. May throw std::bad_alloc.
  virtual const Algorithm* choose_nonblocking(const Call& call, bool has_cells) = 0;
  const Algorithm* choose_nonblocking(const Call& call) { return choose_nonblocking(call, true); }
  // What runs calls in flight, as long as the team lives.
  virtual TeamHalves& halves() = 0;
  // Whether no call is in flight, and there is no persistent request.
  virtual bool is_idle() const = 0;
};

}  // namespace sluice
