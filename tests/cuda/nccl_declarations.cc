// SPDX-License-Identifier: BSD-3-Clause
//
// Compares cuda/nccl_api.h with NCCL's nccl.h. The compiler does it all.
#include "cuda/nccl_api.h"

#include <nccl.h>

#include <cstddef>
#include <cstdio>
#include <type_traits>

namespace {

namespace ours = sluice::cuda;

// Here the list's names mean nccl.h's types.
using CUstream = cudaStream_t;
#define COMPARE(name, ...)                                     \
  static_assert(std::is_same_v<decltype(::name), __VA_ARGS__>, \
                #name " is declared in another way in nccl.h");
SLUICE_NCCL_FUNCTIONS(COMPARE)
#undef COMPARE

#define COMPARE(name, type, value) \
  static_assert(static_cast<ours::type>(::name) == ours::name && (value) == ours::name);
SLUICE_NCCL_CONSTANTS(COMPARE)
#undef COMPARE

#define COMPARE(type) static_assert(sizeof(::type) == sizeof(ours::type));
COMPARE(ncclResult_t)
COMPARE(ncclRedOp_t)
COMPARE(ncclDataType_t)
COMPARE(ncclComm_t)
COMPARE(ncclUniqueId)
#undef COMPARE
static_assert(std::is_same_v<std::underlying_type_t<::ncclResult_t>, ours::ncclResult_t>);
static_assert(std::is_same_v<std::underlying_type_t<::ncclRedOp_t>, ours::ncclRedOp_t>);
static_assert(std::is_same_v<std::underlying_type_t<::ncclDataType_t>, ours::ncclDataType_t>);
static_assert(sizeof(ours::ncclConfig_t) <= sizeof(::ncclConfig_t));

#define COMPARE(member)                                                           \
  static_assert(                                                                  \
      offsetof(::ncclConfig_t, member) == offsetof(ours::ncclConfig_t, member) && \
      std::is_same_v<decltype(::ncclConfig_t::member), decltype(ours::ncclConfig_t::member)>);
COMPARE(size)
COMPARE(magic)
COMPARE(version)
COMPARE(blocking)
COMPARE(cgaClusterSize)
COMPARE(minCTAs)
COMPARE(maxCTAs)
COMPARE(netName)
COMPARE(splitShare)
#undef COMPARE

constexpr ::ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
static_assert(fresh.magic == ours::ncclConfig_t{}.magic);
static_assert(fresh.blocking == ours::ncclConfig_t{}.blocking);
static_assert(NCCL_VERSION(2, 18, 0) == ours::ncclConfig_t{}.version);
static_assert(NCCL_VERSION(2, 19, 0) == SLUICE_NCCL_OLDEST_VERSION);

}  // namespace

int main() {
  int functions = 0;
#define COUNT(...) ++functions;
  SLUICE_NCCL_FUNCTIONS(COUNT)
  std::printf("%d functions are declared as in nccl.h of NCCL %d.%d\n", functions, NCCL_MAJOR,
              NCCL_MINOR);
}
