// SPDX-License-Identifier: BSD-3-Clause
//
// Writes the file that SLUICE_STATS=json:FILE asks for: one of the job, which rank 0 writes when
// MPI_Finalize begins. The ranks send it what they have counted, by MPI on MPI_COMM_WORLD. They do
// so only if a communicator has had a team that contains all ranks of the world: then all of them
// have Sluice and this setting. Otherwise, and if calls fail, each rank writes a file of its own.
#pragma once

#include <chrono>
#include <string>

#include "src/engine/job_statistics.h"
#include "src/engine/team.h"
#include "src/mpi/real.h"

namespace sluice {

class StatisticsReport {
 public:
  // process: of this one. began: when it made its first collective.
  StatisticsReport(const Process& process, std::chrono::steady_clock::time_point began)
      : process_(process), began_(began) {}

  // To be called when a communicator has got a team. Equal on all its ranks.
  void note_team(MPI_Comm comm);
  // To be called once, by all ranks, when all teams have ended. Blocks. May throw std::bad_alloc
  // before this rank has taken part.
  void write_of_job(int world_rank);
  // A call has failed. why: in words.
  void write_of_rank(int world_rank, const std::string& why);

 private:
  bool is_wanted() const { return process_.knobs.counts_in_file(); }
  RankStatistics collect(int world_rank, const std::string& why) const;
  void write(const JobStatistics& job, const std::string& path) const;
  bool gather(RankStatistics* own, JobStatistics* job) const;

  const Process& process_;
  const std::chrono::steady_clock::time_point began_;
  bool gathers_ = false;
  bool has_written_ = false;  // a file of this rank's own
};

}  // namespace sluice
