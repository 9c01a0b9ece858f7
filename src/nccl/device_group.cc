// SPDX-License-Identifier: BSD-3-Clause
#include "src/nccl/device_group.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "src/base/log.h"

namespace sluice {
namespace {

// (FNV-1a. NCCL's ids hold random bytes.)
uint64_t digest_of(std::span<const char> id) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const char byte : id) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return digest != 0 ? digest : 1;
}

}  // namespace

DeviceGroup::~DeviceGroup() {
  if (group_) nccl_->forget(group_);
}

void DeviceGroup::fail(const char* why) {
  if (failure_.ok()) {
    has_failed_ = true;
    why_ = why;
    failure_ = {Code::unavailable, "NCCL: " + why_};
  }
  state_ = State::failed;
}

void DeviceGroup::begin(const SluiceNccl& nccl, std::span<const char, sluice_nccl_id> id,
                        int rank) {
  char why[sluice_cuda_why] = "";
  nccl_ = &nccl;
  id_ = digest_of(id);
  begun_ = std::chrono::steady_clock::now();
  group_ = nccl.create(device_, id.data(), rank, static_cast<int>(processes_.size()), why);
  state_ = State::starting;
  if (!group_) fail(why);
}

DeviceGroup::State DeviceGroup::advance() {
  if (!group_) return state_;
  char why[sluice_cuda_why] = "";
  switch (nccl_->advance(group_, why)) {
    case sluice_nccl_starting:
      if (std::chrono::steady_clock::now() - begun_ > longest_start) fail("it does not start");
      break;
    case sluice_nccl_ready:
      state_ = State::ready;
      break;
    case sluice_nccl_running:
      state_ = State::running;
      break;
    case sluice_nccl_failed:
      fail(why);
      break;
    case sluice_nccl_ending:
      state_ = State::ending;
      break;
    case sluice_nccl_ended:
      state_ = State::ended;
      break;
  }
  return state_;
}

Status DeviceGroup::reserve(const SluiceNcclJob& job) {
  char why[sluice_cuda_why] = "";
  if (nccl_->reserve(group_, &job, why) == 0) return {};
  if (advance() == State::failed) return failure_;
  return {Code::memory, std::string("no room on the device: ") + why};
}

Status DeviceGroup::start(const SluiceNcclJob& job) {
  char why[sluice_cuda_why] = "";
  if (nccl_->start(group_, &job, why) != 0) fail(why);
  return failure_;
}

void DeviceGroup::abort() {
  if (failure_.ok()) failure_ = {Code::unavailable, "NCCL was aborted"};
  if (group_) nccl_->abort(group_);
  state_ = group_ ? State::ending : State::ended;
}

void DeviceGroup::end() {
  if (advance() != State::ready) return abort();
  nccl_->end(group_);
  state_ = State::ending;
}

bool DeviceGroups::is_of_parent() const { return process_ != 0 && process_ != getpid(); }

DeviceGroups::Token DeviceGroups::try_take() {
  // (In a forked child another thread of the parent may hold it for good.)
  return Token(!is_of_parent() && mutex_.try_lock() ? this : nullptr);
}

// (A wish may come when they have been looked at, and before the token can be taken.)
void DeviceGroups::release() {
  do {
    fulfil_wishes();
    mutex_.unlock();
  } while (has_wishes() && mutex_.try_lock());
}

void DeviceGroups::abandon(uint64_t id, uint64_t last_user) {
  if (is_of_parent() || id == 0) return;
  if (const Token token = try_take()) return fulfil({id, last_user});
  try {
    const std::lock_guard lock(wishing_);
    wishes_.push_back({id, last_user});
  } catch (const std::bad_alloc&) {  // then MPI_Finalize ends it
    return;
  }
  const Token token = try_take();  // which its holder may have just given back
}

bool DeviceGroups::has_wishes() {
  const std::lock_guard lock(wishing_);
  return !wishes_.empty();
}

void DeviceGroups::fulfil_wishes() {
  std::vector<Wish> wishes;
  {
    const std::lock_guard lock(wishing_);
    wishes.swap(wishes_);
  }
  for (const Wish& wish : wishes) fulfil(wish);
}

void DeviceGroups::fulfil(const Wish& wish) {
  const auto found =
      std::ranges::find(groups_, wish.id, [](const auto& each) { return each->id(); });
  if (found == groups_.end() || (*found)->advance() == DeviceGroup::State::ended) return;
  if (wish.last_user == 0 || wish.last_user == (*found)->last_user()) (*found)->abort();
}

DeviceGroup* DeviceGroups::find(std::span<const ProcessId> processes) {
  const auto found = std::ranges::find_if(groups_, [&](const auto& group) {
    return std::ranges::equal(group->processes(), processes);
  });
  return found == groups_.end() ? nullptr : found->get();
}

void DeviceGroups::forget_ended() {
  std::erase_if(ending_,
                [](const auto& group) { return group->advance() == DeviceGroup::State::ended; });
}

bool DeviceGroups::is_busy(const DeviceGroup* group, size_t most) {
  forget_ended();
  if (!ending_.empty()) return true;
  const auto is_starting = [&](const auto& other) {
    return other.get() != group && other->advance() == DeviceGroup::State::starting;
  };
  const auto has_memory = [](const auto& other) {
    return other->advance() != DeviceGroup::State::ended;
  };
  if (std::ranges::any_of(groups_, is_starting)) return true;
  return !group && static_cast<size_t>(std::ranges::count_if(groups_, has_memory)) >= most;
}

DeviceGroup& DeviceGroups::add(std::vector<ProcessId> processes, int device) {
  auto made = std::make_unique<DeviceGroup>(std::move(processes), device);
  groups_.reserve(groups_.size() + 1);
  ending_.reserve(ending_.size() + groups_.size() + 1);  // so that `drop` needs no memory
  if (DeviceGroup* const earlier = find(made->processes())) drop(*earlier);
  process_ = getpid();
  groups_.push_back(std::move(made));
  return *groups_.back();
}

void DeviceGroups::drop(DeviceGroup& group) {
  const auto place =
      std::ranges::find_if(groups_, [&](const auto& each) { return each.get() == &group; });
  group.abort();
  ending_.push_back(std::move(*place));
  groups_.erase(place);
  forget_ended();
}

// Whether all that were to end have ended, within that time.
bool DeviceGroups::await_ends(std::chrono::milliseconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  while (forget_ended(), !ending_.empty()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// (A rank may have found its group ready, and end it in order, where another one has aborted it.)
void DeviceGroups::close() {
  constexpr std::chrono::seconds in_order{2}, by_abort{3};
  const Token token = try_take();
  if (!token) return;
  for (const auto& group : groups_) group->end();
  std::ranges::move(groups_, std::back_inserter(ending_));
  groups_.clear();
  if (await_ends(in_order)) return;
  for (const auto& group : ending_) group->abort();
  if (!await_ends(by_abort)) {
    log(Level::info, "NCCL takes long to end %zu of its communicators; they are left to it",
        ending_.size());
  }
  ending_.clear();
}

}  // namespace sluice
