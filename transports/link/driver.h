// SPDX-License-Identifier: BSD-3-Clause
//
// Drives all links of a process: one lock, one list of links with something to do, one place to
// sleep. The endpoint and its channels share ownership, so they may be deleted in any order.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "transports/link/link.h"
#include "transports/link/link_shared.h"
#include "transports/tcp/acceptor.h"
#include "transports/tcp/peer_keys.h"
#include "transports/transport.h"

namespace sluice {

class Driver {
 public:
  explicit Driver(const TcpOptions& options);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  Status start();
  const TcpOptions& options() const { return shared_.options; }
  std::vector<std::byte> address() const;
  Traffic traffic();
  // *met: those that have been added, with room for all.
  void expect(std::span<const Peer> peers, std::vector<ProcessId>* met);
  void part(std::span<const ProcessId> met) noexcept;

  struct Route {  // what a channel refers to
    Link* link;
    Stream* stream;
  };
  Result<Route> open(const TeamId& team, const Peer& peer);
  bool has_met(const ProcessId& process);
  void close(const Route& route);

  // Each returns true if the operation is done.
  bool post_send(const Route& route, Operation* operation);
  bool post_recv(const Route& route, Operation* operation);
  void withdraw(const Route& route);
  void abort(const Route& route, const std::string& cause);
  bool abort_sent(const Route& route);
  Status aborted_by_peer(const Route& route);
  Status failure(const Route& route);
  const char* carrier(const Route& route);

  bool progress();
  void wait(std::chrono::microseconds limit);
  void say_bye();
  // Sends BYE, waits until the peers' kernels have all data, or the peers have said BYE, but no
  // longer than TcpOptions::linger, and closes all links.
  void close_all();

 private:
  class Section;
  using Clock = std::chrono::steady_clock;

  void note_unmatched_items() const;
  bool drive_all();
  bool drive_ready();
  bool admit();
  bool all_flushed();
  Acceptor::Greeter find_greeter(const ProcessId& process, bool invites) const;
  void check_links(Clock::time_point now);
  void check_ends(Clock::time_point now);
  bool anything_awaited() const;
  bool may_sleep();
  void stop_sleeping(const Link::Polled& polled);
  // Returns how many of them are sockets of links: these come first.
  size_t collect_polls(std::vector<pollfd>& polls);
  Link& link(const ProcessId& process);
  bool missed_anything() const;
  void remember();
  Status open_pipe();
  void wake();

  LinkShared shared_;
  PeerKeys peer_keys_;
  Acceptor acceptor_;
  std::map<ProcessId, std::unique_ptr<Link>> links_;
  std::vector<pollfd> polls_;  // these two are kept between calls to save allocations
  std::vector<int> beside_;
  std::vector<Link*> asked_;  // the same; the links that polls_ is about
  uint32_t turns_ = 0;
  Clock::time_point looked_after_{}, looked_for_ends_{};

  // Threads that sleep in wait().
  std::mutex lock_;
  Descriptor wakeup_, waker_;  // a pipe: readable while woken_
  int sleepers_ = 0;
  bool woken_ = false;  // and some sleepers have not left yet
};

}  // namespace sluice
