// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/knobs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "src/base/file.h"
#include "src/base/plain_text.h"
#include "src/base/report_value.h"
#include "src/base/spelling.h"

namespace sluice {
namespace {

constexpr const char* prefix = "SLUICE_";
constexpr const char* on_off = "on, off";
constexpr const char* any_algorithm = "an algorithm's name, or mpi";

// clang-format off
constexpr Knob table[] = {
    {"SLUICE_CONFIG", KnobType::text, "", "a file's path, or none",
     "a file of settings in place of the user's and the site's; none: no file", false,
     &Knobs::config},
    {"SLUICE_ENABLE", KnobType::boolean, "on", on_off,
     "off hands every call to MPI", false, &Knobs::enable},
    {"SLUICE_LOG", KnobType::choice, "warning", "error, warning, info, debug",
     "the least urgent messages that are shown", false, &Knobs::log},
    {"SLUICE_STATS", KnobType::report, "off", "on, off, json:FILE, prometheus:FILE",
     "at the end, a table of calls, bytes, times and algorithms, or a file with more", false,
     &Knobs::stats},
    {"SLUICE_TRANSPORT", KnobType::choice, "auto", "auto, tcp, verbs",
     "what carries the bytes; auto: shared memory on one host, else RDMA (verbs) or tcp", true,
     &Knobs::transport},
    {"SLUICE_ON_MISMATCH", KnobType::choice, "abort", "mpi, abort",
     "if ranks differ in version or settings: leave it to MPI, or stop the job", false,
     &Knobs::on_mismatch},
    {"SLUICE_SETUP_TIMEOUT", KnobType::seconds, "0", "0 to 86400",
     "seconds for a communicator's set-up, or the process ends; 0: no limit", false,
     &Knobs::setup_timeout},
    {"SLUICE_WARN_AFTER", KnobType::seconds, "30", "0 to 86400",
     "seconds after which a call reports whom it waits for; 0: never", false, &Knobs::warn_after},
    {"SLUICE_TIMEOUT", KnobType::seconds, "0", "0 to 1000000",
     "seconds after which a waiting call fails; 0: never", false, &Knobs::timeout},
    {"SLUICE_CONNECT_TIMEOUT", KnobType::seconds, "30", "0.1 to 86400",
     "seconds that connecting to a rank may take", false, &Knobs::connect_timeout},
    {"SLUICE_PEER_TIMEOUT", KnobType::seconds, "60", "0, 3 to 86400",
     "seconds that a host may answer nothing while a call waits for it; 0: any time", false,
     &Knobs::peer_timeout},
    {"SLUICE_REPRODUCIBLE", KnobType::boolean, "off", on_off,
     "reductions give the same bits whatever algorithm, layout and message size", true,
     &Knobs::reproducible},
    {"SLUICE_SEGMENT", KnobType::size, "256k", "4k to 16m",
     "bytes of a pipelined piece of a message", true, &Knobs::segment},
    {"SLUICE_WINDOW", KnobType::size, "32m", "64k to 1g",
     "bytes in flight for a communicator from one rank to another", true, &Knobs::window},
    {"SLUICE_TCP_INTERFACES", KnobType::text, "",
     "names, beginnings of names with a *, and CIDRs with commas; a first ^ excludes them",
     "network interfaces to use", false, &Knobs::interfaces},
    {"SLUICE_TCP_FAMILY", KnobType::integer, "0", "0, 4, 6",
     "the IP version; 0: either", false, &Knobs::address_family},
    {"SLUICE_TCP_PORTS", KnobType::ports, "", "1 to 65535, such as 50000-50100",
     "ports that processes listen at; nothing: any, as the kernel chooses", false, &Knobs::ports},
    {"SLUICE_TCP_STREAMS", KnobType::choice, "1", "auto, 1 to 16",
     "TCP connections that a large message is spread over; auto: several where that is faster",
     true, &Knobs::streams},
    {"SLUICE_TCP_BUFFER", KnobType::size, "0", "0, 4k to 1g",
     "bytes of a socket's send and receive buffers; 0: the kernel decides", false,
     &Knobs::socket_buffer},
    {"SLUICE_TCP_CONGESTION", KnobType::text, "", "a name of the kernel's: cubic, reno, bbr",
     "TCP's congestion control; nothing: the kernel's default", false, &Knobs::congestion},
    {"SLUICE_TLS", KnobType::choice, "off", "off, psk, x509",
     "encrypts between hosts; psk: by a key that Sluice makes; x509: hosts show certificates", true,
     &Knobs::tls},
    {"SLUICE_TLS_LOCAL", KnobType::boolean, "off", on_off,
     "with SLUICE_TLS, connections within a host are encrypted too", true, &Knobs::tls_local},
    {"SLUICE_TLS_CERT", KnobType::path, "", "a file's path",
     "with x509, this host's certificate, and those between it and the authority's", false,
     &Knobs::tls_cert},
    {"SLUICE_TLS_KEY", KnobType::path, "", "a file's path",
     "with x509, the private key of the certificate", false, &Knobs::tls_key},
    {"SLUICE_TLS_CA", KnobType::path, "", "a file's or folder's path",
     "with x509, the authorities whose certificates this process accepts", false, &Knobs::tls_ca},
    {"SLUICE_TLS_CRL", KnobType::path, "", "a file's path",
     "with x509, the lists of revoked certificates; nothing: none is looked up", false,
     &Knobs::tls_crl},
    {"SLUICE_VERBS_DEVICES", KnobType::text, "",
     "names, beginnings of names with a *, and CIDRs with commas; a first ^ excludes them",
     "RDMA devices to use", false, &Knobs::verbs_devices},
    {"SLUICE_VERBS_RING", KnobType::size, "64k", "4k to 2m",
     "bytes of the RDMA ring of a link and direction", true, &Knobs::verbs_ring},
    {"SLUICE_VERBS_LOCAL", KnobType::boolean, "off", on_off,
     "RDMA also between ranks of one host, for tests", true, &Knobs::verbs_local},
    {"SLUICE_VERBS_GET_LEAST", KnobType::size, "1m", "1 to 1024g",
     "bytes to one rank that its card reads from the sender's memory, not copied", false,
     &Knobs::verbs_get_least},
    {"SLUICE_VERBS_PAIRS", KnobType::integer, "1", "1 to 8",
     "queue pairs by which a link reads long messages, over all ports in turns", false,
     &Knobs::verbs_pairs},
    {"SLUICE_VERBS_PINNED", KnobType::size, "1g", "0 to 1024g",
     "bytes of the program's memory that may be registered for that at a time", false,
     &Knobs::verbs_pinned},
    {"SLUICE_SPIN", KnobType::integer, "-1", "-1 to 1000000",
     "microseconds to spin before short sleeps; -1: never sleep, yield as needed", false,
     &Knobs::spin},
    {"SLUICE_RADIX", KnobType::integer, "2", "2 to 1024",
     "the radix of bcube and tree", true, &Knobs::radix},
    {"SLUICE_SHM_MEMORY", KnobType::size, "1g", "0 to 1024g",
     "bytes for long messages that processes which share memory may reserve in all", false,
     &Knobs::shm_memory},
    {"SLUICE_GROUPS", KnobType::choice, "auto", "auto, off, 2 to 4096",
     "groups of ranks that share memory: by caches and NUMA nodes, none, or so many ranks each",
     true, &Knobs::groups},
    {"SLUICE_SINGLE_COPY", KnobType::boolean, "on", on_off,
     "ranks of a host copy large messages from each other's memory, if the kernel lets them", true,
     &Knobs::single_copy},
    {"SLUICE_GET_LEAST", KnobType::size, "1024g", "1 to 1024g",
     "bytes of a message within a host that the receiver copies from the sender's memory",
     false, &Knobs::get_least},
    {"SLUICE_CUDA", KnobType::choice, "auto", "auto, off",
     "auto: buffers may be on CUDA devices; off: no buffer is looked at", true, &Knobs::cuda},
    {"SLUICE_CUDA_PINNED", KnobType::size, "256m", "0 to 1024g",
     "bytes of pinned memory for messages from and to devices", false, &Knobs::cuda_pinned},
    {"SLUICE_CUDA_REDUCE_LEAST", KnobType::size, "256k", "1 to 1024g",
     "bytes of the smallest reduction that a CUDA device does, if it is over links", false,
     &Knobs::cuda_reduce_least},
    {"SLUICE_CUDA_SCRATCH", KnobType::size, "256m", "0 to 1024g",
     "bytes of device memory for packed data and for reductions", false, &Knobs::cuda_scratch},
    {"SLUICE_CUDA_STREAMS", KnobType::choice, "non-blocking", "non-blocking, blocking",
     "whether copies from and to devices wait for the default stream, and it for them", false,
     &Knobs::cuda_streams},
    {"SLUICE_CUDA_SYNC_MEMOPS", KnobType::boolean, "on", on_off,
     "CUDA contexts are told to end the program's synchronous copies before they return", false,
     &Knobs::cuda_sync_memops},
    {"SLUICE_CUDA_IPC", KnobType::choice, "auto", "off, auto, on",
     "large calls between ranks of one host go from device to device, by CUDA IPC; auto: where "
     "trials find that faster",
     true,
     &Knobs::cuda_ipc},
    {"SLUICE_CUDA_IPC_LEAST", KnobType::size, "256k", "1 to 1024g",
     "bytes of the smallest call that may go by CUDA IPC", true, &Knobs::cuda_ipc_least},
    {"SLUICE_CUDA_IPC_SLAB", KnobType::size, "8m", "64k to 1g",
     "bytes of device memory that a process has for calls by CUDA IPC", true,
     &Knobs::cuda_ipc_slab},
    {"SLUICE_NCCL", KnobType::choice, "off", "off, auto, on",
     "NCCL carries large calls on CUDA devices; auto: unless trials find another way faster, or "
     "the program uses NCCL itself",
     true,
     &Knobs::nccl},
    {"SLUICE_NCCL_LEAST", KnobType::size, "256k", "1 to 1024g",
     "bytes of the smallest call that NCCL may carry", true, &Knobs::nccl_least},
    {"SLUICE_NCCL_COMMS", KnobType::integer, "4", "1 to 1024",
     "NCCL's communicators in a process at most; each takes memory of the device", false,
     &Knobs::nccl_groups},
    {"SLUICE_NONBLOCKING", KnobType::choice, "auto", "auto, off",
     "non-blocking collectives are carried on communicators that have had a blocking one; off: by "
     "MPI",
     true, &Knobs::nonblocking},
    {"SLUICE_CHOICE", KnobType::choice, "guard", "rules, guard, free",
     "how calls are carried: as the rules say; guard: by MPI, where it proves to be faster; "
     "free: by other algorithms too, and bits of sums may change from call to call",
     true, &Knobs::choice},
    {"SLUICE_CHOICE_FILE", KnobType::path, "", "a file's path",
     "what trials have found out is kept there, and decides in the next job", false,
     &Knobs::choice_file},
    {"SLUICE_DELAY", KnobType::text, "",
     "ALGORITHM:MICROSECONDS[:FIRST-LAST] and pretend, by commas",
     "for tests: calls by an algorithm, or by mpi, take so much longer", false,
     &Knobs::delay},
    {"SLUICE_RULES", KnobType::path, "", "a file's path",
     "selection rules that come before the built-in ones", true, &Knobs::rules},
    {"SLUICE_LIBRARY", KnobType::path, "", "a file's path",
     "the library that `sluice run` preloads; nothing: the installed one", false, &Knobs::library},
    {"SLUICE_ALLREDUCE", KnobType::word, "", any_algorithm,
     "how to do MPI_Allreduce; nothing: the rules decide", true, 0U},
    {"SLUICE_REDUCE", KnobType::word, "", any_algorithm,
     "how to do MPI_Reduce; nothing: the rules decide", true, 1U},
    {"SLUICE_BCAST", KnobType::word, "", any_algorithm,
     "how to do MPI_Bcast; nothing: the rules decide", true, 2U},
    {"SLUICE_ALLGATHER", KnobType::word, "", any_algorithm,
     "how to do MPI_Allgather; nothing: the rules decide", true, 3U},
    {"SLUICE_ALLGATHERV", KnobType::word, "", any_algorithm,
     "how to do MPI_Allgatherv; nothing: the rules decide", true, 4U},
    {"SLUICE_REDUCE_SCATTER", KnobType::word, "", any_algorithm,
     "how to do MPI_Reduce_scatter and _block; nothing: the rules decide", true, 5U},
    {"SLUICE_SCAN", KnobType::word, "", any_algorithm,
     "how to do MPI_Scan; nothing: the rules decide", true, 6U},
    {"SLUICE_EXSCAN", KnobType::word, "", any_algorithm,
     "how to do MPI_Exscan; nothing: the rules decide", true, 7U},
    {"SLUICE_GATHER", KnobType::word, "", any_algorithm,
     "how to do MPI_Gather; nothing: the rules decide", true, 8U},
    {"SLUICE_GATHERV", KnobType::word, "", any_algorithm,
     "how to do MPI_Gatherv; nothing: the rules decide", true, 9U},
    {"SLUICE_SCATTER", KnobType::word, "", any_algorithm,
     "how to do MPI_Scatter; nothing: the rules decide", true, 10U},
    {"SLUICE_SCATTERV", KnobType::word, "", any_algorithm,
     "how to do MPI_Scatterv; nothing: the rules decide", true, 11U},
    {"SLUICE_ALLTOALL", KnobType::word, "", any_algorithm,
     "how to do MPI_Alltoall; nothing: the rules decide", true, 12U},
    {"SLUICE_ALLTOALLV", KnobType::word, "", any_algorithm,
     "how to do MPI_Alltoallv; nothing: the rules decide", true, 13U},
    {"SLUICE_BARRIER", KnobType::word, "", any_algorithm,
     "how to do MPI_Barrier; nothing: the rules decide", true, 14U},
};
// clang-format on

using Value = std::variant<bool, int, double, size_t, std::string>;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool parse_boolean(const std::string& text, Value* value) {
  bool on = false;
  if (!parse_switch(text, &on)) return false;
  *value = on;
  return true;
}

template <typename T>
bool parse_number(const std::string& text, T* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

// A number of the knob's type.
bool parse_amount(KnobType type, const std::string& text, Value* value) {
  int whole_number = 0;
  double seconds = 0;
  size_t bytes = 0;
  if (type == KnobType::integer && parse_number(text, &whole_number)) {
    *value = whole_number;
  } else if (type == KnobType::seconds && parse_number(text, &seconds) && std::isfinite(seconds)) {
    *value = seconds;
  } else if (type == KnobType::size && parse_size(text, &bytes)) {
    *value = bytes;
  } else {
    return false;
  }
  return true;
}

// Splits a range into its alternatives: "a, b, c" -> a; b; c.
std::vector<std::string> alternatives(std::string_view range) {
  std::vector<std::string> found;
  while (true) {
    const size_t comma = range.find(", ");
    found.emplace_back(range.substr(0, comma));
    if (comma == std::string_view::npos) return found;
    range.remove_prefix(comma + 2);
  }
}

// Whether one alternative of a range, "a" or "a to b", contains the value.
bool spans(KnobType type, const std::string& alternative, const Value& value) {
  const size_t to = alternative.find(" to ");
  const std::string first = alternative.substr(0, to);
  const std::string last = to == std::string::npos ? first : alternative.substr(to + 4);
  Value low, high;
  return parse_amount(type, first, &low) && parse_amount(type, last, &high) && low <= value &&
         value <= high;
}

bool parse_in_range(const Knob& knob, const std::string& text, Value* value) {
  Value parsed;
  if (!parse_amount(knob.type, text, &parsed)) return false;
  const auto alternative = alternatives(knob.range);
  const bool within = std::any_of(alternative.begin(), alternative.end(),
                                  [&](const auto& each) { return spans(knob.type, each, parsed); });
  if (within) *value = parsed;
  return within;
}

bool parse_choice(const Knob& knob, const std::string& text, Value* value) {
  const std::string word = lower(text);
  Value number;
  const bool is_number = parse_amount(KnobType::integer, text, &number);
  for (const std::string& each : alternatives(knob.range)) {
    const bool is_span = each.find(" to ") != std::string::npos;
    if (is_span ? !is_number || !spans(KnobType::integer, each, number) : each != word) continue;
    *value = is_number ? std::to_string(std::get<int>(number)) : word;
    return true;
  }
  return false;
}

// Without a value, any port.
bool parse_port_text(const std::string& text, Value* value) {
  PortRange ports;
  if (!text.empty() && !parse_ports(text, &ports)) return false;
  *value = text;
  return true;
}

bool is_whole_path(const std::string& text) {
  return !text.starts_with('~') && !text.starts_with('$');
}

bool parse_report(const std::string& text, Value* value) {
  bool on = false;
  if (parse_switch(text, &on)) {
    *value = std::string(on ? "on" : "off");
    return true;
  }
  const size_t path = path_of_report(text);
  if (path == 0 || path == text.size() || !is_whole_path(text.substr(path))) return false;
  *value = text;
  return true;
}

bool is_word(const std::string& text) {
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

bool parse_value(const Knob& knob, const std::string& text, Value* value) {
  switch (knob.type) {
    case KnobType::boolean:
      return parse_boolean(text, value);
    case KnobType::integer:
    case KnobType::size:
    case KnobType::seconds:
      return parse_in_range(knob, text, value);
    case KnobType::choice:
      return parse_choice(knob, text, value);
    case KnobType::ports:
      return parse_port_text(text, value);
    case KnobType::word:
      if (!is_word(text)) return false;
      *value = text;
      return true;
    case KnobType::report:
      return parse_report(text, value);
    case KnobType::path:
      if (!is_whole_path(text)) return false;
      [[fallthrough]];
    case KnobType::text:
      *value = text;
      return true;
  }
  return false;
}

const char* noun(KnobType type) {
  switch (type) {
    case KnobType::boolean:
      return "a switch";
    case KnobType::integer:
      return "a whole number";
    case KnobType::size:
      return "a size in bytes, such as 64k";
    case KnobType::seconds:
      return "a number of seconds";
    case KnobType::choice:
      return "a choice";
    case KnobType::ports:
      return "a port, or the first and the last of a range";
    case KnobType::word:
      return "a name";
    case KnobType::report:
      return "a switch, or a kind of file and its path";
    case KnobType::path:
      return "a path, which may begin with ~/ or $HOME/ if HOME is set";
    case KnobType::text:
      return "a text";
  }
  return "";
}

Status not_accepted(const Knob& knob, const std::string& text) {
  const bool was_accepted = std::string_view(knob.name) == "SLUICE_CHOICE" && text == "online";
  return {Code::invalid, std::string(knob.name) + "=" + text + " is not accepted: it takes " +
                             noun(knob.type) + " (" + knob.range + ")" +
                             (was_accepted ? "; free is what tries other algorithms" : "")};
}

std::string format_value(const Value& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "on" : "off";
  if (const int* number = std::get_if<int>(&value)) return std::to_string(*number);
  if (const size_t* bytes = std::get_if<size_t>(&value)) return format_size(*bytes);
  if (const double* seconds = std::get_if<double>(&value)) return significant(*seconds, 9);
  return std::get<std::string>(value);
}

template <typename T>
void keep_as(T Knobs::*member, const Value& value, Knobs* knobs) {
  knobs->*member = std::get<T>(value);
}

void keep_as(uint32_t algorithm, const Value& value, Knobs* knobs) {
  knobs->algorithm[algorithm] = std::get<std::string>(value);
}

void keep(const Knob& knob, const Value& value, Knobs* knobs) {
  std::visit([&](auto field) { keep_as(field, value, knobs); }, knob.field);
}

struct Chosen {
  std::string text, origin;
};

// The path with HOME in place of a beginning that means it. (No shell has seen a file's values.)
std::string with_home(const std::string& path, const Environment& variables) {
  const char* const home = variables ? variables("HOME") : nullptr;
  for (const std::string_view mark : {"~", "$HOME", "${HOME}"}) {
    const size_t end = std::min(path.find('/'), path.size());
    if (home && *home == '/' && path.substr(0, end) == mark) return home + path.substr(end);
  }
  return path;
}

// As it is written, accepted or not, but for HOME.
Chosen choose(const SettingSources& sources, const Knob& knob) {
  const SettingSources::Found found = sources.find(knob.name);
  if (!found.text) return {knob.fallback, "default"};
  const bool resets = std::string_view(found.text) == "default";
  if (resets) return {knob.fallback, found.origin};
  const std::string text = found.text;
  if (knob.type == KnobType::path) return {with_home(text, sources.variables), found.origin};
  const size_t path = knob.type == KnobType::report ? path_of_report(text) : 0;
  if (path == 0) return {text, found.origin};
  return {text.substr(0, path) + with_home(text.substr(path), sources.variables), found.origin};
}

bool is_known(const std::string& name) {
  const auto has_name = [&](const Knob& knob) { return name == knob.name; };
  return std::any_of(std::begin(table), std::end(table), has_name);
}

// The warning about a name that the table lacks.
std::string unknown_name(const std::string& name) {
  std::vector<std::string> names;
  for (const Knob& knob : table) names.emplace_back(knob.name);
  const std::string nearest = nearest_name(name, prefix, names);
  const std::string hint = nearest.empty() ? "; `sluice info --knobs` lists those that exist"
                                           : "; did you mean " + nearest + "?";
  return name + " is not a setting of Sluice" + hint;
}

// FNV-1a, 64 bits: it only tells files apart; it need not be collision-resistant.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

std::string file_digest(const std::string& path) {
  if (path.empty()) return "";
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return text.status().message();
  char digest[48];
  snprintf(digest, sizeof digest, "file with digest %016llx",
           static_cast<unsigned long long>(hash_of(*text)));
  return digest;
}

bool is_file(const Knob& knob) {
  const auto* field = std::get_if<std::string Knobs::*>(&knob.field);
  return field && *field == &Knobs::rules;
}

}  // namespace

std::span<const Knob> knob_table() { return table; }

Status read_knobs(const SettingSources& sources, Knobs* knobs) {
  if (!sources.problem.ok()) return sources.problem;
  Knobs read;
  for (const Knob& knob : table) {
    const std::string chosen = choose(sources, knob).text;
    Value value;
    if (!parse_value(knob, chosen, &value)) return located(not_accepted(knob, chosen), sources);
    keep(knob, value, &read);
  }
  *knobs = std::move(read);
  return {};
}

std::vector<std::string> unknown_knobs(const char* const* environment) {
  std::vector<std::string> lines;
  for (; environment && *environment; ++environment) {
    const std::string_view entry = *environment;
    if (!entry.starts_with(prefix)) continue;
    const size_t end = entry.find('=');
    if (end + 1 == entry.size()) continue;  // empty: counts as unset
    const std::string name(entry.substr(0, end));
    if (!is_known(name)) lines.push_back(unknown_name(name));
  }
  return lines;
}

std::vector<std::string> unknown_knobs(std::span<const SettingsFile> files) {
  std::vector<std::string> lines;
  for (const SettingsFile& file : files) {
    for (const SettingsFile::Line& line : file.lines) {
      if (is_known(line.name)) continue;
      lines.push_back(file.path + ":" + std::to_string(line.number) + ": " +
                      unknown_name(line.name));
    }
  }
  return lines;
}

bool is_path_knob(std::string_view name) {
  return std::ranges::any_of(
      table, [&](const Knob& knob) { return knob.type == KnobType::path && name == knob.name; });
}

Status located(const Status& status, const SettingSources& sources) {
  const std::string& message = status.message();
  const size_t begin = message.find(prefix);
  if (begin == std::string::npos) return status;
  const size_t end = message.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", begin);
  const std::string name = message.substr(begin, end - begin);
  const SettingSources::Found found = sources.find(name.c_str());
  const bool is_located = message.starts_with(found.origin + ": ");
  return found.in_file && !is_located ? status.with(found.origin) : status;
}

std::vector<KnobValue> knob_values(const SettingSources& sources) {
  std::vector<KnobValue> values;
  for (const Knob& knob : table) {
    const Chosen chosen = choose(sources, knob);
    Value value;
    const bool accepted = parse_value(knob, chosen.text, &value);
    values.push_back({&knob, accepted ? format_value(value) : chosen.text, chosen.origin});
  }
  return values;
}

std::string agreed_settings(const SettingSources& sources) {
  std::string settings;
  for (const KnobValue& row : knob_values(sources)) {
    if (!row.knob->agreed) continue;
    const std::string value = is_file(*row.knob) ? file_digest(row.value) : row.value;
    settings += std::string(row.knob->name) + "=" + value + "\n";
  }
  return settings;
}

bool is_switched_off(const SettingSources& sources) {
  const char* const text = sources.find("SLUICE_ENABLE").text;
  bool on = true;
  return text && parse_switch(text, &on) && !on;
}

bool parse_switch(const std::string& text, bool* on) {
  const std::string word = lower(text);
  const bool is_on = is_one_of(word, {"1", "on", "yes", "true"});
  if (!is_on && !is_one_of(word, {"0", "off", "no", "false"})) return false;
  *on = is_on;
  return true;
}

bool parse_ports(const std::string& text, PortRange* ports) {
  const size_t dash = std::min(text.find('-'), text.size());
  PortRange parsed;
  if (!parse_number(text.substr(0, dash), &parsed.first)) return false;
  parsed.last = parsed.first;
  if (dash < text.size() && !parse_number(text.substr(dash + 1), &parsed.last)) return false;
  if (parsed.first == 0 || parsed.last < parsed.first) return false;
  *ports = parsed;
  return true;
}

bool parse_size(const std::string& text, size_t* bytes) {
  size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return false;
  const std::string unit = lower(std::string(stop, end));
  int shift = 0;
  if (unit == "k") {
    shift = 10;
  } else if (unit == "m") {
    shift = 20;
  } else if (unit == "g") {
    shift = 30;
  } else if (!unit.empty()) {
    return false;
  }
  if (number > (SIZE_MAX >> shift)) return false;
  *bytes = number << shift;
  return true;
}

std::string format_size(size_t bytes) {
  static constexpr std::pair<int, const char*> units[] = {{30, "g"}, {20, "m"}, {10, "k"}};
  for (const auto& [shift, unit] : units) {
    const size_t one = size_t{1} << shift;
    if (bytes >= one && bytes % one == 0) return std::to_string(bytes >> shift) + unit;
  }
  return std::to_string(bytes);
}

}  // namespace sluice
