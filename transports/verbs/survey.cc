// SPDX-License-Identifier: BSD-3-Clause
//
// Which ports this host has, which of them may be used, and which is nearest.
#include <arpa/inet.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "transports/interface_list.h"
#include "transports/verbs/device.h"

namespace sluice {
namespace {

constexpr int max_ports = 64, max_gids = 256;
constexpr size_t most_others = 7;
constexpr int near = 10;     // the kernel's distance of a node from itself
constexpr int unknown = 15;  // before another node's
constexpr const char* not_listed =
    "the kernel has an RDMA device, but libibverbs finds none: it needs the kernel module "
    "ib_uverbs, "
    "/dev/infiniband, and the device's provider (Debian's package ibverbs-providers)";
constexpr const char* foreign =
    "neither InfiniBand nor RoCE (iWARP has no RDMA write with immediate data)";

Status unusable(int error) {
  const bool forbidden = error == EACCES || error == EPERM || error == ENOENT;
  const std::string text = std::string("cannot be used: ") + strerror(error);
  return {Code::unavailable, text + (forbidden ? "; permit access to /dev/infiniband" : "")};
}

std::string line_of(const std::string& path) {
  FILE* const file = fopen(path.c_str(), "re");
  if (!file) return {};
  char line[4096] = "";
  const bool read = fgets(line, sizeof(line), file) != nullptr;
  fclose(file);
  return read ? std::string(line, strcspn(line, "\n")) : std::string();
}

// The address of a network interface; none if the GID stands for none, or for that of its link.
std::optional<IpAddress> address_of(const SluiceVerbsGid& gid) {
  IpAddress address{is_ipv4(gid) ? uint8_t{4} : uint8_t{6}, {}};
  std::copy(gid.raw + (address.family == 4 ? 12 : 0), std::end(gid.raw), address.bytes.begin());
  const bool is_of_interface = gid.kind == SLUICE_GID_ROCE_2 && !address.is_link_local_v6();
  return is_of_interface ? std::optional(address) : std::nullopt;
}

// The higher, the better; 0: the list does not allow it. A port with addresses is judged by each of
// these, and then uses one of them; others only have names.
int rank_of(const SluiceVerbsGid& gid, bool has_addresses, const InterfaceList& list,
            std::span<const std::string> names) {
  const auto address = address_of(gid);
  if (has_addresses && !address) return 0;
  if (!list.allows(names, address ? &*address : nullptr)) return 0;
  const bool second = gid.kind == SLUICE_GID_ROCE_2;
  return 1 + (second ? 2 : 0) + (is_ipv4(gid) ? 1 : 0);
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

// Code::unavailable: an error of the system's. Code::mismatch: it has none.
Status read_gids(const SluiceVerbs& table, VerbsPort* port) {
  void* handle = nullptr;
  int descriptor = -1;
  if (const int error = table.open(port->port.device, &handle, &descriptor); error != 0) {
    return unusable(error);
  }
  port->gids.resize(max_gids);
  const int found = table.gids(handle, port->port.number, port->gids.data(), max_gids);
  port->gids.resize(static_cast<size_t>(std::clamp(found, 0, max_gids)));
  table.close(handle);
  if (found < 0) return unusable(-found);
  return port->gids.empty() ? Status(Code::mismatch, "no address (GID)") : Status();
}

// Those of IPv4 that are as good as the one chosen.
std::vector<size_t> others_of(const VerbsPort& port, const std::vector<int>& ranks) {
  std::vector<size_t> others;
  if (!address_of(port.address()) || !is_ipv4(port.address())) return others;
  for (size_t i = 0; i < ranks.size() && others.size() < most_others; ++i) {
    if (i != port.gid && ranks[i] == ranks[port.gid]) others.push_back(i);
  }
  return others;
}

std::array<std::string, 2> names_of(const SluiceVerbsPort& port) {
  const std::string device(port.device);
  return {device, device + ":" + std::to_string(port.number)};
}

// Chooses the port's addresses. False if the list excludes the port.
bool choose_gid(const InterfaceList& list, VerbsPort* port) {
  const auto names = names_of(port->port);
  if (port->gids.empty()) return list.allows(names, nullptr);
  const bool has_addresses =
      std::ranges::any_of(port->gids, [](const auto& gid) { return address_of(gid).has_value(); });
  std::vector<int> ranks;
  for (const SluiceVerbsGid& gid : port->gids) {
    ranks.push_back(rank_of(gid, has_addresses, list, names));
  }
  const auto best = std::ranges::max_element(ranks);
  port->gid = static_cast<size_t>(best - ranks.begin());
  if (*best > 0) port->other_gids = others_of(*port, ranks);
  return *best > 0;
}

// (Of a device that cannot be asked, the ports are not known.)
bool is_named(const SluiceVerbsPort& port, const InterfaceList::Item& item) {
  if (port.number == 0 && item.text.starts_with(std::string(port.device) + ":")) return true;
  return item.matches(names_of(port), nullptr);
}

void examine(const SluiceVerbs& table, const InterfaceList& list, VerbsPort* port) {
  const bool lists = port->port.error == 0;
  const Status status = lists ? read_gids(table, port) : unusable(port->port.error);
  port->problem = status.message();
  if (lists && port->port.active == 0) port->problem = "not active";
  if (port->port.foreign != 0) port->problem = foreign;
  const bool allowed = choose_gid(list, port);
  if (!allowed) port->problem = "excluded by SLUICE_VERBS_DEVICES";
  port->broken = allowed && port->port.foreign == 0 && status.code() == Code::unavailable;
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
  const std::string device = "device " + std::string(port.device);
  return port.number == 0 ? device : device + ", port " + std::to_string(port.number);
}

Result<std::vector<VerbsPort>> survey_verbs(const SluiceVerbs& table, const std::string& devices,
                                            const std::string& system) {
  std::vector<SluiceVerbsPort> listed(max_ports);
  const auto list = InterfaceList::parse(devices);
  if (!list.ok()) return check_verbs_devices(devices);
  const int found = table.list(listed.data(), max_ports);
  if (found < 0) {
    return Status(Code::unavailable, std::string("RDMA devices: ") + strerror(-found));
  }
  std::vector<VerbsPort> ports(static_cast<size_t>(std::min(found, max_ports)));
  for (size_t i = 0; i < ports.size(); ++i) {
    VerbsPort& each = ports[i];
    each.port = listed[i];
    look_up(&each, system);
    examine(table, *list, &each);
  }
  std::ranges::stable_sort(ports, [](const VerbsPort& a, const VerbsPort& b) {
    return std::pair(!a.problem.empty(), a.distance) < std::pair(!b.problem.empty(), b.distance);
  });
  return ports;
}

Status check_verbs_devices(const std::string& devices) {
  const Status status = InterfaceList::parse(devices).status();
  return status.ok() ? status : status.with("SLUICE_VERBS_DEVICES");
}

Status check_named(const std::string& devices, const std::vector<VerbsPort>& ports) {
  const auto list = InterfaceList::parse(devices);
  if (!list.ok()) return check_verbs_devices(devices);
  std::string absent;
  for (const InterfaceList::Item& item : list->items()) {
    const auto has_it = [&](const VerbsPort& each) { return is_named(each.port, item); };
    if (item.network || std::ranges::any_of(ports, has_it)) continue;
    absent += (absent.empty() ? "" : ", ") + item.text;
  }
  if (absent.empty()) return {};
  return {Code::unavailable, "SLUICE_VERBS_DEVICES names what this host lacks: " + absent};
}

Status why_none(const std::vector<VerbsPort>& ports, const std::string& system) {
  std::string why;
  for (const VerbsPort& each : ports) {
    if (each.problem.empty()) return {};
    why += (why.empty() ? "" : "; ") + each.label() + ": " + each.problem;
  }
  if (why.empty()) why = has_verbs_devices(system) ? not_listed : "no RDMA device";
  return {Code::unavailable, why};
}

}  // namespace sluice
