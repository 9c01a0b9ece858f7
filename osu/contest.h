// SPDX-License-Identifier: BSD-3-Clause
//
// Compares all candidates for one collective on one set of ranks, in turns. Each candidate is a
// duplicate of the communicator with a hint to use that algorithm, or MPI's own collective.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "osu/function.h"

namespace sluice::osu {

class Contest {
 public:
  // Collective over `members`, like all functions of this class. collective: name as in rules;
  // candidates: algorithms, and "mpi"; control: a duplicate that Sluice leaves to MPI.
  Contest(const std::string& collective, const std::vector<std::string>& candidates,
          MPI_Comm members, MPI_Comm control);
  ~Contest();
  Contest(const Contest&) = delete;
  Contest& operator=(const Contest&) = delete;

  struct Result {
    std::string transport, incumbent;                   // incumbent: chosen by the rules in force
    std::vector<std::pair<std::string, double>> times;  // microseconds; candidates that can serve
  };
  // Returns the same on all members. bytes: counted as in rules.
  Result run(size_t bytes, int rounds);

  // Whether a call with so many bytes exists for so many ranks.
  static bool has_size(const std::string& collective, size_t bytes, int ranks);
  static bool is_sized(const std::string& collective) { return collective != "barrier"; }

 private:
  struct Candidate {
    std::string name;
    MPI_Comm comm;
    bool serves = false;
    double probe = 0;
    int calls = 1;  // per sample
    std::vector<double> samples;
    double time() const;
  };
  struct Buffers;

  MPI_Comm duplicate(const std::string& hint, const std::string& value) const;
  void call(MPI_Comm comm) const;
  double sample(MPI_Comm comm, int calls) const;
  bool try_out(Candidate* candidate) const;
  void probe(Candidate* candidate, double best) const;
  double best() const;
  template <typename Plays>
  void take_turns(int round, const Plays& plays);

  const Function& function_;
  const MPI_Comm members_, control_;
  int rank_ = 0, size_ = 1;
  MPI_Comm as_it_comes_ = MPI_COMM_NULL;
  std::vector<Candidate> candidates_;
  std::unique_ptr<Buffers> buffers_;
};

// The algorithm of the communicator's last collective, or "mpi"; nullptr if Sluice is not loaded.
const char* last_algorithm(MPI_Comm comm);

}  // namespace sluice::osu
