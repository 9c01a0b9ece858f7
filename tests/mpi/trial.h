// SPDX-License-Identifier: BSD-3-Clause
//
// A trial: one collective call with random arguments, made through Sluice and through MPI's own
// function with the same data; the two results are compared. The seed and N determine trial N
// completely, so that each trial can be repeated alone. Sluice's call may be a non-blocking one.
// Then others are made before it ends, and MPI's own follows afterwards (in_flight.h).
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cuda/kinds.h"
#include "tests/mpi/harness.h"
#include "tests/mpi/shapes.h"

namespace test {

// What --break corrupts in Sluice's result, to check that the comparison notices. hang: the last
// rank of a communicator does not come to the comparison.
enum class Damage : uint8_t { none, result, gap, guard, input, bits, hang };

// What a rank is doing, for a report of a trial that takes too long.
enum class Phase : uint8_t {
  setting_up,
  drawing,     // the next trial, for which all ranks may make a communicator
  preparing,   // buffers, of whatever kind of memory
  in_sluice,   // in the call through Sluice
  completing,  // waits for non-blocking calls, or tests them
  in_mpi,      // in MPI's own call, with which it is compared
  comparing,   // results, also by calls of MPI's own
  freeing,     // buffers and types
};
extern std::atomic<Phase> phase;
const char* describe(Phase of);

// A communicator as this rank sees it; the handle is null if the rank is not a member.
struct Comm {
  MPI_Comm handle;
  int rank = -1, size = 0;
  std::string name;
  bool fresh = false;        // free it after the trial
  MPI_Comm in_mpi = handle;  // of the same ranks: where MPI's own calls go
};

// The communicators that live from the first trial to the last.
std::vector<Comm> lasting_comms();
// One made of these or of random ranks. Collective over the world.
Comm make_comm(const std::vector<Comm>& lasting, Random& shared);
// One of these, or one made for a single trial. Collective over the world.
Comm draw_comm(const std::vector<Comm>& lasting, Random& shared);

struct Trial {
  uint64_t seed = 0, number = 0;
  size_t place = 0;  // among the trials of one number
  size_t most_bytes = 0;
  Damage damage = Damage::none;
  std::string function;
  Comm comm;
  bool in_place = false;
  bool on_devices = false;  // most buffers are on their rank's own device
  int root = 0;
  bool large = false;  // this rank calls the function with large counts, if available
  Random shared{0};    // equal draws on all ranks of the communicator
  Random own{0};       // other draws on each rank
  std::string story;   // what was drawn, as text
  // Sluice's call is a non-blocking one. frees: what it uses is freed as soon as it has started.
  bool in_flight = false, frees = false;
  // MPI does it: nothing about it is unusual. (Else Open MPI 4.1.4 and MPICH 4.0.2 crash, or mix up
  // bytes.)
  bool is_tame = false;
  bool has_own_operation = false;  // it reduces by one of the program's
  MPI_Request request = MPI_REQUEST_NULL;
  double ended = 0;  // when that was completed, as Trial::now() says
  // Arguments of that call, which MPI may read until it ends; and types to free.
  std::shared_ptr<void> arguments;
  std::vector<MPI_Datatype> lent;

  void tame();
  static double now();
  size_t me() const { return static_cast<size_t>(comm.rank); }
  size_t size() const { return static_cast<size_t>(comm.size); }
  bool is_root() const { return comm.rank == root; }
  MPI_Comm comm_in(Phase in) const { return in == Phase::in_sluice ? comm.handle : comm.in_mpi; }
  // Describes what was drawn, with the command that repeats this trial.
  std::string describe() const;
  // Prints this description and `what`, and ends the job.
  [[noreturn]] void complain(const std::string& what) const;
};

// Whether calls in flight progress by Open MPI's hook, and not by a thread of Sluice's, which calls
// no operation of the program's.
bool has_hook();

// Of which this rank is a member; null between trials.
inline const Trial* current = nullptr;

// Further options of the program, for the command that repeats a trial.
void repeat_with(const std::string& options);

// From now on each of Sluice's buffers is in memory of a random kind, of this CUDA driver.
// own_devices: each rank has a device of its own, and in most trials most buffers are there. words:
// the program's further options, for the command that repeats a trial.
void use_driver(const std::string& path, bool own_devices, const std::string& words);

// A trial of that number and place, of which nothing is drawn yet.
Trial make_trial(uint64_t seed, uint64_t number, size_t place);
// Draws everything that does not depend on the function's family. (Nothing but the function, if
// this rank is no member of the communicator.)
void draw(Trial* trial, const std::string& only, const Comm& comm);

// Counts or displacements (Large: MPI_Count, MPI_Aint), for functions of either kind. instead: an
// address that the call gets in their place.
template <typename Large>
class Array {
 public:
  Array(const std::vector<int>& numbers, std::optional<const void*> instead)
      : small_(numbers), large_(numbers.begin(), numbers.end()), instead_(instead) {}
  explicit Array(const std::vector<int>& numbers) : Array(numbers, {}) {}
  operator const int*() const { return address(small_); }
  operator const Large*() const { return address(large_); }

 private:
  template <typename Number>
  const Number* address(const std::vector<Number>& numbers) const {
    return instead_ ? static_cast<const Number*>(*instead_) : numbers.data();
  }

  std::vector<int> small_;
  std::vector<Large> large_;
  std::optional<const void*> instead_;
};

// The arguments of one side of a call: `blocks` in MPI's form.
struct Words {
  void* buffer;
  MPI_Datatype type;
  std::vector<int> counts, displacements;
  std::optional<const void*> arrays = {};  // in place of both, if they mean nothing

  int count() const { return counts[0]; }
  Array<MPI_Count> all_counts() const { return {counts, arrays}; }
  Array<MPI_Aint> places() const { return {displacements, arrays}; }
};

// One side of a call on this rank: a type, blocks of its elements, and three equal memories for
// them.
class Side {
 public:
  // in_mpi: if null, MPI's own function gets the same type as Sluice. Otherwise it gets elements of
  // this dense type, packed by the type map.
  Side(ShapedType type, std::vector<Memory::Block> blocks, MPI_Datatype in_mpi, Trial& trial);
  Side(const Side&) = delete;
  ~Side();

  // From now on Sluice's call gets all blocks by absolute addresses, from MPI_BOTTOM.
  void use_absolute_addresses();
  // Gets back what Sluice's call did to memory of another kind.
  void take_ours();
  // Copies `before` to the other two memories.
  void settle();
  Words ours();
  Words theirs();
  // Like `theirs`, but of memory that no call writes; or only one block of it.
  Words untouched();
  Words untouched(size_t block);
  // Call it after MPI's call: unpacks MPI's result.
  void take_theirs();

  // Bytes with fate `kept` must be unchanged; `defined` ones must equal MPI's (if `values_too`).
  void verify(const Trial& trial, const char* which, bool values_too) const;
  // Corrupts a byte of Sluice's with this fate: in a block, in a gap between blocks, or in the
  // guards.
  void spoil(Trial& trial, Fate fate, bool guard);

  ShapedType type;
  std::vector<Memory::Block> blocks;
  std::vector<Fate> fates;
  Memory before, our_memory, their_memory;

 private:
  Words words(void* buffer, MPI_Datatype handle) const;
  // What Sluice's call gets for the buffer of `our_memory`.
  std::byte* our_buffer();

  Words packed(const Memory& memory, std::vector<std::byte>* message) const;

  std::unique_ptr<KindMemory> elsewhere_;  // of another kind, with the bytes of our_memory
  MPI_Datatype absolute_ = MPI_DATATYPE_NULL;
  MPI_Datatype in_mpi_;
  std::vector<std::byte> their_message_, message_before_;
};

// Corrupts what --break names, on one rank, in the buffers of a completed call.
void damage(Trial& trial, Side* input, Side* output);

// What is left of a trial once Sluice's call has ended: MPI's own call, and the comparison. To be
// called once, by all ranks of the communicator.
using Rest = std::function<void()>;
// Makes Sluice's call, or starts it. The trial must stay where it is.
Rest start(Trial& trial);
// Those of the two families of collectives.
Rest start_moving(Trial& trial);
Rest start_reducing(Trial& trial);

// The words of a call in flight, with a duplicate of their type that free_lent frees; others
// unchanged.
Words lend(Trial& trial, Words words);
void free_lent(Trial& trial);

// Starts a non-blocking call, whose arguments are kept with the trial.
template <typename Small, typename Large, typename... Arguments>
void start_call(Trial& trial, Small* small, Large* large, const Arguments&... arguments) {
  using All = std::tuple<Arguments..., MPI_Request*>;
  const auto all = std::make_shared<All>(arguments..., &trial.request);
  trial.arguments = all;
  const auto call = [&](const auto&... each) { trial.large ? large(each...) : small(each...); };
  std::apply(call, *all);
  free_lent(trial);
}

}  // namespace test

// What makes Sluice's call of a trial: `function`, or its non-blocking companion `starting`.
#define OURS(trial, function, starting)                                                  \
  [&of = (trial)](const auto&... arguments) {                                            \
    if (of.in_flight) {                                                                  \
      test::start_call(of, EITHER(of, starting), LARGE(of, starting), arguments...);     \
    } else {                                                                             \
      of.large ? LARGE(of, function)(arguments...) : EITHER(of, function)(arguments...); \
    }                                                                                    \
  }
// MPI_X or PMPI_X (Sluice interposes both), or the function with large counts.
#if MPI_VERSION >= 4
#define LARGE(trial, function) EITHER(trial, function##_c)
#else
#define LARGE(trial, function) EITHER(trial, function)
#endif
#define EITHER(trial, function) ((trial).shared.chance(2) ? &(function) : &P##function)
