// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/statistics_report.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/engine/statistics_file.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

// Whether all ranks of the world are in the communicator.
bool contains_world(MPI_Comm comm) {
  int ranks = 0, members = 0;
  real().Comm_size(real().comm_world, &ranks);
  real().Comm_size(comm, &members);
  if (members < ranks) return false;
  std::vector<int> of_world(static_cast<size_t>(ranks)), there(of_world.size(), -1);
  std::iota(of_world.begin(), of_world.end(), 0);
  MPI_Group world, group;
  real().Comm_group(real().comm_world, &world);
  real().Comm_group(comm, &group);
  real().Group_translate_ranks(world, ranks, of_world.data(), group, there.data());
  real().Group_free(&world);
  real().Group_free(&group);
  return std::ranges::all_of(there, [&](int rank) { return rank >= 0 && rank < members; });
}

// While it exists, MPI returns errors of MPI_COMM_WORLD.
class WorldErrors {
 public:
  WorldErrors() {
    real().Comm_get_errhandler(real().comm_world, &handler_);
    real().Comm_set_errhandler(real().comm_world, real().errors_return);
  }
  ~WorldErrors() {
    real().Comm_set_errhandler(real().comm_world, handler_);
    real().Errhandler_free(&handler_);
  }
  WorldErrors(const WorldErrors&) = delete;
  WorldErrors& operator=(const WorldErrors&) = delete;

 private:
  MPI_Errhandler handler_{};
};

// For the offsets of the ranks' clocks: exchanges in which each rank hears of all others.
bool exchange_times(int ranks, std::vector<ExchangeTimes>* times) {
  constexpr int exchanges = 16;  // the first ones set up MPI's connections
  std::vector<int> all(static_cast<size_t>(ranks));
  for (int i = 0; i < exchanges; ++i) {
    const int64_t entry = in_nanoseconds(Clock::now());
    const int mine = i;
    if (real().Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                         real().comm_world) != MPI_SUCCESS) {
      return false;
    }
    times->push_back({entry, in_nanoseconds(Clock::now())});
  }
  return true;
}

// Gathers a text of each rank, on rank 0. MPI counts pieces of it: their sum fits an int.
bool gather_texts(int ranks, std::string mine, std::vector<std::string>* all) {
  constexpr size_t piece = 1024;
  const uint64_t length = mine.size();
  mine.resize((mine.size() + piece - 1) / piece * piece);
  std::vector<uint64_t> lengths(static_cast<size_t>(ranks));
  int result = real().Gather(&length, sizeof length, MPI_BYTE, lengths.data(), sizeof length,
                             MPI_BYTE, 0, real().comm_world);
  if (result != MPI_SUCCESS) return false;
  std::vector<int> counts, places;
  int total = 0;
  for (const uint64_t each : lengths) {
    counts.push_back(static_cast<int>((each + piece - 1) / piece));
    places.push_back(total);
    total += counts.back();
  }
  MPI_Datatype pieces;
  real().Type_contiguous(piece, MPI_BYTE, &pieces);
  real().Type_commit(&pieces);
  std::string gathered(static_cast<size_t>(total) * piece, '\0');
  result =
      real().Gatherv(mine.data(), static_cast<int>(mine.size() / piece), pieces, gathered.data(),
                     counts.data(), places.data(), pieces, 0, real().comm_world);
  real().Type_free(&pieces);
  if (result != MPI_SUCCESS) return false;
  for (size_t i = 0; i < lengths.size(); ++i) {
    all->push_back(gathered.substr(static_cast<size_t>(places[i]) * piece, lengths[i]));
  }
  return true;
}

}  // namespace

void StatisticsReport::note_team(MPI_Comm comm) {
  if (is_wanted() && !gathers_) gathers_ = contains_world(comm);
}

RankStatistics StatisticsReport::collect(int world_rank, const std::string& why) const {
  RankStatistics own;
  own.rank = static_cast<Rank>(world_rank);
  own.process = process_.label;
  own.host = process_.host;
  own.began = in_nanoseconds(began_);
  own.ended = in_nanoseconds(Clock::now());
  own.left = process_.statistics.left();
  own.why_ended = why;
  for (auto& [of, counted] : process_.statistics.classes()) own.classes.push_back({of, counted});
  return own;
}

void StatisticsReport::write(const JobStatistics& job, const std::string& path) const {
  const StatisticsFile file(process_.knobs.stats);
  const Status status = replace_file(path, file.text(job, process_.version));
  if (!status.ok()) log(Level::warning, "SLUICE_STATS: %s", status.message().c_str());
}

// False: MPI failed.
bool StatisticsReport::gather(RankStatistics* own, JobStatistics* job) const {
  const WorldErrors returned;
  int ranks = 0;
  real().Comm_size(real().comm_world, &ranks);
  std::vector<std::string> texts;
  if (!exchange_times(ranks, &own->exchanges) || !gather_texts(ranks, own->pack(), &texts)) {
    return false;
  }
  if (own->rank != 0) return true;
  std::vector<RankStatistics> told(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!RankStatistics::unpack(texts[i], &told[i])) return false;
  }
  *job = put_together(static_cast<uint32_t>(ranks), told);
  return true;
}

void StatisticsReport::write_of_job(int world_rank) {
  if (!is_wanted()) return;
  RankStatistics own = collect(world_rank, "");
  JobStatistics job;
  if (!gathers_) return write_of_rank(world_rank, "no communicator had all ranks of the job");
  if (!gather(&own, &job)) return write_of_rank(world_rank, "MPI could not gather the job's");
  const StatisticsFile file(process_.knobs.stats);
  if (own.rank == 0) write(job, file.path());
  if (has_written_) unlink(file.path_of_rank(own.rank).c_str());
}

void StatisticsReport::write_of_rank(int world_rank, const std::string& why) {
  if (!is_wanted()) return;
  int ranks = 0;
  real().Comm_size(real().comm_world, &ranks);
  const RankStatistics own = collect(world_rank, why);
  if (own.classes.empty() && own.left == 0) return;
  write(put_together(static_cast<uint32_t>(ranks), {&own, 1}),
        StatisticsFile(process_.knobs.stats).path_of_rank(own.rank));
  has_written_ = true;
}

}  // namespace sluice
