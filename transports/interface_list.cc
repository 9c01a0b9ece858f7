// SPDX-License-Identifier: BSD-3-Clause
#include "transports/interface_list.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view blanks = " \t";

std::string_view trim(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

}  // namespace

bool IpAddress::is_loopback() const {
  if (family == 4) return bytes[0] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t byte) { return byte == 0; }) &&
         bytes[15] == 1;
}

bool IpAddress::is_link_local_v6() const {
  return family == 6 && bytes[0] == 0xFE && (bytes[1] & 0xC0) == 0x80;
}

bool IpAddress::shares_prefix(const IpAddress& other, unsigned prefix) const {
  if (family != other.family) return false;
  for (unsigned bit = 0; bit < prefix; bit += 8) {
    const unsigned rest = std::min(prefix - bit, 8U);
    if (((bytes[bit / 8] ^ other.bytes[bit / 8]) >> (8 - rest)) != 0) return false;
  }
  return true;
}

std::string IpAddress::text() const {
  char buffer[INET6_ADDRSTRLEN] = "";
  inet_ntop(family == 4 ? AF_INET : AF_INET6, bytes.data(), buffer, sizeof(buffer));
  return buffer;
}

bool parse_ip(const std::string& text, IpAddress* address) {
  for (const auto& [family, code] : {std::pair{uint8_t{4}, AF_INET}, {uint8_t{6}, AF_INET6}}) {
    IpAddress parsed;
    parsed.family = family;
    if (inet_pton(code, text.c_str(), parsed.bytes.data()) == 1) {
      *address = parsed;
      return true;
    }
  }
  return false;
}

// Adds one item of the list. Returns what is wrong with it; nullptr if nothing.
const char* InterfaceList::add(const std::string& text) {
  if (text.empty()) return "is no name or network";
  if (text.find('^') != std::string::npos)
    return "has a ^ that is not the first character of the list";
  if (text.find_first_of(blanks) != std::string::npos)
    return "has a space in it: commas separate items";
  const size_t slash = text.find('/'), star = text.find('*');
  Network network;
  if (!parse_ip(text.substr(0, slash), &network.address)) {
    if (slash != std::string::npos) return "is no network (address/prefix length)";
    if (star < text.size() - 1) return "has a * that is not at its end";
    items_.push_back({text, star != std::string::npos});
    return nullptr;
  }
  network.prefix = network.address.bits();
  if (slash != std::string::npos) {
    const char* const first = text.data() + slash + 1;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(first, last, network.prefix);
    if (error != std::errc() || end != last || network.prefix > network.address.bits()) {
      return "has an impossible prefix length";
    }
  }
  items_.push_back({text, false, network});
  return nullptr;
}

Result<InterfaceList> InterfaceList::parse(const std::string& text) {
  InterfaceList list;
  if (text.empty()) return list;
  std::string_view rest = trim(text);
  list.exclude_ = rest.starts_with('^');
  if (list.exclude_) rest.remove_prefix(1);
  while (true) {
    const size_t comma = rest.find(',');
    const std::string item(trim(rest.substr(0, comma)));
    if (const char* why = list.add(item)) {
      return Status(Code::invalid, "list '" + text + "': '" + item + "' " + why);
    }
    if (comma == std::string_view::npos) return list;
    rest.remove_prefix(comma + 1);
  }
}

bool InterfaceList::Item::matches(std::span<const std::string> names,
                                  const IpAddress* address) const {
  if (network) return address && address->shares_prefix(network->address, network->prefix);
  const std::string_view beginning = std::string_view(text).substr(0, text.size() - 1);
  return std::ranges::any_of(names, [&](const std::string& name) {
    return is_beginning ? name.starts_with(beginning) : name == text;
  });
}

bool InterfaceList::allows(std::span<const std::string> names, const IpAddress* address) const {
  if (items_.empty()) return true;
  const auto matches = [&](const Item& item) { return item.matches(names, address); };
  return std::ranges::any_of(items_, matches) != exclude_;
}

}  // namespace sluice
