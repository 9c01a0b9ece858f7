// SPDX-License-Identifier: BSD-3-Clause
//
// The findings of the trials of a process's teams (trials.h), and those of earlier jobs: the file
// of SLUICE_CHOICE_FILE. It has a line for each class of calls, in the language of rules (rules.h),
// after two lines that name what it holds for:
//
//   # Choices of Sluice, found by trials (SLUICE_CHOICE_FILE); rewritten when a job ends
//   # Sluice 1.0, format 2, 4 ranks, settings 84222325cbf29ce4, Open MPI v4.1.4
//   allreduce * ranks:4 hosts:1 per_host:4 bytes:4k-8191 ordered:0 ragged:0 exact:0 -> mpi  # why
//   bcast ipc+mpi ranks:4 hosts:1 per_host:4 bytes:1m-2097151 ordered:0 ragged:0 exact:1 -> ipc  #
//
// In place of a transport, a line about calls on devices says what was tried against the rules'
// algorithm. "rules": the algorithm that the rules choose stays. Why: what was measured, as in
// `report`. Lines that are not understood are left out. A process reads the file once, when it
// starts. The ranks of a team use it only if all of them have read the same text.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "collectives/algorithm.h"
#include "src/base/status.h"
#include "src/engine/rules.h"
#include "src/engine/vote.h"
#include "transports/transport.h"

namespace sluice {

// Who is tried against the rules' algorithm.
struct Challengers {
  CarrierSet carriers = {};  // any: the calls are on devices
  bool mpi = false;
  bool are_on_device() const { return carriers != CarrierSet{}; }
  bool are_none() const { return !mpi && !are_on_device(); }
  auto operator<=>(const Challengers&) const = default;
};

class Outcomes {
 public:
  // What a file holds for. Names have one line.
  struct Machine {
    std::string version;    // of Sluice
    int ranks = 1;          // of MPI_COMM_WORLD
    uint64_t settings = 0;  // a digest of those that ranks must agree on
    std::string mpi;        // the library's name and version
  };
  // A class of calls, of all teams of one shape.
  struct Class {
    Collective collective = Collective::barrier;
    Rank ranks = 1;
    uint32_t hosts = 1;
    Rank per_host = 1;    // of the host that has most
    uint32_t octave = 0;  // bytes: 0, or from 2^(octave - 1) to 2^octave - 1
    bool ordered = false, ragged = false, exact = false;
    Challengers challengers = {.mpi = true};
    auto operator<=>(const Class&) const = default;
  };
  struct Outcome {
    std::string choice;      // "mpi", "rules", or the name of another algorithm or route
    bool from_file = false;  // then there is nothing else
    std::string ruled;       // the algorithm that the rules choose
    // Nanoseconds of a call, by the rules' algorithm, by MPI and by the choice; 0: not known.
    double by_rules = 0, by_mpi = 0, by_other = 0;
    uint32_t windows = 0;  // that were compared
    bool is_mpis() const { return choice == leave_to_mpi; }
  };
  // What came of `read`. Of a file in use, the status names the lines that were left out.
  enum class File : uint8_t {
    none,  // there is no file, or an empty one
    used,
    other,    // it holds for another machine, or has another format
    foreign,  // it cannot be read, or is no such file: it is not written to either
  };

  // To be called once at most, before all others. The status says what is wrong.
  File read(const std::string& path, const Machine& machine, Status* status);
  // Of the text in use; 0: none. Equal digests: equal choices.
  uint64_t digest() const { return digest_; }
  // The choice for such calls, by the file; empty: it does not say.
  std::string_view find(const Class& of) const;

  // Any thread may call these. Keeps what a team has found out about a class of calls; the latest
  // of a team counts. communicator: the name; empty: it is not reported. If memory is short, it is
  // lost.
  void note(const std::string& communicator, const TeamId& team, const Class& of,
            const Outcome& outcome);
  // For people, a line for each class of a communicator's calls, those that MPI does first:
  //
  //   MPI_COMM_WORLD: allreduce of 4k to 8k: MPI (3.1 us, Sluice's flat 6.7 us; 3 windows)
  //
  // At most so many lines, and one that counts the others. Empty if there is nothing to say.
  static constexpr size_t most_lines = 20;
  std::string report() const;
  // The new text of the file: the old findings and those of this job. A class about which teams
  // differ is left out. Empty if there are no findings.
  std::string text() const;
  // Replaces the file by that, if there is something new. An error names the file.
  Status write() const;

 private:
  Status parse(std::string_view lines);

  struct Found {
    TeamId team;  // the latest
    Outcome outcome;
    bool differs;  // teams do
  };

  std::string path_, header_;  // no path: there is no file to write
  uint64_t digest_ = 0;
  struct Known {
    std::string choice;
    std::string line;  // in the file
  };
  std::map<Class, Known> read_;
  mutable std::mutex mutex_;
  std::map<Class, Found> found_;
  std::map<std::pair<std::string, Class>, Outcome> by_communicator_;
};

}  // namespace sluice
