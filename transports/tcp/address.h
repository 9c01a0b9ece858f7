// SPDX-License-Identifier: BSD-3-Clause
//
// Which addresses a process listens on, how it publishes them, and in which order a peer tries
// them.
//
// What identifies a host (boot id, network namespace, /dev/shm) may be hidden or private in a
// container, and equal on two virtual machines that were resumed from one snapshot. So it decides
// only what is tried first: an address, shared memory (transports/shm/segment.h says how the right
// memory is known), or a local socket, if settings treat connections within a host in another way
// (encryption, RDMA demanded; local_socket.h).
//
// Each side decides from what it knows alone. The listener binds one socket to each address that it
// offers, never to the wildcard address. Its AddressBlob has room for some, in this order: the
// default route's, a loopback address, devices', virtual interfaces', bridges', those of interfaces
// without carrier. (Many hosts have bridges with equal addresses, such as docker0, that lead
// nowhere else.)
//
// The connecting side orders the peer's addresses. If both are known to be on one host (same kernel
// and network namespace), loopback comes first. Otherwise addresses on a subnet of this process
// (whose interface has a carrier) come first, and the socket is bound to this process's own address
// there. Addresses that this host has too lead to this host. If the peer has any others it is not
// here, and they are not tried. Else it may be on this host after all, which containers and a
// missing /proc can hide. Only the peer's answer tells (transports/tcp/dialer.h).
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/interface_list.h"
#include "transports/tcp/greeting.h"

namespace sluice {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};
SocketAddress to_socket_address(const IpAddress& address, uint16_t port);
// What a sockaddr_in or sockaddr_in6 holds.
IpAddress to_ip_address(const SocketAddress& address);
// Address and port as text: "10.0.0.7:4711", "[fd00::7]:4711".
std::string endpoint_text(const IpAddress& address, uint16_t port);

// The address at the other end of a connected socket: "10.0.0.7", "this host" (a local socket), or
// "an unknown address" if the connection has ended.
std::string peer_text(int socket);

// An address of an interface.
struct Interface {
  // The first two can be used. The kernel may notice a carrier (IFF_RUNNING) up to a second after
  // the interface carries packets, as in a container that has just started. A link-local address
  // (of IPv6) means nothing to other hosts.
  enum class State { running, no_carrier, link_local, down, no_address };

  std::string name;
  IpAddress address;  // unless it has none
  uint8_t prefix = 0;
  State state = State::running;
  bool is_usable() const { return state == State::running || state == State::no_carrier; }

  // How likely other hosts reach it, the likeliest first.
  enum class Rank : uint8_t { default_route, loopback, device, virtual_device, bridge };
  Rank rank = Rank::device;
};

// The address from which this host sends to that one, by its routes; nullopt: no route leads there.
std::optional<IpAddress> source_to(const IpAddress& there);

// Sets the ranks, by what the kernel says of routes and drivers. (interface_rank.cc)
void rank_interfaces(std::vector<Interface>& interfaces);

// All addresses of this host in the kernel's order, then the interfaces that have none.
Result<std::vector<Interface>> local_interfaces();

// The usable interfaces in `all` that the list and the family (0, 4, 6) allow, by rank, those
// without carrier last, but at most one loopback address. If there are none, the error lists all
// interfaces. Errors name the setting, SLUICE_TCP_INTERFACES, unless the list is empty.
Result<std::vector<Interface>> choose_interfaces(const std::vector<Interface>& all,
                                                 const std::string& list, int family);

// A sentence about the items of a valid list that match nothing; empty if there are none. An item
// that names what to use must match a usable interface, one that excludes must match any.
std::string unmatched_items(const std::vector<Interface>& all, const std::string& list, int family);

// A hash of the kernel (boot id) and network namespace of this process: equal on processes that
// reach each other over loopback. 0 if unknown.
uint64_t host_identity();

// The content of Endpoint::address.
struct AddressBlob {
  static constexpr size_t max_bytes = 185;

  struct Entry {
    IpAddress address;
    uint8_t prefix = 0;
    uint16_t port = 0;
  };

  uint64_t host = 0;
  Key key{};  // said in clear by peers without a Prover; zeros: none may connect
  std::vector<Entry> entries;
  bool proves = false;     // the process has a Prover: greetings to and from it may have proofs
  PublicKey public_key{};  // if it proves

  // Encodes the first entries, as many as there is room for.
  std::vector<std::byte> encode() const;
  static Result<AddressBlob> decode(const std::vector<std::byte>& bytes);
  // Only the public key of encoded bytes; nullopt: it has none. Does not allocate.
  static std::optional<PublicKey> public_key_of(std::span<const std::byte> bytes);
};

// The peer's end of a connected socket, and this side's; nullopt: the connection has ended, or is a
// local one.
std::optional<AddressBlob::Entry> far_end(int socket);
std::optional<AddressBlob::Entry> near_end(int socket);

// False also if either side does not know its host identity.
bool is_same_host(const AddressBlob& peer, uint64_t host);

// A peer's address to try, and this host's interface on its subnet, if any.
struct Candidate {
  IpAddress address;
  uint16_t port = 0;
  std::string interface;
  std::optional<IpAddress> source{};  // that interface's address, to connect from
  bool certain = false;   // surely the peer's: same host, or not an address of this host
  bool local = false;     // the peer's local socket (local_socket.h) instead, named by that port
  bool answered = false;  // the peer has been met there
  bool carried = false;  // the connection that this process made last, and that was kept, led there
  bool here = false;     // leads to this host: what fails there is not worth another try
  bool leads_away() const { return !here && !local; }
};

// The peer's addresses in the order to try. `all`: every local interface; `chosen`: those in use.
std::vector<Candidate> candidates(const AddressBlob& peer, uint64_t host,
                                  const std::vector<Interface>& all,
                                  const std::vector<Interface>& chosen);

}  // namespace sluice
