// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/device.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "src/base/module.h"
#include "src/base/system_call.h"

namespace sluice {
namespace {

constexpr size_t most_late = 3;

std::array<uint8_t, 16> words_of(const uint8_t* gid) {
  std::array<uint8_t, 16> words{};
  std::copy(gid, gid + words.size(), words.begin());
  return words;
}

}  // namespace

std::string limit_of_locked_memory(int error) {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  if (error != ENOMEM && (error != EPERM || limit.rlim_cur != 0)) return {};
  return "; the limit of locked memory is " + std::to_string(limit.rlim_cur >> 10) +
         " KB, raise it (ulimit -l)";
}

bool has_verbs_devices(const std::string& system) {
  DIR* const folder = opendir((system + "/class/infiniband").c_str());
  if (!folder) return false;
  bool any = false;
  while (const dirent* entry = readdir(folder)) any |= entry->d_name[0] != '.';
  closedir(folder);
  return any;
}

Result<const SluiceVerbs*> open_verbs_module(const std::string& folder) {
  return open_module<SluiceVerbs>({"libsluice-verbs.so", SLUICE_VERBS_SYMBOL, SLUICE_VERBS_VERSION},
                                  folder);
}

Result<std::shared_ptr<VerbsDevice>> VerbsDevice::open(const SluiceVerbs& table,
                                                       const VerbsPort& port) {
  void* handle = nullptr;
  int descriptor = -1;
  if (const int error = table.open(port.port.device, &handle, &descriptor); error != 0) {
    return Status(Code::unavailable, port.label() + ": " + error_text(error));
  }
  return std::shared_ptr<VerbsDevice>(new VerbsDevice(table, handle, descriptor, port));
}

VerbsDevice::~VerbsDevice() { table_.close(handle_); }

void VerbsDevice::awake() {
  if (std::exchange(sleeps_, false)) table_.take_events(handle_);
}

void VerbsDevice::take_events() {
  SluiceVerbsEvent event{};
  int got = 0;
  const auto next = [&] {
    got = table_.next_event(handle_, &event);
    if (got < 0) errno = -got;
    return got;
  };
  while (lost_.empty() && (got = system_call(next)) > 0) note(event);
  if (got < 0) lost_ = "the device is lost: " + error_text(-got);
}

void VerbsDevice::note(const SluiceVerbsEvent& event) {
  switch (event.kind) {
    case SLUICE_VERBS_QUEUE_FAILED:
      if (const auto at = failed_queues_.find(event.number); at != failed_queues_.end()) {
        at->second = event.text;
      }
      return;
    case SLUICE_VERBS_PORT_DOWN:
    case SLUICE_VERBS_PORT_UP:
      changed_ |= event.kind == SLUICE_VERBS_PORT_UP;
      if (event.port != port().number) return;
      down_ = event.kind == SLUICE_VERBS_PORT_UP ? std::string()
                                                 : std::string("the port is down: ") + event.text;
      return;
    case SLUICE_VERBS_PORT_CHANGED:
      changed_ = true;
      return;
    case SLUICE_VERBS_DEVICE_LOST:
      lost_ = std::string("the device is lost: ") + event.text;
      return;
    default:
      return;
  }
}

const char* VerbsDevice::failure_of(uint32_t queue) const {
  const auto found = failed_queues_.find(queue);
  return found == failed_queues_.end() ? nullptr : found->second;
}

std::string VerbsDevice::problem(uint32_t queue) const {
  if (!lost_.empty()) return lost_;
  if (!down_.empty()) return down_;
  const char* const failed = failure_of(queue);
  return failed == nullptr ? std::string() : std::string("the queue pair failed: ") + failed;
}

void VerbsDevice::note_connect(const void* link, const uint8_t* gid, int error) {
  if (error == 0 && late_.size() < most_late) late_.clear();
  if (error != ETIMEDOUT) return;
  late_.insert(link);
  silent_.insert(words_of(gid));
}

bool VerbsDevice::timed_out(const uint8_t* gid) const { return silent_.contains(words_of(gid)); }

std::string VerbsDevice::given_up() const {
  if (late_.size() < most_late) return {};
  return "given up, because " + std::to_string(most_late) +
         " connections in a row timed out: RoCE does not pass to the peers' addresses";
}

Result<std::unique_ptr<VerbsMemory>> VerbsMemory::make(std::shared_ptr<VerbsDevice> device,
                                                       size_t bytes, bool remote) {
  void* data = nullptr;
  int error = -system_call([&] {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? -1 : 0;
  });
  if (error != 0) return Status(Code::memory, "no memory for RDMA: " + error_text(error));
  (void)madvise(data, bytes, MADV_DONTFORK);
  std::unique_ptr<VerbsMemory> memory(
      new VerbsMemory(std::move(device), static_cast<std::byte*>(data), bytes));
  const VerbsDevice& of = *memory->device_;
  SluiceVerbsRegion region{};
  error = of.table().add_region(of.handle(), data, bytes,
                                remote ? SLUICE_VERBS_WRITTEN : SLUICE_VERBS_OWN, &region);
  if (error != 0) {
    return Status(Code::unavailable, of.label() + ": cannot register memory: " + error_text(error) +
                                         limit_of_locked_memory(error));
  }
  memory->region_ = region;
  return memory;
}

VerbsMemory::~VerbsMemory() {
  if (region_.handle != nullptr) device_->table().drop_region(region_.handle);
  munmap(data_, bytes_);
}

}  // namespace sluice
