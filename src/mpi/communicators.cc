// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/communicators.h"

#include <map>
#include <memory>
#include <mutex>

#include "sluice/sluice.h"
#include "src/mpi/error_probe.h"
#include "src/mpi/persistent_requests.h"
#include "src/mpi/runtime.h"

namespace sluice {

constinit std::atomic<bool> communicators_missed{false};

namespace {

// Those that have state.
class Communicators {
 public:
  // Made by the first caller, with local functions of MPI only. MPI must be running. Never
  // destroyed, since programs call MPI from exit handlers.
  static Communicators& get();
  // nullptr if it was never needed.
  static Communicators* get_if_made();

  int keyval() const { return keyval_; }
  // nullptr if there is none.
  Communicator* find(MPI_Comm handle);
  // Makes the state of a communicator, and its attribute. nullptr if MPI can't attach it.
  Communicator* make(MPI_Comm handle, Runtime& runtime);
  void forget(MPI_Comm handle);
  void hand_over_counts() {
    for (const auto& [handle, communicator] : made_) {
      if (communicator->team()) communicator->team()->hand_over_counts();
    }
  }
  void leave_to_mpi() {
    for (const auto& [handle, communicator] : made_) communicator->leave_to_mpi();
  }

 private:
  Communicators();

  int keyval_ = MPI_KEYVAL_INVALID;
  std::mutex mutex_;
  std::map<MPI_Comm, Communicator*> made_;
};

constinit std::atomic<Communicators*> all_made{nullptr};

// Attributes are not copied to duplicates. (MPI's own null copy functions are symbols of the MPI
// library, which Sluice is not linked with.)
int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int release(MPI_Comm, int, void* value, void*) {
  communicators_freed.fetch_add(1, std::memory_order_release);
  const std::unique_ptr<Communicator> freed(static_cast<Communicator*>(value));
  Communicators::get().forget(freed->handle());
  return MPI_SUCCESS;
}

// MPI_Finalize deletes the attributes of MPI_COMM_SELF first. This serves programs whose
// MPI_Finalize does not go through Sluice.
int end_with_self(MPI_Comm, int, void*, void*) {
  end_collectives();
  return MPI_SUCCESS;
}

Communicators::Communicators() {
  real().Comm_create_keyval(copy_nothing, release, &keyval_, nullptr);
  int keyval = MPI_KEYVAL_INVALID;
  real().Comm_create_keyval(copy_nothing, end_with_self, &keyval, nullptr);
  real().Comm_set_attr(real().comm_self, keyval, this);
  all_made.store(this, std::memory_order_release);
}

Communicators& Communicators::get() {
  static Communicators* const all = new Communicators;
  return *all;
}

Communicators* Communicators::get_if_made() { return all_made.load(std::memory_order_acquire); }

Communicator* Communicators::find(MPI_Comm handle) {
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(handle);
  return found == made_.end() ? nullptr : found->second;
}

Communicator* Communicators::make(MPI_Comm handle, Runtime& runtime) {
  auto made = std::make_unique<Communicator>(handle, runtime);
  if (communicators_missed.load(std::memory_order_relaxed)) made->fail_all_calls();
  {
    const std::lock_guard lock(mutex_);
    made_.emplace(handle, made.get());
  }
  if (!real().Comm_set_attr(handle, keyval_, made.get())) return made.release();
  forget(handle);
  return nullptr;
}

void Communicators::forget(MPI_Comm handle) {
  const std::lock_guard lock(mutex_);
  made_.erase(handle);
}

bool is_mpi_running() {
  int begun = 0, ended = 0;
  real().Initialized(&begun);
  real().Finalized(&ended);
  return begun && !ended;
}

}  // namespace

// (A call on a communicator being freed is MPI's, but may need the runtime, whose end is tied to
// the attribute of MPI_COMM_SELF that is set here.)
Communicator* look_up_communicator(MPI_Comm handle) {
  if (handle == real().comm_null || !is_mpi_running()) return nullptr;
  Communicators& all = Communicators::get();
  if (FreedCommunicator::is_freed(handle)) return nullptr;
  note_this_thread();
  Runtime& runtime = Runtime::get();
  const uint64_t generation = communicators_freed.load(std::memory_order_acquire);
  Communicator* communicator = all.find(handle);
  if (!communicator && is_communicator(handle)) communicator = all.make(handle, runtime);
  if (!communicator) return nullptr;
  ThreadState& thread = this_thread;
  thread.communicator_handle = handle;
  thread.communicator_generation = generation;
  thread.communicator = communicator;
  return communicator;
}

Communicator* find_existing_communicator(MPI_Comm handle) {
  Communicators* const all = Communicators::get_if_made();
  return all && is_mpi_running() ? all->find(handle) : nullptr;
}

void hand_over_all_counts() {
  if (Communicators* const all = Communicators::get_if_made()) all->hand_over_counts();
}

FreedCommunicator::FreedCommunicator(MPI_Comm handle)
    : handle_(handle), outer_(this_thread.freed_communicator) {
  this_thread.freed_communicator = this;
  Communicators* const all = Communicators::get_if_made();
  if (all && all->find(handle)) real().Comm_delete_attr(handle, all->keyval());
}

FreedCommunicator::~FreedCommunicator() { this_thread.freed_communicator = outer_; }

bool FreedCommunicator::is_freed(MPI_Comm handle) {
  const FreedCommunicator* freed = this_thread.freed_communicator;
  while (freed && freed->handle_ != handle) freed = freed->outer_;
  return freed;
}

void end_collectives() {
  static constinit std::atomic<bool> left{false};
  if (left.exchange(true)) return;
  pass_all();
  if (Runtime* const runtime = Runtime::get_if_made()) runtime->pending().end();
  PersistentRequests::get().end();
  if (Communicators* const all = Communicators::get_if_made()) all->leave_to_mpi();
  if (Runtime* const runtime = Runtime::get_if_made()) runtime->close();
}

}  // namespace sluice

const char* sluice_last_algorithm(MPI_Comm comm) {
  const sluice::Communicator* const known = sluice::find_existing_communicator(comm);
  const sluice::Algorithm* const algorithm = known ? known->last_algorithm() : nullptr;
  return algorithm ? algorithm->name : "mpi";
}
