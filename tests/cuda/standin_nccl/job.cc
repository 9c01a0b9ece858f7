// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/standin_nccl/job.h"

#include <cstdio>
#include <thread>

#include "tests/cuda/standin_nccl/arithmetic.h"

namespace standin_nccl {

namespace {

size_t times(size_t bytes, int ranks) { return bytes * static_cast<size_t>(ranks); }

bool is_root(const Task& task, int rank) { return static_cast<int>(task.what.root) == rank; }

}  // namespace

size_t bytes_in(const Task& task, int rank, int ranks) {
  const size_t bytes = task.what.count * size_of(task.what.type);
  switch (task.what.kind) {
    case Kind::broadcast:
      return is_root(task, rank) ? bytes : 0;
    case Kind::reduce_scatter:
      return times(bytes, ranks);
    case Kind::receive:
      return 0;
    default:
      return bytes;
  }
}

size_t bytes_out(const Task& task, int rank, int ranks) {
  const size_t bytes = task.what.count * size_of(task.what.type);
  switch (task.what.kind) {
    case Kind::reduce:
      return is_root(task, rank) ? bytes : 0;
    case Kind::all_gather:
      return times(bytes, ranks);
    case Kind::send:
      return 0;
    default:
      return bytes;
  }
}

bool Job::launch(std::shared_ptr<Communicator> owner, std::vector<Task> tasks, int number,
                 CUstream stream) {
  auto* const job = new Job(std::move(owner), std::move(tasks), number);
  const auto start = [](void* argument, uint64_t kernel, CUresult error) {
    std::thread([=] {
      auto* const self = static_cast<Job*>(argument);
      self->owner_->end_job(self->run(error));
      standin_end_kernel(kernel);
      delete self;
    }).detach();
  };
  if (standin_launch(stream, start, job) != 0) return true;
  delete job;
  return false;
}

bool Job::run(CUresult error) {
  standin_add("nccl_running", 1);
  if (error != CUDA_SUCCESS) return hang(ncclUnhandledCudaError);
  if (owner_->fails_job(number_)) return hang(ncclSystemError);
  if (owner_->gets_stuck(number_)) return hang(ncclSuccess);
  for (const Task& task : tasks_) {
    if (task.what.kind < Kind::send && !collect(task)) return false;
  }
  return exchange();
}

bool Job::hang(ncclResult_t error) {
  if (error) owner_->fail(error);
  return owner_->await([] { return false; });
}

std::vector<std::byte> Job::load(const void* from, size_t bytes) const {
  std::vector<std::byte> data(bytes);
  (void)standin_load(owner_->device(), data.data(), reinterpret_cast<CUdeviceptr>(from), bytes);
  return data;
}

void Job::store(void* to, const std::vector<std::byte>& data) const {
  (void)standin_store(owner_->device(), reinterpret_cast<CUdeviceptr>(to), data.data(),
                      data.size());
}

// (The mailbox is empty.)
bool Job::post(int to, const Descriptor& what, const std::vector<std::byte>& data) {
  Mailbox& box = owner_->file().mailbox(owner_->rank(), to);
  if (!owner_->file().write(owner_->rank(), to, data)) return hang(ncclSystemError);
  box.what = what;
  ++box.posted;
  return true;
}

bool Job::is_mismatch(int from, const Descriptor& what, bool is_to_all) {
  const Mailbox& box =
      owner_->file().mailbox(from, is_to_all ? SharedFile::to_all : owner_->rank());
  if (box.what == what) return false;
  standin_add("nccl_mismatches", 1);
  std::fprintf(stderr, "standin: nccl: ranks %d and %d call different operations: they hang\n",
               owner_->rank(), from);
  return true;
}

bool Job::take(int from, bool is_to_all, std::vector<std::byte>* data) {
  const int to = is_to_all ? SharedFile::to_all : owner_->rank();
  if (!owner_->file().read(from, to, data)) return hang(ncclSystemError);
  ++owner_->takes(from, is_to_all);
  ++owner_->file().mailbox(from, to).taken;
  return true;
}

bool Job::gather_inputs(const Task& task, std::vector<std::vector<std::byte>>* inputs) {
  SharedFile& file = owner_->file();
  const int ranks = owner_->ranks(), own = owner_->rank();
  const auto& mine = (*inputs)[static_cast<size_t>(own)];
  if (!post(SharedFile::to_all, task.what, mine)) return false;
  bool is_wrong = false;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == own) continue;
    const Mailbox& box = file.mailbox(rank, SharedFile::to_all);
    if (!owner_->await([&] { return box.posted > owner_->takes(rank, true); })) return false;
    is_wrong = is_mismatch(rank, task.what, true) || is_wrong;
  }
  if (is_wrong) return hang(ncclSuccess);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == own) continue;
    auto& data = (*inputs)[static_cast<size_t>(rank)];
    data.resize(bytes_in(task, rank, ranks));
    if (!take(rank, true, &data)) return false;
  }
  const Mailbox& box = file.mailbox(own, SharedFile::to_all);
  const auto readers = static_cast<uint64_t>(ranks - 1);
  return owner_->await([&] { return box.taken == box.posted * readers; });
}

namespace {

// What a rank gets of all ranks' inputs. Operands are combined in the order of the ranks.
std::vector<std::byte> result_of(const Task& task, int rank,
                                 const std::vector<std::vector<std::byte>>& inputs) {
  const Descriptor& what = task.what;
  const size_t bytes = what.count * size_of(what.type);
  std::vector<std::byte> result;
  if (what.kind == Kind::broadcast) return inputs[what.root];
  if (what.kind == Kind::all_gather) {
    for (const auto& input : inputs) result.insert(result.end(), input.begin(), input.end());
    return result;
  }
  const size_t at = what.kind == Kind::reduce_scatter ? bytes * static_cast<size_t>(rank) : 0;
  const std::byte* const first = inputs[0].data() + at;
  result.assign(first, first + bytes);
  for (size_t i = 1; i < inputs.size(); ++i) {
    combine(what.type, what.operation, what.count, result.data(), inputs[i].data() + at);
  }
  return result;
}

}  // namespace

bool Job::collect(const Task& task) {
  const int ranks = owner_->ranks(), own = owner_->rank();
  std::vector<std::vector<std::byte>> inputs(static_cast<size_t>(ranks));
  inputs[static_cast<size_t>(own)] = load(task.from, bytes_in(task, own, ranks));
  if (!gather_inputs(task, &inputs)) return false;
  if (bytes_out(task, own, ranks) > 0) store(task.to, result_of(task, own, inputs));
  return true;
}

bool Job::offer(const Task& task) {
  const Mailbox& box = owner_->file().mailbox(owner_->rank(), task.peer);
  if (box.taken != box.posted) return false;
  return post(task.peer, task.what, load(task.from, bytes_in(task, owner_->rank(), 0)));
}

bool Job::accept(const Task& task) {
  const Mailbox& box = owner_->file().mailbox(task.peer, owner_->rank());
  if (box.posted <= owner_->takes(task.peer, false)) return false;
  Descriptor sent = task.what;
  sent.kind = Kind::send;
  if (is_mismatch(task.peer, sent, false)) return hang(ncclSuccess);
  std::vector<std::byte> data(bytes_out(task, owner_->rank(), 0));
  if (!take(task.peer, false, &data)) return false;
  store(task.to, data);
  return true;
}

// All sends and receives of a group at once, those with one peer in their order.
bool Job::exchange() {
  std::vector<Task> left;
  for (const Task& task : tasks_) {
    if (task.what.kind >= Kind::send) left.push_back(task);
  }
  const auto advance = [&] {
    bool is_blocked[most_ranks][2] = {};
    std::erase_if(left, [&](const Task& task) {
      const bool is_send = task.what.kind == Kind::send;
      bool& is_waiting = is_blocked[task.peer][is_send ? 1 : 0];
      if (!is_waiting) is_waiting = !(is_send ? offer(task) : accept(task));
      return !is_waiting;
    });
    return left.empty();
  };
  const auto are_taken = [&] {
    for (int to = 0; to < owner_->ranks(); ++to) {
      const Mailbox& box = owner_->file().mailbox(owner_->rank(), to);
      if (box.taken != box.posted) return false;
    }
    return true;
  };
  return owner_->await(advance) && owner_->await(are_taken);
}

}  // namespace standin_nccl
