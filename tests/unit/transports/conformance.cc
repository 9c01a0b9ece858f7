// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/transports/conformance.h"

#include <algorithm>

#include "tests/unit/loopback/loopback.h"
#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/slow_filter.h"
#include "tests/unit/transports/tcp_rig.h"
#include "tests/unit/transports/tls_rig.h"
#include "transports/shm/upgrade.h"
#include "transports/verbs/upgrade.h"

namespace sluice::conformance {
namespace {

MakeEndpoint loopback(size_t window, uint64_t seed) {
  LoopbackOptions options;
  options.window = window;
  options.max_message = max_message;
  options.seed = seed;
  auto hub = std::make_shared<LoopbackHub>(options);
  return [hub](const ProcessId& self) { return hub->endpoint(self); };
}

MakeEndpoint tcp_with(size_t window, TcpOptions options = {}) {
  options.window = window;
  options.max_message = max_message;
  return tcp(options);
}

// Small socket buffers: frames are cut at any byte.
MakeEndpoint tcp_tight() {
  TcpOptions options;
  options.socket_buffer = 4096;
  return tcp_with(256 * kib, options);
}

// Links are upgraded to shared memory as soon as possible.
MakeEndpoint shm_with(size_t window, TcpOptions options = {}) {
  options.upgrades = {make_shm_upgrades()};
  return tcp_with(window, options);
}

// The same, and every message is got from the sender's memory.
MakeEndpoint shm_get(size_t window, size_t buffer = 0) {
  TcpOptions options;
  options.get_least = 1;
  options.socket_buffer = buffer;
  return shm_with(window, options);
}

MakeEndpoint shm_tight() {
  TcpOptions options;
  options.socket_buffer = 4096;
  return shm_with(256 * kib, options);
}

// Connections begin with proofs.
MakeEndpoint proved(bool upgrades) {
  TcpOptions options;
  options.prover = std::make_shared<PlainProver>();
  return upgrades ? shm_with(256 * kib, options) : tcp_with(256 * kib, options);
}

// Everything passes a filter, and links are upgraded through it or stay in it.
MakeEndpoint filtered(size_t window, uint64_t seed, bool upgrades) {
  TcpOptions options;
  options.filter = std::make_shared<SlowFilters>(seed);
  options.prover = std::make_shared<PlainProver>();
  return upgrades ? shm_with(window, options) : tcp_with(window, options);
}

MakeEndpoint encrypted(size_t window, bool upgrades, size_t buffer = 0) {
  TcpOptions options;
  options.filter = tls_filters();
  options.prover = tls_prover();
  options.socket_buffer = buffer;
  return upgrades ? shm_with(window, options) : tcp_with(window, options);
}

// Links are upgraded to queue pairs of a network that is late.
MakeEndpoint verbs_with(size_t window, uint64_t seed, size_t ring,
                        size_t get_least = VerbsOptions::never) {
  fake_verbs::Settings settings;
  settings.seed = seed;
  fake_verbs::reset(settings);
  VerbsOptions verbs;
  verbs.local = true;
  verbs.ring = ring;
  verbs.get_least = get_least;
  verbs.table = &fake_verbs::table();
  return [=](const ProcessId& self) {
    TcpOptions options;
    options.get_least = get_least;
    options.upgrades = {make_verbs_upgrades(verbs)};
    return tcp_with(window, options)(self);
  };
}

const Mode modes[] = {
    {"loopback", 256 * kib, [](uint64_t) { return loopback(256 * kib, 0); }},
    {"loopback_small_window", small_window, [](uint64_t) { return loopback(small_window, 0); }},
    {"loopback_rendezvous", 0, [](uint64_t) { return loopback(0, 0); }},
    {"loopback_late", 256 * kib, [](uint64_t seed) { return loopback(256 * kib, seed); }},
    {"loopback_late_rendezvous", 0, [](uint64_t seed) { return loopback(0, seed); }},
    {"tcp", 256 * kib, [](uint64_t) { return tcp_with(256 * kib); }},
    {"tcp_small_window", small_window, [](uint64_t) { return tcp_with(small_window); }},
    {"tcp_no_window", 0, [](uint64_t) { return tcp_with(0); }},
    {"tcp_tight", 256 * kib, [](uint64_t) { return tcp_tight(); }},
    {"shm", 256 * kib, [](uint64_t) { return shm_with(256 * kib); }},
    {"shm_small_window", small_window, [](uint64_t) { return shm_with(small_window); }},
    {"shm_no_window", 0, [](uint64_t) { return shm_with(0); }},
    {"shm_tight", 256 * kib, [](uint64_t) { return shm_tight(); }},
    {"shm_get", 256 * kib, [](uint64_t) { return shm_get(256 * kib); }},
    {"shm_get_no_window", 0, [](uint64_t) { return shm_get(0); }},
    {"shm_get_tight", 256 * kib, [](uint64_t) { return shm_get(256 * kib, 4096); }},
    {"verbs", 256 * kib, [](uint64_t seed) { return verbs_with(256 * kib, seed, 64 * kib); }},
    {"verbs_tight", 256 * kib, [](uint64_t seed) { return verbs_with(256 * kib, seed, 512); }},
    {"verbs_no_window", 0, [](uint64_t seed) { return verbs_with(0, seed, 16 * kib); }},
    {"verbs_get", 256 * kib,
     [](uint64_t seed) { return verbs_with(256 * kib, seed, 64 * kib, 1); }},
    {"verbs_get_no_window", 0, [](uint64_t seed) { return verbs_with(0, seed, 512, 1); }},
    {"proofs", 256 * kib, [](uint64_t) { return proved(false); }},
    {"proofs_shm", 256 * kib, [](uint64_t) { return proved(true); }},
    {"filter", 256 * kib, [](uint64_t seed) { return filtered(256 * kib, seed, false); }},
    {"filter_no_window", 0, [](uint64_t seed) { return filtered(0, seed, false); }},
    {"filter_shm", 256 * kib, [](uint64_t seed) { return filtered(256 * kib, seed, true); }},
    {"tls", 256 * kib, [](uint64_t) { return encrypted(256 * kib, false); }},
    {"tls_no_window", 0, [](uint64_t) { return encrypted(0, false); }},
    {"tls_tight", 256 * kib, [](uint64_t) { return encrypted(256 * kib, false, 4096); }},
    {"tls_shm", 256 * kib, [](uint64_t) { return encrypted(256 * kib, true); }},
};

}  // namespace

std::vector<Mode> possible_modes() {
  std::vector<Mode> possible(std::begin(modes), std::end(modes));
  if (describe_tls(tls_options().folder).ok()) return possible;
  std::erase_if(possible,
                [](const Mode& mode) { return std::string(mode.name).starts_with("tls"); });
  return possible;
}

}  // namespace sluice::conformance
