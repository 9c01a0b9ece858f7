// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/in_flight.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/mpi/completion.h"

namespace test {
namespace {

constexpr size_t most_new_comms = 3;

MPI_Comm duplicate_in_mpi(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  if (comm != MPI_COMM_NULL) IN_MPI(MPI_Comm_dup)(comm, &copy);
  return copy;
}

// The algorithm that Sluice has chosen for the last call on it; "mpi": MPI does it.
std::string last_algorithm(MPI_Comm comm) {
  using Function = const char*(MPI_Comm);
  static auto* const last =
      reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  return last ? last(comm) : "mpi";
}

}  // namespace

Flights::Flights(std::vector<Comm> lasting, std::string only, bool is_carried)
    : lasting_(std::move(lasting)),
      only_(std::move(only)),
      is_carried_(is_carried && sluice_in_process()),
      by_hook_(has_hook()) {
  for (Comm& comm : lasting_) {
    comm.in_mpi = duplicate_in_mpi(comm.handle);
    if (comm.handle == MPI_COMM_NULL) continue;
    MPI_Barrier(comm.handle);
    with_team_.push_back(comm.handle);
  }
}

void Flights::make_new_comm() {
  phase = Phase::drawing;
  new_.push_back(make_comm(lasting_, shared_));
  new_.back().in_mpi = duplicate_in_mpi(new_.back().handle);
}

// (Open MPI 4.1.4 crashes if calls of its own are in flight there. The handle of one that is freed
// may come again.)
void Flights::free_new_comm() {
  phase = Phase::freeing;
  Comm& comm = new_[shared_.below(new_.size())];
  if (comm.handle != MPI_COMM_NULL) {
    const auto is_there = [&](const Started& each) {
      return each.trial->is_tame && each.trial->comm.handle == comm.handle;
    };
    std::erase(with_team_, comm.handle);
    left_.push_back(comm.in_mpi);
    if (std::ranges::any_of(started_, is_there)) {
      left_.push_back(comm.handle);
    } else {
      MPI_Comm_free(&comm.handle);
    }
  }
  std::swap(comm, new_.back());
  new_.pop_back();
}

void Flights::run(const Case& drawn) {
  const Trial base = make_trial(drawn.seed, drawn.number, 0);
  shared_ = base.shared;
  own_ = base.own;
  const size_t count = 1 + shared_.below(drawn.most);
  const size_t between = own_.pick<size_t>({2, 8, drawn.most + 1});  // calls, until some completed
  for (size_t place = 0; place < count; ++place) {
    if (new_.size() < most_new_comms && shared_.chance(8)) make_new_comm();
    if (!new_.empty() && shared_.chance(12)) free_new_comm();
    start_one(drawn, place + 1);
    if (own_.chance(between)) complete(false);
  }
  if (shared_.chance(2)) {
    while (!new_.empty()) free_new_comm();
  }
  complete(true);
  finish();
}

void Flights::start_one(const Case& drawn, size_t place) {
  auto made = std::make_unique<Trial>(make_trial(drawn.seed, drawn.number, place));
  Trial& trial = *made;
  phase = Phase::drawing;
  trial.in_flight = !trial.shared.chance(5);
  const bool on_new = !new_.empty() && trial.shared.chance(3);
  const Comm& comm = trial.shared.pick(on_new ? new_ : lasting_);
  trial.is_tame = trial.in_flight && !is_carried_on(comm);
  draw(&trial, only_, comm);
  trial.most_bytes = drawn.most_bytes;
  trial.damage = drawn.damage;
  if (trial.comm.handle == MPI_COMM_NULL) return;
  current = &trial;
  phase = Phase::preparing;
  Rest rest = start(trial);
  if (trial.in_flight) {
    note_carrier(trial);
    pending_.push_back(&trial);
    most_at_once_ = std::max(most_at_once_, pending_.size());
    started_.push_back({std::move(made), std::move(rest)});
  } else {
    with_team_.push_back(trial.comm.handle);
    rest();
    check(true, "");
  }
  current = nullptr;
}

// Whether Sluice carries non-blocking calls there. (Of one rank, Open MPI does all calls.)
bool Flights::is_carried_on(const Comm& comm) const {
  return is_carried_ && (comm.size > 1 || !by_hook_) &&
         std::ranges::count(with_team_, comm.handle) > 0;
}

// (A thread of Sluice's calls no operation of the program's.)
void Flights::note_carrier(Trial& trial) {
  const std::string by = last_algorithm(trial.comm.handle);
  ++carriers_[by];
  trial.story += ", by " + by;
  const bool expected = is_carried_on(trial.comm) && (by_hook_ || !trial.has_own_operation);
  if ((by != "mpi") != expected) trial.complain("another than expected does it");
}

// Some calls, as they come, or all.
void Flights::complete(bool all) {
  while (!pending_.empty()) {
    std::vector<MPI_Request*> requests;
    for (Trial* const trial : pending_) requests.push_back(&trial->request);
    current = pending_.front();
    phase = Phase::completing;
    complete_some(requests, own_);
    current = nullptr;
    for (Trial* const trial : pending_) {
      if (trial->request == MPI_REQUEST_NULL) trial->ended = Trial::now();
    }
    std::erase_if(pending_, [](const Trial* trial) { return trial->request == MPI_REQUEST_NULL; });
    if (!all && own_.chance(3)) return;
  }
}

void Flights::finish() {
  for (Started& each : started_) {
    current = each.trial.get();
    each.rest();
    each.rest = {};
    current = nullptr;
    check(true, "");
  }
  phase = Phase::freeing;
  started_.clear();
  while (!new_.empty()) free_new_comm();
  for (MPI_Comm& comm : left_) MPI_Comm_free(&comm);
  left_.clear();
}

void Flights::summarize() const {
  unsigned long mine[3] = {0, 0, most_at_once_}, sums[3] = {}, most = 0;
  for (const auto& [by, calls] : carriers_) {
    mine[0] += calls;
    if (by == "mpi") mine[1] += calls;
  }
  IN_MPI(MPI_Reduce)(mine, sums, 2, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  IN_MPI(MPI_Reduce)(&mine[2], &most, 1, MPI_UNSIGNED_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  std::printf("%lu calls in flight, %lu by MPI, up to %lu at once\n", sums[0], sums[1], most);
  for (const auto& [by, calls] : carriers_) std::printf("%s %lu\n", by.c_str(), calls);
}

}  // namespace test
