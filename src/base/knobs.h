// SPDX-License-Identifier: BSD-3-Clause
//
// All configuration: one typed table of SLUICE_* settings. `sluice info` prints the table, and a
// test checks the manual page against it. The range that a row shows is the range that is enforced.
// Values come from variables and from files (setting_sources.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/setting_sources.h"
#include "src/base/status.h"

namespace sluice {

// The values in force. Times are in seconds, sizes in bytes.
struct Knobs {
  std::string config;                 // SLUICE_CONFIG: a file of settings, or none
  bool enable = true;                 // SLUICE_ENABLE: off passes every call to MPI
  std::string log = "warning";        // SLUICE_LOG: error, warning, info, debug
  std::string stats = "off";          // SLUICE_STATS: off, on, json:FILE, prometheus:FILE
  std::string transport = "auto";     // SLUICE_TRANSPORT
  std::string on_mismatch = "abort";  // SLUICE_ON_MISMATCH: mpi, abort
  double setup_timeout = 0;           // SLUICE_SETUP_TIMEOUT: for a team's set-up; 0: none
  double warn_after = 30;             // SLUICE_WARN_AFTER: report what a call waits for; 0: never
  double timeout = 0;                 // SLUICE_TIMEOUT: a call's deadline; 0: none
  double connect_timeout = 30;        // SLUICE_CONNECT_TIMEOUT
  double peer_timeout = 60;           // SLUICE_PEER_TIMEOUT: of a host without an answer; 0: none
  bool reproducible = false;          // SLUICE_REPRODUCIBLE: operands always bracketed alike
  size_t segment = 256 << 10;         // SLUICE_SEGMENT: bytes of a pipelined piece
  size_t window = 32 << 20;           // SLUICE_WINDOW: bytes in flight per team and link
  std::string interfaces;             // SLUICE_TCP_INTERFACES: an InterfaceList
  int address_family = 0;             // SLUICE_TCP_FAMILY: 0 any, 4, 6
  std::string ports;                  // SLUICE_TCP_PORTS: to listen at; empty: the kernel decides
  std::string streams = "1";          // SLUICE_TCP_STREAMS: that a large message goes over; auto
  size_t socket_buffer = 0;           // SLUICE_TCP_BUFFER: 0: the kernel decides
  std::string congestion;             // SLUICE_TCP_CONGESTION: empty: the kernel's default
  std::string tls = "off";            // SLUICE_TLS: off, psk, x509
  bool tls_local = false;             // SLUICE_TLS_LOCAL: also between ranks of a host
  std::string tls_cert, tls_key;      // SLUICE_TLS_CERT, SLUICE_TLS_KEY: this host's, for x509
  std::string tls_ca, tls_crl;        // SLUICE_TLS_CA, SLUICE_TLS_CRL: whom to trust, and what not
  size_t verbs_ring = 64 << 10;       // SLUICE_VERBS_RING: registered bytes per link and direction
  std::string verbs_devices;          // SLUICE_VERBS_DEVICES: an InterfaceList
  bool verbs_local = false;           // SLUICE_VERBS_LOCAL: also between processes of one host
  int spin = -1;  // SLUICE_SPIN: microseconds to spin before sleeping; -1: never sleep
  int radix = 2;  // SLUICE_RADIX: of bcube and tree
  std::string groups = "auto";           // SLUICE_GROUPS: auto, off, or ranks per group
  bool single_copy = true;               // SLUICE_SINGLE_COPY: CMA between ranks of a host
  size_t get_least = size_t{1} << 40;    // SLUICE_GET_LEAST: bytes of a message that is got by CMA
  size_t verbs_get_least = 1 << 20;      // SLUICE_VERBS_GET_LEAST: to a rank, by RDMA
  int verbs_pairs = 1;                   // SLUICE_VERBS_PAIRS: by which a link reads
  size_t verbs_pinned = 1 << 30;         // SLUICE_VERBS_PINNED: bytes registered at a time
  size_t shm_memory = 1 << 30;           // SLUICE_SHM_MEMORY: bytes of slots per segment, all teams
  std::string cuda = "auto";             // SLUICE_CUDA: auto, off
  size_t cuda_pinned = 256 << 20;        // SLUICE_CUDA_PINNED: bytes of pinned staging memory
  size_t cuda_reduce_least = 256 << 10;  // SLUICE_CUDA_REDUCE_LEAST: bytes reduced by the device
  size_t cuda_scratch = 256 << 20;  // SLUICE_CUDA_SCRATCH: bytes of device memory for our own use
  std::string cuda_streams = "non-blocking";  // SLUICE_CUDA_STREAMS: non-blocking, blocking
  bool cuda_sync_memops = true;               // SLUICE_CUDA_SYNC_MEMOPS: set that flag of contexts
  std::string cuda_ipc = "auto";              // SLUICE_CUDA_IPC: off, auto, on
  size_t cuda_ipc_least = 256 << 10;  // SLUICE_CUDA_IPC_LEAST: bytes of a call that may go that way
  size_t cuda_ipc_slab = 8 << 20;     // SLUICE_CUDA_IPC_SLAB: device memory of each process for it
  std::string nccl = "off";           // SLUICE_NCCL: off, auto, on
  size_t nccl_least = 256 << 10;      // SLUICE_NCCL_LEAST: bytes of a call that NCCL may carry
  int nccl_groups = 4;                // SLUICE_NCCL_COMMS: NCCL's communicators in this process
  std::string nonblocking = "auto";   // SLUICE_NONBLOCKING: auto, off
  std::string choice = "guard";       // SLUICE_CHOICE: rules, guard, free
  std::string choice_file;            // SLUICE_CHOICE_FILE: keeps what trials found out
  std::string delay;                  // SLUICE_DELAY: for tests
  std::string rules;                  // SLUICE_RULES: a file of selection rules
  std::string library;  // SLUICE_LIBRARY: what `sluice run` preloads; empty: the installed one
  // SLUICE_ALLREDUCE, SLUICE_REDUCE, SLUICE_BCAST, SLUICE_ALLGATHER, SLUICE_ALLGATHERV,
  // SLUICE_REDUCE_SCATTER, SLUICE_SCAN, SLUICE_EXSCAN, SLUICE_GATHER, SLUICE_GATHERV,
  // SLUICE_SCATTER, SLUICE_SCATTERV, SLUICE_ALLTOALL, SLUICE_ALLTOALLV, SLUICE_BARRIER: an
  // algorithm's name, or "mpi" to leave the collective to MPI; empty: the rules decide. In the
  // order of enum Collective (collectives/algorithm.h).
  std::string algorithm[15];

  bool counts_calls() const { return stats != "off"; }
  bool counts_in_file() const { return counts_calls() && stats != "on"; }
};

// The type of a variable's value, and how its range is read:
//   boolean  1, on, yes, true or 0, off, no, false
//   integer, size, seconds  a number; the range lists single values and intervals: "0, 4k to 1g"
//   choice   one of the range's words, or a number in one of its intervals: "auto, off, 2 to 8"
//   ports    a port, or the first and the last of a range with a - between; see parse_ports
//   word     letters a-z, digits and underscores, or empty; the user of the value checks the name
//   report   a switch, or a kind of file and its path: json:FILE, prometheus:FILE
//   path     a file or folder; ~/ and $HOME/ at its beginning stand for the variable HOME
//   text     anything
enum class KnobType : uint8_t {
  boolean,
  integer,
  size,
  seconds,
  choice,
  ports,
  word,
  report,
  path,
  text
};

// Where the value is stored; a number is an index into Knobs::algorithm.
using KnobField = std::variant<bool Knobs::*, int Knobs::*, double Knobs::*, size_t Knobs::*,
                               std::string Knobs::*, uint32_t>;

// One row of the table.
struct Knob {
  const char* name;  // "SLUICE_SEGMENT"
  KnobType type;
  const char* fallback;  // the default, as a user would write it: "128k"
  const char* range;     // accepted values, shown to users and parsed: "4k to 16m"
  const char* help;      // one line
  bool agreed;           // must be equal on all ranks of a team
  KnobField field;
};

struct KnobValue {
  const Knob* knob;
  std::string value;   // the value in force, in canonical form; as written if not accepted
  std::string origin;  // "environment", "FILE:LINE" or "default"

  bool is_default() const { return origin == "default"; }
};

std::span<const Knob> knob_table();

// Fills `knobs` from the table's defaults and the sources. A value out of range is an error that
// names the setting, the value, the accepted range and, for a value from a file, the file and line.
// A faulty file is an error, too. The value "default" stands for the table's. Outputs are set only
// on success.
Status read_knobs(const SettingSources& sources, Knobs* knobs);

// Whether a setting of this name is the path of a file or folder.
bool is_path_knob(std::string_view name);

// Warns of unknown variables: one line for each SLUICE_* name in `environment` that the table
// lacks, with the nearest known name, unless its value is empty. `environment` is a null-terminated
// array of "NAME=value" strings, or nullptr for none.
std::vector<std::string> unknown_knobs(const char* const* environment);

// Warns of unknown names in files: "FILE:LINE: SLUICE_SEGMNT is not a setting of Sluice; did you
// mean ...".
std::vector<std::string> unknown_knobs(std::span<const SettingsFile> files);

// An error about a setting whose value is from a file gets "FILE:LINE: " before its message; others
// stay as they are.
Status located(const Status& status, const SettingSources& sources);

// All rows with their values, in the table's order.
std::vector<KnobValue> knob_values(const SettingSources& sources);

// The rows that must be equal on all ranks (`agreed`), as "NAME=value" lines in the table's order.
// Ranks compare this text. The rules file is compared by content, because its path may differ
// between hosts.
std::string agreed_settings(const SettingSources& sources);

// Whether SLUICE_ENABLE is off. (read_knobs reports a value that is neither on nor off.)
bool is_switched_off(const SettingSources& sources);

// Parses a boolean: on, off, 1, 0, ... Returns false if `text` is none of them.
bool parse_switch(const std::string& text, bool* on);

// "50000" or "50000-50100". False if `text` is neither, or the last is before the first.
struct PortRange {
  uint16_t first = 0, last = 0;  // zeros: any
};
bool parse_ports(const std::string& text, PortRange* ports);

// "128k", "4m", "1g", "65536" -> bytes. False if `text` is no size, such as "-1".
bool parse_size(const std::string& text, size_t* bytes);
std::string format_size(size_t bytes);

}  // namespace sluice
