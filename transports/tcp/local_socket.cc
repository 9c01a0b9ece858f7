// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "src/base/system_call.h"

namespace sluice {
namespace {

constexpr uid_t nobody = 65534;  // what the kernel says of users that it can't name here

}  // namespace

SocketAddress local_address(const ProcessId& process, uint16_t port) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  char* const name = local.sun_path + 1;  // the zero before it makes it abstract
  const int length =
      std::snprintf(name, sizeof(local.sun_path) - 1, "sluice-%016" PRIx64 "%016" PRIx64 "-%u",
                    process.high, process.low, static_cast<unsigned>(port));
  SocketAddress made;
  made.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path)) + 1 + static_cast<socklen_t>(length);
  std::memcpy(&made.storage, &local, made.size);
  return made;
}

Result<Socket> make_local_socket(const TcpOptions& options) {
  Socket made = open_socket(AF_UNIX);
  if (!made) return system_error("no local socket", made.error());
  if (options.socket_buffer > 0) {
    const int bytes = static_cast<int>(options.socket_buffer);
    setsockopt(made.fd(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  }
  return made;
}

Result<Socket> listen_locally(const ProcessId& self, uint16_t port, const TcpOptions& options) {
  auto made = make_local_socket(options);
  if (!made.ok()) return made;
  const Status listens = listen_at(*made, local_address(self, port), "a local socket");
  if (!listens.ok()) return listens;
  return made;
}

bool is_local(const Socket& socket) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  return getsockopt(socket.fd(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

bool is_of_this_user(const Socket& connected) {
  ucred other{};
  socklen_t size = sizeof(other);
  return getsockopt(connected.fd(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
         other.uid == geteuid() && other.uid != nobody;
}

}  // namespace sluice
