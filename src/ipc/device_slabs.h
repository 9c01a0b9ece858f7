// SPDX-License-Identifier: BSD-3-Clause
//
// The slabs of this process, one on each device that calls used: device memory that the other
// processes of the host open. It also keeps the slabs of other processes that this one has opened.
// All communicators share the slabs, so a call uses them only while its rank holds a token. A rank
// votes with the token in hand, or votes that it does not have it; no rank waits for the token.
//
// Slabs live until MPI_Finalize: each process closes the slabs of others before it, and frees its
// own after it, when all have entered it. So no slab is freed while others have it open, freeing a
// communicator needs no synchronization, and no process waits for a dead one.
//
// If a process's device may still copy for a failed call, or is unusable, the process closes no
// slab, not even of processes that had no part in the call. A process that learns of a failure
// keeps its slabs until it ends. (A process that makes no later call with the failed rank does not
// learn of it and frees its slab, which no copy of the failed call reads.)
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda/ipc_module.h"
#include "src/base/status.h"
#include "src/engine/vote.h"
#include "src/ipc/slab_offer.h"
#include "src/reduce/kernel.h"
#include "transports/transport.h"

namespace sluice {

class DeviceSlabs {
 public:
  // What this process has on one device.
  class Slab {
   public:
    ~Slab();
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;

    int device() const { return device_; }
    uint64_t id() const { return id_; }
    std::byte* memory() const { return static_cast<std::byte*>(ipc_.memory(slab_)); }
    SlabOffer offer() const;
    // The types whose kernels have run on its device, a bit for each.
    uint32_t kernels() const { return kernels_; }
    void add_kernel(Type type) { kernels_ |= 1U << static_cast<unsigned>(type); }
    // Whether this must not be used again, because copies have failed.
    bool has_failed() const { return has_failed_; }
    // is_busy: they may still run. Then nothing that is open is closed any more.
    void fail(bool is_busy) {
      has_failed_ = true;
      is_busy_ = is_busy_ || is_busy;
    }
    // Opens another process's slab for this device, unless it is open. One of that process's that
    // was on the same device before is closed: it is gone. nullptr: failed. May throw
    // std::bad_alloc.
    std::byte* open(const ProcessId& process, const DeviceUuid& device, const SlabOffer& offer,
                    std::string* why);

   private:
    friend class DeviceSlabs;
    struct Opened {
      ProcessId process;
      DeviceUuid device;
      uint64_t id;
      std::byte* memory;
    };
    Slab(const SluiceIpc& ipc, int device) : ipc_(ipc), device_(device) {}
    bool is_alive() const { return ipc_.is_alive(slab_) == 1; }
    void close_all();

    const SluiceIpc& ipc_;
    const int device_;
    uint64_t id_ = 0;
    bool has_failed_ = false, is_busy_ = false, is_left_ = false;
    uint32_t kernels_ = 0;
    SluiceIpcSlab* slab_ = nullptr;
    std::array<char, SlabOffer::handle_size> handle_ = {};
    std::vector<Opened> opened_;
  };

  class [[nodiscard]] Token {
   public:
    ~Token() {
      if (slabs_) slabs_->mutex_.unlock();
    }
    Token(Token&& other) noexcept : slabs_(std::exchange(other.slabs_, nullptr)) {}
    explicit operator bool() const { return slabs_ != nullptr; }

   private:
    friend class DeviceSlabs;
    explicit Token(DeviceSlabs* slabs) : slabs_(slabs) {}
    DeviceSlabs* slabs_;  // nullptr: not held
  };

  // Without waiting. Not held: another thread has it, or this is a forked child.
  Token try_take();

  // For the token's holder. The slab of a device; nullptr if there is none (any more).
  Slab* find(int device);
  // A new one. nullptr, with the reason, if it can't be had. May throw std::bad_alloc.
  Slab* make(const SluiceIpc& ipc, int device, size_t bytes, std::string* why);

  // From now on slabs are left to the process's end: a call has failed, so that other processes may
  // not close them. Needs no token.
  void leave() { are_left_ = true; }
  // Closes what is of other processes. To be called before MPI_Finalize, when no call uses slabs
  // any more.
  void close();
  // Frees the slabs. To be called behind MPI_Finalize.
  void end();

 private:
  bool is_of_parent() const { return process_ != 0 && process_ != getpid(); }

  std::atomic<pid_t> process_{0};  // that made the slabs; 0: there are none
  std::atomic<bool> are_left_{false};
  std::mutex mutex_;   // the token
  uint64_t last_ = 0;  // id of a slab
  std::vector<std::unique_ptr<Slab>> slabs_;
};

}  // namespace sluice
