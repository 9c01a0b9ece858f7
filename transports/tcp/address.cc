// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace sluice {
namespace {

IpAddress from_socket_address(const sockaddr* address) {
  IpAddress ip;
  if (address->sa_family == AF_INET) {
    std::memcpy(ip.bytes.data(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  } else {
    ip.family = 6;
    std::memcpy(ip.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  }
  return ip;
}

uint8_t prefix_length(const IpAddress& netmask) {
  uint8_t length = 0;
  for (unsigned i = 0; i < netmask.bits() / 8; ++i) {
    length += static_cast<uint8_t>(__builtin_popcount(netmask.bytes[i]));
  }
  return length;
}

bool usable(const ifaddrs& entry) {
  return entry.ifa_addr != nullptr && entry.ifa_netmask != nullptr &&
         (entry.ifa_flags & IFF_UP) != 0 &&
         (entry.ifa_addr->sa_family == AF_INET || entry.ifa_addr->sa_family == AF_INET6);
}

std::string list_text(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& each : interfaces) {
    text += (text.empty() ? "" : ", ") + each.name + " " + each.address.text() + "/" +
            std::to_string(each.prefix) + (each.running ? "" : " (no carrier)");
  }
  return text.empty() ? "no interface that is up" : text;
}

}  // namespace

SocketAddress to_socket_address(const IpAddress& address, uint16_t port) {
  SocketAddress made;
  if (address.family == 4) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, address.bytes.data(), 4);
    std::memcpy(&made.storage, &v4, made.size = sizeof(v4));
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&v6.sin6_addr, address.bytes.data(), 16);
    std::memcpy(&made.storage, &v6, made.size = sizeof(v6));
  }
  return made;
}

std::string endpoint_text(const IpAddress& address, uint16_t port) {
  const std::string ip = address.family == 6 ? "[" + address.text() + "]" : address.text();
  return ip + ":" + std::to_string(port);
}

std::string peer_text(int socket) {
  SocketAddress peer;
  peer.size = sizeof(peer.storage);
  auto* const address = reinterpret_cast<sockaddr*>(&peer.storage);
  if (getpeername(socket, address, &peer.size) != 0) return "an unknown address";
  return address->sa_family == AF_UNIX ? "this host" : from_socket_address(address).text();
}

Result<std::vector<Interface>> local_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return Status(Code::unavailable,
                  "cannot list the network interfaces: " + std::string(strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!usable(*entry)) continue;
    const IpAddress address = from_socket_address(entry->ifa_addr);
    if (address.is_link_local_v6()) continue;
    found.push_back({entry->ifa_name, address,
                     prefix_length(from_socket_address(entry->ifa_netmask)),
                     (entry->ifa_flags & IFF_RUNNING) != 0});
  }
  return found;
}

Result<std::vector<Interface>> choose_interfaces(const std::vector<Interface>& all,
                                                 const std::string& list, int family) {
  const auto parsed = InterfaceList::parse(list);
  if (!parsed.ok()) return parsed.status();
  std::vector<Interface> chosen;
  bool has_loopback = false;
  for (const Interface& each : all) {
    const bool of_family = family == 0 || family == each.address.family;
    if (!each.running || !of_family || !parsed->allows({&each.name, 1}, &each.address)) continue;
    // One loopback address is enough for the processes of this host.
    if (each.address.is_loopback() && std::exchange(has_loopback, true)) continue;
    chosen.push_back(each);
  }
  if (!chosen.empty()) return chosen;
  return Status(Code::unavailable, "no address matches the interface list '" + list + "'" +
                                       (family == 0 ? "" : " and IPv" + std::to_string(family)) +
                                       "; this host has: " + list_text(all));
}

uint64_t host_identity() {
  constexpr uint64_t fnv_prime = 0x100000001B3;
  uint64_t hash = 0xCBF29CE484222325;
  const auto mix = [&](const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * fnv_prime;
    }
  };
  char boot[64] = "";
  struct stat space {};
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/proc/sys/kernel/random/boot_id", "re"),
                                                   fclose);
  if (!file || fgets(boot, sizeof(boot), file.get()) == nullptr ||
      stat("/proc/self/ns/net", &space) != 0) {
    return 0;
  }
  mix(boot, strlen(boot));
  mix(&space.st_ino, sizeof(space.st_ino));
  mix(&space.st_dev, sizeof(space.st_dev));
  return hash;
}

}  // namespace sluice
