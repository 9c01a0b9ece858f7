// SPDX-License-Identifier: BSD-3-Clause
//
// Connections that cannot leave this host: stream sockets of unix(7) with abstract names. The name
// is that of a process, so it needs no exchange of its own. The kernel finds it only in its own
// network namespace, and says as which user the other side runs. So two processes connected like
// that are on one host for certain, whatever they say of themselves, and no other user is between
// them. Where settings make a difference between "within a host" and "between hosts"
// (TcpContext::proves_host), only such a connection counts as within a host.
#pragma once

#include <cstdint>

#include "src/base/status.h"
#include "transports/tcp/address.h"
#include "transports/tcp/socket.h"
#include "transports/transport.h"

namespace sluice {

// Where a process listens. port: of its first address (AddressBlob); it tells apart endpoints that
// were given the same id.
SocketAddress local_address(const ProcessId& process, uint16_t port);

// To be connected to such an address.
Result<Socket> make_local_socket(const TcpOptions& options);
Result<Socket> listen_locally(const ProcessId& self, uint16_t port, const TcpOptions& options);

// Whether this is such a socket.
bool is_local(const Socket& socket);

// Whether the process at the other end ran as this process's user when it connected or listened.
// False also where the kernel can't name that user (it belongs to another user namespace).
bool is_of_this_user(const Socket& connected);

}  // namespace sluice
