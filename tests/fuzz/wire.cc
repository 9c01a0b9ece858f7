// SPDX-License-Identifier: BSD-3-Clause
//
// What is decoded without a connection: the record of addresses, and greetings.
#include <algorithm>
#include <vector>

#include "tests/fuzz/targets.h"
#include "transports/link/frame.h"
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

}  // namespace sluice::fuzz
