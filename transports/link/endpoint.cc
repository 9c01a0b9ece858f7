// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "transports/link/driver.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/tcp.h"

namespace sluice {
namespace {

constexpr size_t largest_message = size_t{1} << 30;  // lengths and credits have 32 bits in frames
// One socket, and one descriptor that is open only while connecting or mapping an upgrade's memory.
constexpr size_t descriptors_to_connect = 2;
// With smaller buffers the kernel may never have a window to advertise.
constexpr size_t smallest_buffer = size_t{4} << 10;
// With SLUICE_TCP_STREAMS=auto. (Where each flow had a fifth of the link, 6 were better than 8.)
constexpr unsigned tried_streams = 6;
// Of a message that a network card may read: the short rest of one is sooner copied.
constexpr size_t least_segment_to_get = size_t{64} << 10;

class TcpChannel : public Channel {
 public:
  TcpChannel(std::shared_ptr<Driver> driver, const Driver::Route& route)
      : driver_(std::move(driver)), route_(route) {}
  ~TcpChannel() override { driver_->close(route_); }

  bool post_send(Operation* operation) override { return driver_->post_send(route_, operation); }
  bool post_recv(Operation* operation) override { return driver_->post_recv(route_, operation); }
  void withdraw() override { driver_->withdraw(route_); }
  void abort(const std::string& cause) override { driver_->abort(route_, cause); }
  Status aborted_by_peer() override { return driver_->aborted_by_peer(route_); }
  Status failure() override { return driver_->failure(route_); }
  const char* carrier() const override { return driver_->carrier(route_); }
  bool abort_sent() const override { return driver_->abort_sent(route_); }

 private:
  const std::shared_ptr<Driver> driver_;
  const Driver::Route route_;
};

// The peers of a team, which may connect as long as this lives.
class Met {
 public:
  Met(const std::shared_ptr<Driver>& driver, std::span<const Peer> peers) : driver_(driver) {
    processes_.reserve(peers.size());
    try {
      driver->expect(peers, &processes_);
    } catch (const std::bad_alloc&) {
      driver->part(processes_);
      throw;
    }
  }
  ~Met() {
    if (const auto driver = driver_.lock()) driver->part(processes_);
  }
  Met(const Met&) = delete;
  Met& operator=(const Met&) = delete;

 private:
  const std::weak_ptr<Driver> driver_;
  std::vector<ProcessId> processes_;
};

class TcpEndpoint : public Endpoint {
 public:
  explicit TcpEndpoint(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {}
  ~TcpEndpoint() override { driver_->close_all(); }

  const char* name() const override { return "tcp"; }
  Caps caps() const override { return {driver_->options().max_message}; }
  Traffic traffic() const override { return driver_->traffic(); }
  std::vector<std::byte> address() const override { return driver_->address(); }
  std::shared_ptr<const void> expect(std::span<const Peer> peers) override {
    return std::make_shared<const Met>(driver_, peers);
  }

  Result<std::unique_ptr<Channel>> open(const TeamId& team, const Peer& peer) override {
    const auto route = driver_->open(team, peer);
    if (!route.ok()) return route.status();
    return std::unique_ptr<Channel>(std::make_unique<TcpChannel>(driver_, *route));
  }

  bool has_met(const ProcessId& process) override { return driver_->has_met(process); }
  bool can_connect() override { return has_descriptors(descriptors_to_connect); }
  bool progress() override { return driver_->progress(); }
  void wait(std::chrono::microseconds limit) override { driver_->wait(limit); }
  void say_bye() override { driver_->say_bye(); }

 private:
  const std::shared_ptr<Driver> driver_;
};

}  // namespace

TcpOptions TcpOptions::of(const Knobs& knobs) {
  TcpOptions options;
  options.interfaces = knobs.interfaces;
  options.family = knobs.address_family;
  (void)parse_ports(knobs.ports, &options.ports);  // zeros if it is empty
  options.window = knobs.window;
  options.max_message = 4 * knobs.segment;  // the engine's longest segment
  options.get_least = std::min({knobs.get_least, knobs.verbs_get_least, least_segment_to_get});
  options.tries_streams = knobs.streams == "auto";
  options.streams = options.tries_streams
                        ? tried_streams
                        : static_cast<unsigned>(std::strtoul(knobs.streams.c_str(), nullptr, 10));
  options.socket_buffer = knobs.socket_buffer;
  options.congestion = knobs.congestion;
  options.connect_timeout = std::chrono::milliseconds(std::lround(knobs.connect_timeout * 1000));
  options.peer_timeout = std::chrono::milliseconds(std::lround(knobs.peer_timeout * 1000));
  return options;
}

Result<std::unique_ptr<Endpoint>> make_tcp_endpoint(const TcpOptions& options) {
  if (options.max_message > largest_message || options.window > largest_message) {
    return Status(Code::invalid, "a TCP window or message over 1 GiB");
  }
  if (options.socket_buffer > 0 && options.socket_buffer < smallest_buffer) {
    return Status(Code::invalid, "a TCP socket buffer under 4 KiB");
  }
  if (options.filter && !options.prover) {
    return Status(Code::invalid, "a filter of connections without a prover");
  }
  auto driver = std::make_shared<Driver>(options);
  const Status started = driver->start();
  if (!started.ok()) return started;
  return std::unique_ptr<Endpoint>(std::make_unique<TcpEndpoint>(std::move(driver)));
}

}  // namespace sluice
