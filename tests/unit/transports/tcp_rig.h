// SPDX-License-Identifier: BSD-3-Clause
//
// What tests of the TCP transport share.
#pragma once

#include <dirent.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

#include "tests/unit/transports/rig.h"
#include "transports/tcp/address.h"
#include "transports/tcp/tcp.h"

namespace sluice {

inline MakeEndpoint tcp(const TcpOptions& like = {}) {
  return [like](const ProcessId& self) {
    TcpOptions options = like;
    options.self = self;
    auto made = make_tcp_endpoint(options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  };
}

inline std::set<int> descriptors() {
  std::set<int> open;
  DIR* directory = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') open.insert(atoi(entry->d_name));
  }
  open.erase(dirfd(directory));
  closedir(directory);
  return open;
}

// Both send and receive a message. False if anything goes wrong.
inline bool exchange(Ranks& ranks, uint32_t team = 1, size_t bytes = 100) {
  Messages messages;
  add(messages, {1, 0, 0, 0}, bytes).fill().send(ranks.channel(0, 1, team));
  add(messages, {1, 0, 0, 0}, bytes).fill().send(ranks.channel(1, 0, team));
  add(messages, {1, 0, 0, 0}, bytes).receive(ranks.channel(1, 0, team));
  add(messages, {1, 0, 0, 0}, bytes).receive(ranks.channel(0, 1, team));
  bool good = ranks.drive(messages);
  for (auto& message : messages) good &= message->ok() && message->holds_pattern();
  return good;
}

inline AddressBlob address_of(Endpoint& endpoint) {
  auto blob = AddressBlob::decode(endpoint.address());
  EXPECT_TRUE(blob.ok());
  return *blob;
}

}  // namespace sluice
