// SPDX-License-Identifier: BSD-3-Clause
//
// Which interfaces other hosts are likely to reach. /sys shows the interfaces of the network
// namespace in which it was mounted, so the kernel is asked through sockets.
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "transports/descriptor.h"
#include "transports/tcp/address.h"

namespace sluice {
namespace {

// In networks for documentation (RFC 5737, RFC 3849), to which only the default route leads.
constexpr const char* nowhere[] = {"198.51.100.1", "2001:db8::1"};
constexpr uint16_t any_port = 9;
constexpr std::string_view virtual_drivers[] = {"veth", "tun", "dummy", "vxlan", "geneve"};

// "bridge", "veth", "e1000e"; empty: not known.
std::string driver_of(const Descriptor& any_socket, const std::string& name) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), sizeof(request.ifr_name) - 1);
  request.ifr_data = reinterpret_cast<char*>(&info);
  if (!any_socket || ioctl(any_socket.fd(), SIOCETHTOOL, &request) != 0) return {};
  return {info.driver, strnlen(info.driver, sizeof(info.driver))};
}

Interface::Rank rank_of(const Interface& interface, const std::string& driver) {
  using Rank = Interface::Rank;
  if (interface.address.is_loopback()) return Rank::loopback;
  if (driver == "bridge") return Rank::bridge;
  const bool is_virtual = std::ranges::find(virtual_drivers, driver) != std::end(virtual_drivers);
  return is_virtual ? Rank::virtual_device : Rank::device;
}

}  // namespace

// Connecting a datagram socket sends nothing.
std::optional<IpAddress> source_to(const IpAddress& there) {
  const Descriptor made(
      socket(there.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress to = to_socket_address(there, any_port);
  SocketAddress from;
  from.size = sizeof(from.storage);
  if (!made || connect(made.fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0 ||
      getsockname(made.fd(), reinterpret_cast<sockaddr*>(&from.storage), &from.size) != 0) {
    return std::nullopt;
  }
  return to_ip_address(from);
}

void rank_interfaces(std::vector<Interface>& interfaces) {
  const Descriptor any_socket(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (Interface& each : interfaces) each.rank = rank_of(each, driver_of(any_socket, each.name));
  for (const char* const text : nowhere) {
    IpAddress there;
    const auto source = parse_ip(text, &there) ? source_to(there) : std::nullopt;
    for (Interface& each : interfaces) {
      const bool leads_there = source && each.address == *source && !source->is_loopback();
      if (leads_there) each.rank = Interface::Rank::default_route;
    }
  }
}

}  // namespace sluice
