// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/info.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "collectives/algorithm.h"
#include "src/base/file.h"
#include "src/base/knobs.h"
#include "src/engine/rules.h"
#include "src/host/locality.h"
#include "src/tool/build.h"
#include "src/tool/cuda.h"
#include "src/tool/preload.h"
#include "src/tool/text.h"
#include "transports/tls/tls.h"
#include "transports/verbs/device.h"
#include "transports/verbs/program_memory.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

std::vector<std::string> needs_of(const Algorithm& algorithm) {
  std::vector<std::string> needs;
  if (algorithm.needs.power_of_two) needs.emplace_back("ranks a power of two");
  if (algorithm.needs.commutative) needs.emplace_back("commutative op");
  if (algorithm.needs.uniform) needs.emplace_back("equal blocks");
  if (algorithm.needs.hosts) needs.emplace_back("several hosts, of several ranks");
  if (algorithm.means() == Means::shared_memory) needs.emplace_back("shared memory");
  if (algorithm.needs.groups) needs.emplace_back("several groups");
  if (algorithm.needs.cma) needs.emplace_back("ranks that may read each other");
  return needs;
}

// The numbers of ranks on which the algorithm may run with SLUICE_REPRODUCIBLE.
const char* reproducible_on(const Algorithm& algorithm) {
  if (!is_reducing(algorithm.collective) || algorithm.bracketing == Bracketing::balanced) {
    return "any ranks";
  }
  const bool depends = algorithm.bracketing == Bracketing::balanced_on_powers_of_two;
  return depends ? "powers of two" : "-";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

struct Library {
  std::string path, version, problem;

  std::string folder() const { return path.substr(0, path.rfind('/')); }
};

// As it is written, if it is not accepted.
std::string value_of(std::string_view name) {
  for (const KnobValue& each : knob_values(setting_sources())) {
    if (name == each.knob->name) return each.value;
  }
  return "";
}

Library installed_library() {
  const Result<std::string> path = find_library(value_of("SLUICE_LIBRARY"));
  if (!path.ok()) return {"", "", path.status().message()};
  const Result<std::string> version = library_version(*path);
  if (!version.ok()) return {*path, "", version.status().message()};
  return {*path, *version, ""};
}

// The topology module's counts for this machine (groups of ranks depend on them), or the problem.
struct Machine {
  unsigned caches = 0, nodes = 0;
  std::string problem;
};

Machine this_machine(const Library& library) {
  Machine machine;
  const auto topology = open_topology(library.folder());
  if (!topology.ok()) {
    machine.problem = topology.status().message();
  } else if ((*topology)->count(&machine.caches, &machine.nodes) != 0) {
    machine.problem = "hwloc can't tell";
  }
  return machine;
}

std::string to_text(const Machine& machine) {
  if (!machine.problem.empty()) return "not known: " + machine.problem;
  return counted(machine.nodes, "NUMA node") + ", " + counted(machine.caches, "last-level cache");
}

// What SLUICE_TLS would use, or why it can't be had.
struct Encryption {
  std::string about, problem;
};

Encryption encryption_by(const Library& library) {
  const auto about = describe_tls(library.folder());
  return about.ok() ? Encryption{*about, ""} : Encryption{"", about.status().message()};
}

// How the two ends of a connection prove who they are, without SLUICE_TLS too.
const char* greetings_text(const Library& library) {
  const bool proves = make_tls_prover(library.folder()).ok();
  return proves ? "prove their key by HMAC: who listens cannot connect, nor replay a connection"
                : "show their key in clear: who listens can connect in a rank's place";
}

// What this host would show with SLUICE_TLS=x509. Empty if no certificate is set.
std::string certificate_text(const Library& library) {
  Knobs knobs;
  if (!read_knobs(setting_sources(), &knobs).ok() || knobs.tls_cert.empty()) return "";
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  TlsOptions options{.folder = library.folder()};
  options.certificates =
      TlsCertificates{knobs.tls_cert, knobs.tls_key, knobs.tls_ca, knobs.tls_crl, host};
  const auto about = describe_certificate(options);
  return about.ok() ? *about : "cannot be used: " + about.status().message();
}

std::string to_text(const Encryption& encryption) {
  if (encryption.problem.empty()) return encryption.about;
  return "cannot be had: " + encryption.problem;
}

// The ports of this host's RDMA devices, those that may be used first, and why none is used.
struct Rdma {
  std::vector<VerbsPort> ports;
  std::string problem;
  std::string copying = {};  // why long messages are copied; empty: the receiver's card reads them

  bool uses(size_t port) const { return port == 0 && problem.empty(); }
  bool uses(size_t port, size_t gid) const {
    const VerbsPort& of = ports[port];
    return uses(port) && (gid == of.gid || std::ranges::count(of.other_gids, gid) > 0);
  }
};

// Whether memory can be registered with the device, as much as one link needs.
Status try_port(const SluiceVerbs& table, const VerbsPort& port, size_t ring) {
  const auto device = VerbsDevice::open(table, port);
  if (!device.ok()) return device.status();
  return VerbsMemory::make(*device, 2 * ring, true).status();
}

// Why the nearest port is not used, though it may be.
Status why_unused(const SluiceVerbs& table, const VerbsPort& port) {
  Knobs knobs;
  (void)read_knobs(setting_sources(), &knobs);
  if (knobs.transport == "tcp") return {Code::unavailable, "SLUICE_TRANSPORT=tcp"};
  if (knobs.tls != "off") return {Code::unavailable, "SLUICE_TLS, and RDMA does not encrypt"};
  return try_port(table, port, knobs.verbs_ring);
}

// Why long messages would be copied over this port; empty: they would not be.
std::string why_copied(const SluiceVerbs& table, const VerbsPort& port) {
  Knobs knobs;
  (void)read_knobs(setting_sources(), &knobs);
  if (knobs.verbs_get_least >= VerbsOptions::never) return "SLUICE_VERBS_GET_LEAST";
  const auto device = VerbsDevice::open(table, port);
  return device.ok() ? can_register_program_memory(**device).message() : std::string();
}

Rdma this_rdma(const Library& library) {
  if (!has_verbs_devices()) return {{}, "no device"};
  const auto module = open_verbs_module(library.folder());
  if (!module.ok()) return {{}, module.status().message()};
  const auto ports = survey_verbs(**module, value_of("SLUICE_VERBS_DEVICES"));
  if (!ports.ok()) return {{}, ports.status().message()};
  const Status none = why_none(*ports);
  if (!none.ok()) return {*ports, none.message()};
  const VerbsPort& nearest = ports->front();
  return {*ports, why_unused(**module, nearest).message(), why_copied(**module, nearest)};
}

const char* kind_of(const SluiceVerbsGid& gid) {
  if (gid.kind == SLUICE_GID_INFINIBAND) return "InfiniBand";
  if (gid.kind == SLUICE_GID_ROCE_1) return "RoCE v1";
  return is_ipv4(gid) ? "RoCE v2 over IPv4" : "RoCE v2";
}

// Why the port is not used; empty: it is.
std::string problem_of(const Rdma& rdma, size_t port) {
  if (!rdma.ports[port].problem.empty()) return rdma.ports[port].problem;
  return port == 0 || !rdma.problem.empty() ? rdma.problem : "another is as near";
}

std::string to_text(const Rdma& rdma, size_t at) {
  const VerbsPort& port = rdma.ports[at];
  const std::string problem = problem_of(rdma, at);
  if (port.port.error != 0) return port.label() + ": not used: " + problem;
  std::string text = port.label() + ": " + (port.port.ethernet != 0 ? "Ethernet" : "InfiniBand");
  text += port.port.active != 0 ? ", active" : ", not active";
  if (!port.rate.empty()) text += ", " + port.rate;
  if (port.node >= 0) text += ", NUMA node " + std::to_string(port.node);
  if (!problem.empty()) return text + ", not used: " + problem;
  text += ", used; long messages are ";
  return text + (rdma.copying.empty() ? "read by the receiver's card" : "copied: " + rdma.copying);
}

void add_rows(const Rdma& rdma, TextTable* table) {
  if (rdma.ports.empty()) table->add({"RDMA", "not used: " + rdma.problem});
  for (size_t i = 0; i < rdma.ports.size(); ++i) {
    const VerbsPort& port = rdma.ports[i];
    table->add({i == 0 ? "RDMA" : "", to_text(rdma, i)});
    for (size_t g = 0; g < port.gids.size(); ++g) {
      const SluiceVerbsGid& gid = port.gids[g];
      table->add({"", "  GID " + std::to_string(gid.index) + ": " + text_of_gid(gid) + ", " +
                          kind_of(gid) + (rdma.uses(i, g) ? ", used" : "")});
    }
  }
}

void add_rdma(const Rdma& rdma, Json* json) {
  json->open_object("rdma")
      .add("problem", rdma.problem)
      .add("copying", rdma.copying)
      .open_array("ports");
  for (size_t i = 0; i < rdma.ports.size(); ++i) {
    const VerbsPort& port = rdma.ports[i];
    json->open_object().add("device", std::string(port.port.device));
    json->add("port", size_t{port.port.number}).add("active", port.port.active != 0);
    json->add("ethernet", port.port.ethernet != 0).add("rate", port.rate);
    json->add("problem", problem_of(rdma, i)).open_array("gids");
    for (size_t g = 0; g < port.gids.size(); ++g) {
      json->open_object().add("index", size_t{port.gids[g].index});
      json->add("address", text_of_gid(port.gids[g])).add("kind", kind_of(port.gids[g]));
      json->add("used", rdma.uses(i, g)).close();
    }
    json->close().close();
  }
  json->close().close();
}

// Which MPI libraries the library serves.
std::string served_text(const Library& library) {
  std::string text, missing;
  for (const ServedMpi& each : served_mpis(library.folder())) {
    std::string& list = each.module.empty() ? missing : text;
    list += (list.empty() ? "" : ", ") + std::string(each.name);
  }
  if (!missing.empty()) text += (text.empty() ? "no module for " : "; no module for ") + missing;
  return text;
}

void print_build() {
  const BuildInfo build = build_info();
  const Library library = installed_library();
  TextTable table({}, "");
  table.add({"Sluice", build.version});
  table.add({"compiler", build.compiler});
  table.add({"flags", build.flags});
  table.add({"MPI", served_text(library) + "; built with " + build.mpi});
  table.add({"library", library.path.empty() ? "not found" : library.path});
  table.add({"topology", to_text(this_machine(library))});
  const Cuda cuda = this_cuda(library.folder());
  table.add({"CUDA", to_text(cuda)});
  table.add({"CUDA IPC", to_text(this_cuda_ipc(library.folder(), cuda))});
  table.add({"NCCL", to_text(this_nccl(library.folder(), cuda))});
  table.add({"encryption", to_text(encryption_by(library))});
  table.add({"connections", greetings_text(library)});
  const std::string certificate = certificate_text(library);
  if (!certificate.empty()) table.add({"certificate", certificate});
  add_rows(this_rdma(library), &table);
  if (!library.version.empty() && library.version != build.version) {
    table.add({"", "is version " + library.version + ", this command " + build.version});
  }
  printf("%s", table.text().c_str());
  if (!library.problem.empty()) printf("%s\n", library.problem.c_str());
}

void print_knobs() {
  TextTable table({"NAME", "VALUE", "FROM", "ACCEPTED", "MEANING"});
  for (const KnobValue& value : knob_values(setting_sources())) {
    const Knob& knob = *value.knob;
    table.add({std::string(knob.name) + (knob.agreed ? " *" : ""),
               value.value.empty() ? "-" : value.value, value.origin, knob.range, knob.help});
  }
  printf("Knobs (* must be equal on all ranks)\n%s", table.text().c_str());
}

void print_algorithms() {
  TextTable table({"COLLECTIVE", "ALGORITHM", "NEEDS", "REPRODUCIBLE", "WHAT IT IS"});
  std::string_view last;
  for (const Algorithm& algorithm : algorithms()) {
    const std::string_view collective = to_string(algorithm.collective);
    const std::string needs = joined(needs_of(algorithm));
    table.add({collective == last ? "" : std::string(collective), algorithm.name,
               needs.empty() ? "-" : needs, reproducible_on(algorithm), algorithm.help});
    last = collective;
  }
  printf("Algorithms\n%s", table.text().c_str());
}

void print_lines(std::string_view rest) {
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string line(rest.substr(0, end));
    printf(line.empty() ? "\n" : "  %s\n", line.c_str());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

void print_rules() {
  printf("Built-in rules (the first that matches and can serve)\n");
  print_lines(builtin_rules());
}

// The file of choices; empty if none is named, or none is there yet.
std::string choices_text(std::string* path) {
  *path = value_of("SLUICE_CHOICE_FILE");
  if (path->empty() || !file_exists(*path)) return {};
  const auto text = read_file(*path);
  return text.ok() ? *text : "# " + text.status().message() + "\n";
}

void print_choices() {
  std::string path;
  const std::string text = choices_text(&path);
  printf("Choices that trials have made\n");
  if (path.empty()) {
    printf("  SLUICE_CHOICE_FILE names no file: they end with the job\n");
  } else if (text.empty()) {
    printf("  none yet in %s: a job writes them when it ends\n", path.c_str());
  }
  print_lines(text);
}

void add_build(Json* json) {
  const BuildInfo build = build_info();
  const Library library = installed_library();
  json->add("version", build.version);
  json->open_object("build");
  json->add("compiler", build.compiler).add("flags", build.flags);
  json->add("mpi", build.mpi).add("mpi_soname", build.mpi_soname).close();
  json->open_object("library").add("path", library.path).add("version", library.version);
  json->open_array("serves");
  for (const ServedMpi& each : served_mpis(library.folder())) {
    if (!each.module.empty()) json->add({}, each.id);
  }
  json->close().close();
  const Machine machine = this_machine(library);
  json->open_object("topology").add("nodes", size_t{machine.nodes});
  json->add("caches", size_t{machine.caches}).add("problem", machine.problem).close();
  const Cuda cuda = this_cuda(library.folder());
  add_cuda(cuda, json);
  add_cuda_ipc(this_cuda_ipc(library.folder(), cuda), json);
  add_nccl(this_nccl(library.folder(), cuda), json);
  const Encryption encryption = encryption_by(library);
  json->open_object("encryption").add("about", encryption.about);
  json->add("connections", std::string(greetings_text(library)));
  json->add("certificate", certificate_text(library)).add("problem", encryption.problem).close();
  add_rdma(this_rdma(library), json);
}

void add_knobs(Json* json) {
  json->open_array("knobs");
  for (const KnobValue& value : knob_values(setting_sources())) {
    const Knob& knob = *value.knob;
    json->open_object().add("name", knob.name).add("value", value.value);
    json->add("origin", value.origin).add("default", knob.fallback).add("accepted", knob.range);
    json->add("help", knob.help).add("agreed", knob.agreed).close();
  }
  json->close();
}

void add_algorithms(Json* json) {
  json->open_array("algorithms");
  for (const Algorithm& algorithm : algorithms()) {
    json->open_object().add("collective", to_string(algorithm.collective));
    json->add("name", algorithm.name).add("help", algorithm.help);
    json->add("reproducible", reproducible_on(algorithm));
    json->open_array("needs");
    for (const std::string& need : needs_of(algorithm)) json->add("", need);
    json->close().close();
  }
  json->close();
}

void print_json(const InfoOptions& options, bool all) {
  Json json;
  json.open_object();
  if (all) add_build(&json);
  if (all || options.knobs) add_knobs(&json);
  if (all || options.algorithms) add_algorithms(&json);
  if (all || options.rules) json.add("rules", builtin_rules());
  std::string path;
  if (all || options.choices) json.add("choices", choices_text(&path));
  json.close();
  printf("%s", json.text().c_str());
}

void print_text(const InfoOptions& options, bool all) {
  if (all) print_build();
  const auto part = [&](bool asked, void (*print)()) {
    if (!all && !asked) return;
    if (all) printf("\n");
    print();
  };
  part(options.knobs, print_knobs);
  part(options.algorithms, print_algorithms);
  part(options.rules, print_rules);
  part(options.choices, print_choices);
}

}  // namespace

void print_version(bool json) {
  const BuildInfo build = build_info();
  if (!json) {
    printf("sluice %s\n", build.version.c_str());
    return;
  }
  const Result<std::string> library = find_library(value_of("SLUICE_LIBRARY"));
  Json object;
  object.open_object().add("version", build.version).add("mpi", build.mpi);
  object.add("mpi_soname", build.mpi_soname).add("library", library.ok() ? *library : "");
  object.add("settings", SLUICE_SYSCONFDIR "/sluice.conf").close();
  printf("%s", object.text().c_str());
}

Status info(const InfoOptions& options) {
  const bool all = !options.knobs && !options.algorithms && !options.rules && !options.choices;
  options.json ? print_json(options, all) : print_text(options, all);
  fflush(stdout);
  const SettingSources sources = setting_sources();
  for (const auto& lines : {unknown_knobs(environ), unknown_knobs(sources.files), sources.unused}) {
    for (const std::string& line : lines) {
      fprintf(stderr, "sluice info: warning: %s\n", line.c_str());
    }
  }
  Knobs knobs;
  Status status = read_knobs(sources, &knobs);
  if (!status.ok()) return status;
  return located(Selector::make(knobs).status(), sources);
}

}  // namespace sluice
