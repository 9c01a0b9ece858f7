// SPDX-License-Identifier: BSD-3-Clause
//
// TLS: the peer's records are what comes, from the first or after a handshake with another filter.
// What is decrypted was encrypted by one who knows the key: nothing else comes out.
#include <array>
#include <vector>

#include "tests/fuzz/targets.h"
#include "tests/unit/transports/tls_rig.h"

namespace sluice::fuzz {
namespace {

FilterMaker& maker() {
  static const auto made = tls_filters();
  return *made;
}

ConduitEnds ends(bool connects) {
  const ProcessId first{0x5150, 100}, second{0x5150, 101};
  ConduitEnds made{connects ? first : second, connects ? second : first, {}, connects};
  made.key.bytes.fill(std::byte{7});
  return made;
}

size_t read_all(Conduit& filter) {
  std::array<std::byte, 4096> bytes;
  const iovec run{bytes.data(), bytes.size()};
  size_t read = 0;
  for (int i = 0; i < 32; ++i) {
    const auto moved = filter.read({&run, 1});
    if (moved.result != Conduit::Moved::Result::some) break;
    read += moved.bytes;
  }
  return read;
}

}  // namespace

void fuzz_tls(std::span<const std::byte> bytes) {
  Input input(bytes);
  const uint8_t how = input.byte();
  const bool connects = (how & 1) != 0, after_handshake = (how & 2) != 0;
  bool ended = false;
  Wire out{{}, 0, Wire::never, Wire::never, &ended}, in = out;
  WireEnd mine(out, in, false, 1), theirs(in, out, false, 2);
  auto filter = maker().make(mine, ends(connects));
  auto peer = maker().make(theirs, ends(!connects));
  must(filter.ok() && peer.ok(), "two filters");
  for (int i = 0; after_handshake && i < 8; ++i) {
    (void)(*filter)->flush();
    (void)(*peer)->flush();
    read_all(**filter);
    read_all(**peer);
  }
  const auto rest = input.rest();
  in.bytes.insert(in.bytes.end(), rest.begin(), rest.end());
  must(read_all(**filter) == 0, "nothing is decrypted that the peer has not sent");
  (void)(*filter)->flush();
  (void)(*filter)->problem();
}

}  // namespace sluice::fuzz
