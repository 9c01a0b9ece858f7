// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/agreement.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "src/engine/late_ranks.h"

namespace sluice {
namespace {

constexpr uint64_t magic = 0x6563'6975'6c53'0005;  // "Sluice", layout 5

constexpr int length_bytes = 2;

// Writes fields one after another. A number takes 8 bytes, a text's length 2, little-endian.
class Packer {
 public:
  explicit Packer(std::span<std::byte> bytes) : bytes_(bytes) {}
  void number(uint64_t value, int bytes = 8) {
    for (int i = 0; i < bytes; ++i) bytes_[at_++] = static_cast<std::byte>(value >> (8 * i));
  }
  void text(const void* data, size_t size, size_t room) {
    size = std::min(size, room);
    number(size, length_bytes);
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
  uint64_t number(int bytes = 8) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(bytes_[at_++]) << (8 * i);
    return value;
  }
  std::span<const std::byte> text(size_t room) {
    const size_t size = std::min<size_t>(number(length_bytes), room);
    const auto found = bytes_.subspan(at_, size);
    at_ += room;
    return found;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

constexpr size_t version_room = 24, label_room = 88;
static_assert(Hello::Volatile::packed_size + 8 * 6 + 3 * length_bytes + version_room + label_room +
                  Hello::longest_address <=
              Hello::packed_size);
constexpr size_t kept_at = 8, kept_size = 24, number_at = 32, verdict_at = 53, devices_at = 54;
constexpr size_t known_at = 56, known_size = 48, offer_at = 104;

std::string as_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr const char* on_host = " on host ";

std::string host_of(const std::string& label) {
  const size_t at = label.find(on_host);
  return at == std::string::npos ? "" : label.substr(at + std::strlen(on_host));
}

}  // namespace

std::string label_process(int pid, const std::string& host) {
  return "pid " + std::to_string(pid) + on_host + host;
}

void Hello::Volatile::pack(std::span<std::byte> bytes) const {
  Packer packer(bytes);
  packer.number(magic);
  packer.number(kept.leader.high);
  packer.number(kept.leader.low);
  packer.number(kept.number);
  packer.number(teams_formed);
  packer.number(hints_digest);
  packer.number(hints_size | static_cast<uint64_t>(lacks) << 32 |
                static_cast<uint64_t>(verdict) << 40 | static_cast<uint64_t>(sees_devices) << 48);
  for (const uint64_t word : {known.leader.high, known.leader.low, uint64_t{known.number},
                              held.maker.high, held.maker.low, held.number}) {
    packer.number(word);
  }
  packer.number(offer.made);
  std::ranges::copy(offer.where, bytes.begin() + offer_at + 8);
}

void Hello::pack(std::span<std::byte> bytes) const {
  std::memset(bytes.data(), 0, packed_size);
  current.pack(bytes);
  Packer packer(bytes.subspan(Volatile::packed_size));
  packer.text(version.data(), version.size(), version_room);
  packer.number(self.process.high);
  packer.number(self.process.low);
  packer.text(self.label.data(), self.label.size(), label_room);
  packer.text(self.address.data(), self.address.size(), longest_address);
  packer.number(host);
  packer.number(settings_digest);
  packer.number(choices_digest);
  packer.number(settings_size | static_cast<uint64_t>(able) << 32 |
                static_cast<uint64_t>(strict) << 33);
}

bool Hello::unpack(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  if (unpacker.number() != magic) return false;
  current.kept.leader.high = unpacker.number();
  current.kept.leader.low = unpacker.number();
  current.kept.number = static_cast<uint32_t>(unpacker.number());
  current.teams_formed = static_cast<uint32_t>(unpacker.number());
  current.hints_digest = unpacker.number();
  const uint64_t hints_size = unpacker.number();
  current.hints_size = static_cast<uint32_t>(hints_size);
  current.lacks = hints_size >> 32 & 1;
  current.verdict = static_cast<Verdict>(hints_size >> 40 & 0xff);
  current.sees_devices = hints_size >> 48 & 1;
  unpacker = Unpacker(bytes.subspan(Volatile::packed_size));
  version = as_string(unpacker.text(version_room));
  self.process.high = unpacker.number();
  self.process.low = unpacker.number();
  self.label = as_string(unpacker.text(label_room));
  self.host = host_of(self.label);
  const auto address = unpacker.text(longest_address);
  self.address.assign(address.begin(), address.end());
  host = unpacker.number();
  settings_digest = unpacker.number();
  choices_digest = unpacker.number();
  const uint64_t flags = unpacker.number();
  settings_size = static_cast<uint32_t>(flags);
  able = flags >> 32 & 1;
  strict = flags >> 33 & 1;
  return true;
}

namespace {

// Whether all hellos have the same `size` bytes at `at`, beginning with a team id that is not zero.
bool name_the_same(std::span<const std::byte> packed, size_t at, size_t size) {
  const auto first = packed.subspan(at, size);
  const auto is_zero = [](std::byte b) { return b == std::byte{}; };
  if (std::ranges::all_of(first.first(kept_size), is_zero)) return false;
  for (; !packed.empty(); packed = packed.subspan(Hello::packed_size)) {
    if (!std::ranges::equal(packed.subspan(at, size), first)) return false;
  }
  return true;
}

}  // namespace

bool have_kept_the_same(std::span<const std::byte> packed) {
  return name_the_same(packed, kept_at, kept_size);
}

bool know_the_same(std::span<const std::byte> packed, uint32_t* number, ArenaOffer* offer) {
  if (!name_the_same(packed, known_at, known_size)) return false;
  *number = static_cast<uint32_t>(Unpacker(packed.subspan(number_at)).number());
  offer->made = packed[offer_at] != std::byte{};
  std::ranges::copy(packed.subspan(offer_at + 8, offer->where.size()), offer->where.begin());
  return true;
}

namespace {

// The ranks whose hellos satisfy `is`.
template <typename Is>
std::vector<uint32_t> find_ranks(std::span<const std::byte> packed, const Is& is) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; !packed.empty(); ++rank) {
    if (is(packed.first(Hello::packed_size))) ranks.push_back(rank);
    packed = packed.subspan(Hello::packed_size);
  }
  return ranks;
}

bool is_of_sluice(std::span<const std::byte> hello) {
  return Unpacker(hello).number() >> 16 == magic >> 16;
}

bool is_of_this_layout(std::span<const std::byte> hello) {
  return Unpacker(hello).number() == magic;
}

bool is_ready(std::span<const std::byte> hello) {
  return static_cast<Verdict>(hello[verdict_at]) == Verdict::ready;
}

}  // namespace

bool any_sees_devices(std::span<const std::byte> packed) {
  return !find_ranks(packed, [](std::span<const std::byte> hello) {
            return is_of_this_layout(hello) && hello[devices_at] != std::byte{};
          }).empty();
}

Status check_hellos(std::span<const std::byte> packed) {
  const auto find = [&](auto is) { return find_ranks(packed, std::not_fn(is)); };
  if (const auto ranks = find(is_of_sluice); !ranks.empty()) {
    return {Code::mismatch,
            describe_ranks(ranks) + " took part without Sluice: " + why_without_sluice};
  }
  if (const auto ranks = find(is_of_this_layout); !ranks.empty()) {
    return {Code::mismatch, describe_ranks(ranks) + " runs an incompatible version of Sluice"};
  }
  if (find(is_ready).empty()) return {};
  std::vector<Verdict> verdicts;
  for (size_t at = 0; at < packed.size(); at += Hello::packed_size) {
    verdicts.push_back(static_cast<Verdict>(packed[at + verdict_at]));
  }
  return judge(verdicts);
}

Status judge(std::span<const Verdict> verdicts) {
  constexpr std::pair<Verdict, const char*> explanations[] = {
      {Verdict::memory, " had no memory to set it up"},
      {Verdict::failed, " saw an earlier call on it fail"},
  };
  for (const auto& [verdict, words] : explanations) {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < verdicts.size(); ++rank) {
      if (verdicts[rank] == verdict) ranks.push_back(rank);
    }
    if (!ranks.empty()) return {Code::aborted, describe_ranks(ranks) + words};
  }
  return {};
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
