// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory of other processes. Each allocation is a file in memory, so a process that is told
// its number opens it by /proc. A page behind the memory says who has it open.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include "tests/cuda/standin/driver.h"

namespace standin {

bool Physical::map_shared() {
  void* const address =
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(bytes));
  if (address == MAP_FAILED) return false;
  exported = static_cast<Exported*>(address);
  return true;
}

// (A new page is all zero.)
bool Physical::share(uint64_t id) {
  if (exported) return true;
  if (ftruncate(file, static_cast<off_t>(bytes + page)) != 0 || !map_shared()) return false;
  exported->id = id;
  return true;
}

std::shared_ptr<Physical> Physical::open(int file, size_t bytes, int device, uint64_t id) {
  std::shared_ptr<Physical> made(new Physical(whole_pages(bytes), device));
  made->file = file;
  const off_t whole = lseek(file, 0, SEEK_END);
  if (whole != static_cast<off_t>(made->bytes + page) || !made->map_shared()) return nullptr;
  if (made->exported->id != id || made->exported->is_freed) return nullptr;
  void* const reach = mmap(nullptr, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (reach == MAP_FAILED) return nullptr;
  made->reach = static_cast<std::byte*>(reach);
  return made;
}

namespace {

// What is in a handle.
struct Handle {
  int process, file, device;
  uint64_t id, bytes, container;
};
static_assert(sizeof(Handle) <= sizeof(CUipcMemHandle));

uint64_t own_container() { return std::hash<std::string>()(driver().container); }

// (One that has ended may have a parent yet that has not asked for it.)
bool is_alive(int process) {
  char path[64], text[8];
  std::snprintf(path, sizeof path, "/proc/%d/exe", process);
  return readlink(path, text, sizeof text) > 0;
}

bool enter_user(Exported* exported) {
  return std::any_of(std::begin(exported->users), std::end(exported->users), [](auto& user) {
    int known = user;
    return (known == 0 || !is_alive(known)) && user.compare_exchange_strong(known, getpid());
  });
}

// An id that no other process's memory has.
uint64_t global_id(uint64_t own) { return static_cast<uint64_t>(getpid()) << 40 ^ own; }

CUresult why_not_opened(const Handle& handle) {
  const Driver& all = driver();
  const Context* const context = current();
  if (handle.container != own_container()) return CUDA_ERROR_MAP_FAILED;
  if (handle.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle.device >= all.devices) return CUDA_ERROR_INVALID_DEVICE;
  if (handle.device != context->device && !all.has_peers) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const bool is_open = std::any_of(all.memory.begin(), all.memory.end(), [&](const auto& each) {
    const Allocation& other = *each.second;
    return other.kind == Kind::imported && other.context == context &&
           other.physical->exported->id == handle.id;
  });
  return is_open ? CUDA_ERROR_ALREADY_MAPPED : CUDA_SUCCESS;
}

CUresult open(const Handle& handle, CUdeviceptr* pointer) {
  Driver& all = driver();
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.file);
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return CUDA_ERROR_MAP_FAILED;
  const auto physical = Physical::open(file, handle.bytes, handle.device, handle.id);
  if (!physical) return CUDA_ERROR_INVALID_VALUE;
  void* const address = mmap(nullptr, physical->bytes, PROT_NONE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED || !enter_user(physical->exported)) return CUDA_ERROR_MAP_FAILED;
  auto allocation = std::make_shared<Allocation>();
  allocation->kind = Kind::imported;
  allocation->base = reinterpret_cast<uintptr_t>(address);
  allocation->bytes = handle.bytes;
  allocation->id = all.next_id++;
  allocation->context = current();
  allocation->device = current()->device;
  allocation->physical = physical;
  all.memory[allocation->base] = allocation;
  ++counter("imports");
  *pointer = allocation->base;
  return CUDA_SUCCESS;
}

}  // namespace

void leave_exported(const Allocation& allocation) {
  for (auto& user : allocation.physical->exported->users) {
    int own = getpid();
    if (user.compare_exchange_strong(own, 0)) return;
  }
}

bool is_open_elsewhere(const Allocation& allocation) {
  const Exported* const exported = allocation.physical ? allocation.physical->exported : nullptr;
  return exported && std::any_of(std::begin(exported->users), std::end(exported->users),
                                 [](const auto& user) { return user != 0 && is_alive(user); });
}

}  // namespace standin

using standin::AllocationRef;
using standin::Kind;

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  STANDIN_ENTER_UNSAFE(cuIpcGetMemHandle);
  const AllocationRef found = driver.find(pointer);
  if (!handle || !found || found->kind != Kind::device) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t id = standin::global_id(found->id);
  if (!found->physical->share(id)) return CUDA_ERROR_OUT_OF_MEMORY;
  const standin::Handle told{getpid(), found->physical->file, found->device,
                             id,       found->bytes,          standin::own_container()};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &told, sizeof told);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle given, unsigned flags) {
  STANDIN_ENTER_UNSAFE(cuIpcOpenMemHandle_v2);
  standin::Handle handle{};
  std::memcpy(&handle, &given, sizeof handle);
  if (!pointer || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  if (driver.strikes("import")) return CUDA_ERROR_MAP_FAILED;
  const CUresult wrong = standin::why_not_opened(handle);
  return wrong ? wrong : standin::open(handle, pointer);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  STANDIN_ENTER_UNSAFE(cuIpcCloseMemHandle);
  const AllocationRef found = driver.find(pointer);
  if (!found || found->kind != Kind::imported || found->base != pointer) {
    return standin::misuse(CUDA_ERROR_INVALID_VALUE, "cuIpcCloseMemHandle: it is not open");
  }
  driver.wait_device(found->device, &lock);
  driver.forget(found);
  return CUDA_SUCCESS;
}
