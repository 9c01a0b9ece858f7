// SPDX-License-Identifier: BSD-3-Clause
//
// Shared code of the tests of the TCP transport.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/transports/rig.h"
#include "transports/tcp/address.h"
#include "transports/tcp/socket.h"
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

// During its lifetime, this process may open `left` more descriptors, plus one per give_one().
class FewDescriptors {
 public:
  explicit FewDescriptors(size_t left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const size_t room = left + 1;  // in case no lower number is free
    const rlimit now{static_cast<rlim_t>(*descriptors().rbegin()) + 1 + room, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &now);
    const auto open_one = [] { return Socket(open("/dev/null", O_RDONLY | O_CLOEXEC)); };
    for (Socket one = open_one(); one; one = open_one()) fillers_.push_back(std::move(one));
    for (size_t i = 0; i < left; ++i) give_one();
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  void give_one() {
    ASSERT_FALSE(fillers_.empty());
    fillers_.pop_back();
  }

 private:
  rlimit before_{};
  std::vector<Socket> fillers_;
};

inline IpAddress loopback() {
  IpAddress address;
  parse_ip("127.0.0.1", &address);
  return address;
}

// An address that drops connection attempts, like a firewall: its backlog is full.
class Silent {
 public:
  Silent() : listener_(std::move(*listen_on(loopback(), {}))) {
    EXPECT_EQ(listen(listener_.socket.fd(), 0), 0);
    const SocketAddress to = to_socket_address(loopback(), listener_.port);
    for (int i = 0; i < 4; ++i) {
      fillers_.push_back(std::move(*make_socket(loopback(), {})));
      (void)!connect(fillers_.back().fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.size);
    }
  }
  AddressBlob::Entry entry() const { return {loopback(), 8, listener_.port}; }

 private:
  Listener listener_;
  std::vector<Socket> fillers_;
};

// Both ranks send and receive a message. False if anything fails.
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

// Exchanges until the links between ranks 0 and 1 go by the carrier, which takes a while after they
// began on their socket. False if that never comes.
inline bool exchange_until(Ranks& ranks, const std::string& carrier) {
  for (int i = 0; i < 2000; ++i) {
    const bool there = carrier == ranks.channel(0, 1).carrier();
    if (there && carrier == ranks.channel(1, 0).carrier()) return true;
    if (!exchange(ranks)) return false;
  }
  return false;
}

}  // namespace sluice
