// SPDX-License-Identifier: BSD-3-Clause
//
// Preloaded, makes the network look like a cloud's: each TCP connection sends at most FLOW_CAP
// bytes a second (the kernel paces it; nothing else is needed for TCP). With FLOW_CAP_TELL, it
// says at a connection's end, perhaps twice, how many bytes it has sent and received:
//
//   flow 10.77.0.1:50001 10.77.0.2:41234 sent 3145728 received 72
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

// (Connections that are accepted get it from their listener.)
int socket(int domain, int type, int protocol) {
  int (*const real)(int, int, int) = dlsym(RTLD_NEXT, "socket");
  const int made = real(domain, type, protocol);
  const char* const cap = getenv("FLOW_CAP");
  const unsigned rate = cap == NULL ? 0 : (unsigned)strtoul(cap, NULL, 10);
  const int is_ip = domain == AF_INET || domain == AF_INET6;
  if (made >= 0 && is_ip && rate > 0) {
    setsockopt(made, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
  }
  return made;
}

static void tell(int socket) {
  struct tcp_info info;
  struct sockaddr_in here, there;
  socklen_t size = sizeof(info), here_size = sizeof(here), there_size = sizeof(there);
  char from[INET_ADDRSTRLEN], to[INET_ADDRSTRLEN];
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      getsockname(socket, (struct sockaddr*)&here, &here_size) != 0 ||
      getpeername(socket, (struct sockaddr*)&there, &there_size) != 0 ||
      here.sin_family != AF_INET) {
    return;
  }
  inet_ntop(AF_INET, &here.sin_addr, from, sizeof(from));
  inet_ntop(AF_INET, &there.sin_addr, to, sizeof(to));
  const unsigned long long sent = info.tcpi_bytes_sent, received = info.tcpi_bytes_received;
  dprintf(STDOUT_FILENO, "flow %s:%d %s:%d sent %llu received %llu\n", from, ntohs(here.sin_port),
          to, ntohs(there.sin_port), sent, received);
}

int shutdown(int socket, int how) {
  int (*const real)(int, int) = dlsym(RTLD_NEXT, "shutdown");
  if (getenv("FLOW_CAP_TELL") != NULL) tell(socket);
  return real(socket, how);
}

int close(int descriptor) {
  int (*const real)(int) = dlsym(RTLD_NEXT, "close");
  if (getenv("FLOW_CAP_TELL") != NULL) tell(descriptor);
  return real(descriptor);
}
