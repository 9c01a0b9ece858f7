// SPDX-License-Identifier: BSD-3-Clause
//
// A trial: one collective call with random arguments, made through Sluice and through MPI's own
// function with the same data, and the two results held against each other. Everything about trial
// N follows from the seed and N, so that each can be made again alone.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/mpi/harness.h"
#include "tests/mpi/shapes.h"

namespace test {

// What is spoilt in Sluice's result to see that it is noticed (--break).
enum class Damage : uint8_t { none, result, gap, guard, input, bits };

// A communicator as this rank sees it; null for those that this rank is not in.
struct Comm {
  MPI_Comm handle;
  int rank = -1, size = 0;
  std::string name;
  bool fresh = false;  // to be freed after the trial
};

// Those that live from the first trial to the last.
std::vector<Comm> lasting_comms();
// One of them, or one made for a single trial. Collective over the world.
Comm draw_comm(const std::vector<Comm>& lasting, Random& shared);

struct Trial {
  uint64_t seed = 0, number = 0;
  size_t most_bytes = 0;
  Damage damage = Damage::none;
  std::string function;
  Comm comm;
  bool in_place = false;
  int root = 0;
  bool large = false;  // this rank calls the function for large counts, where MPI has it
  Random shared{0};    // draws the same on all ranks of the communicator
  Random own{0};       // and this not
  std::string story;   // what was drawn, for people

  size_t me() const { return static_cast<size_t>(comm.rank); }
  size_t size() const { return static_cast<size_t>(comm.size); }
  bool is_root() const { return comm.rank == root; }
  // What was drawn, and the command that makes this trial again.
  std::string describe() const;
  // Ends the job with that.
  [[noreturn]] void complain(const std::string& what) const;
};

// Everything that does not depend on the function's family.
Trial draw_trial(uint64_t seed, uint64_t number, const std::string& only,
                 const std::vector<Comm>& lasting);

// An array of counts or displacements (Large: MPI_Count, MPI_Aint), for either kind of function.
template <typename Large>
class Array {
 public:
  explicit Array(const std::vector<int>& numbers)
      : small_(numbers), large_(numbers.begin(), numbers.end()) {}
  operator const int*() const { return small_.data(); }
  operator const Large*() const { return large_.data(); }

 private:
  std::vector<int> small_;
  std::vector<Large> large_;
};

// What a function is called with on one side. A copy of `blocks` in MPI's form.
struct Words {
  void* buffer;
  MPI_Datatype type;
  std::vector<int> counts, displacements;

  int count() const { return counts[0]; }
  Array<MPI_Count> all_counts() const { return Array<MPI_Count>(counts); }
  Array<MPI_Aint> places() const { return Array<MPI_Aint>(displacements); }
};

// One side of a call on this rank: a type, blocks of its elements, and three memories for them that
// are alike before the calls.
class Side {
 public:
  // MPI's own function gets the messages in the same form as Sluice; or, unless that is null, as
  // elements of the dense type `in_mpi`, packed by the type's map.
  Side(ShapedType type, std::vector<Memory::Block> blocks, MPI_Datatype in_mpi, Trial& trial);
  Side(const Side&) = delete;
  ~Side();

  // Gives all blocks by absolute addresses from now on, with MPI_BOTTOM, in Sluice's call.
  void use_absolute_addresses();
  // The three memories become as `before` is now.
  void settle();
  Words ours();
  Words theirs();
  // As `theirs`, of memory that no call writes; one block of it.
  Words untouched();
  Words untouched(size_t block);
  // After MPI's call.
  void take_theirs();

  // A byte of a kept fate must be as it was, a defined one as MPI has it (`values_too`).
  void verify(const Trial& trial, const char* which, bool values_too) const;
  // Spoils a byte of Sluice's with this fate: one of the blocks' own, of a gap between them, or of
  // the guards.
  void spoil(Trial& trial, Fate fate, bool guard);

  ShapedType type;
  std::vector<Memory::Block> blocks;
  std::vector<Fate> fates;
  Memory before, our_memory, their_memory;

 private:
  Words words(void* buffer, MPI_Datatype handle) const;

  Words packed(const Memory& memory, std::vector<std::byte>* message) const;

  MPI_Datatype absolute_ = MPI_DATATYPE_NULL;
  MPI_Datatype in_mpi_;
  std::vector<std::byte> their_message_, message_before_;
};

// Spoils what --break asks for, on one rank, in the buffers of a call that was made.
void damage(Trial& trial, Side* input, Side* output);

// Trials of the two families.
void try_moving(Trial& trial);
void try_reducing(Trial& trial);

}  // namespace test

// MPI_X or PMPI_X, both of which Sluice stands in for; and the function for large counts.
#if MPI_VERSION >= 4
#define LARGE(trial, function) EITHER(trial, function##_c)
#else
#define LARGE(trial, function) EITHER(trial, function)
#endif
#define EITHER(trial, function) ((trial).shared.chance(2) ? &(function) : &P##function)
