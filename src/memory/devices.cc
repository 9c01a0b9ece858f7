// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/devices.h"

#include <dlfcn.h>

#include <mutex>
#include <utility>

#include "src/base/log.h"
#include "src/base/module.h"

namespace sluice {
namespace {

// What library_after_last leads to if it is not in the loader's list.
constinit link_map nothing{};
constinit link_map* const always = &nothing;
constinit link_map* const never = nullptr;

constinit std::mutex looking;
constinit bool wanted = false;
constinit const std::atomic<bool>* threads_call_here = nullptr;  // set by begin_devices
constinit SluiceCudaSettings settings{};
constinit void* last_library = nullptr;  // held, so that it stays in the list
constinit std::atomic<const SluiceCuda*> cuda{nullptr};
constinit std::atomic<uint64_t> copied[2]{};  // bytes from and to devices

struct Last {
  const link_map* library = nullptr;
  char name[4096] = "";
};

// The loader keeps its list as it is while it calls this.
int find_last(dl_phdr_info*, size_t, void* data) {
  auto* const last = static_cast<Last*>(data);
  last->library = _r_debug.r_map;
  while (last->library && last->library->l_next) last->library = last->library->l_next;
  const char* const name = last->library ? last->library->l_name : "";
  size_t length = 0;
  while (name[length] && length + 1 < sizeof last->name) ++length;
  for (size_t i = 0; i < length; ++i) last->name[i] = name[i];
  last->name[length] = '\0';
  return 1;
}

// The last library of the list, held; nullptr if it can't be held. Then each call looks again.
link_map* hold_last_library() {
  Last last;
  dl_iterate_phdr(find_last, &last);
  void* const held = last.library ? dlopen(last.name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (!held || held == last.library) return static_cast<link_map*>(held);
  dlclose(held);  // (glibc's handles are the entries of the list)
  return nullptr;
}

// From now on calls look for a driver when a library is loaded after this one, which is held.
void await_library_after(link_map* library) {
  void* const before = std::exchange(last_library, library);
  library_after_last.store(&library->l_next, std::memory_order_release);
  // Another thread may be reading the entry of the library before.
  if (before && !threads_call_here->load(std::memory_order_relaxed)) dlclose(before);
}

void use(void* driver) {
  char why[sluice_cuda_why] = "";
  const auto module = open_module<SluiceCuda>(
      {"libsluice-cuda.so", SLUICE_CUDA_SYMBOL, SLUICE_CUDA_VERSION}, library_folder());
  if (module.ok() && (*module)->begin(driver, &settings, why) == 0) {
    cuda.store(*module, std::memory_order_release);
    library_after_last.store(&always, std::memory_order_release);
    return;
  }
  log(Level::warning, "buffers on CUDA devices can't be used: %s",
      module.ok() ? why : module.status().message().c_str());
  library_after_last.store(&never, std::memory_order_release);
}

// The module, if there is a driver. (A library that is loaded meanwhile is found in the list, or
// comes after the last one that was looked at.) Until the driver is known, other threads' calls
// must come here too: their buffers may be on a device.
const SluiceCuda* find_module() {
  const std::lock_guard lock(looking);
  if (const SluiceCuda* const known = cuda.load(std::memory_order_acquire)) return known;
  if (!wanted || !may_be_on_device()) return nullptr;
  link_map* const last = hold_last_library();
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver) {
    use(driver);
    if (last) dlclose(last);
  } else if (last) {
    await_library_after(last);
  }
  return cuda.load(std::memory_order_acquire);
}

}  // namespace

constinit std::atomic<link_map* const*> library_after_last{&never};

void begin_devices(const Knobs& knobs, const std::atomic<bool>& threads_call) {
  const std::lock_guard lock(looking);
  threads_call_here = &threads_call;
  wanted = knobs.cuda == "auto";
  settings = {.pinned = knobs.cuda_pinned,
              .scratch = knobs.cuda_scratch,
              .blocking_streams = knobs.cuda_streams == "blocking",
              .sync_contexts = knobs.cuda_sync_memops};
  if (wanted) library_after_last.store(&always, std::memory_order_release);
}

void end_devices() {
  const std::lock_guard lock(looking);
  wanted = false;
  library_after_last.store(&never, std::memory_order_release);
  if (const SluiceCuda* const module = cuda.load(std::memory_order_acquire)) module->end();
  if (last_library && !*threads_call_here) dlclose(std::exchange(last_library, nullptr));
}

bool has_driver() { return may_be_on_device() && find_module(); }

DevicePlace find_place(const void* address, Status* why) {
  DevicePlace place;
  char text[sluice_cuda_why] = "";
  const SluiceCuda* module = cuda.load(std::memory_order_acquire);
  if (!module) module = find_module();
  if (!module || module->find(address, &place, text) == 0) return place;
  if (why) *why = {Code::unavailable, std::string("can't tell where a buffer is: ") + text};
  place.device = DevicePlace::unknown;
  return place;
}

namespace {

template <typename Table>
const Table* find_part(const char* symbol, int version, Status* why) {
  const auto module = open_module<Table>({"libsluice-cuda.so", symbol, version}, library_folder());
  if (module.ok()) return *module;
  *why = module.status();
  return nullptr;
}

}  // namespace

const SluiceCuda& cuda_module() { return *cuda.load(std::memory_order_acquire); }

const SluiceNccl* find_nccl(Status* why) {
  return find_part<SluiceNccl>(SLUICE_NCCL_SYMBOL, SLUICE_NCCL_VERSION, why);
}

const SluiceIpc* find_ipc(Status* why) {
  return find_part<SluiceIpc>(SLUICE_IPC_SYMBOL, SLUICE_IPC_VERSION, why);
}

DeviceTraffic device_traffic() {
  return {copied[0].load(std::memory_order_relaxed), copied[1].load(std::memory_order_relaxed)};
}

void count_traffic(bool to_device, uint64_t bytes) {
  copied[to_device].fetch_add(bytes, std::memory_order_relaxed);
}

std::byte* reserve_pinned(const DevicePlace& place, size_t bytes) {
  return static_cast<std::byte*>(cuda_module().reserve(&place, bytes));
}

void give_back_pinned(std::byte* memory) { cuda_module().give_back(memory); }

Status DeviceCopier::open(const DevicePlace& place, Way way) {
  char why[sluice_cuda_why] = "";
  device_ = place.device;
  to_device_ = way == Way::to_device;
  given_ = done_ = 0;
  abandoned_ = false;
  collected_ = 0;
  failure_ = {};
  stream_ = cuda_module().open(&place, why);
  if (!stream_) check(-1, why);
  return failure_;
}

void DeviceCopier::check(int result, const char* why) {
  if (result >= 0 || !failure_.ok()) return;
  failure_ = {Code::unavailable, "can't copy " + describe() + ": " + why};
}

std::string DeviceCopier::describe() const {
  return std::string(to_device_ ? "to" : "from") + " CUDA device " + std::to_string(device_);
}

// Returns when the stream has passed a mark.
void DeviceCopier::await(unsigned mark) {
  char why[sluice_cuda_why] = "";
  const SluiceCuda& module = cuda_module();
  int reached = module.reached(stream_, mark, why);
  if (reached == 0) {
    const auto is_done = [&] { return (reached = module.reached(stream_, mark, why)) != 0; };
    const Status status = wait_.wait_for_copy(is_done, "a copy " + describe());
    abandoned_ = !status.ok();
    if (failure_.ok()) failure_ = status;
  }
  check(reached, why);
}

// Makes one more run part of the last copies: behind a run that it adjoins, or as one more row.
bool DeviceCopier::extend(SluiceCudaRuns* last, std::byte* user, std::byte* dense, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(user);
  const auto device = reinterpret_cast<uintptr_t>(last->device);
  auto* const host = static_cast<std::byte*>(last->host);
  if (last->count == 1 && at == device + last->bytes && dense == host + last->bytes) {
    last->bytes += bytes;
    return true;
  }
  if (last->bytes != bytes || at < device + bytes || dense < host + bytes) return false;
  if (last->count == 1) {
    last->device_stride = static_cast<ptrdiff_t>(at - device);
    last->host_stride = static_cast<size_t>(dense - host);
  }
  const bool is_next = at == device + last->count * static_cast<uintptr_t>(last->device_stride) &&
                       dense == host + last->count * last->host_stride;
  last->count += is_next;
  return is_next;
}

void DeviceCopier::copy(std::byte* user, std::byte* dense, size_t bytes) {
  runs(user, static_cast<ptrdiff_t>(bytes), 1, bytes, dense, bytes);
}

void DeviceCopier::runs(std::byte* user, ptrdiff_t stride, size_t n, size_t bytes, std::byte* dense,
                        size_t dense_stride) {
  if (stride == static_cast<ptrdiff_t>(bytes) && dense_stride == bytes) {
    bytes *= n;
    n = 1;
  }
  if (n == 1 && collected_ > 0 && extend(&copies_[collected_ - 1], user, dense, bytes)) return;
  if (collected_ == std::size(copies_)) begin_collected();
  copies_[collected_++] = {user, dense, stride, dense_stride, n, bytes};
}

void DeviceCopier::begin_collected() {
  char why[sluice_cuda_why] = "";
  const unsigned count = std::exchange(collected_, 0);
  if (!failure_.ok()) return;
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) bytes += copies_[i].count * copies_[i].bytes;
  count_traffic(to_device_ != 0, bytes);
  check(cuda_module().copy(stream_, copies_, count, to_device_, why), why);
}

uint32_t DeviceCopier::ticket() {
  char why[sluice_cuda_why] = "";
  begin();
  ++given_;
  if (!failure_.ok()) return given_;
  const unsigned mark = given_ % sluice_cuda_marks;
  check(cuda_module().mark(stream_, mark, why), why);
  return given_;
}

// (If its mark has been set again since, this waits for later copies too.)
void DeviceCopier::wait(uint32_t ticket) {
  if (!failure_.ok() || done_ >= ticket) return;
  await(ticket % sluice_cuda_marks);
  done_ = ticket;
}

void DeviceCopier::close_stream() {
  char why[sluice_cuda_why] = "";
  begin();
  const SluiceCuda& module = cuda_module();
  if (!abandoned_) {
    const int marked = module.mark(stream_, 0, why);
    check(marked, why);
    if (marked == 0) await(0);
  }
  module.close(std::exchange(stream_, nullptr), failure_.ok());
}

}  // namespace sluice
