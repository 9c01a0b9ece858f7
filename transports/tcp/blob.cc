// SPDX-License-Identifier: BSD-3-Clause
//
// The encoded address: version (1 byte), number of entries (1) plus 128 if the process has a
// Prover, host identity (8), key (16), with a Prover the public key (32), then for each entry
// family (1), prefix length (1), port (2), address (4 or 16).
#include <algorithm>
#include <array>

#include "transports/little_endian.h"
#include "transports/tcp/address.h"

namespace sluice {
namespace {

constexpr std::byte blob_version{3};
constexpr std::byte prover_flag{128};
constexpr size_t head_bytes = 2 + 8 + 16;

size_t head_bytes_of(bool proves) { return head_bytes + (proves ? sizeof(PublicKey) : 0); }

size_t entry_bytes(uint8_t family) { return 4 + (family == 4 ? 4 : 16); }

bool has_address(const std::vector<Interface>& interfaces, const IpAddress& address) {
  return std::ranges::any_of(interfaces, [&](const Interface& each) {
    return each.is_usable() && each.address == address;
  });
}

bool has_carrier(const Interface& interface) {
  return interface.state == Interface::State::running;
}

// The interface on a peer's subnet. Of several, one that has a carrier; then the narrowest, as
// routes choose: from the address of another the peer's answer may take another way, or be dropped
// on it.
const Interface* interface_to(const AddressBlob::Entry& entry,
                              const std::vector<Interface>& chosen) {
  const auto fit = [&](const Interface& ours) {
    const bool is_within = ours.address.shares_prefix(entry.address, ours.prefix);
    return std::pair(has_carrier(ours), is_within ? 1 + ours.prefix : 0);
  };
  const Interface* found = nullptr;
  for (const Interface& ours : chosen) {
    const uint8_t shared = std::min(ours.prefix, entry.prefix);
    const bool on_subnet = ours.address.shares_prefix(entry.address, shared);
    if (on_subnet && (found == nullptr || fit(ours) > fit(*found))) found = &ours;
  }
  return found;
}

}  // namespace

std::vector<std::byte> AddressBlob::encode() const {
  std::vector<std::byte> out(head_bytes_of(proves));
  out[0] = blob_version;
  store64(out.data() + 2, host);
  std::copy(key.begin(), key.end(), out.begin() + 10);
  if (proves) std::ranges::copy(public_key, out.begin() + head_bytes);
  for (const Entry& entry : entries) {
    const size_t at = out.size();
    if (at + entry_bytes(entry.address.family) > max_bytes) continue;
    out.resize(at + entry_bytes(entry.address.family));
    out[at] = std::byte{entry.address.family};
    out[at + 1] = std::byte{entry.prefix};
    out[at + 2] = static_cast<std::byte>(entry.port & 0xFF);
    out[at + 3] = static_cast<std::byte>(entry.port >> 8);
    for (size_t i = at + 4; i < out.size(); ++i)
      out[i] = std::byte{entry.address.bytes[i - at - 4]};
    out[1] = static_cast<std::byte>(std::to_integer<int>(out[1]) + 1);
  }
  if (proves) out[1] |= prover_flag;
  return out;
}

Result<AddressBlob> AddressBlob::decode(const std::vector<std::byte>& bytes) {
  const Status invalid(Code::invalid, "not a TCP address of this version");
  if (bytes.size() < head_bytes || bytes[0] != blob_version) return invalid;
  AddressBlob blob;
  blob.host = load64(bytes.data() + 2);
  std::copy_n(bytes.begin() + 10, blob.key.size(), blob.key.begin());
  blob.proves = (bytes[1] & prover_flag) != std::byte{0};
  if (blob.proves) {
    const auto found = public_key_of(bytes);
    if (!found) return invalid;
    blob.public_key = *found;
  }
  size_t at = head_bytes_of(blob.proves);
  for (int count = std::to_integer<int>(bytes[1] & ~prover_flag); count > 0; --count) {
    Entry entry;
    if (at + 4 > bytes.size()) return invalid;
    entry.address.family = std::to_integer<uint8_t>(bytes[at]);
    const bool known = entry.address.family == 4 || entry.address.family == 6;
    const size_t end = at + entry_bytes(entry.address.family);
    entry.prefix = std::to_integer<uint8_t>(bytes[at + 1]);
    if (!known || end > bytes.size() || entry.prefix > entry.address.bits()) return invalid;
    entry.port = static_cast<uint16_t>(std::to_integer<unsigned>(bytes[at + 2]) |
                                       std::to_integer<unsigned>(bytes[at + 3]) << 8);
    for (size_t i = at + 4; i < end; ++i) {
      entry.address.bytes[i - at - 4] = std::to_integer<uint8_t>(bytes[i]);
    }
    blob.entries.push_back(entry);
    at = end;
  }
  if (at != bytes.size()) return invalid;
  return blob;
}

std::optional<PublicKey> AddressBlob::public_key_of(std::span<const std::byte> bytes) {
  if (bytes.size() < head_bytes_of(true) || bytes[0] != blob_version ||
      (bytes[1] & prover_flag) == std::byte{0}) {
    return std::nullopt;
  }
  PublicKey found;
  std::ranges::copy(bytes.subspan(head_bytes, found.size()), found.begin());
  return found;
}

bool is_same_host(const AddressBlob& peer, uint64_t host) { return host != 0 && peer.host == host; }

std::vector<Candidate> candidates(const AddressBlob& peer, uint64_t host,
                                  const std::vector<Interface>& all,
                                  const std::vector<Interface>& chosen) {
  const bool same_host = is_same_host(peer, host);
  std::array<std::vector<Candidate>, 4> tiers;
  for (const AddressBlob::Entry& entry : peer.entries) {
    Candidate candidate{entry.address, entry.port, {}};
    const Interface* const on_subnet = interface_to(entry, chosen);
    if (on_subnet != nullptr) {
      candidate.interface = on_subnet->name;
      candidate.source = on_subnet->address;
    }
    const bool loopback = entry.address.is_loopback();
    // If this host has the same address as a peer on another host, it is on a network that each
    // host has for itself (docker0).
    candidate.here = same_host || loopback || has_address(all, entry.address);
    candidate.certain = same_host || !candidate.here;
    const bool leads_there = on_subnet != nullptr && has_carrier(*on_subnet);
    const bool preferred = same_host ? loopback : !loopback && leads_there;
    tiers[candidate.certain ? !preferred : 2 + loopback].push_back(candidate);
  }
  const bool any_certain = !tiers[0].empty() || !tiers[1].empty();
  if (any_certain) tiers[2].clear(), tiers[3].clear();
  std::vector<Candidate> ordered;
  for (const auto& tier : tiers) ordered.insert(ordered.end(), tier.begin(), tier.end());
  return ordered;
}

}  // namespace sluice
