// SPDX-License-Identifier: BSD-3-Clause
//
// IP addresses, and the lists by which users say what may be used: interfaces of the network, and
// ports of RDMA devices.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

struct IpAddress {
  uint8_t family = 4;               // 4 or 6
  std::array<uint8_t, 16> bytes{};  // the first 4 if IPv4

  bool operator==(const IpAddress&) const = default;
  bool is_loopback() const;
  bool is_link_local_v6() const;  // needs an interface to be usable: never offered
  // Whether the families and the first `prefix` bits are equal.
  bool shares_prefix(const IpAddress& other, unsigned prefix) const;
  unsigned bits() const { return family == 4 ? 32 : 128; }
  std::string text() const;
};

// False if the text is not a numeric address.
bool parse_ip(const std::string& text, IpAddress* address);

// Names, beginnings of names ("docker*") and networks ("10.1.0.0/16", or an address) with commas:
// only these; after a first '^', all but these; an empty list: all. Spaces around items do not
// count.
class InterfaceList {
 public:
  struct Network {
    IpAddress address;
    unsigned prefix = 0;
  };
  struct Item {
    std::string text;  // as in the list, without spaces
    bool is_beginning = false;
    std::optional<Network> network{};

    // names: those of one interface. address: one of its addresses; nullptr: it has none.
    bool matches(std::span<const std::string> names, const IpAddress* address) const;
  };

  // Code::invalid, with the list and the item that is wrong. (Callers add the setting's name.)
  static Result<InterfaceList> parse(const std::string& text);

  bool allows(std::span<const std::string> names, const IpAddress* address) const;
  bool excludes() const { return exclude_; }
  std::span<const Item> items() const { return items_; }

 private:
  const char* add(const std::string& text);

  bool exclude_ = false;
  std::vector<Item> items_;
};

}  // namespace sluice
