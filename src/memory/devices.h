// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of CUDA devices: finds out whether a buffer is such memory, and copies from and to it. The
// CUDA module (cuda/module.h) does that; it is opened when a CUDA driver is loaded in the process.
// Managed and pinned memory are host memory here, because the processor can touch them.
#pragma once

#include <link.h>

#include <atomic>
#include <cstdint>

#include "cuda/ipc_module.h"
#include "cuda/module.h"
#include "cuda/nccl_module.h"
#include "src/base/knobs.h"
#include "src/base/status.h"
#include "src/engine/copy_wait.h"
#include "src/memory/layout.h"

namespace sluice {

// Where a buffer is.
struct DevicePlace : SluiceCudaPlace {
  static constexpr int host = -1, unknown = -2;  // in place of a device

  DevicePlace() : SluiceCudaPlace{nullptr, host} {}
  bool is_host() const { return device == host; }
};

// A process without a driver pays three instructions a call. The loader appends libraries to its
// list. A null pointer at the end of it means that none was loaded since the last search for a
// driver. Otherwise (nobody has looked, another library was loaded, or there is a driver) this
// leads to a pointer that is not null; with SLUICE_CUDA=off always to one that is.
extern constinit std::atomic<link_map* const*> library_after_last;

inline bool may_be_on_device() {
  return __atomic_load_n(library_after_last.load(std::memory_order_acquire), __ATOMIC_RELAXED);
}

// Where an address is. Looks for a driver if none was known. If the driver cannot tell, the device
// is `unknown`, and `why` (unless null) receives the reason. To be called if may_be_on_device().
[[gnu::cold]] DevicePlace find_place(const void* address, Status* why = nullptr);

// Whether a driver is loaded, and can be used.
[[gnu::cold]] bool has_driver();

// To be called before all else here, and when the process needs no device memory any more.
// threads_call: whether several threads may call functions here at once; may become true at any
// time.
void begin_devices(const Knobs& knobs, const std::atomic<bool>& threads_call);
void end_devices();

// These are to be called once a buffer is on a device. NCCL's part of the module, and that of CUDA
// IPC: nullptr, with the reason, if there is none.
const SluiceCuda& cuda_module();
const SluiceNccl* find_nccl(Status* why);
const SluiceIpc* find_ipc(Status* why);

// Bytes that were copied from and to devices so far.
struct DeviceTraffic {
  uint64_t from, to;
};
DeviceTraffic device_traffic();
void count_traffic(bool to_device, uint64_t bytes);

// Pinned memory for staging, or nullptr: then ordinary memory serves, more slowly.
std::byte* reserve_pinned(const DevicePlace& place, size_t bytes);
void give_back_pinned(std::byte* memory);

// Copies between a buffer on a device (the copier's `user`) and host memory (`dense`), on a stream
// of its own, in order. Copies are done when `wait` says so, or at `close`. After the first failure
// nothing is copied any more. If the wait itself fails, copies that have begun may still run: then
// the host memory must stay as it is for good.
class DeviceCopier final : public Layout::Copier {
 public:
  enum class Way { from_device, to_device };

  explicit DeviceCopier(CopyWait& wait) : wait_(wait) {}
  ~DeviceCopier() override { close(); }
  DeviceCopier(const DeviceCopier&) = delete;
  DeviceCopier& operator=(const DeviceCopier&) = delete;

  Status open(const DevicePlace& place, Way way);
  bool is_open() const { return stream_ != nullptr; }
  // These collect copies.
  void copy(std::byte* user, std::byte* dense, size_t bytes) override;
  void runs(std::byte* user, ptrdiff_t stride, size_t n, size_t bytes, std::byte* dense,
            size_t dense_stride) override;
  // Begins what was collected.
  void begin() {
    if (collected_ > 0) begin_collected();
  }

  // Begins what was collected. A ticket for all copies so far. Tickets count from 1.
  uint32_t ticket();
  // Returns when the copies of a ticket are done, or one has failed.
  void wait(uint32_t ticket);
  // Returns when all copies are done, or the wait has failed.
  void close() {
    if (stream_) close_stream();
  }

  const Status& failure() const { return failure_; }
  // Whether copies may still run.
  bool is_abandoned() const { return abandoned_; }

 private:
  void await(unsigned mark);
  std::string describe() const;
  void check(int result, const char* why);
  static bool extend(SluiceCudaRuns* last, std::byte* user, std::byte* dense, size_t bytes);
  void begin_collected();
  void close_stream();

  CopyWait& wait_;
  SluiceCudaStream* stream_ = nullptr;
  SluiceCudaRuns copies_[160];  // collected
  unsigned collected_ = 0;
  int device_ = -1;
  int to_device_ = 0;
  uint32_t given_ = 0, done_ = 0;  // tickets
  bool abandoned_ = false;
  Status failure_;
};

}  // namespace sluice
