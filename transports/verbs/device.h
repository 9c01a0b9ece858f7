// SPDX-License-Identifier: BSD-3-Clause
//
// The RDMA device that this process uses, one port of it, and memory registered with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "transports/verbs/module.h"

namespace sluice {

// Whether the kernel knows any RDMA device. Without one the module need not be opened.
bool has_verbs_devices();
// Opens the module of the library in `folder` (src/base/module.h).
Result<const SluiceVerbs*> open_verbs_module(const std::string& folder);

class VerbsDevice {
 public:
  // devices: names with commas, or all except those ("^mlx5_0,rxe1"); empty: all. Takes the first
  // port that is allowed, active and has an address. The error (unavailable) says why each port is
  // not used.
  static Result<std::shared_ptr<VerbsDevice>> open(const SluiceVerbs& table,
                                                   const std::string& devices);
  ~VerbsDevice();
  VerbsDevice(const VerbsDevice&) = delete;
  VerbsDevice& operator=(const VerbsDevice&) = delete;

  const SluiceVerbs& table() const { return table_; }
  void* handle() const { return handle_; }
  const SluiceVerbsPort& port() const { return port_; }
  const SluiceVerbsGid& gid() const { return gid_; }
  std::string label() const;  // "device rxe0, port 1"

 private:
  VerbsDevice(const SluiceVerbs& table, void* handle, const SluiceVerbsPort& port)
      : table_(table), handle_(handle), port_(port) {}
  bool choose_gid();

  const SluiceVerbs& table_;
  void* handle_;
  const SluiceVerbsPort port_;
  SluiceVerbsGid gid_{};  // InfiniBand: the first
};

// Zeroed memory that the device may access, and the peer if remote. A child of fork() does not get
// it.
class VerbsMemory {
 public:
  // The error says which limit to raise if it is that of locked memory.
  static Result<std::unique_ptr<VerbsMemory>> make(std::shared_ptr<VerbsDevice> device,
                                                   size_t bytes, bool remote);
  ~VerbsMemory();
  VerbsMemory(const VerbsMemory&) = delete;
  VerbsMemory& operator=(const VerbsMemory&) = delete;

  std::byte* data() const { return data_; }
  uint32_t local_key() const { return region_.local_key; }
  uint32_t remote_key() const { return region_.remote_key; }

 private:
  VerbsMemory(std::shared_ptr<VerbsDevice> device, std::byte* data, size_t bytes)
      : device_(std::move(device)), data_(data), bytes_(bytes) {}

  std::shared_ptr<VerbsDevice> device_;
  std::byte* data_;
  size_t bytes_;
  SluiceVerbsRegion region_{};
};

}  // namespace sluice
