// SPDX-License-Identifier: BSD-3-Clause
#include "transports/link/vigil.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

using std::chrono::seconds;

constexpr seconds usual_limit{60}, longest_interval{10}, shortest_interval{1};
constexpr int probes_in_limit = 6;
constexpr int most_probes = 127;  // that the kernel allows

Vigil::Duration or_usual(Vigil::Duration limit) {
  return limit > Vigil::Duration(0) ? limit : usual_limit;
}

void set_keepalive(const Socket& socket, int option, int64_t value) {
  const int number = static_cast<int>(value);
  setsockopt(socket.fd(), IPPROTO_TCP, option, &number, sizeof(number));
}

bool ask_kernel(const Socket& socket, tcp_info* info) {
  socklen_t size = sizeof(*info);
  *info = {};
  return getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, info, &size) == 0;
}

// Every second, if the kernel can count so many until the limit is over. Without a limit it gives
// up after the usual one.
void probe_often(const Socket& socket, int sent, Vigil::Duration limit) {
  const int left = std::max(most_probes - sent, 1);
  const bool ends = limit == Vigil::Duration(0);
  const auto time = std::chrono::duration_cast<seconds>(or_usual(limit));
  const auto interval =
      std::clamp(time / left + shortest_interval, shortest_interval, longest_interval);
  set_keepalive(socket, TCP_KEEPINTVL, interval.count());
  set_keepalive(socket, TCP_KEEPCNT,
                ends ? std::min<int64_t>(sent + time / interval, most_probes) : most_probes);
  set_keepalive(socket, TCP_KEEPIDLE, shortest_interval.count());
}

}  // namespace

Vigil::Duration Vigil::silence_at(Clock::time_point now, const Signs& signs, Duration limit) {
  const bool begins = now - looked_ > longest_gap;
  if (begins) since_ = now;
  if (begins || signs.tries < tries_before_) tries_before_ = signs.tries;
  looked_ = now;
  const auto waited = std::chrono::duration_cast<Duration>(now - since_);
  if (begins || signs.silence < waited) is_pardoned_ = false;
  const Duration silence = std::min(signs.silence, waited);
  const bool tried = signs.tries >= least_tries && signs.tries > tries_before_;
  return limit > Duration(0) && silence >= limit && tried ? silence : Duration(0);
}

void Vigil::pardon(Clock::time_point now, const Signs& signs) {
  since_ = now;
  tries_before_ = signs.tries;
  is_pardoned_ = true;
}

// TCP_USER_TIMEOUT is not set: it would also end connections to live peers that merely do not read
// for a while (tcp(7): "buffered data may remain untransmitted").
void keep_alive(const Socket& socket, Vigil::Duration limit) {
  limit = or_usual(limit);
  const auto each = std::chrono::duration_cast<seconds>(limit / probes_in_limit);
  const auto interval = std::clamp(each, shortest_interval, longest_interval);
  const auto probes = std::min<int64_t>((limit + Vigil::time_to_ask) / interval + 1, most_probes);
  set_keepalive(socket, TCP_KEEPINTVL, interval.count());
  set_keepalive(socket, TCP_KEEPCNT, probes);
  set_keepalive(socket, TCP_KEEPIDLE, interval.count());
}

bool Doubt::ask(const Socket& socket, Vigil::Duration limit) {
  const uint64_t before = std::exchange(used_in_, period());
  return used_in_ - before > pause && is_justified(socket, limit);
}

// What keepalive does not probe because data is on its way is sent again by the kernel instead. (To
// set the idle time makes Linux look at once whether it is over.)
bool Doubt::is_justified(const Socket& socket, Vigil::Duration limit) {
  tcp_info info;
  const bool lives = ask_kernel(socket, &info) && info.tcpi_state != TCP_CLOSE;
  const bool unanswered = lives && (info.tcpi_probes > 0 || info.tcpi_retransmits > 0);
  const bool did = std::exchange(lasts_, unanswered);
  if (lasts_) used_in_ = 0;
  if (did && !lasts_) keep_alive(socket, limit);
  if (lasts_ && !did) probe_often(socket, info.tcpi_probes, limit);
  return lasts_;
}

bool ask_kernel(const Socket& socket, Vigil::Signs* signs) {
  tcp_info info;
  if (!ask_kernel(socket, &info)) return false;
  signs->silence = Vigil::Duration(info.tcpi_last_ack_recv);
  signs->tries = static_cast<unsigned>(info.tcpi_retransmits) + info.tcpi_probes;
  return true;
}

}  // namespace sluice
