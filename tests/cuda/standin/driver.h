// SPDX-License-Identifier: BSD-3-Clause
//
// The inside of the stand-in driver. One mutex guards everything; operations of streams run in one
// thread of the driver's, which lets go of the mutex while it copies.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/standin/cuda_driver.h"

namespace standin {

using Lock = std::unique_lock<std::mutex>;

// What the processes that use exported memory share, in a page behind it.
struct Exported {
  static constexpr size_t most = 64;
  uint64_t id = 0;  // 0: not exported
  std::atomic<bool> is_freed{false};
  std::atomic<int> users[most];  // processes that have it open; 0: none
};

constexpr size_t page = 4096;
inline size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

// Memory for one device, or the host's (device -1) that is mapped by the driver: the program sees
// it without access, the driver through another mapping.
class Physical {
 public:
  static std::shared_ptr<Physical> make(size_t bytes, int device);
  // Another process's, by its file, which this object then owns. Null: there is no such memory.
  static std::shared_ptr<Physical> open(int file, size_t bytes, int device, uint64_t id);
  // So that other processes can open it. False: there is no memory.
  bool share(uint64_t id);
  ~Physical();
  Physical(const Physical&) = delete;

  const size_t bytes;
  const int device;
  std::byte* reach = nullptr;  // for the driver
  int file = -1;
  Exported* exported = nullptr;  // if it is shared

 private:
  bool map_shared();
  Physical(size_t size, int of_device) : bytes(size), device(of_device) {}
};

enum class Kind : uint8_t { device, pool, mapped, imported, managed, pinned, registered };

struct Context;

// What the program got at one address. It lives until no operation needs it any more.
struct Allocation {
  Allocation() = default;
  Allocation(const Allocation&) = delete;
  ~Allocation();

  Kind kind = Kind::device;
  uintptr_t base = 0;
  size_t bytes = 0;
  uint64_t id = 0;
  Context* context = nullptr;  // null: pool and mapped
  int device = 0;
  std::shared_ptr<Physical> physical;  // device, pool, mapped, imported and managed
  std::vector<int> access;             // devices that may use it, -1 for the host; mapped only
  bool sync_memops = false;

  uintptr_t end() const { return base + bytes; }
  // Whether the processor may touch it.
  bool in_host() const { return kind >= Kind::managed; }
  bool is_numa() const { return kind == Kind::mapped && device < 0; }
  bool is_pinned() const { return kind >= Kind::pinned; }
  // Whether it is another process's, which has freed it.
  bool is_gone() const { return kind == Kind::imported && physical->exported->is_freed; }
  bool serves(int of_device) const;
};
using AllocationRef = std::shared_ptr<Allocation>;

struct Stream;

struct Operation {
  uint64_t number = 0;
  Stream* stream = nullptr;
  std::vector<std::shared_ptr<Operation>> after;
  std::function<void()> run;  // without the mutex; may be null
  std::vector<AllocationRef> uses;
  standin_start* start = nullptr;  // of a kernel, which runs until it is ended
  void* argument = nullptr;
  bool started = false;
  bool takes_slot = false;        // `run` is a kernel's: no other kernel runs on the device
  bool endless = false;           // does not start
  CUresult fails = CUDA_SUCCESS;  // injected: instead of running
  bool done = false;
  bool early = false;  // a synchronous copy whose call has returned
};
using OperationRef = std::shared_ptr<Operation>;

// Handles are addresses of these; they stay after destruction, so that a stale handle is noticed.
struct Stream {
  Context* context = nullptr;
  bool legacy = false, blocking = true, alive = true;
  std::deque<OperationRef> queue;
  bool captured = false, invalidated = false;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id captured_by;
};

struct Event {
  Context* context = nullptr;
  OperationRef last;
  bool alive = true;
};

struct Context {
  uint64_t id = 0;
  int device = 0;
  bool primary = false, alive = true;
  bool green = false;               // current to one thread at a time
  std::set<std::thread::id> in;     // threads to which it is current
  int retained = 0, launching = 0;  // launching: threads that are in a call that enqueues
  unsigned flags = 0;
  CUresult broken = CUDA_SUCCESS;
  Stream* legacy = nullptr;
};

// Of a module that was loaded: what its PTX declares.
struct Entry {
  std::string name;
  std::vector<size_t> parameters;  // bytes of each
  unsigned most_threads = 1024;    // a block
};

struct Module {
  Context* context = nullptr;
  std::vector<Entry> entries;
  bool alive = true;
};

struct Function {
  Module* module = nullptr;
  const Entry* entry = nullptr;
};

struct Injection {
  int64_t left = 0;
  bool all_after = false;
};

class Driver {
 public:
  std::mutex mutex;
  std::condition_variable changed;
  bool initialized = false, shut_down = false, returns_early = false, is_concurrent = true;
  bool has_peers = true;
  std::string container;
  int devices = 2, version = 12040;
  std::map<uintptr_t, AllocationRef> memory;  // by base
  std::map<uintptr_t, size_t> reserved;
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<Physical>> handles;
  std::vector<Context*> primaries;
  std::map<uint64_t, OperationRef> kernels;  // launched and not ended, by number
  std::vector<Module*> modules;
  std::vector<Function*> functions;
  uint64_t next_id = 1;
  bool held = false;

  Driver();
  Context* context_of(CUcontext handle);  // null: none, or gone
  Event* event_of(CUevent handle);
  // The current context's own legacy stream for 0 and CU_STREAM_LEGACY; null: gone.
  Stream* stream_of(CUstream handle);
  Context* make_context(int device, bool primary);
  Stream* make_stream(Context* context, bool blocking, bool legacy);
  Event* make_event(Context* context);
  void destroy(Context* context, Lock* lock);
  void revive(Context* context);

  OperationRef enqueue(Stream* stream, std::function<void()> run, std::vector<AllocationRef> uses);
  void end_kernel(uint64_t number);
  void wait(const OperationRef& operation, Lock* lock);
  void wait(const Stream* stream, Lock* lock);
  void wait(const Context* context, Lock* lock);
  void wait_device(int device, Lock* lock);
  // For synchronous copies from and to this memory that have returned early.
  void wait_early(const AllocationRef& allocation, Lock* lock);

  // While the calling thread's mode and a capture forbid what is unsafe: an error, and the capture
  // is invalid.
  CUresult refuse_unsafe();

  // Lets the processor touch managed memory, or not, as the device is idle or busy.
  void protect_managed();
  void vacate();

  AllocationRef find(uintptr_t address);
  void forget(const AllocationRef& allocation);

  bool inject(const char* what, const char* which);
  bool strikes(const char* what);
  CUresult init_result = CUDA_SUCCESS;

 private:
  void work();
  OperationRef choose(Lock* lock);
  bool may_start(const Stream& stream) const;
  bool is_next_kernel(const Operation& operation) const;
  void start_kernel(const OperationRef& operation, Lock* lock);
  void finish(const OperationRef& operation);
  void read_environment();

  std::vector<Context*> contexts_;
  std::vector<Stream*> streams_;
  std::vector<Event*> events_;
  std::map<std::string, Injection> injections_;
  std::mt19937_64 random_{1};
  uint64_t next_operation_ = 1;
  unsigned longest_delay_ = 50;
  bool working_ = false;
};

// This process has it open no more.
void leave_exported(const Allocation& allocation);
// Whether a process that lives has this memory open.
bool is_open_elsewhere(const Allocation& allocation);

// Whether a kernel on a device may use it.
bool is_usable(const Allocation& allocation, int device);

// Made at the first call, never destroyed: threads may outlive main.
Driver& driver();
Context* current();  // to the calling thread
void push_current(Context* context);
void pop_current();

std::atomic<int64_t>& counter(const char* name);
// Tells it on standard error and counts it.
CUresult misuse(CUresult error, const char* format, ...) __attribute__((format(printf, 2, 3)));

// CUDA_SUCCESS if the driver is initialized and there is a current context that is not broken.
CUresult usable_context();

}  // namespace standin

#define STANDIN_CALLED(function)                                              \
  do {                                                                        \
    static std::atomic<int64_t>& calls_of_this = standin::counter(#function); \
    ++calls_of_this;                                                          \
  } while (false)

// Begins a function that needs cuInit, or a current context as well, or is also "potentially
// unsafe" while a stream is captured.
#define STANDIN_ENTER(function)                          \
  STANDIN_CALLED(function);                              \
  standin::Driver& driver = standin::driver();           \
  standin::Lock lock(driver.mutex);                      \
  if (driver.shut_down) return CUDA_ERROR_DEINITIALIZED; \
  if (!driver.initialized) return CUDA_ERROR_NOT_INITIALIZED
#define STANDIN_ENTER_CONTEXT(function) \
  STANDIN_ENTER(function);              \
  if (const CUresult wrong = standin::usable_context(); wrong) return wrong
#define STANDIN_ENTER_UNSAFE(function) \
  STANDIN_ENTER_CONTEXT(function);     \
  if (const CUresult wrong = driver.refuse_unsafe(); wrong) return wrong
