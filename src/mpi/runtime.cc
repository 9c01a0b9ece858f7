// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "sluice/sluice.h"
#include "src/base/log.h"
#include "src/base/random.h"
#include "src/engine/agreement.h"
#include "src/engine/rules.h"
#include "src/memory/devices.h"
#include "src/mpi/error_probe.h"
#include "src/mpi/thread_state.h"
#include "transports/shm/shm.h"
#include "transports/shm/upgrade.h"
#include "transports/tcp/tcp.h"
#include "transports/tls/tls.h"
#include "transports/verbs/device.h"
#include "transports/verbs/upgrade.h"

namespace sluice {

constinit std::atomic<bool> all_pass{false};

bool pass_all() {
  errands.fetch_or(errand_pass, std::memory_order_relaxed);
  return all_pass.exchange(true);
}

// (Never destroyed, like the runtime.)
const SettingSources& setting_sources() {
  static const SettingSources* const sources = new SettingSources(
      find_settings(getenv, SLUICE_SYSCONFDIR "/sluice.conf", is_privileged_process()));
  return *sources;
}

// Where the variable says off, no file is read. Without memory, the next call tries again.
bool is_switched_off() {
  try {
    static const bool off =
        is_switched_off(Environment(getenv)) || is_switched_off(setting_sources());
    if (off) pass_all();
    return off;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

namespace {

constinit std::atomic<Runtime*> made_runtime{nullptr};

Level parse_level(const std::string& text) {
  if (text == "error") return Level::error;
  if (text == "info") return Level::info;
  if (text == "debug") return Level::debug;
  return Level::warning;
}

// Without random numbers no team is set up, but the other ranks still read this id: it must differ
// from theirs and from none.
Status draw_id(ProcessId* id) {
  const Status drawn = draw_random(id, sizeof *id);
  if (drawn.ok()) return drawn;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  *id = {static_cast<uint64_t>(now.count()), static_cast<uint64_t>(getpid())};
  return drawn;
}

// In the order in which links try them.
std::vector<std::shared_ptr<UpgradeMaker>> upgrades_of(const Knobs& knobs) {
  std::vector<std::shared_ptr<UpgradeMaker>> makers{
      make_shm_upgrades(knobs.single_copy, knobs.get_least)};
  makers.insert(knobs.verbs_local ? makers.begin() : makers.end(),
                make_verbs_upgrades({.ring = knobs.verbs_ring,
                                     .devices = knobs.verbs_devices,
                                     .local = knobs.verbs_local,
                                     .get_least = knobs.verbs_get_least,
                                     .pairs = static_cast<size_t>(knobs.verbs_pairs),
                                     .pinned = knobs.verbs_pinned,
                                     .demanded = knobs.transport == "verbs"}));
  return makers;
}

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

TlsOptions tls_options(const Knobs& knobs) {
  TlsOptions options{.local = knobs.tls_local};
  if (knobs.tls == "x509") {
    options.certificates =
        TlsCertificates{knobs.tls_cert, knobs.tls_key, knobs.tls_ca, knobs.tls_crl, host_name()};
  }
  return options;
}

}  // namespace

Runtime& Runtime::get() {
  static Runtime* const runtime = new Runtime;
  return *runtime;
}

Runtime* Runtime::get_if_made() { return made_runtime.load(std::memory_order_acquire); }

Runtime::Runtime() {
  note_threads();
  real().Comm_rank(real().comm_world, &world_rank_);
  set_log_prefix("rank " + std::to_string(world_rank_));
  if (Status drawn = draw_id(&process_.id); !drawn.ok()) process_.unable = drawn.message();
  process_.label = label_process(getpid(), host_name());
  process_.version = SLUICE_VERSION;
  process_.settings = agreed_settings(setting_sources()) + "built-in rules=file with digest " +
                      std::to_string(digest(std::string(builtin_rules()))) + "\n" +
                      "progress of non-blocking calls=" + to_string(pending_.way()) + "\n";
  if (world_rank_ == 0) warn_of_settings();
  failure_ = located(configure(), setting_sources());
  if (failure_.ok()) read_choices();
  // (What is above decides whether a file of choices fits.)
  process_.settings +=
      "SLUICE_STATS naming a file=" + std::string(process_.knobs.counts_in_file() ? "yes" : "no") +
      "\n";
  if (!failure_.ok()) {
    log(Level::error, "%s", failure_.message().c_str());
    process_.knobs.on_mismatch = "abort";
  }
  if (progress_.start()) process_.progress_mpi = [this] { progress_mpi(); };
  made_runtime.store(this, std::memory_order_release);
}

// (Where MPI has a hook, it drives the calls in flight, too.)
void Runtime::progress_mpi() {
  progress_.progress_mpi();
  if (pending_.any() && pending_.way() == ProgressWay::thread) pending_.drive();
}

// Rank 0 warns for all: most of the others would say the same.
void Runtime::warn_of_settings() const {
  const auto warn = [](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) log(Level::warning, "%s", line.c_str());
  };
  warn(unknown_knobs(environ));
  warn(unknown_knobs(setting_sources().files));
  warn(setting_sources().unused);
}

Status Runtime::configure() {
  if (Status status = read_knobs(setting_sources(), &process_.knobs); !status.ok()) return status;
  if (Status status = check_verbs_devices(process_.knobs.verbs_devices); !status.ok())
    return status;
  set_log_level(parse_level(process_.knobs.log));
  for (const std::string& line : setting_sources().unused) {
    if (world_rank_ != 0) log(Level::info, "%s", line.c_str());
  }
  auto selector = Selector::make(process_.knobs);
  if (!selector.ok()) return selector.status();
  process_.selector = std::move(*selector);
  auto delay = Delay::parse(process_.knobs.delay);
  if (!delay.ok()) return delay.status();
  process_.delay = std::move(*delay);
  begin_devices(process_.knobs, threads_call_mpi);
  process_.host = shm_host();
  process_.sees_devices = has_driver;
  process_.locate = [this](bool domains) { return locator_.find(domains); };
  const bool encrypts = process_.knobs.tls != "off";
  if (encrypts) process_.knobs.on_mismatch = "abort";
  if (encrypts && !process_.unable.empty()) {
    return without_tls({Code::unavailable, process_.unable});
  }
  if (!process_.unable.empty()) return {};
  if (process_.knobs.transport != "tcp" && !process_.knobs.verbs_local) {
    process_.arenas = make_shm_source(process_.id, process_.knobs.shm_memory);
  }
  return open_endpoint();
}

// MPI would send in clear, so this is an error of the settings.
Status Runtime::without_tls(const Status& why) const {
  return {Code::invalid, "SLUICE_TLS=" + process_.knobs.tls + " cannot be had for " +
                             process_.label + ": " + why.message()};
}

Status Runtime::open_endpoint() {
  const Knobs& knobs = process_.knobs;
  TcpOptions options = TcpOptions::of(knobs);
  options.self = process_.id;
  options.host = host_name();
  auto prover = make_tls_prover();
  if (prover.ok()) {
    options.prover = std::move(*prover);
  } else {
    log(Level::info, "connections show their key in clear: %s", prover.status().message().c_str());
  }
  if (knobs.tls != "off") {
    auto filters = make_tls_filters(tls_options(knobs));
    if (!filters.ok()) return without_tls(filters.status());
    options.filter = std::move(*filters);
    if (!prover.ok()) return without_tls(prover.status());
  }
  if (prover.status().code() == Code::memory) {
    process_.unable = prover.status().message();
    return {};
  }
  if (knobs.transport != "tcp") options.upgrades = upgrades_of(knobs);
  options.needs_upgrade = knobs.transport == "verbs";
  auto endpoint = make_tcp_endpoint(options);
  if (endpoint.ok()) {
    process_.endpoint = std::move(*endpoint);
    return {};
  }
  if (endpoint.status().code() == Code::invalid) return endpoint.status();
  if (knobs.tls != "off") return without_tls(endpoint.status());
  process_.unable = endpoint.status().message();
  return {};
}

void Runtime::close() {
  process_.team_cache.clear();
  write_choices();
  report_statistics();
  device_slabs_.close();
  end_devices();
  progress_.end();
  end_probes();
  if (process_.endpoint) process_.endpoint->say_bye();
}

void Runtime::report_statistics() try {
  if (process_.knobs.stats == "on" && world_rank_ == 0) print_statistics();
  statistics_report_.write_of_job(world_rank_);
} catch (const std::bad_alloc&) {
  log(Level::warning, "no memory for statistics");
}

// With encryption or deadlines MPI gets no call by the file, as by trials (trials.h). A world that
// another has spawned leaves the file to that one.
void Runtime::read_choices() {
  const Knobs& knobs = process_.knobs;
  if (knobs.choice_file.empty() || knobs.choice == "rules" || knobs.tls != "off" ||
      knobs.timeout > 0)
    return;
  int ranks = 0;
  real().Comm_size(real().comm_world, &ranks);
  MPI_Comm parent = real().comm_null;
  real().Comm_get_parent(&parent);
  writes_choices_ = world_rank_ == 0 && parent == real().comm_null;
  Status status;
  const auto file = process_.outcomes.read(
      knobs.choice_file, {process_.version, ranks, digest(process_.settings), library_version()},
      &status);
  if (status.ok() || world_rank_ != 0) return;
  const bool is_used = file == Outcomes::File::used;
  log(is_used || file == Outcomes::File::other ? Level::info : Level::warning,
      "SLUICE_CHOICE_FILE%s: %s", is_used ? "" : " is not used", status.message().c_str());
}

void Runtime::write_choices() {
  if (!writes_choices_) return;
  const Status status = process_.outcomes.write();
  if (!status.ok()) log(Level::warning, "SLUICE_CHOICE_FILE: %s", status.message().c_str());
}

std::string Runtime::links_report() const {
  const Traffic sent = process_.endpoint ? process_.endpoint->traffic() : Traffic{};
  if (sent.inlined + sent.spread + sent.got == 0) return {};
  return "sent over links " + format_size(sent.inlined) +
         " bytes, spread over several connections " + format_size(sent.spread) +
         ", copied by receivers from this rank's memory " + format_size(sent.got) + "\n";
}

void Runtime::print_statistics() {
  set_log_level(std::max(Level::info, parse_level(process_.knobs.log)));
  std::string table = process_.statistics.table(std::chrono::steady_clock::now() - made_at_);
  if (table.empty()) return;
  if (const DeviceTraffic traffic = device_traffic(); traffic.from + traffic.to > 0) {
    table += "bytes copied from CUDA devices " + std::to_string(traffic.from) + ", to them " +
             std::to_string(traffic.to) + "\n";
  }
  table += links_report();
  table += process_.outcomes.report();
  std::fflush(stdout);  // the program may have printed a part of a line
  log_lines(Level::info, table);
}

}  // namespace sluice
