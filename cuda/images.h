// SPDX-License-Identifier: BSD-3-Clause
//
// The modules of kernels, as PTX: what cuModuleLoadData takes. images.cc is generated (local.mk).
#pragma once

#include <cstdint>

namespace sluice::cuda {

// In the order of kernel_modules in local.mk.
enum class Image : uint8_t {
  int8,
  int16,
  int32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
  pairs,
  copy
};
inline constexpr unsigned image_count = 10;

// By Image.
extern const char* const images[];

}  // namespace sluice::cuda
