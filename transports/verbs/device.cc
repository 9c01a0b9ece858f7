// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/device.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "src/base/module.h"

namespace sluice {
namespace {

constexpr int max_ports = 64, max_gids = 256;

// Whether a list, as VerbsDevice::open describes it, allows the name.
bool allows(const std::string& list, const std::string& name) {
  const bool excludes = list.starts_with('^');
  const std::string names = "," + list.substr(excludes ? 1 : 0) + ",";
  const bool named = names.find("," + name + ",") != std::string::npos;
  return list.empty() || named != excludes;
}

bool is_ipv4(const SluiceVerbsGid& gid) {
  static constexpr uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::memcmp(gid.raw, mapped, sizeof(mapped)) == 0;
}

// The higher, the better.
int rank_of(const SluiceVerbsGid& gid) {
  const bool second = gid.kind == SLUICE_GID_ROCE_2;
  return (second ? 2 : 0) + (is_ipv4(gid) ? 1 : 0);
}

std::string name_of(const SluiceVerbsPort& port) {
  return "device " + std::string(port.device) + ", port " + std::to_string(port.number);
}

std::string text_of(int error) { return strerror(error); }

std::string limit_text() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return "; the limit of locked memory is " + std::to_string(limit.rlim_cur >> 10) +
         " KB, raise it (ulimit -l)";
}

}  // namespace

bool has_verbs_devices() {
  DIR* const folder = opendir("/sys/class/infiniband");
  if (!folder) return false;
  bool any = false;
  while (const dirent* entry = readdir(folder)) any |= entry->d_name[0] != '.';
  closedir(folder);
  return any;
}

Result<const SluiceVerbs*> open_verbs_module(const std::string& folder) {
  return open_module<SluiceVerbs>({"libsluice-verbs.so", SLUICE_VERBS_SYMBOL, SLUICE_VERBS_VERSION},
                                  folder);
}

Result<std::shared_ptr<VerbsDevice>> VerbsDevice::open(const SluiceVerbs& table,
                                                       const std::string& devices) {
  std::vector<SluiceVerbsPort> ports(max_ports);
  const int found = table.list(ports.data(), max_ports);
  if (found < 0) return Status(Code::unavailable, "RDMA devices: " + text_of(-found));
  ports.resize(static_cast<size_t>(std::min(found, max_ports)));
  std::string why;
  for (const SluiceVerbsPort& port : ports) {
    why += why.empty() ? "" : "; ";
    why += name_of(port);
    if (!allows(devices, port.device)) {
      why += ": excluded by SLUICE_VERBS_DEVICES";
      continue;
    }
    if (port.active == 0) {
      why += ": not active";
      continue;
    }
    void* handle = nullptr;
    if (const int error = table.open(port.device, &handle); error != 0) {
      why += ": " + text_of(error);
      continue;
    }
    std::shared_ptr<VerbsDevice> device(new VerbsDevice(table, handle, port));
    if (device->choose_gid()) return device;
    why += ": no address (GID)";
  }
  return Status(Code::unavailable, why.empty() ? "no RDMA device" : why);
}

VerbsDevice::~VerbsDevice() { table_.close(handle_); }

bool VerbsDevice::choose_gid() {
  std::vector<SluiceVerbsGid> gids(max_gids);
  const int found = table_.gids(handle_, port_.number, gids.data(), max_gids);
  if (found <= 0) return false;
  gids.resize(static_cast<size_t>(std::min(found, max_gids)));
  const auto worse = [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); };
  gid_ = port_.ethernet != 0 ? *std::ranges::max_element(gids, worse) : gids.front();
  return true;
}

std::string VerbsDevice::label() const { return name_of(port_); }

Result<std::unique_ptr<VerbsMemory>> VerbsMemory::make(std::shared_ptr<VerbsDevice> device,
                                                       size_t bytes, bool remote) {
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return Status(Code::memory, "no memory for RDMA: " + text_of(errno));
  (void)madvise(data, bytes, MADV_DONTFORK);
  std::unique_ptr<VerbsMemory> memory(
      new VerbsMemory(std::move(device), static_cast<std::byte*>(data), bytes));
  const VerbsDevice& of = *memory->device_;
  SluiceVerbsRegion region{};
  const int error = of.table().add_region(of.handle(), data, bytes, remote ? 1 : 0, &region);
  if (error != 0) {
    return Status(Code::unavailable, of.label() + ": cannot register memory: " + text_of(error) +
                                         (error == ENOMEM ? limit_text() : ""));
  }
  memory->region_ = region;
  return memory;
}

VerbsMemory::~VerbsMemory() {
  if (region_.handle != nullptr) device_->table().drop_region(region_.handle);
  munmap(data_, bytes_);
}

}  // namespace sluice
