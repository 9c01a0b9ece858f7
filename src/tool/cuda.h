// SPDX-License-Identifier: BSD-3-Clause
//
// What Sluice finds of CUDA and NCCL on this machine, for `sluice info`.
#pragma once

#include <string>
#include <vector>

#include "src/tool/text.h"

namespace sluice {

// The driver and its devices.
struct Cuda {
  std::string driver;                // "12.4"; empty: not used
  size_t count = 0;                  // of devices
  std::vector<std::string> devices;  // their names, as many as the module tells
  std::string problem;               // why it is not used; empty: it is
};

// Loads the driver and the module. folder: that of Sluice's library.
Cuda this_cuda(const std::string& folder);

// Calls by CUDA IPC.
struct CudaIpc {
  std::vector<std::string> limits;  // by the settings
  std::string problem;              // why there are none; empty: there are
};
CudaIpc this_cuda_ipc(const std::string& folder, const Cuda& cuda);

// NCCL's library.
struct Nccl {
  std::string version;              // "2.28.9"; empty: not used
  std::string file;                 // that the loader found; empty: none was looked for, or found
  std::vector<std::string> limits;  // what its use is limited to by the settings
  std::string problem;              // why it is not used; empty: it is
};

// Opens the library only if the settings ask for NCCL and `cuda` found a device. Of its functions
// it calls none but the one that tells the version.
Nccl this_nccl(const std::string& folder, const Cuda& cuda);

std::string to_text(const Cuda& cuda);
std::string to_text(const CudaIpc& ipc);
std::string to_text(const Nccl& nccl);
void add_cuda(const Cuda& cuda, Json* json);
void add_cuda_ipc(const CudaIpc& ipc, Json* json);
void add_nccl(const Nccl& nccl, Json* json);

}  // namespace sluice
