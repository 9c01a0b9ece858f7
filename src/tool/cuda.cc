// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/cuda.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

#include "cuda/ipc_module.h"
#include "cuda/module.h"
#include "cuda/nccl_module.h"
#include "src/base/knobs.h"
#include "src/base/module.h"
#include "src/tool/build.h"

namespace sluice {
namespace {

constexpr const char* module_file = "libsluice-cuda.so";

// Settings that are not accepted count as unset here; `sluice info` names them at its end.
Knobs settings() {
  Knobs knobs;
  (void)read_knobs(setting_sources(), &knobs);
  return knobs;
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

std::string driver_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// 22809 -> "2.28.9".
std::string nccl_version(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

// The file of NCCL's library, if this process has loaded one.
std::string nccl_file() {
  void* const handle = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return "";
  link_map* map = nullptr;
  const bool is_known = dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0;
  std::string file = is_known ? map->l_name : "";
  dlclose(handle);
  return file;
}

std::vector<std::string> limits_of(const Knobs& knobs) {
  std::vector<std::string> limits{"calls of " + format_size(knobs.nccl_least) + " and more"};
  if (knobs.nccl == "auto") limits.emplace_back("not in programs that load NCCL themselves");
  if (knobs.reproducible) limits.emplace_back("no reductions: SLUICE_REPRODUCIBLE");
  std::string asked;
  if (knobs.tls != "off") {
    asked = "SLUICE_TLS";
  } else if (!knobs.interfaces.empty()) {
    asked = "SLUICE_TCP_INTERFACES";
  } else if (knobs.transport != "auto") {
    asked = "SLUICE_TRANSPORT";
  }
  if (!asked.empty()) limits.push_back("not between hosts: " + asked);
  return limits;
}

// Why NCCL is not used, before its library is looked for; empty: it may be.
std::string why_not_looked_for(const Knobs& knobs, const Cuda& cuda) {
  if (knobs.nccl == "off") return "SLUICE_NCCL is off (SLUICE_NCCL=on or auto uses it)";
  if (!cuda.problem.empty()) return "CUDA is not used";
  if (cuda.count == 0) return "no CUDA device";
  if (knobs.tls != "off" && knobs.tls_local) return "SLUICE_TLS, and NCCL does not encrypt";
  return "";
}

}  // namespace

Cuda this_cuda(const std::string& folder) {
  Cuda cuda;
  if (settings().cuda == "off") {
    cuda.problem = "SLUICE_CUDA=off";
    return cuda;
  }
  char why[sluice_cuda_why] = "";
  const SluiceCudaSettings none{};
  SluiceCudaDevices found{};
  const auto module =
      open_module<SluiceCuda>({module_file, SLUICE_CUDA_SYMBOL, SLUICE_CUDA_VERSION}, folder);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!module.ok()) {
    cuda.problem = module.status().message();
  } else if (!driver) {
    cuda.problem = dlerror();
  } else if ((*module)->begin(driver, &none, why) != 0 || (*module)->list(&found, why) != 0) {
    cuda.problem = why;
  }
  if (found.driver > 0) cuda.driver = driver_version(found.driver);
  cuda.count = static_cast<size_t>(found.count);
  const int named = std::min<int>(found.count, sluice_cuda_devices);
  for (int i = 0; i < named; ++i) cuda.devices.emplace_back(found.names[i]);
  return cuda;
}

CudaIpc this_cuda_ipc(const std::string& folder, const Cuda& cuda) {
  const Knobs knobs = settings();
  CudaIpc ipc;
  if (knobs.cuda_ipc == "off") {
    ipc.problem = "SLUICE_CUDA_IPC is off (SLUICE_CUDA_IPC=on uses it)";
  } else if (!cuda.problem.empty()) {
    ipc.problem = "CUDA is not used";
  } else if (cuda.count == 0) {
    ipc.problem = "no CUDA device";
  } else if (knobs.tls != "off" && knobs.tls_local) {
    ipc.problem = "SLUICE_TLS, and device memory is not encrypted";
  } else {
    const auto module =
        open_module<SluiceIpc>({module_file, SLUICE_IPC_SYMBOL, SLUICE_IPC_VERSION}, folder);
    ipc.problem = module.status().message();
  }
  if (!ipc.problem.empty()) return ipc;
  ipc.limits.push_back("calls of " + format_size(knobs.cuda_ipc_least) + " and more on one host");
  ipc.limits.push_back("slabs of " + format_size(knobs.cuda_ipc_slab));
  if (knobs.reproducible) ipc.limits.emplace_back("no reductions: SLUICE_REPRODUCIBLE");
  return ipc;
}

Nccl this_nccl(const std::string& folder, const Cuda& cuda) {
  const Knobs knobs = settings();
  Nccl nccl;
  nccl.problem = why_not_looked_for(knobs, cuda);
  if (!nccl.problem.empty()) return nccl;
  const auto module =
      open_module<SluiceNccl>({module_file, SLUICE_NCCL_SYMBOL, SLUICE_NCCL_VERSION}, folder);
  char why[sluice_cuda_why] = "";
  SluiceNcclLibrary library{};
  if (!module.ok()) {
    nccl.problem = module.status().message();
  } else if ((*module)->open(&library, why) != 0) {
    nccl.problem = why;
  } else if (library.was_loaded_already && knobs.nccl == "auto") {
    nccl.problem = "it is preloaded, so programs use it themselves (SLUICE_NCCL=on uses it too)";
  }
  nccl.file = nccl_file();
  if (!nccl.problem.empty()) return nccl;
  nccl.version = nccl_version(library.version);
  nccl.limits = limits_of(knobs);
  return nccl;
}

std::string to_text(const Cuda& cuda) {
  if (!cuda.problem.empty()) return "not used: " + cuda.problem;
  const std::string names = joined(cuda.devices, ", ");
  return "driver for CUDA " + cuda.driver + ", " + counted(cuda.count, "device") +
         (names.empty() ? "" : ": " + names);
}

std::string to_text(const CudaIpc& ipc) {
  return ipc.problem.empty() ? joined(ipc.limits, "; ") : "not used: " + ipc.problem;
}

std::string to_text(const Nccl& nccl) {
  const std::string file = nccl.file.empty() ? "" : " (" + nccl.file + ")";
  if (!nccl.problem.empty()) return "not used: " + nccl.problem + file;
  return nccl.version + file + ": " + joined(nccl.limits, "; ");
}

void add_cuda(const Cuda& cuda, Json* json) {
  json->open_object("cuda").add("driver", cuda.driver).add("problem", cuda.problem);
  json->open_array("devices");
  for (const std::string& device : cuda.devices) json->add("", device);
  json->close().close();
}

void add_cuda_ipc(const CudaIpc& ipc, Json* json) {
  json->open_object("cuda_ipc").add("problem", ipc.problem).open_array("limits");
  for (const std::string& limit : ipc.limits) json->add("", limit);
  json->close().close();
}

void add_nccl(const Nccl& nccl, Json* json) {
  json->open_object("nccl").add("version", nccl.version).add("file", nccl.file);
  json->add("problem", nccl.problem).open_array("limits");
  for (const std::string& limit : nccl.limits) json->add("", limit);
  json->close().close();
}

}  // namespace sluice
