// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/transports/fake_verbs.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sluice::fake_verbs {
namespace {

struct Pending {
  SluiceVerbsWrite write;       // of a read: the other way round
  std::vector<std::byte> copy;  // if inlined
  size_t moved = 0;
  bool reads = false;
};

struct Opened {
  Device device;
  size_t seen;  // of the events
  int descriptor;
};

struct Queue {
  Opened* device;
  uint32_t number, peer = 0, sends, depth;
  std::deque<Pending> writes;
  std::deque<SluiceVerbsDone> later, done;  // not reported yet; to be polled
  uint32_t receives = 0, open_sends = 0;    // open: slots that no polled completion has freed
  std::deque<uint32_t> freed_by;            // slots that each signalled completion frees
  uint32_t since_signal = 0;
  bool armed = false, broken = false;
  bool lost = false;  // its writes do not arrive
};

struct Region {
  std::byte* data;
  size_t bytes;
  SluiceVerbsUse use;
};

struct Network {
  std::mutex mutex;
  Settings settings;
  std::mt19937_64 random{1};
  std::map<uint32_t, Queue*> queues;
  std::map<uint32_t, Region> regions;
  uint32_t next = 1;
  size_t made = 0;  // queues
  int fail = 0, fail_read = 0;
  bool held = false, lost = false;
  std::vector<SluiceVerbsEvent> events;
  SluiceVerbsWay way{};
  Counts counts{};
};

Network& net() {
  static Network network;
  return network;
}

void notify(Queue& queue) {
  if (!queue.armed) return;
  queue.armed = false;
  if (net().settings.lose_events) return;
  const uint64_t count = net().settings.double_events ? 2 : 1;
  (void)!::write(queue.device->descriptor, &count, sizeof(count));
}

void report(Queue& queue, const SluiceVerbsDone& done) {
  queue.done.push_back(done);
  notify(queue);
}

// What has met a message is reported first.
void flush(Queue& queue) {
  queue.broken = true;
  for (const Pending& each : queue.writes) queue.later.push_back({each.write.id, flushed, 0, 0});
  queue.writes.clear();
  for (; queue.receives > 0; --queue.receives) queue.later.push_back({0, flushed, 1, 0});
}

// The first write fails.
void break_queue(Queue& queue, int status) {
  queue.later.push_back({queue.writes.front().write.id, status, 0, 0});
  queue.writes.pop_front();
  flush(queue);
}

bool moves(const Queue& queue) {
  if (queue.writes.empty() || queue.broken) return false;
  if (queue.writes.front().reads && net().settings.read_steps == 0) return false;
  return !queue.lost || net().settings.gives_up;
}

bool is_allowed(uint32_t key, uint64_t at, size_t bytes,
                std::initializer_list<SluiceVerbsUse> uses) {
  const auto found = net().regions.find(key);
  if (found == net().regions.end()) return false;
  if (std::ranges::count(uses, found->second.use) == 0) return false;
  const auto first = reinterpret_cast<uint64_t>(found->second.data);
  return at >= first && at - first + bytes <= found->second.bytes;
}

// The whole write is in memory.
void finish(Queue& queue, const SluiceVerbsWrite& write) {
  Queue& peer = *net().queues[queue.peer];
  if (write.has_immediate != 0) {
    if (peer.receives == 0) {
      ++net().counts.no_receive;
    } else {
      --peer.receives;
    }
    peer.later.push_back({0, 0, 1, write.immediate});
  }
  if (write.signalled != 0) queue.later.push_back({write.id, 0, 0, 0});
  queue.writes.pop_front();
}

bool may_move(const Pending& pending) {
  using enum SluiceVerbsUse;
  const SluiceVerbsWrite& write = pending.write;
  if (write.bytes == 0) return true;
  const auto local = reinterpret_cast<uint64_t>(write.from);
  if (pending.reads) {
    return is_allowed(write.local_key, local, write.bytes,
                      {SLUICE_VERBS_OWN, SLUICE_VERBS_FILLED}) &&
           is_allowed(write.remote_key, write.to, write.bytes,
                      {SLUICE_VERBS_LENT, SLUICE_VERBS_FILLED});
  }
  return (write.inlined != 0 ||
          is_allowed(write.local_key, local, write.bytes, {SLUICE_VERBS_OWN})) &&
         is_allowed(write.remote_key, write.to, write.bytes, {SLUICE_VERBS_WRITTEN});
}

void move_some(Queue& queue) {
  Pending& first = queue.writes.front();
  const SluiceVerbsWrite& write = first.write;
  if (first.reads && net().settings.read_steps > 0) --net().settings.read_steps;
  int& failure = first.reads && net().fail_read != 0 ? net().fail_read : net().fail;
  if (const int status = std::exchange(failure, 0); status != 0) {
    return break_queue(queue, status);
  }
  const auto peer = net().queues.find(queue.peer);
  if (queue.lost || peer == net().queues.end() || peer->second->broken)
    return break_queue(queue, 12);
  if (!may_move(first)) {
    ++net().counts.not_allowed;
    return break_queue(queue, 10);
  }
  const size_t left = write.bytes - first.moved;
  const size_t some = left < 2 ? left : 1 + net().random() % left;
  auto* const local = write.inlined != 0
                          ? first.copy.data()
                          : const_cast<std::byte*>(static_cast<const std::byte*>(write.from));
  auto* const remote = reinterpret_cast<std::byte*>(write.to);
  std::byte* const to = first.reads ? local : remote;
  const std::byte* const from = first.reads ? remote : local;
  if (some > 0) std::memcpy(to + first.moved, from + first.moved, some);
  first.moved += some;
  if (first.moved == write.bytes) finish(queue, write);
}

void report_next(Queue& queue) {
  const SluiceVerbsDone done = queue.later.front();
  queue.later.pop_front();
  report(queue, done);
}

void take_step() {
  if (net().queues.empty() || net().lost) return;
  auto at = net().queues.begin();
  std::advance(at, static_cast<ptrdiff_t>(net().random() % net().queues.size()));
  Queue& queue = *at->second;
  if (!queue.later.empty() && net().random() % 2 == 0) {
    report_next(queue);
  } else if (moves(queue)) {
    move_some(queue);
  }
}

using Lock = std::lock_guard<std::mutex>;

int list(SluiceVerbsPort* ports, int room) {
  const Lock lock(net().mutex);
  int count = 0;
  for (const Device& device : net().settings.devices) {
    if (count++ >= room) continue;
    SluiceVerbsPort& port = ports[count - 1];
    port = {};
    std::strcpy(port.device, device.name.c_str());
    port.error = device.error;
    port.foreign = device.foreign;
    if (device.error != 0) continue;
    port.number = 1;
    port.active = device.active;
    port.ethernet = device.ethernet;
    port.lid = device.lid;
    port.mtu = 3;
    port.max_message = net().settings.max_message;
  }
  return count;
}

int open(const char* name, void** opened, int* descriptor) {
  const Lock lock(net().mutex);
  const auto found = std::ranges::find(net().settings.devices, name, &Device::name);
  if (found == net().settings.devices.end()) return ENODEV;
  if (found->error != 0) return found->error;
  *descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  *opened = new Opened{*found, net().events.size(), *descriptor};
  return 0;
}

void close(void* handle) {
  auto* const opened = static_cast<Opened*>(handle);
  ::close(opened->descriptor);
  delete opened;
}

int gids(void* opened, uint8_t, SluiceVerbsGid* gids, int room) {
  const auto& known = static_cast<Opened*>(opened)->device.gids;
  const int error = static_cast<Opened*>(opened)->device.gids_error;
  if (error != 0) return -error;
  for (size_t i = 0; i < known.size() && i < static_cast<size_t>(room); ++i) gids[i] = known[i];
  return static_cast<int>(known.size());
}

int next_event(void* opened, SluiceVerbsEvent* event) {
  const Lock lock(net().mutex);
  size_t& seen = static_cast<Opened*>(opened)->seen;
  if (seen == net().events.size()) return 0;
  *event = net().events[seen++];
  return 1;
}

int add_region(void*, void* memory, size_t bytes, SluiceVerbsUse use, SluiceVerbsRegion* region) {
  const Lock lock(net().mutex);
  const bool is_programs = use == SLUICE_VERBS_LENT || use == SLUICE_VERBS_FILLED;
  const int refused = is_programs ? net().settings.refuse_program : net().settings.refuse_region;
  if (refused != 0) return refused;
  const uint32_t key = net().next++;
  net().regions[key] = {static_cast<std::byte*>(memory), bytes, use};
  *region = {reinterpret_cast<void*>(uintptr_t{key}), key, key};
  return 0;
}

void drop_region(void* handle) {
  const Lock lock(net().mutex);
  net().regions.erase(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle)));
}

int make_queue(void* opened, SluiceVerbsQueue* asked) {
  const Lock lock(net().mutex);
  auto* const queue = new Queue{};
  queue->device = static_cast<Opened*>(opened);
  queue->number = net().next++;
  queue->sends = asked->sends;
  queue->depth = asked->receives;
  queue->lost = std::ranges::count(net().settings.lost, net().made++) > 0 ||
                net().settings.dead.contains(queue->device->device.name);
  net().queues[queue->number] = queue;
  asked->reads = std::min(asked->reads, net().settings.reads);
  asked->inlined = std::min(asked->inlined, net().settings.inlined);
  asked->handle = queue;
  asked->number = queue->number;
  return 0;
}

void drop_queue(void* handle) {
  const Lock lock(net().mutex);
  auto* const queue = static_cast<Queue*>(handle);
  net().queues.erase(queue->number);
  delete queue;
}

int connect(void* handle, const SluiceVerbsWay* way) {
  const Lock lock(net().mutex);
  Queue& queue = *static_cast<Queue*>(handle);
  const auto peer = net().queues.find(way->peer_number);
  if (net().settings.refuse_connect && peer != net().queues.end()) {
    const int error =
        net().settings.refuse_connect(queue.device->device.name, peer->second->device->device.name);
    if (error != 0) return error;
  }
  queue.peer = way->peer_number;
  net().way = *way;
  return 0;
}

void note_posted(Queue& queue, bool is_signalled) {
  ++queue.since_signal;
  net().counts.overruns += ++queue.open_sends > queue.sends;
  if (is_signalled) queue.freed_by.push_back(std::exchange(queue.since_signal, 0));
}

int write(void* handle, const SluiceVerbsWrite* writes, int count) {
  const Lock lock(net().mutex);
  Queue& queue = *static_cast<Queue*>(handle);
  for (int i = 0; i < count; ++i) {
    Pending pending{writes[i], {}, 0};
    if (writes[i].inlined != 0) {
      const auto* const from = static_cast<const std::byte*>(writes[i].from);
      pending.copy.assign(from, from + writes[i].bytes);
    }
    note_posted(queue, writes[i].signalled != 0);
    ++net().counts.writes;
    net().counts.signalled += writes[i].signalled;
    net().counts.inlined += writes[i].inlined;
    net().counts.bytes += writes[i].bytes;
    net().counts.split += writes[i].bytes > net().settings.max_message;
    queue.writes.push_back(std::move(pending));
  }
  if (queue.broken) flush(queue);
  return 0;
}

int read(void* handle, const SluiceVerbsRead* reads, int count) {
  const Lock lock(net().mutex);
  Queue& queue = *static_cast<Queue*>(handle);
  if (net().settings.refuse_read != 0) return net().settings.refuse_read;
  for (int i = 0; i < count; ++i) {
    const SluiceVerbsRead& each = reads[i];
    note_posted(queue, each.signalled != 0);
    ++net().counts.reads;
    net().counts.read_bytes += each.bytes;
    SluiceVerbsWrite mirrored{};
    mirrored.from = each.to;
    mirrored.local_key = each.local_key;
    mirrored.bytes = each.bytes;
    mirrored.to = each.from;
    mirrored.remote_key = each.remote_key;
    mirrored.id = each.id;
    mirrored.signalled = each.signalled;
    queue.writes.push_back({mirrored, {}, 0, true});
  }
  if (queue.broken) flush(queue);
  return 0;
}

int receive(void* handle, int count) {
  const Lock lock(net().mutex);
  Queue& queue = *static_cast<Queue*>(handle);
  queue.receives += static_cast<uint32_t>(count);
  net().counts.overruns += queue.receives > queue.depth;
  return 0;
}

int poll(void* handle, SluiceVerbsDone* done, int room) {
  const Lock lock(net().mutex);
  Queue& queue = *static_cast<Queue*>(handle);
  for (size_t i = net().held ? 0 : net().random() % 8; i > 0; --i) take_step();
  int count = 0;
  for (; count < room && !queue.done.empty(); ++count) {
    done[count] = queue.done.front();
    queue.done.pop_front();
    ++net().counts.completions;
    if (done[count].received != 0 || queue.broken || queue.freed_by.empty()) continue;
    queue.open_sends -= queue.freed_by.front();
    queue.freed_by.pop_front();
  }
  return count;
}

int stop(void* handle) {
  const Lock lock(net().mutex);
  flush(*static_cast<Queue*>(handle));
  return net().lost ? EIO : 0;
}

int arm(void* handle) {
  const Lock lock(net().mutex);
  static_cast<Queue*>(handle)->armed = true;
  ++net().counts.arms;
  return 0;
}

void take_events(void* handle) {
  uint64_t count = 0;
  (void)!::read(static_cast<Opened*>(handle)->descriptor, &count, sizeof(count));
}

const char* status_text(int status) {
  static std::map<int, std::string> texts;
  const Lock lock(net().mutex);
  return (texts[status] = "status " + std::to_string(status)).c_str();
}

constexpr SluiceVerbs fake = {SLUICE_VERBS_VERSION,
                              list,
                              open,
                              close,
                              gids,
                              add_region,
                              drop_region,
                              make_queue,
                              drop_queue,
                              connect,
                              write,
                              read,
                              receive,
                              poll,
                              stop,
                              arm,
                              take_events,
                              status_text,
                              next_event};

}  // namespace

void reset(const Settings& settings) {
  const Lock lock(net().mutex);
  net().settings = settings;
  net().random.seed(settings.seed);
  net().fail = net().fail_read = 0;
  net().made = 0;
  net().held = net().lost = false;
  net().events.clear();
  net().counts = {};
}

std::vector<SluiceVerbsGid> Device::roce(uint8_t network) {
  static constexpr uint8_t kinds[] = {SLUICE_GID_ROCE_1, SLUICE_GID_ROCE_2, SLUICE_GID_ROCE_2,
                                      SLUICE_GID_ROCE_1};
  std::vector<SluiceVerbsGid> gids(4);
  for (uint8_t i = 0; i < 4; ++i) {
    gids[i].index = i;
    gids[i].kind = kinds[i];
    if (i < 2) {
      gids[i].raw[0] = 0xFE;
      gids[i].raw[1] = 0x80;
      continue;
    }
    gids[i].raw[10] = gids[i].raw[11] = 0xFF;
    gids[i].raw[12] = network;
  }
  return gids;
}

std::vector<SluiceVerbsGid> Device::infiniband(uint8_t subnet) {
  std::vector<SluiceVerbsGid> gids(1);
  gids[0].raw[0] = 0xFE;
  gids[0].raw[1] = 0x80;
  gids[0].raw[7] = subnet;
  return gids;
}

void set_read_steps(int steps) {
  const Lock lock(net().mutex);
  net().settings.read_steps = steps;
}

size_t queues_with_reads() {
  const Lock lock(net().mutex);
  return static_cast<size_t>(std::ranges::count_if(net().queues, [](const auto& each) {
    return !each.second->writes.empty() && each.second->writes.front().reads;
  }));
}

Settings& settings() { return net().settings; }
const SluiceVerbs& table() { return fake; }

void fail_next(int status) {
  const Lock lock(net().mutex);
  net().fail = status;
}

void fail_next_read(int status) {
  const Lock lock(net().mutex);
  net().fail_read = status;
}

void move_all() {
  const Lock lock(net().mutex);
  for (auto& [number, queue] : net().queues) {
    while (moves(*queue)) move_some(*queue);
  }
}

bool report(size_t index) {
  const Lock lock(net().mutex);
  const auto at = std::next(net().queues.begin(), static_cast<ptrdiff_t>(index));
  if (at->second->later.empty()) return false;
  report_next(*at->second);
  return true;
}

void happen(const SluiceVerbsEvent& event) {
  const Lock lock(net().mutex);
  net().events.push_back(event);
}

void lose_device() {
  happen({SLUICE_VERBS_DEVICE_LOST, 0, 0, "gone"});
  const Lock lock(net().mutex);
  net().lost = true;
}

SluiceVerbsWay latest_way() {
  const Lock lock(net().mutex);
  return net().way;
}

uint32_t number_of(size_t index) {
  const Lock lock(net().mutex);
  return std::next(net().queues.begin(), static_cast<ptrdiff_t>(index))->first;
}

void forge(uint32_t immediate) {
  const Lock lock(net().mutex);
  for (auto& [number, queue] : net().queues) report(*queue, {0, 0, 1, immediate});
}

void hold(bool held) {
  const Lock lock(net().mutex);
  net().held = held;
}

void step(int count) {
  const Lock lock(net().mutex);
  while (count-- > 0) take_step();
}

Counts counts() {
  const Lock lock(net().mutex);
  Counts now = net().counts;
  now.regions = net().regions.size();
  now.queues = net().queues.size();
  return now;
}

}  // namespace sluice::fake_verbs
