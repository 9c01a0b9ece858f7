// SPDX-License-Identifier: BSD-3-Clause
//
// What is decoded without a connection: the record of addresses, greetings, and the parts of a
// message that is spread.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "transports/link/frame.h"
#include "transports/link/spread.h"
#include "transports/little_endian.h"
#include "transports/tcp/address.h"
#include "transports/tcp/greeting.h"

namespace sluice::fuzz {

// Twice encoded is once encoded.
void fuzz_address(std::span<const std::byte> input) {
  AddressBlob::public_key_of(input);
  const auto blob = AddressBlob::decode({input.begin(), input.end()});
  if (!blob.ok()) return must(!blob.status().message().empty(), "an error says why");
  const auto bytes = blob->encode();
  must(bytes.size() <= AddressBlob::max_bytes, "a record fits");
  const auto again = AddressBlob::decode(bytes);
  must(again.ok(), "what was encoded can be decoded");
  must(again->key == blob->key && again->host == blob->host && again->proves == blob->proves,
       "the same host and key");
  must(again->encode() == bytes, "the same record");
  const std::vector<Interface> own{{"lo", {4, {127, 0, 0, 1}}, 8},
                                   {"eth0", {4, {10, 0, 0, 7}}, 24}};
  const auto tried = candidates(*blob, 77, own, own);
  must(tried.size() <= blob->entries.size() + 1, "no address is tried that was not published");
}

void fuzz_greeting(std::span<const std::byte> input) {
  Greeting::may_begin(input.data(), input.size());
  std::vector<std::byte> bytes(input.begin(), input.end());
  constexpr size_t head = 16;  // tells the size
  if (bytes.size() < head) return;
  bytes.resize(std::max(bytes.size(), Greeting::size_of(bytes.data())));
  Greeting greeting;
  if (greeting.decode(bytes.data()) && greeting.version == wire_version) {
    std::vector<std::byte> encoded(greeting.size());
    greeting.encode(encoded.data());
    Greeting again;
    must(again.decode(encoded.data()), "what was encoded can be decoded");
    must(again.from == greeting.from && again.to == greeting.to && again.key == greeting.key &&
             again.window == greeting.window && again.proves == greeting.proves,
         "the same greeting");
  }
  bytes.resize(std::max(bytes.size(), Frame::bytes));
  Frame frame;
  if (!frame.decode(bytes.data())) return;
  std::vector<std::byte> encoded(Frame::bytes);
  frame.encode(encoded.data());
  must(Frame().decode(encoded.data()), "what was encoded can be decoded");
}

// The first four bytes are the message's length. What may come may also be sent: rails with so many
// bytes queued as the parts say carry a message.
void fuzz_spread(std::span<const std::byte> input) {
  if (input.size() < 4) return;
  const size_t bytes = load32(input.data());
  const auto payload = input.subspan(4);
  std::vector<Share> parts;
  if (!decode({reinterpret_cast<const char*>(payload.data()), payload.size()}, bytes, &parts)) {
    return;
  }
  must(std::ranges::equal(encode(parts), payload), "the same parts");
  std::vector<Load> loads;
  for (const Share& each : parts) loads.push_back({each.rail, each.bytes});
  const auto encoded = encode(cut(least_spread + bytes, loads));
  const std::string sent(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  const size_t whole = least_spread + bytes;
  must(whole > 0xffffffff || decode(sent, whole, &parts), "the parts of a message");
}

}  // namespace sluice::fuzz
