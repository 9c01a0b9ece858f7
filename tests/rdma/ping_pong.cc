// SPDX-License-Identifier: BSD-3-Clause
//
// How long a message takes one way over a link alone, without MPI and collectives: two processes of
// this host send it to and fro, and half of the median round trip is printed in microseconds.
//   ping_pong --carrier verbs --modules BUILD/.libs [--bytes 8] [--iterations 1000] [--nap 50]
//             [--get]
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transports/shm/upgrade.h"
#include "transports/tcp/tcp.h"
#include "transports/verbs/device.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::string carrier = "verbs";  // or "tcp", "shm"
  std::string modules = ".";      // the folder of libsluice-verbs.so
  size_t bytes = 8;
  int iterations = 1000;
  int warm_up = 500;  // messages before these, in which the link leaves its socket
  bool gets = false;  // messages are read from the sender's memory
  int nap = -1;       // microseconds, at most, that a process sleeps at a time; negative: it spins
};

[[noreturn]] void end(const std::string& why) {
  fprintf(stderr, "ping_pong: %s\n", why.c_str());
  _exit(1);
}

template <typename T>
T take(Result<T> result) {
  if (!result.ok()) end(result.status().message());
  return std::move(*result);
}

std::vector<std::shared_ptr<UpgradeMaker>> upgrades_of(const Settings& settings) {
  if (settings.carrier == "shm") return {make_shm_upgrades()};
  if (settings.carrier != "verbs") return {};
  const SluiceVerbs* const table = take(open_verbs_module(settings.modules));
  VerbsOptions options;
  options.local = true;
  options.table = table;
  if (settings.gets) options.get_least = 4096;
  return {make_verbs_upgrades(options)};
}

class Player {
 public:
  // pipe: to the other player.
  Player(size_t rank, int pipe, const Settings& settings)
      : settings_(settings), memory_(std::max<size_t>(settings.bytes, 1)) {
    TcpOptions options;
    options.self = {1, rank};
    options.max_message = size_t{4} << 20;
    if (settings.gets) options.get_least = 4096;
    options.upgrades = upgrades_of(settings);
    endpoint_ = take(make_tcp_endpoint(options));
    Peer peer{{1, 1 - rank}, endpoint_->address(), "the other"};
    say(pipe, peer.address);
    hear(pipe, &peer.address);
    channel_ = take(endpoint_->open(TeamId{{1, 0}, 1}, peer));
  }

  void send() { move(true); }
  void receive() { move(false); }
  std::string traffic() const {
    const Traffic sent = endpoint_->traffic();
    return std::to_string(sent.got) + " bytes, inline " + std::to_string(sent.inlined);
  }
  std::string carrier() const { return channel_->carrier(); }

 private:
  // (Addresses are at most 186 bytes.)
  static void say(int pipe, const std::vector<std::byte>& address) {
    const auto size = static_cast<uint8_t>(address.size());
    if (write(pipe, &size, 1) != 1 || write(pipe, address.data(), size) != size) end("no peer");
  }
  static void hear(int pipe, std::vector<std::byte>* address) {
    uint8_t size = 0;
    if (::read(pipe, &size, 1) != 1) end("no peer");
    address->resize(size);
    if (::read(pipe, address->data(), size) != size) end("no peer");
  }

  void move(bool sends) {
    Operation operation;
    const Bytes piece{memory_.data(), settings_.bytes};
    operation.tag.call = calls_++;
    operation.pieces = {&piece, 1};
    operation.bytes = settings_.bytes;
    operation.queue = &queue_;
    operation.within = {&piece, 1};
    operation.registrations = &registrations_;
    bool done = sends ? channel_->post_send(&operation) : channel_->post_recv(&operation);
    while (!done) {
      if (!endpoint_->progress() && settings_.nap >= 0) {
        endpoint_->wait(std::chrono::microseconds(settings_.nap));
      }
      done = queue_.pop_all() != nullptr;
    }
    if (!operation.status.ok()) end(operation.status.message());
    if (settings_.gets) registrations_.clear();  // as at the end of a call
  }

  const Settings& settings_;
  std::vector<std::byte> memory_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Channel> channel_;
  CompletionQueue queue_;
  Registrations registrations_;
  uint32_t calls_ = 0;
};

void exchange(Player& player, bool first) {
  first ? player.send() : player.receive();
  first ? player.receive() : player.send();
}

void play(Player& player, bool first, const Settings& settings) {
  for (int i = 0; i < settings.warm_up; ++i) exchange(player, first);
  if (player.carrier() != settings.carrier) end("the link goes by " + player.carrier());
  std::vector<double> times;  // of round trips
  for (int i = 0; i < settings.iterations; ++i) {
    const auto begin = Clock::now();
    exchange(player, first);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::ranges::sort(times);
  if (first && settings.gets) fprintf(stderr, "got: %s\n", player.traffic().c_str());
  if (first) printf("%zu %.2f\n", settings.bytes, times[times.size() / 2] / 2);
}

Settings parse(int argc, char** argv) {
  Settings settings;
  CLI::App app("Half of a round trip over a link, in microseconds.");
  app.add_option("--carrier", settings.carrier)->check(CLI::IsMember({"verbs", "tcp", "shm"}));
  app.add_option("--modules", settings.modules, "the folder of libsluice-verbs.so");
  app.add_option("--bytes", settings.bytes);
  app.add_option("--iterations", settings.iterations)->check(CLI::PositiveNumber);
  app.add_option("--warm-up", settings.warm_up, "messages before these");
  app.add_flag("--get", settings.gets, "have long messages read from the sender's memory");
  app.add_option("--nap", settings.nap, "microseconds to sleep at a time; negative: spin");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit(app.exit(error));
  }
  return settings;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  const sluice::Settings settings = sluice::parse(argc, argv);
  int pipes[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pipes) != 0) return 1;
  const pid_t child = fork();
  const bool first = child != 0;
  {
    sluice::Player player(first ? 0 : 1, pipes[first ? 0 : 1], settings);
    sluice::play(player, first, settings);
  }
  if (!first) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
