// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/agreement.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

constexpr uint64_t magic = 0x6563'6975'6c53'0002;  // "Sluice", layout 2

// Lays fields out one after another.
class Packer {
 public:
  explicit Packer(std::span<std::byte> bytes) : bytes_(bytes) {}
  void number(uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_[at_++] = static_cast<std::byte>(value >> (8 * i));
  }
  void text(const void* data, size_t size, size_t room) {
    size = std::min(size, room);
    number(size);
    if (size > 0) std::memcpy(bytes_.data() + at_, data, size);
    at_ += room;
  }

 private:
  std::span<std::byte> bytes_;
  size_t at_ = 0;
};

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= static_cast<uint64_t>(bytes_[at_++]) << (8 * i);
    return value;
  }
  std::span<const std::byte> text(size_t room) {
    const size_t size = std::min<size_t>(number(), room);
    const auto found = bytes_.subspan(at_, size);
    at_ += room;
    return found;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

constexpr size_t version_room = 24, label_room = 96;
static_assert(Hello::Occasion::packed_size + 8 * 9 + version_room + label_room +
                  Hello::longest_address <=
              Hello::packed_size);
constexpr size_t kept_at = 8, kept_size = 24;

std::string as_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void Hello::Occasion::pack(std::span<std::byte> bytes) const {
  Packer packer(bytes);
  packer.number(magic);
  packer.number(kept.leader.high);
  packer.number(kept.leader.low);
  packer.number(kept.number);
  packer.number(teams_formed);
  packer.number(hints_digest);
  packer.number(hints_size | static_cast<uint64_t>(lacks) << 32);
}

void Hello::pack(std::span<std::byte> bytes) const {
  std::memset(bytes.data(), 0, packed_size);
  occasion.pack(bytes);
  Packer packer(bytes.subspan(Occasion::packed_size));
  packer.text(version.data(), version.size(), version_room);
  packer.number(self.process.high);
  packer.number(self.process.low);
  packer.text(self.label.data(), self.label.size(), label_room);
  packer.text(self.address.data(), self.address.size(), longest_address);
  packer.number(host);
  packer.number(settings_digest);
  packer.number(settings_size);
  packer.number(static_cast<uint64_t>(enabled) | static_cast<uint64_t>(able) << 1 |
                static_cast<uint64_t>(strict) << 2);
}

bool Hello::unpack(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  if (unpacker.number() != magic) return false;
  occasion.kept.leader.high = unpacker.number();
  occasion.kept.leader.low = unpacker.number();
  occasion.kept.number = static_cast<uint32_t>(unpacker.number());
  occasion.teams_formed = static_cast<uint32_t>(unpacker.number());
  occasion.hints_digest = unpacker.number();
  const uint64_t hints_size = unpacker.number();
  occasion.hints_size = static_cast<uint32_t>(hints_size);
  occasion.lacks = hints_size >> 32 & 1;
  version = as_string(unpacker.text(version_room));
  self.process.high = unpacker.number();
  self.process.low = unpacker.number();
  self.label = as_string(unpacker.text(label_room));
  const auto address = unpacker.text(longest_address);
  self.address.assign(address.begin(), address.end());
  host = unpacker.number();
  settings_digest = unpacker.number();
  settings_size = static_cast<uint32_t>(unpacker.number());
  const uint64_t flags = unpacker.number();
  enabled = flags & 1;
  able = flags & 2;
  strict = flags & 4;
  return true;
}

bool have_kept_the_same(std::span<const std::byte> packed) {
  const auto first = packed.first(kept_at + kept_size);
  if (std::ranges::all_of(first.subspan(kept_at), [](std::byte b) { return b == std::byte{}; })) {
    return false;
  }
  for (; !packed.empty(); packed = packed.subspan(Hello::packed_size)) {
    if (std::memcmp(packed.data(), first.data(), first.size()) != 0) return false;
  }
  return true;
}

std::vector<uint32_t> number_hosts(std::span<const Hello> hellos) {
  std::vector<uint32_t> hosts;
  std::map<uint64_t, uint32_t> numbers;
  for (const Hello& hello : hellos) {
    if (hello.host == 0) return {};
    const auto next = static_cast<uint32_t>(numbers.size());
    hosts.push_back(numbers.emplace(hello.host, next).first->second);
  }
  return hosts;
}

// FNV-1a.
uint64_t digest(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::map<std::string, std::string> values_of(const std::string& text) {
  std::map<std::string, std::string> values;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const size_t equals = std::min(line.find('='), line.size());
    values[line.substr(0, equals)] = line.substr(std::min(equals + 1, line.size()));
    at = end + 1;
  }
  return values;
}

std::string describe_ranks(std::span<const uint32_t> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += (last > i + 1 ? "-" : ", ") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string describe_differences(std::span<const std::string> texts) {
  std::map<std::string, std::map<std::string, std::vector<uint32_t>>> holders;
  for (uint32_t rank = 0; rank < texts.size(); ++rank) {
    for (const auto& [name, value] : values_of(texts[rank])) holders[name][value].push_back(rank);
  }
  std::string text;
  for (const auto& [name, values] : holders) {
    if (values.size() < 2) continue;
    text += text.empty() ? name + " is " : "; " + name + " is ";
    bool first = true;
    for (const auto& [value, ranks] : values) {
      if (!first) text += ", ";
      text += (value.empty() ? "unset" : "'" + value + "'") + " on " + describe_ranks(ranks);
      first = false;
    }
  }
  return text;
}

}  // namespace sluice
