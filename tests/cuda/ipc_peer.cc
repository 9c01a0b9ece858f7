// SPDX-License-Identifier: BSD-3-Clause
//
// ipc_peer: another process for tests of CUDA IPC (ipc_peer.h). Answers each line with one number.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/cuda/standin/cuda_driver.h"

namespace {

CUdeviceptr memory = 0;
CUcontext context = nullptr;

std::string to_hex(const CUipcMemHandle& handle) {
  std::string text;
  char two[3];
  for (const char byte : handle.reserved) {
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    text += two;
  }
  return text;
}

CUipcMemHandle from_hex(const std::string& text) {
  CUipcMemHandle handle{};
  for (size_t i = 0; i < sizeof handle && 2 * i + 1 < text.size(); ++i) {
    handle.reserved[i] = static_cast<char>(std::strtol(text.substr(2 * i, 2).c_str(), nullptr, 16));
  }
  return handle;
}

int use(int device) {
  if (context) return 0;
  return static_cast<int>(cuDevicePrimaryCtxRetain(&context, device)) +
         static_cast<int>(cuCtxSetCurrent(context));
}

std::string answer(const std::string& what, std::istringstream& words) {
  if (what == "device") {
    int device = 0;
    words >> device;
    return std::to_string(use(device));
  }
  if (what == "open") {
    std::string text;
    words >> text;
    return std::to_string(cuIpcOpenMemHandle_v2(&memory, from_hex(text), 1));
  }
  if (what == "close") return std::to_string(cuIpcCloseMemHandle(memory));
  if (what == "read") {
    unsigned char byte = 0;
    size_t offset = 0;
    words >> offset;
    const int result = static_cast<int>(cuMemcpyDtoH_v2(&byte, memory + offset, 1));
    return std::to_string(result ? -result : byte);
  }
  if (what == "fill") {
    size_t bytes = 0;
    unsigned value = 0;
    words >> bytes >> value;
    const int result =
        static_cast<int>(cuMemsetD8_v2(memory, static_cast<unsigned char>(value), bytes));
    return std::to_string(result ? result : static_cast<int>(cuCtxSynchronize()));
  }
  if (what == "allocate") {
    size_t bytes = 0;
    words >> bytes;
    return std::to_string(cuMemAlloc_v2(&memory, bytes));
  }
  if (what == "export") {
    CUipcMemHandle handle{};
    return cuIpcGetMemHandle(&handle, memory) ? "" : to_hex(handle);
  }
  if (what == "free") return std::to_string(cuMemFree_v2(memory));
  if (what == "forgive") return std::to_string(standin_forgive());
  return "what?";
}

}  // namespace

int main() {
  std::string line;
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    std::cout << answer(what, words) << std::endl;
  }
  return 0;
}
