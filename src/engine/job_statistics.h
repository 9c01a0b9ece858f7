// SPDX-License-Identifier: BSD-3-Clause
//
// The statistics of a job: what all its ranks have counted (class_record.h), put together by one of
// them. The calls that all ranks have in their samples tell what each rank's time went to:
//
//   waiting  from its entry to that of the last rank whose data it needs, or to its own exit
//   moving   after that, as long as such a call takes at its tenth percentile on that rank
//   rest     what it took beyond that
//
// The last rank is the latest of the call. In a broadcast and a scatter the root is the one that is
// needed, in a scan the lower ranks, else all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/engine/samples.h"
#include "src/engine/statistics.h"

namespace sluice {

// What one rank tells.
struct RankStatistics {
  struct Class {
    CountedClass of;
    Statistics::Class counted;
  };

  Rank rank = 0;                         // in MPI_COMM_WORLD
  std::string process;                   // "pid 4711 on host n12"
  uint64_t host = 0;                     // equal on ranks that have one clock; 0: not known
  int64_t began = 0;                     // nanoseconds, on its clock: its first collective
  int64_t ended = 0;                     // and the end
  uint64_t left = 0;                     // calls that MPI did without a row of their own
  std::string why_ended;                 // empty: MPI_Finalize
  std::vector<ExchangeTimes> exchanges;  // of all ranks, at the end: for the clocks' offsets
  std::vector<Class> classes;

  std::string pack() const;
  // Of what `pack` made, in a process of the same version.
  [[nodiscard]] static bool unpack(std::string_view bytes, RankStatistics* statistics);
};

// Seconds.
struct TimeParts {
  double total = 0;
  std::optional<double> waiting, moving, rest;  // none: no call is in the samples of all ranks
};

struct JobClass {
  struct Share {
    Rank rank;
    uint64_t calls, bytes;
    TimeParts seconds;
    double low;  // tenth percentile of a call on this rank once nobody is waited for
  };
  struct Late {
    Rank rank;       // in MPI_COMM_WORLD
    double calls;    // in which it was the latest, and a rank waited for least_wait or more
    double seconds;  // that others waited for it
  };
  static constexpr double least_wait = 10e-6;

  CountedClass of;
  Rank ranks = 0;  // of the communicator
  std::vector<Share> shares;
  uint64_t calls = 0;    // on the rank that has most
  uint64_t bytes = 0;    // of all ranks
  uint64_t sampled = 0;  // calls in the samples of all ranks
  TimeParts seconds;     // of all ranks
  ClassRecord::Histogram histogram{};
  std::vector<Late> late;  // the worst first
};

struct JobStatistics {
  struct Member {
    Rank rank;
    std::string process;
    double seconds;  // from its first collective to the end
    uint64_t left;
    std::string why_ended;
  };
  uint32_t ranks = 0;  // of the job
  std::vector<Member> members;
  double clock_error = 0;         // seconds, by which ranks' clocks may differ at the end
  double clock_drift = 0;         // seconds a second before that
  std::vector<JobClass> classes;  // that took longest first
};

// ranks: of the job. told: of those ranks that have told.
JobStatistics put_together(uint32_t ranks, std::span<const RankStatistics> told);

}  // namespace sluice
