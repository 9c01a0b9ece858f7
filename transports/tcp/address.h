// SPDX-License-Identifier: BSD-3-Clause
//
// Which addresses a process listens on, how it gives them out, and which of them a peer tries.
//
// Both sides decide by what they know alone. The listener binds one socket to each address that it
// offers (never to all addresses at once). The connecting side orders what the peer offers:
// loopback first if both are known to be on one host (the same kernel and network namespace).
// Otherwise first what shares a subnet with this process, then other addresses, and last those that
// this process has too: they lead to another process if the peer is on another host, but to the
// peer if it is on this one after all, which containers and missing /proc can hide. Only the peer's
// answer tells (transports/tcp/dialer.h).
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/tcp/wire.h"

namespace sluice {

struct IpAddress {
  uint8_t family = 4;               // 4 or 6
  std::array<uint8_t, 16> bytes{};  // the first 4 if IPv4

  bool operator==(const IpAddress&) const = default;
  bool is_loopback() const;
  bool is_link_local_v6() const;  // means nothing without an interface: never offered
  // The first `prefix` bits are equal, and the family.
  bool shares_prefix(const IpAddress& other, unsigned prefix) const;
  unsigned bits() const { return family == 4 ? 32 : 128; }
  std::string text() const;
};

// False if the text is no numeric address.
bool parse_ip(const std::string& text, IpAddress* address);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};
SocketAddress to_socket_address(const IpAddress& address, uint16_t port);
// Its address and port, in words: "10.0.0.7:4711", "[fd00::7]:4711".
std::string endpoint_text(const IpAddress& address, uint16_t port);

// An address of an interface that is up.
struct Interface {
  std::string name;
  IpAddress address;
  uint8_t prefix = 0;
  bool running = true;  // it has a carrier
};

// All of this host, in the kernel's order, but for addresses that mean nothing elsewhere.
Result<std::vector<Interface>> local_interfaces();

// Which interfaces to use; see TcpOptions::interfaces.
class InterfaceList {
 public:
  static Result<InterfaceList> parse(const std::string& text);

  bool allows(const Interface& interface) const;

 private:
  struct Network {
    IpAddress address;
    unsigned prefix;
  };
  const char* add(const std::string& item);

  bool exclude_ = false;
  std::vector<std::string> names_;
  std::vector<Network> networks_;
};

// Those of `all` that run and that the list and the family (0, 4, 6) allow. An error lists what
// there is.
Result<std::vector<Interface>> choose_interfaces(const std::vector<Interface>& all,
                                                 const std::string& list, int family);

// The kernel and network namespace that this process is in: equal on processes that reach each
// other over loopback. 0 if it can't be found out.
uint64_t host_identity();

// What Endpoint::address gives out.
struct AddressBlob {
  static constexpr size_t max_bytes = 159;

  struct Entry {
    IpAddress address;
    uint8_t prefix = 0;
    uint16_t port = 0;
  };

  uint64_t host = 0;
  Key key{};
  std::vector<Entry> entries;

  // As many entries as there is room for, the first ones.
  std::vector<std::byte> encode() const;
  static Result<AddressBlob> decode(const std::vector<std::byte>& bytes);
};

// False where either side could not find out.
bool is_same_host(const AddressBlob& peer, uint64_t host);

// An address of the peer that may be tried, and the interface of ours that is on its subnet, if
// any.
struct Candidate {
  IpAddress address;
  uint16_t port = 0;
  std::string interface;
  bool certain = false;  // no other process can be behind it: the same host, or not this host
};

// In the order to try. `all`: every local interface; `chosen`: those in use here.
std::vector<Candidate> candidates(const AddressBlob& peer, uint64_t host,
                                  const std::vector<Interface>& all,
                                  const std::vector<Interface>& chosen);

}  // namespace sluice
