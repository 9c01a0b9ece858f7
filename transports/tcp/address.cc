// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "src/base/system_call.h"

namespace sluice {
namespace {

constexpr const char* setting = "SLUICE_TCP_INTERFACES";

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

bool has_ip(const ifaddrs& entry) {
  return entry.ifa_addr != nullptr && entry.ifa_netmask != nullptr &&
         (entry.ifa_addr->sa_family == AF_INET || entry.ifa_addr->sa_family == AF_INET6);
}

Interface interface_of(const ifaddrs& entry) {
  using State = Interface::State;
  Interface made{entry.ifa_name, {}, 0, State::no_address};
  if (has_ip(entry)) {
    made.address = from_socket_address(entry.ifa_addr);
    made.prefix = prefix_length(from_socket_address(entry.ifa_netmask));
    made.state = (entry.ifa_flags & IFF_RUNNING) != 0 ? State::running : State::no_carrier;
    if (made.address.is_link_local_v6()) made.state = State::link_local;
  }
  if ((entry.ifa_flags & IFF_UP) == 0) made.state = State::down;
  return made;
}

std::string text_of(const Interface& interface) {
  constexpr const char* states[] = {"", " (no carrier)", " (link-local)", " (down)",
                                    " (no address)"};
  const bool has_address = interface.address != IpAddress{};
  return interface.name +
         (has_address ? " " + interface.address.text() + "/" + std::to_string(interface.prefix)
                      : "") +
         states[static_cast<int>(interface.state)];
}

// Those that can be used first.
std::string list_text(std::vector<Interface> interfaces) {
  std::stable_partition(interfaces.begin(), interfaces.end(), std::mem_fn(&Interface::is_usable));
  std::string text;
  for (const Interface& each : interfaces) text += (text.empty() ? "" : ", ") + text_of(each);
  return text.empty() ? "no interface" : text;
}

bool is_usable(const Interface& interface, int family) {
  return interface.is_usable() && (family == 0 || family == interface.address.family);
}

bool matches(const InterfaceList::Item& item, const Interface& interface) {
  return item.matches({&interface.name, 1}, interface.state == Interface::State::no_address
                                                ? nullptr
                                                : &interface.address);
}

Status no_address(const std::vector<Interface>& all, const std::string& list, int family) {
  const std::string of_family = family == 0 ? "" : " of IPv" + std::to_string(family);
  const std::string why =
      list.empty() ? "no address" + of_family + " can be used"
                   : std::string(setting) + ": no address" + of_family + " matches '" + list + "'";
  return {Code::unavailable, why + "; this host has: " + list_text(all)};
}

// (The ports of IPv4 and IPv6 are at one place.)
std::optional<AddressBlob::Entry> end_of(int socket, decltype(getpeername)* name) {
  SocketAddress end;
  end.size = sizeof(end.storage);
  auto* const address = reinterpret_cast<sockaddr*>(&end.storage);
  if (name(socket, address, &end.size) != 0 || address->sa_family == AF_UNIX) return {};
  const auto* const ip6 = reinterpret_cast<const sockaddr_in6*>(address);
  return AddressBlob::Entry{from_socket_address(address), 0, ntohs(ip6->sin6_port)};
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

IpAddress to_ip_address(const SocketAddress& address) {
  return from_socket_address(reinterpret_cast<const sockaddr*>(&address.storage));
}

std::string endpoint_text(const IpAddress& address, uint16_t port) {
  const std::string ip = address.family == 6 ? "[" + address.text() + "]" : address.text();
  return ip + ":" + std::to_string(port);
}

std::optional<AddressBlob::Entry> far_end(int socket) { return end_of(socket, getpeername); }
std::optional<AddressBlob::Entry> near_end(int socket) { return end_of(socket, getsockname); }

std::string peer_text(int socket) {
  SocketAddress peer;
  peer.size = sizeof(peer.storage);
  auto* const address = reinterpret_cast<sockaddr*>(&peer.storage);
  if (getpeername(socket, address, &peer.size) != 0) return "an unknown address";
  return address->sa_family == AF_UNIX ? "this host" : from_socket_address(address).text();
}

Result<std::vector<Interface>> local_interfaces() {
  ifaddrs* list = nullptr;
  const int error = -system_call([&] { return getifaddrs(&list); });
  if (error != 0) return system_error("cannot list the network interfaces", error);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<Interface> found;
  for (const bool with_ip : {true, false}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      const bool is_known =
          std::ranges::find(found, entry->ifa_name, &Interface::name) != found.end();
      if (has_ip(*entry) == with_ip && (with_ip || !is_known))
        found.push_back(interface_of(*entry));
    }
  }
  rank_interfaces(found);
  return found;
}

Result<std::vector<Interface>> choose_interfaces(const std::vector<Interface>& all,
                                                 const std::string& list, int family) {
  const auto parsed = InterfaceList::parse(list);
  if (!parsed.ok()) return parsed.status().with(setting);
  std::vector<Interface> chosen;
  bool has_loopback = false;
  for (const Interface& each : all) {
    if (!is_usable(each, family) || !parsed->allows({&each.name, 1}, &each.address)) continue;
    // One loopback address is enough for the processes of this host.
    if (each.address.is_loopback() && std::exchange(has_loopback, true)) continue;
    chosen.push_back(each);
  }
  std::ranges::stable_sort(chosen, {},
                           [](const Interface& each) { return std::pair(each.state, each.rank); });
  if (!chosen.empty()) return chosen;
  return no_address(all, list, family);
}

std::string unmatched_items(const std::vector<Interface>& all, const std::string& list,
                            int family) {
  const auto parsed = InterfaceList::parse(list);
  std::string items;
  for (size_t i = 0; parsed.ok() && i < parsed->items().size(); ++i) {
    const InterfaceList::Item& item = parsed->items()[i];
    const bool matched = std::ranges::any_of(all, [&](const Interface& each) {
      return matches(item, each) && (parsed->excludes() || is_usable(each, family));
    });
    if (!matched) items += (items.empty() ? "'" : ", '") + item.text + "'";
  }
  if (items.empty()) return {};
  return std::string(setting) + "=" + list + ": " + items + " matches no interface" +
         (parsed->excludes() ? "" : " that can be used") + "; this host has: " + list_text(all);
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
