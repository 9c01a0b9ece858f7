// SPDX-License-Identifier: BSD-3-Clause
//
// NCCL's communicators in this process: a group for each ordered list of processes that use NCCL.
// NCCL's kernels spin on the devices until all ranks' kernels run, so the jobs of two groups in
// different orders on two ranks would never end. So there is a token: only its holder touches a
// group, and a job runs while its rank holds it. Ranks vote with the token in hand, or say that
// they don't have it; it is never waited for.
//
// Several communicators of one process may share a group, and threads may use them at once. A rank
// that finishes a job early must not abort the group when another communicator fails, because other
// ranks may still be in the job. Only the communicator that used the group last aborts it. If
// another thread has the token then, that thread does it at the end of its call; where this takes
// longer than 5 seconds, other ranks say that NCCL can't be ended.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/nccl_module.h"
#include "src/base/status.h"
#include "transports/transport.h"

namespace sluice {

// A group takes from 0.5 to 1.6 GB of a device's memory, and seconds to start.
class DeviceGroup {
 public:
  enum class State : uint8_t {
    empty,  // not begun
    starting,
    ready,
    running,
    failed,
    ending,  // NCCL may still use the memory of its last job
    ended,
  };

  DeviceGroup(std::vector<ProcessId> processes, int device)
      : processes_(std::move(processes)), device_(device) {}
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  // Begins to start it. id: of all its ranks. Fails if NCCL refuses here; others then wait for
  // this rank until they abort.
  void begin(const SluiceNccl& nccl, std::span<const char, sluice_nccl_id> id, int rank);
  // The state, after what can be done without waiting. A start that takes too long has failed.
  State advance();
  // Code::memory: there is no room for the job. Otherwise the group has failed.
  Status reserve(const SluiceNcclJob& job);
  Status start(const SluiceNcclJob& job);
  void abort();
  // Begins to end it in order, which all ranks do; aborts it if it is not ready.
  void end();

  const std::vector<ProcessId>& processes() const { return processes_; }
  int device() const { return device_; }
  // Equal on all its ranks, and different for others; 0 if it is empty.
  uint64_t id() const { return id_; }
  const Status& failure() const { return failure_; }
  // Whether something has failed on this rank (`why` says what); if not, the group may still have
  // been aborted.
  bool has_failed() const { return has_failed_; }
  const std::string& why() const { return why_; }
  // The communicator that has begun the group, or whose job was the last; only for comparison. All
  // ranks set it in the same order.
  void set_last_user(uint64_t user) { last_user_ = user; }
  uint64_t last_user() const { return last_user_; }

 private:
  static constexpr std::chrono::seconds longest_start{120};

  void fail(const char* why);

  const std::vector<ProcessId> processes_;
  const int device_;
  uint64_t id_ = 0;
  uint64_t last_user_ = 0;
  const SluiceNccl* nccl_ = nullptr;
  SluiceNcclGroup* group_ = nullptr;
  State state_ = State::empty;
  std::chrono::steady_clock::time_point begun_;
  bool has_failed_ = false;
  std::string why_;
  Status failure_;
};

class DeviceGroups {
 public:
  class [[nodiscard]] Token {
   public:
    ~Token() {
      if (groups_) groups_->release();
    }
    Token(Token&& other) noexcept : groups_(std::exchange(other.groups_, nullptr)) {}
    explicit operator bool() const { return groups_ != nullptr; }

   private:
    friend class DeviceGroups;
    explicit Token(DeviceGroups* groups) : groups_(groups) {}
    DeviceGroups* groups_;  // nullptr: not held
  };

  // Without waiting. Not held: another thread has it, or this is a forked child.
  Token try_take();

  // For a thread that does not hold the token: aborts the group of this id, if there still is one,
  // and if last_user was the last to use it (0: in any case). If another thread has the token, that
  // does it when it gives the token back. Never waits for that.
  void abandon(uint64_t id, uint64_t last_user);

  // All that follow are for the token's holder.
  // The group of these processes; nullptr if there is none.
  DeviceGroup* find(std::span<const ProcessId> processes);
  // Whether a group can't be used now, because another one is being started or ended, or because
  // there are `most` already that have not ended.
  bool is_busy(const DeviceGroup* group, size_t most);
  // A new group, which takes the place of an earlier one of these processes. May throw
  // std::bad_alloc.
  DeviceGroup& add(std::vector<ProcessId> processes, int device);
  // Aborts the group and forgets it, once it has ended.
  void drop(DeviceGroup& group);

  // To be called when MPI_Finalize has returned, so that no rank is in a job. Ends all groups, and
  // waits up to 5 seconds for that; a group that has not ended after 2 seconds is aborted. Takes
  // the token itself.
  void close();

 private:
  struct Wish {
    uint64_t id, last_user;
  };

  bool is_of_parent() const;
  void release();
  bool has_wishes();
  void fulfil_wishes();
  void fulfil(const Wish& wish);
  void forget_ended();
  bool await_ends(std::chrono::milliseconds longest);

  std::atomic<pid_t> process_{0};  // that made the groups; 0: there are none
  std::mutex mutex_;               // the token
  std::mutex wishing_;             // of the next
  std::vector<Wish> wishes_;
  std::vector<std::unique_ptr<DeviceGroup>> groups_;
  std::vector<std::unique_ptr<DeviceGroup>> ending_;
};

}  // namespace sluice
