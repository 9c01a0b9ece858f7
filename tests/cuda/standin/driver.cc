// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/standin/driver.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace standin {
namespace {

struct Counters {
  std::mutex mutex;
  std::map<std::string, std::atomic<int64_t>> all;
};

Counters& counters() {
  static Counters& all = *new Counters;
  return all;
}

// After main and the destructors of what was loaded later.
__attribute__((destructor)) void judge() {
  if (std::getenv("STANDIN_REPORT")) {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    for (const auto& [name, value] : counters().all) {
      std::fprintf(stderr, "standin: %s %lld\n", name.c_str(),
                   static_cast<long long>(value.load()));
    }
  }
  const long long misuses = counter("misuse");
  if (misuses == 0) return;
  std::fprintf(stderr, "standin: MISUSED %lld times\n", misuses);
  std::fflush(nullptr);
  _exit(97);
}

}  // namespace

std::atomic<int64_t>& counter(const char* name) {
  const std::lock_guard<std::mutex> lock(counters().mutex);
  return counters().all[name];
}

CUresult misuse(CUresult error, const char* format, ...) {
  ++counter("misuse");
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "standin: MISUSE: %s\n", text);
  return error;
}

Driver& driver() {
  static Driver& only = *new Driver;
  return only;
}

namespace {

std::vector<Context*>& current_stack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

void note_current() {
  const auto own = std::this_thread::get_id();
  for (Context* context : current_stack()) context->in.insert(own);
}

}  // namespace

Context* current() { return current_stack().empty() ? nullptr : current_stack().back(); }

// (A green context that is current to two threads is used by both at once.)
void push_current(Context* context) {
  const auto own = std::this_thread::get_id();
  const bool is_taken = std::any_of(context->in.begin(), context->in.end(),
                                    [&](std::thread::id other) { return other != own; });
  if (context->green && is_taken) {
    (void)misuse(CUDA_SUCCESS, "a green context becomes current to a second thread");
  }
  current_stack().push_back(context);
  note_current();
}

void pop_current() {
  Context* const context = current();
  current_stack().pop_back();
  context->in.erase(std::this_thread::get_id());
  note_current();
}

CUresult usable_context() {
  const Context* context = current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return context->broken;
}

Driver::Driver() { read_environment(); }

void Driver::read_environment() {
  const auto number = [](const char* name, auto* value) {
    if (const char* text = std::getenv(name)) {
      *value = static_cast<std::remove_reference_t<decltype(*value)>>(std::atoll(text));
    }
  };
  uint64_t seed = 1;
  number("STANDIN_DEVICES", &devices);
  number("STANDIN_VERSION", &version);
  number("STANDIN_SEED", &seed);
  number("STANDIN_DELAY", &longest_delay_);
  number("STANDIN_EARLY", &returns_early);
  number("STANDIN_CONCURRENT", &is_concurrent);
  number("STANDIN_PEERS", &has_peers);
  if (const char* name = std::getenv("STANDIN_CONTAINER")) container = name;
  random_.seed(seed);
  primaries.assign(static_cast<size_t>(devices), nullptr);
  const char* fail = std::getenv("STANDIN_FAIL");
  std::string rest = fail ? fail : "";
  while (!rest.empty()) {
    const std::string item = rest.substr(0, rest.find(','));
    rest.erase(0, item.size() + 1);
    const size_t colon = item.find(':');
    if (colon == item.npos || !inject(item.substr(0, colon).c_str(), item.c_str() + colon + 1)) {
      std::fprintf(stderr, "standin: STANDIN_FAIL='%s' is not WHAT:N\n", fail);
      _exit(97);
    }
  }
}

bool Driver::inject(const char* what, const char* which) {
  char* end = nullptr;
  const int64_t number = std::strtoll(which, &end, 10);
  const bool all_after = *end == '+';
  if (end == which || end[all_after ? 1 : 0] != '\0' || number < 0) return false;
  if (std::strcmp(what, "init") == 0) {
    init_result = static_cast<CUresult>(number);
    return true;
  }
  for (const char* known : {"host_alloc", "device_alloc", "copy", "lose_device", "stream", "retain",
                            "pointer", "module", "launch", "kernel", "import"}) {
    if (std::strcmp(what, known) != 0) continue;
    injections_[what] = {number, all_after};
    return true;
  }
  return false;
}

bool Driver::strikes(const char* what) {
  const auto found = injections_.find(what);
  if (found == injections_.end() || found->second.left == 0) return false;
  if (--found->second.left > 0) return false;
  if (found->second.all_after) found->second.left = 1;
  return true;
}

template <typename Object, typename Handle>
Object* known(const std::vector<Object*>& all, Handle handle) {
  auto* const object = reinterpret_cast<Object*>(handle);
  const bool there = std::find(all.begin(), all.end(), object) != all.end();
  return there && object->alive ? object : nullptr;
}

Context* Driver::context_of(CUcontext handle) { return known(contexts_, handle); }
Event* Driver::event_of(CUevent handle) { return known(events_, handle); }

Stream* Driver::stream_of(CUstream handle) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number > 2) return known(streams_, handle);
  if (number < 2) return current()->legacy;
  thread_local std::map<Context*, Stream*> own;  // CU_STREAM_PER_THREAD
  Stream*& stream = own[current()];
  if (!stream) stream = make_stream(current(), true, false);
  return stream;
}

Context* Driver::make_context(int device, bool primary) {
  auto* const context = new Context;
  context->id = next_id++;
  context->device = device;
  context->primary = primary;
  context->legacy = make_stream(context, true, true);
  contexts_.push_back(context);
  ++counter("contexts");
  return context;
}

// As new, but with its old handle.
void Driver::revive(Context* context) {
  context->alive = true;
  context->flags = 0;
  context->broken = CUDA_SUCCESS;
  context->id = next_id++;
  context->legacy = make_stream(context, true, true);
  ++counter("contexts");
}

Stream* Driver::make_stream(Context* context, bool blocking, bool legacy) {
  auto* const stream = new Stream;
  stream->context = context;
  stream->blocking = blocking;
  stream->legacy = legacy;
  streams_.push_back(stream);
  return stream;
}

Event* Driver::make_event(Context* context) {
  auto* const event = new Event;
  event->context = context;
  events_.push_back(event);
  return event;
}

void Driver::destroy(Context* context, Lock* lock) {
  wait(context, lock);
  context->alive = false;
  --counter("contexts");
  std::vector<AllocationRef> gone;
  for (const auto& [base, allocation] : memory) {
    const bool stays = allocation->kind == Kind::registered;
    if (allocation->context == context && !stays) gone.push_back(allocation);
  }
  for (const AllocationRef& allocation : gone) forget(allocation);
  for (Stream* stream : streams_) {
    if (stream->context != context || !stream->alive) continue;
    stream->alive = false;
    if (!stream->legacy) --counter("streams");
  }
  for (Event* event : events_) {
    if (event->context != context || !event->alive) continue;
    event->alive = false;
    --counter("events");
  }
  for (Module* module : modules) {
    if (module->context != context || !module->alive) continue;
    module->alive = false;
    --counter("modules");
  }
}

AllocationRef Driver::find(uintptr_t address) {
  auto after = memory.upper_bound(address);
  if (after == memory.begin()) return nullptr;
  const AllocationRef& found = std::prev(after)->second;
  return address < found->end() ? found : nullptr;
}

// (Another thread may have destroyed its context while this one waited for the device.)
void Driver::forget(const AllocationRef& allocation) {
  const auto known = memory.find(allocation->base);
  if (known == memory.end() || known->second != allocation) return;
  if (allocation->is_pinned()) counter("pinned") -= static_cast<int64_t>(allocation->bytes);
  const bool is_own = !allocation->in_host() && allocation->kind != Kind::imported;
  if (is_own) counter("device_memory") -= static_cast<int64_t>(allocation->bytes);
  if (allocation->kind == Kind::imported) --counter("imports");
  const bool is_shared = allocation->kind == Kind::device && allocation->physical->exported;
  if (is_shared) allocation->physical->exported->is_freed = true;
  memory.erase(known);
}

}  // namespace standin

int64_t standin_counter(const char* name) { return standin::counter(name); }

int64_t standin_forgive() { return standin::counter("misuse").exchange(0); }

void standin_hold() {
  const standin::Lock lock(standin::driver().mutex);
  standin::driver().held = true;
}

void standin_release() {
  const standin::Lock lock(standin::driver().mutex);
  standin::driver().held = false;
  standin::driver().changed.notify_all();
}

void standin_vacate() {
  const standin::Lock lock(standin::driver().mutex);
  standin::driver().vacate();
}

void standin_shut_down() {
  const standin::Lock lock(standin::driver().mutex);
  standin::driver().shut_down = true;
}

bool standin_fail(const char* what, const char* which) {
  const standin::Lock lock(standin::driver().mutex);
  return standin::driver().inject(what, which);
}
