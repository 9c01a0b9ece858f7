// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/trial.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace test {
namespace {

constexpr const char* functions[] = {
    "MPI_Allreduce", "MPI_Reduce",    "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
    "MPI_Bcast",     "MPI_Allgather", "MPI_Allgatherv",     "MPI_Alltoall",
    "MPI_Alltoallv", "MPI_Barrier",   "MPI_Scan",           "MPI_Exscan",
    "MPI_Gather",    "MPI_Gatherv",   "MPI_Scatter",        "MPI_Scatterv"};

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

Comm describe(MPI_Comm handle, const char* name, bool fresh = false) {
  Comm comm{handle, -1, 0, name, fresh, handle};
  if (handle == MPI_COMM_NULL) return comm;
  MPI_Comm_rank(handle, &comm.rank);
  MPI_Comm_size(handle, &comm.size);
  return comm;
}

MPI_Comm split(int color, int key) {
  MPI_Comm part;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &part);
  return part;
}

// The settings in force, to repeat the trial.
std::string settings() {
  std::string words;
  for (char** variable = environ; *variable; ++variable) {
    const bool counts = std::strncmp(*variable, "SLUICE_", 7) == 0 ||
                        std::strncmp(*variable, "LD_PRELOAD=", 11) == 0 ||
                        std::strncmp(*variable, "OMPI_MCA_op=", 12) == 0;
    if (counts) words += std::string(*variable) + " ";
  }
  return words;
}

std::string mpirun() {
  const char* here = std::getenv("MPIRUN");
  std::string command = here ? here : "mpirun";
#ifdef OPEN_MPI
  command += " --oversubscribe";
#endif
  return command;
}

std::string program() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "differential";
}

const char* name_of(Damage damage) {
  static constexpr const char* names[] = {"none",  "result", "gap", "guard",
                                          "input", "bits",   "hang"};
  return names[static_cast<size_t>(damage)];
}

std::string driver;  // empty: all memory is the host's
bool has_own_device = false;
std::string driver_options, further_options;  // of the command that repeats a case

}  // namespace

std::atomic<Phase> phase{Phase::setting_up};

const char* describe(Phase of) {
  switch (of) {
    case Phase::setting_up:
      return "sets up what all cases share";
    case Phase::drawing:
      return "draws the next case, where MPI may make a communicator of all ranks";
    case Phase::preparing:
      return "prepares buffers";
    case Phase::in_sluice:
      return "is in Sluice's call";
    case Phase::completing:
      return "waits for non-blocking calls, or tests them";
    case Phase::in_mpi:
      return "is in MPI's own call";
    case Phase::comparing:
      return "compares results";
    case Phase::freeing:
      return "frees buffers and types";
  }
  return "";
}

void use_driver(const std::string& path, bool own_devices, const std::string& words) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  load_driver(path, own_devices ? rank : 0);
  driver = path;
  has_own_device = own_devices;
  driver_options = words;
}

bool has_hook() { return dlsym(RTLD_DEFAULT, "opal_progress_register") != nullptr; }

void repeat_with(const std::string& options) { further_options = options; }

std::vector<Comm> lasting_comms() {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int middle = size / 2, periodic = 0;
  MPI_Comm copy, cartesian;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &cartesian);
  return {describe(MPI_COMM_WORLD, "the world"),
          describe(MPI_COMM_WORLD, "the world"),
          describe(copy, "a duplicate"),
          describe(cartesian, "a line"),
          describe(split(0, -rank), "the world reversed"),
          describe(split(rank % 2, rank), "every other rank"),
          describe(split(rank <= middle ? 0 : MPI_UNDEFINED, rank), "the lower ranks"),
          describe(split(rank >= middle ? 0 : MPI_UNDEFINED, -rank), "the upper ranks reversed"),
          describe(MPI_COMM_SELF, "itself")};
}

Comm draw_comm(const std::vector<Comm>& lasting, Random& shared) {
  return shared.chance(12) ? make_comm(lasting, shared) : shared.pick(lasting);
}

Comm make_comm(const std::vector<Comm>& lasting, Random& shared) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (shared.chance(2)) {
    MPI_Comm copy;
    MPI_Comm_dup(shared.chance(2) ? lasting[2].handle : MPI_COMM_WORLD, &copy);
    return describe(copy, "a new duplicate", true);
  }
  int color = 0, key = 0;
  for (int i = 0; i < size; ++i) {
    const int one = static_cast<int>(shared.below(3)), other = static_cast<int>(shared.below(99));
    if (i == rank) color = one, key = other;
  }
  return describe(split(color == 2 ? MPI_UNDEFINED : color, key), "a new part", true);
}

Trial make_trial(uint64_t seed, uint64_t number, size_t place) {
  Trial trial;
  trial.seed = seed;
  trial.number = number;
  trial.place = place;
  const uint64_t mixed =
      Random(seed * 0x9e3779b97f4a7c15 + number + place * 0xd1b54a32d192ed03).next();
  trial.shared = Random(mixed);
  trial.own = Random(mixed + 1 + static_cast<uint64_t>(world_rank()));
  return trial;
}

void draw(Trial* trial, const std::string& only, const Comm& comm) {
  const size_t count = sizeof functions / sizeof functions[0];
  trial->function = functions[trial->shared.below(count)];
  if (!only.empty()) trial->function = only;
  trial->comm = comm;
  if (comm.handle == MPI_COMM_NULL) return;
  trial->in_place = trial->shared.chance(3);
  trial->root = static_cast<int>(trial->shared.below(trial->size()));
  trial->on_devices = has_own_device && !trial->shared.chance(3);
  trial->large = MPI_VERSION >= 4 && trial->own.chance(4);
  trial->frees = trial->in_flight && trial->own.chance(3);
  if (trial->is_tame) trial->tame();
  trial->story = trial->function + (trial->large ? "_c" : "") +
                 (trial->in_flight ? " in flight" : "") + (trial->in_place ? " in place" : "") +
                 " on " + comm.name + ", rank " + std::to_string(comm.rank) + " of " +
                 std::to_string(comm.size) + ", root " + std::to_string(trial->root);
}

Rest start(Trial& trial) {
  const bool reduces =
      trial.function.find("educe") != std::string::npos || trial.function.ends_with("can");
  return reduces ? start_reducing(trial) : start_moving(trial);
}

Words lend(Trial& trial, Words words) {
  if (!trial.frees || words.type == MPI_DATATYPE_NULL) return words;
  MPI_Type_dup(words.type, &words.type);
  trial.lent.push_back(words.type);
  return words;
}

void free_lent(Trial& trial) {
  for (MPI_Datatype& type : trial.lent) MPI_Type_free(&type);
  trial.lent.clear();
}

void Trial::tame() {
  is_tame = true;
  frees = in_place = false;
}

double Trial::now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

std::string Trial::describe() const {
  int world = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  std::string again = "env " + settings() + mpirun() + " -n " + std::to_string(world) + " " +
                      program() + " --seed " + std::to_string(seed) + " --case " +
                      std::to_string(number) + " --bytes " + std::to_string(most_bytes);
  if (!driver.empty()) again += " --driver " + driver + driver_options;
  again += further_options;
  if (damage != Damage::none) again += std::string(" --break ") + name_of(damage);
  const std::string which = place > 0 ? " call " + std::to_string(place) : "";
  return "seed " + std::to_string(seed) + " case " + std::to_string(number) + which + ": " + story +
         "\nREPLAY: " + again + "\n";
}

// Without MPI_Abort: after several at once mpirun may hang.
void Trial::complain(const std::string& what) const {
  std::fprintf(stderr, "FAILED on rank %d of the job: %s%s\n", world_rank(), describe().c_str(),
               what.c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

Side::Side(ShapedType drawn, std::vector<Memory::Block> where, MPI_Datatype in_mpi, Trial& trial)
    : type(std::move(drawn)),
      blocks(std::move(where)),
      before(type, blocks, 0, trial.shared.chance(4) ? trial.own.below(16) : 0),
      our_memory(before),
      their_memory(before),
      in_mpi_(in_mpi) {
  before.scramble(trial.own);
  if (!driver.empty()) {
    const bool any = !trial.on_devices || trial.own.chance(8);
    const Kind kind = any ? kinds[trial.own.below(std::size(kinds))] : Kind::device;
    trial.story += std::string(", ") + name_of(kind);
    elsewhere_ = std::make_unique<KindMemory>(kind, before.bytes().size());
  }
  fates.assign(before.bytes().size(), Fate::kept);
  settle();
}

Side::~Side() {
  phase = Phase::freeing;
  if (absolute_ != MPI_DATATYPE_NULL) MPI_Type_free(&absolute_);
  free_type(&type);
}

void Side::settle() {
  our_memory.bytes() = before.bytes();
  their_memory.bytes() = before.bytes();
}

void Side::use_absolute_addresses() {
  const int one = 1;
  MPI_Aint address = 0, lower = 0, extent = 0;
  MPI_Datatype moved;
  MPI_Get_address(our_buffer(), &address);
  MPI_Type_get_extent(type.handle, &lower, &extent);
  MPI_Type_create_struct(1, &one, &address, &type.handle, &moved);
  MPI_Type_create_resized(moved, address + lower, extent, &absolute_);
  MPI_Type_commit(&absolute_);
  MPI_Type_free(&moved);
}

Words Side::words(void* buffer, MPI_Datatype handle) const {
  Words words{buffer, handle, {}, {}};
  for (const Memory::Block& block : blocks) {
    words.counts.push_back(static_cast<int>(block.count));
    words.displacements.push_back(static_cast<int>(block.displacement));
  }
  return words;
}

std::byte* Side::our_buffer() {
  if (!elsewhere_) return our_memory.buffer();
  return static_cast<std::byte*>(elsewhere_->data()) + our_memory.origin();
}

void Side::take_ours() {
  phase = Phase::comparing;
  if (elsewhere_) elsewhere_->read(our_memory.bytes().data(), our_memory.bytes().size());
}

Words Side::ours() {
  phase = Phase::preparing;
  if (elsewhere_) elsewhere_->put(our_memory.bytes());
  if (absolute_ != MPI_DATATYPE_NULL) return words(MPI_BOTTOM, absolute_);
  return words(our_buffer(), type.handle);
}

Words Side::packed(const Memory& memory, std::vector<std::byte>* message) const {
  Words words{nullptr, in_mpi_, {}, {}};
  int bytes = 0;
  MPI_Type_size(in_mpi_, &bytes);
  message->clear();
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::vector<std::byte> block = memory.read(i);
    words.counts.push_back(static_cast<int>(block.size()) / bytes);
    words.displacements.push_back(static_cast<int>(message->size()) / bytes);
    message->insert(message->end(), block.begin(), block.end());
  }
  message->resize(message->size() + 1);  // so that it has an address
  words.buffer = message->data();
  return words;
}

Words Side::theirs() {
  if (in_mpi_ != MPI_DATATYPE_NULL) return packed(their_memory, &their_message_);
  return words(their_memory.buffer(), type.handle);
}

Words Side::untouched() {
  if (in_mpi_ != MPI_DATATYPE_NULL) return packed(before, &message_before_);
  return words(before.buffer(), type.handle);
}

Words Side::untouched(size_t block) {
  const int count = static_cast<int>(blocks[block].count);
  if (in_mpi_ == MPI_DATATYPE_NULL) {
    return {count > 0 ? before.element(block, 0) : before.buffer(), type.handle, {count}, {0}};
  }
  message_before_ = before.read(block);
  message_before_.resize(message_before_.size() + 1);
  int bytes = 0;
  MPI_Type_size(in_mpi_, &bytes);
  const int elements = static_cast<int>(message_before_.size() - 1) / bytes;
  return {message_before_.data(), in_mpi_, {elements}, {0}};
}

void Side::take_theirs() {
  if (in_mpi_ == MPI_DATATYPE_NULL) return;
  auto from = their_message_.begin();
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto bytes = static_cast<ptrdiff_t>(blocks[i].count * type.size());
    their_memory.write(i, {from, from + bytes});
    from += bytes;
  }
}

void Side::verify(const Trial& trial, const char* which, bool values_too) const {
  const auto& ours = our_memory.bytes();
  const auto number = [](std::byte b) { return std::to_string(static_cast<unsigned>(b)); };
  for (size_t i = 0; i < fates.size(); ++i) {
    const bool kept = fates[i] == Fate::kept;
    if (!kept && (fates[i] == Fate::any || !values_too)) continue;
    const std::byte expected = kept ? before.bytes()[i] : their_memory.bytes()[i];
    if (ours[i] == expected) continue;
    const ptrdiff_t at = static_cast<ptrdiff_t>(i) - our_memory.origin();
    trial.complain(std::string(which) + " of type '" + type.construction + "', size " +
                   std::to_string(type.size()) + ", extent " + std::to_string(type.extent) +
                   ": byte " + std::to_string(at) + " from the buffer's start is " +
                   number(ours[i]) + ", not " + number(expected) +
                   (kept ? " as it was before" : " as MPI has it"));
  }
}

void Side::spoil(Trial& trial, Fate fate, bool guard) {
  const size_t edge = 32;  // both guards are longer
  std::vector<size_t> places;
  for (size_t i = 0; i < fates.size(); ++i) {
    const bool in_guard = i < edge || i + edge >= fates.size();
    if (fates[i] == fate && in_guard == guard) places.push_back(i);
  }
  if (places.empty()) return;
  our_memory.bytes()[trial.own.pick(places)] ^= std::byte{1};
}

void damage(Trial& trial, Side* input, Side* output) {
  if (trial.comm.rank != trial.comm.size - 1) return;
  switch (trial.damage) {
    case Damage::none:
    case Damage::bits:
      return;
    case Damage::hang:
      for (;;) pause();
    case Damage::result:
      return output->spoil(trial, Fate::defined, false);
    case Damage::gap:
      return output->spoil(trial, Fate::kept, false);
    case Damage::guard:
      return output->spoil(trial, Fate::kept, true);
    case Damage::input:
      if (input) input->spoil(trial, Fate::kept, false);
  }
}

}  // namespace test
