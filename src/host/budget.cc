// SPDX-License-Identifier: BSD-3-Clause
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "src/host/locality.h"

namespace sluice {
namespace {

std::string read_text(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  std::string text;
  char buffer[4096];
  while (const size_t size = file ? std::fread(buffer, 1, sizeof buffer, file.get()) : 0) {
    text.append(buffer, size);
  }
  return text;
}

// The CPU quota of the cgroup in `folder`, in thousandths of a processor; 0: no limit. cgroup v2
// has one file for it, v1 has two.
uint64_t bound_of(const std::string& folder) {
  long long quota = 0, period = 0;
  const std::string both = read_text(folder + "/cpu.max");
  if (std::sscanf(both.c_str(), "%lld %lld", &quota, &period) != 2) {
    const std::string first = read_text(folder + "/cpu.cfs_quota_us");
    const std::string second = read_text(folder + "/cpu.cfs_period_us");
    if (std::sscanf(first.c_str(), "%lld", &quota) != 1) return 0;
    if (std::sscanf(second.c_str(), "%lld", &period) != 1) return 0;
  }
  return quota > 0 && period > 0 ? static_cast<uint64_t>(quota * 1000 / period) : 0;
}

// A number that is equal for all paths of the same folder.
uint64_t identity_of(const std::string& folder) {
  struct stat about {};
  if (stat(folder.c_str(), &about) != 0) return 0;
  return about.st_ino * 0x100000001b3 ^ about.st_dev;
}

bool lists_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t end = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, end) == "cpu") return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

// Applies the quotas of a cgroup and of all its ancestors; the smallest wins.
void tighten(Budget* budget, const std::string& mount, std::string path) {
  while (true) {
    const std::string folder = mount + path;
    const uint64_t bound = bound_of(folder);
    if (bound != 0 && (budget->size == 0 || bound < budget->size)) {
      *budget = {identity_of(folder), bound};
    }
    if (path.empty()) return;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

// In a container, `membership` may hold paths of the host, while only the container's part of the
// tree is mounted. Folders that do not exist have no quota; the mount point itself is always
// checked.
Budget find_budget(const std::string& membership, const std::string& mounts) {
  Budget budget;
  const std::string text = read_text(membership);
  for (size_t at = 0; at < text.size();) {  // "4:cpu,cpuacct:/path", "0::/path"
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/') continue;
    if (path == "/") path.clear();
    if (controllers.empty()) {
      for (const char* mount : {"", "/unified"}) tighten(&budget, mounts + mount, path);
    } else if (lists_cpu(controllers)) {
      for (const char* mount : {"/cpu", "/cpu,cpuacct"}) tighten(&budget, mounts + mount, path);
    }
  }
  return budget;
}

}  // namespace sluice
