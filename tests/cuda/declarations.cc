// SPDX-License-Identifier: BSD-3-Clause
//
// Compares cuda/driver_api.h with the CUDA toolkit's cuda.h. The compiler does it all.
#define __CUDA_API_VERSION_INTERNAL  // no macro that gives functions other names
#include "cuda/driver_api.h"

#include <cuda.h>

#include <cstddef>
#include <cstdio>
#include <type_traits>

namespace {

namespace ours = sluice::cuda;

#define COMPARE(name, ...)                                     \
  static_assert(std::is_same_v<decltype(::name), __VA_ARGS__>, \
                #name " is declared in another way in cuda.h");
SLUICE_CUDA_FUNCTIONS(COMPARE)
SLUICE_CUDA_LATER_FUNCTIONS(COMPARE)
SLUICE_CUDA_EARLIER_FUNCTIONS(COMPARE)
#undef COMPARE

#define COMPARE(name, type, value) \
  static_assert(static_cast<ours::type>(::name) == ours::name && (value) == ours::name);
SLUICE_CUDA_CONSTANTS(COMPARE)
#undef COMPARE
static_assert(CU_MEMHOSTREGISTER_PORTABLE == ours::host_register_portable);

#define COMPARE(type) static_assert(sizeof(::type) == sizeof(ours::type));
COMPARE(CUresult)
COMPARE(CUpointer_attribute)
COMPARE(CUmemorytype)
COMPARE(CUstreamCaptureMode)
COMPARE(CUdevice)
COMPARE(CUdeviceptr)
COMPARE(CUcontext)
COMPARE(CUmodule)
COMPARE(CUfunction)
COMPARE(CUmemLocation)
COMPARE(CUmemLocationType)
COMPARE(CUdevice_attribute)
COMPARE(CUstream)
COMPARE(CUevent)
COMPARE(CUuuid)
COMPARE(CUipcMemHandle)
COMPARE(CUDA_MEMCPY2D)
#undef COMPARE

static_assert(offsetof(::CUmemLocation, id) == offsetof(ours::CUmemLocation, id));

#define COMPARE(member)                                                                       \
  static_assert(offsetof(::CUDA_MEMCPY2D, member) == offsetof(ours::CUDA_MEMCPY2D, member) && \
                sizeof(::CUDA_MEMCPY2D::member) == sizeof(ours::CUDA_MEMCPY2D::member));
COMPARE(srcXInBytes)
COMPARE(srcY)
COMPARE(srcMemoryType)
COMPARE(srcHost)
COMPARE(srcDevice)
COMPARE(srcArray)
COMPARE(srcPitch)
COMPARE(dstXInBytes)
COMPARE(dstY)
COMPARE(dstMemoryType)
COMPARE(dstHost)
COMPARE(dstDevice)
COMPARE(dstArray)
COMPARE(dstPitch)
COMPARE(WidthInBytes)
COMPARE(Height)
#undef COMPARE

}  // namespace

int main() {
  int functions = 0;
#define COUNT(...) ++functions;
  SLUICE_CUDA_FUNCTIONS(COUNT)
  SLUICE_CUDA_LATER_FUNCTIONS(COUNT)
  SLUICE_CUDA_EARLIER_FUNCTIONS(COUNT)
  std::printf("%d functions are declared as in cuda.h of CUDA %d.%d\n", functions,
              CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
}
