// SPDX-License-Identifier: BSD-3-Clause
//
// The RDMA devices of this host, the port of one that this process uses, and memory registered with
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "transports/verbs/module.h"

namespace sluice {

// Whether the kernel knows any RDMA device. Without one the module need not be opened. system: the
// kernel's files.
bool has_verbs_devices(const std::string& system = "/sys");
// "; the limit of locked memory is ...", to go behind an errno that it may explain: ENOMEM, or
// EPERM if nothing may be locked. Else empty.
std::string limit_of_locked_memory(int error);
// Opens the module of the library in `folder` (src/base/module.h).
Result<const SluiceVerbs*> open_verbs_module(const std::string& folder);

// A port of one of this host's devices, and what is known of it.
struct VerbsPort {
  SluiceVerbsPort port{};
  std::vector<SluiceVerbsGid> gids;
  size_t gid = 0;  // of gids: the address that is used
  // Of gids: its other addresses of RoCE v2 over IPv4 that may be used, for peers in their
  // networks.
  std::vector<size_t> other_gids{};
  std::string problem;  // why the port is not used; empty: it may be
  bool broken = false;  // the problem is an error of the system's
  std::string rate;     // as the kernel writes it, "100 Gb/sec (4X EDR)"; empty: unknown
  int node = -1;        // NUMA node; -1: unknown
  int distance = 0;     // of the node from the processors of this thread: 10 is near

  const SluiceVerbsGid& address() const { return gids[gid]; }
  std::string label() const;  // "device rxe0, port 1"; without a number: "device rxe0"
};

// "10.9.0.1" or "fe80::1".
std::string text_of_gid(const SluiceVerbsGid& gid);
bool is_ipv4(const SluiceVerbsGid& gid);

// Code::invalid, with the setting's name: no list of devices is written so.
Status check_verbs_devices(const std::string& devices);
// Code::unavailable: the list names a device or port that is not among these.
Status check_named(const std::string& devices, const std::vector<VerbsPort>& ports);

// Lists all ports: first those that may be used, the nearest to this thread's processors first.
// devices: an InterfaceList. Its names are devices ("mlx5_0") or ports ("mlx5_1:2");
// its networks are those of RoCE v2 ("10.1.0.0/16"): a port uses an address in one of them, or if
// they are excluded, another that an interface has. system: the kernel's files, "/sys". On
// Ethernet, a port uses its address of RoCE v2 over IPv4, if it has one; else another of v2; else
// any. Code::invalid: no list is written so.
Result<std::vector<VerbsPort>> survey_verbs(const SluiceVerbs& table, const std::string& devices,
                                            const std::string& system = "/sys");
// An error (unavailable) that says why each port is not used, if none may be; if there are none,
// whether the kernel knows a device.
Status why_none(const std::vector<VerbsPort>& ports, const std::string& system = "/sys");

class VerbsDevice {
 public:
  static Result<std::shared_ptr<VerbsDevice>> open(const SluiceVerbs& table, const VerbsPort& port);
  ~VerbsDevice();
  VerbsDevice(const VerbsDevice&) = delete;
  VerbsDevice& operator=(const VerbsDevice&) = delete;

  const SluiceVerbs& table() const { return table_; }
  void* handle() const { return handle_; }
  const SluiceVerbsPort& port() const { return about_.port; }
  const SluiceVerbsGid& gid() const { return about_.address(); }
  const VerbsPort& about() const { return about_; }
  std::string label() const { return about_.label(); }

  // Readable if a queue pair that sleeps has a completion. One for all.
  int descriptor() const { return descriptor_; }
  // A queue pair of it is armed: from now on the descriptor may be readable.
  void note_sleep() { sleeps_ = true; }
  // Called after the process has polled the descriptor, and nobody polls it any more: takes what
  // made it readable. A system call once after each sleep.
  void awake();

  // Takes the asynchronous events that there are. A system call.
  void take_events();
  // Why the queue pair with that number does not work any more, as far as events told; else empty.
  std::string problem(uint32_t queue) const;
  // Whether completions of that queue pair still come.
  bool reports(uint32_t queue) const { return lost_.empty() && failure_of(queue) == nullptr; }
  // How connecting a queue pair of that link to that address ended: 0 or an errno. It may block for
  // a second while the kernel looks for the peer's hardware address, and nothing else moves.
  void note_connect(const void* link, const uint8_t* gid, int error);
  // Whether connecting to that address timed out before.
  bool timed_out(const uint8_t* gid) const;
  // Why no queue pair is connected over the port any more: so many links in a row timed out. (One
  // peer that is dead may offer several ports.) Else empty.
  std::string given_up() const;
  // Whether an event told, since the last call, that a port has come up or has other addresses.
  bool take_change() { return std::exchange(changed_, false); }
  // A queue pair is new: its events are noted from now on, which takes no memory then.
  void add(uint32_t queue) { failed_queues_[queue] = nullptr; }
  void remove(uint32_t queue) { failed_queues_.erase(queue); }

 private:
  VerbsDevice(const SluiceVerbs& table, void* handle, int descriptor, VerbsPort about)
      : table_(table), handle_(handle), descriptor_(descriptor), about_(std::move(about)) {}
  void note(const SluiceVerbsEvent& event);
  const char* failure_of(uint32_t queue) const;

  const SluiceVerbs& table_;
  void* handle_;
  const int descriptor_;
  const VerbsPort about_;
  bool sleeps_ = false;
  bool changed_ = false;
  std::set<const void*> late_;                     // links whose connect timed out, in a row
  std::set<std::array<uint8_t, 16>> silent_;       // GIDs to which connects timed out
  std::string lost_, down_;                        // the device; its port
  std::map<uint32_t, const char*> failed_queues_;  // of all: the event that failed it, or nullptr
};

// Zeroed memory that the device may access, and the peer if remote. A child of fork() does not get
// it.
class VerbsMemory {
 public:
  // The error says which limit to raise if it is that of locked memory.
  static Result<std::unique_ptr<VerbsMemory>> make(std::shared_ptr<VerbsDevice> device,
                                                   size_t bytes, bool remote);
  ~VerbsMemory();
  VerbsMemory(const VerbsMemory&) = delete;
  VerbsMemory& operator=(const VerbsMemory&) = delete;

  std::byte* data() const { return data_; }
  uint32_t local_key() const { return region_.local_key; }
  uint32_t remote_key() const { return region_.remote_key; }

 private:
  VerbsMemory(std::shared_ptr<VerbsDevice> device, std::byte* data, size_t bytes)
      : device_(std::move(device)), data_(data), bytes_(bytes) {}

  std::shared_ptr<VerbsDevice> device_;
  std::byte* data_;
  size_t bytes_;
  SluiceVerbsRegion region_{};
};

}  // namespace sluice
