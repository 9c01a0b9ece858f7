// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/standin/host_kernels.h"

#include <cstring>
#include <new>

#include "tests/cuda/standin/driver.h"

#pragma GCC optimize("O2", "fp-contract=off")
#define SLUICE_MODULE_int8
#define SLUICE_MODULE_int16
#define SLUICE_MODULE_int32
#define SLUICE_MODULE_int64
#define SLUICE_MODULE_float16
#define SLUICE_MODULE_bfloat16
#define SLUICE_MODULE_float32
#define SLUICE_MODULE_float64
#define SLUICE_MODULE_pairs
#define SLUICE_MODULE_copy
#include "cuda/kernels/kernels.cu"

namespace standin {
namespace {

// What a kernel has used so far.
struct Range {
  uintptr_t begin, end;
  std::byte* reach;  // of its first byte
  AllocationRef allocation;
};

// The kernel that runs: one at a time, because the driver has one thread.
struct Running {
  int device = 0;
  CUresult wrong = CUDA_SUCCESS;
  std::vector<Range> ranges;
  size_t last = 0;  // range used
};
Running running;

const Range* look_up(uintptr_t at, unsigned bytes) {
  for (const Range& each : running.ranges) {
    if (at >= each.begin && at + bytes <= each.end) return &each;
  }
  const Lock lock(driver().mutex);
  const AllocationRef found = driver().find(at);
  if (!found || at + bytes > found->end() || !is_usable(*found, running.device)) return nullptr;
  std::byte* const reach =
      found->physical ? found->physical->reach : reinterpret_cast<std::byte*>(found->base);
  running.ranges.push_back({found->base, found->end(), reach, found});
  return &running.ranges.back();
}

// Where the driver finds the bytes; null: the kernel may not use them, or has failed before.
std::byte* reach(const char* what, uintptr_t at, unsigned bytes) {
  if (running.wrong) return nullptr;
  if (at % bytes != 0) {
    running.wrong =
        misuse(CUDA_ERROR_MISALIGNED_ADDRESS, "a kernel %s %u bytes at %#zx", what, bytes, at);
    return nullptr;
  }
  const Range* range =
      running.last < running.ranges.size() ? &running.ranges[running.last] : nullptr;
  if (!range || at < range->begin || at + bytes > range->end) range = look_up(at, bytes);
  if (!range) {
    running.wrong = misuse(CUDA_ERROR_ILLEGAL_ADDRESS,
                           "a kernel %s %u bytes at %#zx, which it may not use", what, bytes, at);
    return nullptr;
  }
  running.last = static_cast<size_t>(range - running.ranges.data());
  return range->reach + (at - range->begin);
}

template <auto kernel, typename Parameter>
void run(const void* parameter) {
  kernel(*static_cast<const Parameter*>(parameter));
}

namespace kernels = sluice::cuda::kernels;

template <auto kernel, typename Parameter>
constexpr HostKernel row(const char* name) {
  return {name, sizeof(Parameter), run<kernel, Parameter>};
}
#define STANDIN_REDUCE(name) row<kernels::name, kernels::Reduce>(#name)

constexpr HostKernel table[] = {
    STANDIN_REDUCE(reduce_int8),
    STANDIN_REDUCE(reduce_int16),
    STANDIN_REDUCE(reduce_int32),
    STANDIN_REDUCE(reduce_int64),
    STANDIN_REDUCE(reduce_float16),
    STANDIN_REDUCE(reduce_bfloat16),
    STANDIN_REDUCE(reduce_float32),
    STANDIN_REDUCE(reduce_float64),
    STANDIN_REDUCE(reduce_complex64),
    STANDIN_REDUCE(reduce_complex128),
    STANDIN_REDUCE(reduce_float32_int32),
    STANDIN_REDUCE(reduce_float64_int32),
    STANDIN_REDUCE(reduce_int64_int32),
    STANDIN_REDUCE(reduce_int32_int32),
    STANDIN_REDUCE(reduce_int16_int32),
    STANDIN_REDUCE(reduce_float32_float32),
    STANDIN_REDUCE(reduce_float64_float64),
    row<kernels::copy_rows, kernels::CopyRows>("copy_rows"),
    row<kernels::copy_blocks, kernels::CopyBlocks>("copy_blocks"),
};

}  // namespace

const HostKernel* find_host_kernel(const std::string& name) {
  for (const HostKernel& each : table) {
    if (name == each.name) return &each;
  }
  return nullptr;
}

CUresult run_host_kernel(const HostKernel& kernel, int device, const void* parameter,
                         unsigned threads) {
  running = {.device = device, .wrong = CUDA_SUCCESS, .ranges = {}, .last = 0};
  for (unsigned i = 0; i < threads && !running.wrong; ++i) {
    kernels::place = {i, threads};
    kernel.run(parameter);
  }
  running.ranges.clear();
  return running.wrong;
}

}  // namespace standin

namespace sluice::cuda::kernels {

Place place{};

void load_bytes(U64 from, void* to, unsigned bytes) {
  const std::byte* const source = standin::reach("reads", from, bytes);
  source ? std::memcpy(to, source, bytes) : std::memset(to, 0, bytes);
}

void store_bytes(U64 to, const void* from, unsigned bytes) {
  std::byte* const target = standin::reach("writes", to, bytes);
  if (target) std::memcpy(target, from, bytes);
}

}  // namespace sluice::cuda::kernels
