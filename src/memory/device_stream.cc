// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/device_stream.h"

#include <utility>

namespace sluice {

bool can_reduce_on_device(const Arithmetic& arithmetic) {
  return cuda_module().can_reduce(static_cast<int>(arithmetic.type),
                                  static_cast<int>(arithmetic.op)) == 1;
}

Status DeviceStream::open(int device) {
  char why[sluice_cuda_why] = "";
  const SluiceCudaPlace place{nullptr, device};
  device_ = device;
  stream_ = cuda_module().open(&place, why);
  if (!stream_) check(-1, why);
  return failure_;
}

void DeviceStream::check(int result, const char* why) {
  if (result >= 0 || !failure_.ok()) return;
  failure_ = {Code::unavailable, "CUDA device " + std::to_string(device_) + ": " + why};
}

void DeviceStream::copy(std::byte* to, const std::byte* from, size_t bytes) {
  char why[sluice_cuda_why] = "";
  if (!failure_.ok() || to == from) return;
  pending_ = true;
  check(cuda_module().copy_within(stream_, to, from, bytes, why), why);
}

void DeviceStream::reduce(const Arithmetic& arithmetic, std::span<const void* const> operands,
                          void* out, size_t elements) {
  char why[sluice_cuda_why] = "";
  if (!failure_.ok()) return;
  pending_ = true;
  check(cuda_module().reduce(stream_, static_cast<int>(arithmetic.type),
                             static_cast<int>(arithmetic.op), operands.data(), operands.size(), out,
                             elements, why),
        why);
}

// (If work could not be begun, the work begun before it is still waited for.)
Status DeviceStream::wait() {
  char why[sluice_cuda_why] = "";
  if (!std::exchange(pending_, false)) return failure_;
  const SluiceCuda& module = cuda_module();
  int reached = module.mark(stream_, 0, why);
  const auto is_done = [&] { return (reached = module.reached(stream_, 0, why)) != 0; };
  if (reached == 0 && !is_done()) {
    const std::string what = "copies within CUDA device " + std::to_string(device_);
    const Status status = wait_.wait_for_copy(is_done, what);
    abandoned_ = !status.ok();
    if (failure_.ok()) failure_ = status;
  }
  check(reached, why);
  return failure_;
}

void DeviceStream::close() {
  if (!stream_) return;
  (void)wait();
  cuda_module().close(std::exchange(stream_, nullptr), failure_.ok());
}

}  // namespace sluice
