// SPDX-License-Identifier: BSD-3-Clause
//
// Which ports this host has, which of them may be used, and which is nearest.
#include <arpa/inet.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "transports/verbs/device.h"

namespace sluice {
namespace {

constexpr int max_ports = 64, max_gids = 256;
constexpr int near = 10;     // the kernel's distance of a node from itself
constexpr int unknown = 15;  // before another node's

std::string line_of(const std::string& path) {
  FILE* const file = fopen(path.c_str(), "re");
  if (!file) return {};
  char line[4096] = "";
  const bool read = fgets(line, sizeof(line), file) != nullptr;
  fclose(file);
  return read ? std::string(line, strcspn(line, "\n")) : std::string();
}

// Whether a list, as survey_verbs describes it, allows the port.
bool allows(const std::string& list, const SluiceVerbsPort& port) {
  const bool excludes = list.starts_with('^');
  const std::string names = "," + list.substr(excludes ? 1 : 0) + ",", name(port.device);
  const auto has = [&](const std::string& each) {
    return names.find("," + each + ",") != std::string::npos;
  };
  const bool named = has(name) || has(name + ":" + std::to_string(port.number));
  return list.empty() || named != excludes;
}

// The higher, the better.
int rank_of(const SluiceVerbsGid& gid) {
  const bool second = gid.kind == SLUICE_GID_ROCE_2;
  return (second ? 2 : 0) + (is_ipv4(gid) ? 1 : 0);
}

// "0-3,8" -> the processors that this thread may run on are among these.
bool may_run_on(const std::string& list) {
  cpu_set_t own;
  if (sched_getaffinity(0, sizeof(own), &own) != 0) return false;
  for (size_t at = 0; at < list.size(); at = std::min(list.find(',', at), list.size()) + 1) {
    int first = 0, last = 0;
    const int found = sscanf(list.c_str() + at, "%d-%d", &first, &last);
    if (found < 1) continue;
    for (int i = first; i <= (found == 2 ? last : first) && i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &own)) return true;
    }
  }
  return false;
}

// From the nearest node that this thread may run on.
int distance_to(int node, const std::string& system) {
  const std::string nodes = system + "/devices/system/node/node";
  if (node < 0) return unknown;
  if (may_run_on(line_of(nodes + std::to_string(node) + "/cpulist"))) return near;
  const std::string distances = line_of(nodes + std::to_string(node) + "/distance");
  const char* rest = distances.c_str();
  char* end = nullptr;
  int least = 0, other = 0;
  for (int distance = 0; (distance = static_cast<int>(strtol(rest, &end, 10)), end != rest);
       rest = end, ++other) {
    if ((least == 0 || distance < least) &&
        may_run_on(line_of(nodes + std::to_string(other) + "/cpulist"))) {
      least = distance;
    }
  }
  return least == 0 ? unknown : least;
}

void look_up(VerbsPort* port, const std::string& system) {
  const std::string device = system + "/class/infiniband/" + port->port.device;
  const std::string node = line_of(device + "/device/numa_node");
  port->node = node.empty() ? -1 : atoi(node.c_str());
  port->distance = distance_to(port->node, system);
  port->rate = line_of(device + "/ports/" + std::to_string(port->port.number) + "/rate");
}

// Sets `problem` if there is none.
void read_gids(const SluiceVerbs& table, VerbsPort* port) {
  void* handle = nullptr;
  int descriptor = -1;
  if (const int error = table.open(port->port.device, &handle, &descriptor); error != 0) {
    port->problem = strerror(error);
    return;
  }
  port->gids.resize(max_gids);
  const int found = table.gids(handle, port->port.number, port->gids.data(), max_gids);
  port->gids.resize(static_cast<size_t>(std::clamp(found, 0, max_gids)));
  table.close(handle);
  if (port->gids.empty()) {
    port->problem = "no address (GID)";
  } else if (port->port.ethernet != 0) {
    const auto worse = [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); };
    port->gid =
        static_cast<size_t>(std::ranges::max_element(port->gids, worse) - port->gids.begin());
  }
}

}  // namespace

bool is_ipv4(const SluiceVerbsGid& gid) {
  static constexpr uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::memcmp(gid.raw, mapped, sizeof(mapped)) == 0;
}

std::string text_of_gid(const SluiceVerbsGid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool four = is_ipv4(gid);
  inet_ntop(four ? AF_INET : AF_INET6, four ? gid.raw + 12 : gid.raw, text, sizeof(text));
  return text;
}

std::string VerbsPort::label() const {
  return "device " + std::string(port.device) + ", port " + std::to_string(port.number);
}

Result<std::vector<VerbsPort>> survey_verbs(const SluiceVerbs& table, const std::string& devices,
                                            const std::string& system) {
  std::vector<SluiceVerbsPort> listed(max_ports);
  const int found = table.list(listed.data(), max_ports);
  if (found < 0) {
    return Status(Code::unavailable, std::string("RDMA devices: ") + strerror(-found));
  }
  std::vector<VerbsPort> ports(static_cast<size_t>(std::min(found, max_ports)));
  for (size_t i = 0; i < ports.size(); ++i) {
    VerbsPort& each = ports[i];
    each.port = listed[i];
    look_up(&each, system);
    read_gids(table, &each);
    if (each.port.active == 0) each.problem = "not active";
    if (!allows(devices, each.port)) each.problem = "excluded by SLUICE_VERBS_DEVICES";
  }
  std::ranges::stable_sort(ports, [](const VerbsPort& a, const VerbsPort& b) {
    return std::pair(!a.problem.empty(), a.distance) < std::pair(!b.problem.empty(), b.distance);
  });
  return ports;
}

Status why_none(const std::vector<VerbsPort>& ports) {
  std::string why;
  for (const VerbsPort& each : ports) {
    if (each.problem.empty()) return {};
    why += (why.empty() ? "" : "; ") + each.label() + ": " + each.problem;
  }
  return {Code::unavailable, why.empty() ? "no RDMA device" : why};
}

}  // namespace sluice
