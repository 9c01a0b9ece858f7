// SPDX-License-Identifier: BSD-3-Clause
//
// Trials whose calls are in flight together, with blocking calls between them: on all communicators
// that last, and on new ones that are freed while calls are in flight. They are completed in random
// order, another one on each rank. On a communicator that has had a blocking call, Sluice carries
// all its non-blocking calls, or the trial fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/mpi/trial.h"

namespace test {

class Flights {
 public:
  // only: the function of all calls, or empty. is_carried: whether Sluice is to carry calls.
  // Makes a blocking call on each lasting communicator, and one for MPI's own calls beside it.
  // Collective over the world.
  Flights(std::vector<Comm> lasting, std::string only, bool is_carried);

  // The trials of case `number`, up to `most` of them. Collective over the world.
  struct Case {
    uint64_t seed = 0, number = 0;
    size_t most = 0, most_bytes = 0;
    Damage damage = Damage::none;
  };
  void run(const Case& drawn);
  // Prints how many calls there were, by algorithm, of all ranks.
  void summarize() const;

 private:
  struct Started {
    std::unique_ptr<Trial> trial;
    Rest rest;
  };
  void start_one(const Case& drawn, size_t place);
  bool is_carried_on(const Comm& comm) const;
  void note_carrier(Trial& trial);
  void make_new_comm();
  void free_new_comm();
  void complete(bool all);
  void finish();

  std::vector<Comm> lasting_, new_;
  const std::string only_;
  const bool is_carried_, by_hook_;
  std::vector<MPI_Comm> with_team_;
  std::vector<MPI_Comm> left_;  // to be freed at the end of the case
  Random shared_{0}, own_{0};   // of the case
  std::vector<Started> started_;
  std::vector<Trial*> pending_;
  std::map<std::string, unsigned long> carriers_;  // calls of this rank, by algorithm
  size_t most_at_once_ = 0;
};

}  // namespace test
