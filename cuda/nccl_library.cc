// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/nccl_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <mutex>

namespace sluice::cuda {
namespace {

constexpr char soname[] = "libnccl.so.2";

enum class Opening : uint8_t { not_tried, refused, open };

struct Library {
  std::mutex mutex;  // of what follows
  Opening opening = Opening::not_tried;
  SluiceNcclLibrary about{};
  pid_t process = 0;  // that has opened it
  char why[sluice_cuda_why] = "";
  NcclFunctions functions;
};
constinit Library only;

// Finds the functions; names one that is missing.
const char* bind(void* handle, NcclFunctions* functions) {
  const char* lacking = nullptr;
#define SLUICE_FIND(name, ...)                                                           \
  functions->name = reinterpret_cast<NcclFunctions::name##_type*>(dlsym(handle, #name)); \
  if (!functions->name) lacking = #name;
  SLUICE_NCCL_FUNCTIONS(SLUICE_FIND)
#undef SLUICE_FIND
  return lacking;
}

// (A version was four digits until 2.8: 2.7.8 is 2708.)
bool is_young_enough(int version, char* why) {
  if (version >= SLUICE_NCCL_OLDEST_VERSION) return true;
  const int unit = version < 10000 ? 1000 : 10000;
  std::snprintf(why, sluice_cuda_why, "NCCL is too old: version %d.%d.%d, not %d.%d or later",
                version / unit, version % unit / 100, version % 100,
                SLUICE_NCCL_OLDEST_VERSION / 10000, SLUICE_NCCL_OLDEST_VERSION % 10000 / 100);
  return false;
}

Opening open(Library* library) {
  char* const why = library->why;
  library->process = getpid();
  library->about.was_loaded_already = dlopen(soname, RTLD_NOW | RTLD_NOLOAD) ? 1 : 0;
  void* const handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const text = dlerror();
    std::snprintf(why, sluice_cuda_why, "%s", text ? text : "libnccl.so.2 can't be loaded");
    return Opening::refused;
  }
  if (const char* const lacking = bind(handle, &library->functions)) {
    std::snprintf(why, sluice_cuda_why, "%s has no function %s", soname, lacking);
    return Opening::refused;
  }
  const ncclResult_t result = library->functions.ncclGetVersion(&library->about.version);
  const bool is_good =
      is_accepted("ncclGetVersion", result, why) && is_young_enough(library->about.version, why);
  return is_good ? Opening::open : Opening::refused;
}

}  // namespace

bool open_nccl(SluiceNcclLibrary* library, char* why) {
  const std::lock_guard lock(only.mutex);
  if (only.opening == Opening::not_tried) only.opening = open(&only);
  *library = only.about;
  if (only.opening == Opening::refused) {
    std::snprintf(why, sluice_cuda_why, "%s", only.why);
  } else if (only.process != getpid()) {
    std::snprintf(why, sluice_cuda_why, "NCCL was opened before this process was forked");
    return false;
  }
  return only.opening == Opening::open;
}

const NcclFunctions& nccl() { return only.functions; }

bool is_accepted(const char* function, ncclResult_t result, char* why) {
  if (result == ncclSuccess || result == ncclInProgress) return true;
  const auto describe = nccl().ncclGetErrorString;
  const char* const text = describe ? describe(result) : nullptr;
  std::snprintf(why, sluice_cuda_why, "%s: %s (NCCL error %u)", function,
                text ? text : "no description", result);
  return false;
}

}  // namespace sluice::cuda
