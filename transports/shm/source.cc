// SPDX-License-Identifier: BSD-3-Clause
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <list>
#include <mutex>
#include <tuple>

#include "transports/shm/segment.h"
#include "transports/shm/shm.h"
#include "transports/shm/single_copy.h"

namespace sluice {
namespace {

// The first segment of a set of processes has leases for about first_bytes of addresses, each later
// one four times as many leases. Memory is reserved only as leases are used.
constexpr size_t first_bytes = size_t{74} << 20, most_bytes = size_t{16} << 30;
constexpr size_t first_leases = 64, most_leases = 4096, growth = 4;
constexpr size_t most_segments = 64;      // of a process; each has a descriptor
constexpr std::ptrdiff_t most_idle = 16;  // segments in which this process holds no lease
constexpr size_t page = 4096;

// The start of a segment. After it, for each lease, the number of processes that still hold it.
struct Register {
  SegmentName name;
  std::atomic<uint64_t> slot_bytes;  // reserved now
};
using Holders = std::atomic<uint32_t>;

// An offer as the leader sends it to the other ranks.
struct Written {
  Segment::Handle handle;
  uint64_t ranks;   // for which each lease has room
  uint64_t leases;  // in the segment
  uint64_t lease;
};
static_assert(sizeof(Written) <= ArenaSource::offer_bytes);

size_t to_pages(size_t bytes) { return (bytes + page - 1) / page * page; }
size_t lease_bytes(size_t ranks) { return to_pages(Rounds::bytes(static_cast<uint32_t>(ranks))); }
size_t register_bytes(size_t leases) {
  return to_pages(sizeof(Register) + leases * sizeof(Holders));
}
size_t segment_bytes(size_t ranks, size_t leases) {
  return register_bytes(leases) + leases * lease_bytes(ranks);
}

// Leases of the next segment, after one with `before` leases (0: of the set's first).
size_t next_leases(size_t ranks, size_t before) {
  const size_t most = std::clamp<size_t>(most_bytes / lease_bytes(ranks), 1, most_leases);
  if (before > 0) return std::min(growth * before, most);
  return std::clamp<size_t>(first_bytes / lease_bytes(ranks), 1, first_leases);
}

std::vector<ProcessId> sorted(std::span<const ProcessId> processes) {
  std::vector<ProcessId> set(processes.begin(), processes.end());
  std::sort(set.begin(), set.end());
  return set;
}

uint32_t index_of(const std::vector<ProcessId>& set, const ProcessId& process) {
  return static_cast<uint32_t>(std::lower_bound(set.begin(), set.end(), process) - set.begin());
}

// A segment and the set of processes that it serves. Kept for a while after this process has
// released its last lease, because the same processes often form teams again.
struct Shared {
  Segment segment;
  std::vector<ProcessId> set;
  size_t leases;
  size_t held = 0;  // leases that this process holds
  std::shared_ptr<const bool> pin = std::make_shared<const bool>();  // HeldSegments copy it

  Register& registered() const { return *reinterpret_cast<Register*>(segment.data()); }
  Holders& holders(size_t lease) const {
    return reinterpret_cast<Holders*>(segment.data() + sizeof(Register))[lease];
  }
  size_t offset(size_t lease) const {
    return register_bytes(leases) + lease * lease_bytes(set.size());
  }
  std::byte* memory(size_t lease) const { return segment.data() + offset(lease); }
  bool is_idle() const { return held == 0 && pin.use_count() == 1; }
  HeldSegment hold() const { return {registered().name, pin}; }
  bool serves(const std::vector<ProcessId>& some) const {
    return std::includes(set.begin(), set.end(), some.begin(), some.end());
  }
};

class ShmSource;

class ShmArena final : public Arena {
 public:
  ShmArena(ShmSource& source, Shared& shared, size_t lease, std::span<const ProcessId> processes,
           uint32_t rank, ReachCache& reach_cache)
      : Arena(Rounds(shared.memory(lease), rank, static_cast<uint32_t>(processes.size()),
                     static_cast<uint32_t>(shared.set.size())),
              shared.memory(lease), rank, static_cast<uint32_t>(processes.size())),
        source_(source),
        shared_(shared),
        lease_(lease),
        single_copy_(reach_cache, processes) {
    for (const ProcessId& process : processes) indices_.push_back(index_of(shared.set, process));
  }
  ~ShmArena() override;
  Status reserve_slots() override;
  void give_slots_back() override;
  Cma* cma() override { return &single_copy_; }
  bool lives(uint32_t rank) override { return shared_.segment.lives(indices_[rank]); }

 private:
  uint32_t room() const { return static_cast<uint32_t>(shared_.set.size()); }

  ShmSource& source_;
  Shared& shared_;
  const size_t lease_;
  bool owes_slots_ = false;  // must still call give_slots_back
  SingleCopy single_copy_;
  std::vector<uint32_t> indices_;  // in the set, by rank
};

class ShmSource final : public ArenaSource {
 public:
  ShmSource(const ProcessId& self, size_t most_slots) : most_slots_(most_slots), self_(self) {}

  HeldSegment held_for(std::span<const ProcessId> processes) override {
    const std::lock_guard lock(mutex_);
    const auto found = serving(sorted(processes));
    return found.empty() ? HeldSegment{} : found.front()->hold();
  }

  HeldSegment segment_of(const Offer& offer) override {
    const std::lock_guard lock(mutex_);
    const Shared* const shared = find(read(offer).handle);
    return shared == nullptr ? HeldSegment{} : shared->hold();
  }

  Result<Offer> offer(std::span<const ProcessId> processes, bool again) override {
    const std::lock_guard lock(mutex_);
    const std::vector<ProcessId> set = sorted(processes);
    if (again) drop_unreached(set);
    const std::vector<Shared*> found = serving(set);
    for (Shared* const shared : found) {
      for (size_t lease = 0; !again && lease < shared->leases; ++lease) {
        if (hire(*shared, lease, set.size())) return prepare(*shared, lease, set.size());
      }
    }
    const bool is_first = found.empty() || found.front()->set.size() > set.size();
    const size_t leases = next_leases(set.size(), is_first ? 0 : found.front()->leases);
    auto made = make(again ? Segment::Way::named : Segment::Way::unnamed, set, leases);
    if (!made.ok() && !again) made = make(Segment::Way::named, set, leases);
    if (!made.ok()) return made.status();
    hire(**made, 0, set.size());
    auto offer = prepare(**made, 0, set.size());
    if (!offer.ok()) segments_.pop_back();
    return offer;
  }

  Result<std::unique_ptr<Arena>> take_up(const Offer& offer, std::span<const ProcessId> processes,
                                         uint32_t rank) override {
    const std::lock_guard lock(mutex_);
    const Written written = read(offer);
    if (written.leases > most_leases || written.lease >= written.leases) {
      return Status{Code::mismatch, "an offer of shared memory that makes no sense"};
    }
    Shared* shared = find(written.handle);
    if (shared == nullptr) {
      std::vector<ProcessId> set = sorted(processes);
      if (written.ranks != set.size()) {
        return Status{Code::unavailable, "shared memory of more processes is gone here"};
      }
      const size_t bytes = segment_bytes(set.size(), written.leases);
      auto opened = add(Segment::open(written.handle, bytes), std::move(set), written.leases);
      if (!opened.ok()) return opened.status();
      shared = *opened;
    }
    auto arena =
        std::make_unique<ShmArena>(*this, *shared, written.lease, processes, rank, reach_cache_);
    ++shared->held;
    return std::unique_ptr<Arena>(std::move(arena));
  }

  void reject(const Offer& offer, const std::string& cause) override {
    const std::lock_guard lock(mutex_);
    const Written written = read(offer);
    const Shared* const shared = find(written.handle);
    if (shared != nullptr) ArenaSignals::abort(shared->memory(written.lease), cause);
  }

  void settle(const Offer& offer, uint32_t missing) override {
    const std::lock_guard lock(mutex_);
    const Written written = read(offer);
    Shared* const shared = find(written.handle);
    if (shared == nullptr) return;
    shared->segment.remove_name();
    shared->holders(written.lease).fetch_sub(missing);
  }

  const size_t most_slots_;

  // A broken team may have stopped at any point, so its lease is not used again.
  void let_go(Shared& shared, size_t lease, bool broken) {
    const std::lock_guard lock(mutex_);
    if (!broken) shared.holders(lease).fetch_sub(1);
    --shared.held;
    if (std::ranges::count_if(segments_, &Shared::is_idle) > most_idle) {
      segments_.erase(std::ranges::find_if(segments_, &Shared::is_idle));
    }
  }

 private:
  static Status too_many(const char* what) {
    return {Code::unavailable,
            std::string("this process has too many ") + what + " of shared memory already"};
  }

  void drop_unreached(const std::vector<ProcessId>& set) {
    segments_.remove_if(
        [&](const Shared& shared) { return shared.set == set && shared.is_idle(); });
  }
  // Segments that serve all these processes: those of the smallest sets first, then the largest.
  std::vector<Shared*> serving(const std::vector<ProcessId>& set) {
    std::vector<Shared*> found;
    for (Shared& shared : segments_) {
      if (shared.serves(set)) found.push_back(&shared);
    }
    std::ranges::sort(found, {}, [](const Shared* each) {
      return std::tuple(each->set.size(), most_leases - each->leases, each->registered().name);
    });
    return found;
  }
  Shared* find(const Segment::Handle& handle) {
    const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const Shared& shared) {
      return shared.segment.handle() == handle;
    });
    return found == segments_.end() ? nullptr : &*found;
  }
  // If there is not enough address space, tries with fewer leases.
  Result<Shared*> make(Segment::Way way, const std::vector<ProcessId>& set, size_t leases) {
    auto segment = Segment::create(segment_bytes(set.size(), leases), way);
    if (!segment.ok() && leases > 1) return make(way, set, std::max<size_t>(leases / 8, 1));
    auto made = add(std::move(segment), set, leases);
    if (!made.ok()) return made;
    Segment& added = (*made)->segment;
    Status status = added.reserve(0, register_bytes(leases));
    if (status.ok()) status = added.give_name();
    if (!status.ok()) {
      segments_.pop_back();
      return status;
    }
    (*made)->registered().name = {self_, ++made_};
    return made;
  }
  Result<Shared*> add(Result<Segment> segment, std::vector<ProcessId> set, size_t leases) {
    if (!segment.ok()) return segment.status();
    if (segments_.size() >= most_segments) return too_many("segments");
    if (!segment->sign(index_of(set, self_))) {
      return Status{Code::unavailable, "shared memory grants no locks"};
    }
    return &segments_.emplace_back(Shared{std::move(*segment), std::move(set), leases});
  }

  // Takes a free lease for all of its future holders. False if it is taken.
  static bool hire(const Shared& shared, size_t lease, size_t ranks) {
    uint32_t nobody = 0;
    return shared.holders(lease).compare_exchange_strong(nobody, static_cast<uint32_t>(ranks));
  }
  // Reserves what all ranks of a taken lease need for short calls, and makes the offer.
  static Result<Offer> prepare(Shared& shared, size_t lease, size_t ranks) {
    const Rounds::Extent lines = Rounds::lines(static_cast<uint32_t>(ranks));
    const Status status = shared.segment.reserve(shared.offset(lease) + lines.offset, lines.bytes);
    if (!status.ok()) {
      shared.holders(lease).store(0);
      return status;
    }
    Rounds::prepare(shared.memory(lease), static_cast<uint32_t>(ranks));
    const Written written{shared.segment.handle(), shared.set.size(), shared.leases, lease};
    Offer offer{};
    std::memcpy(offer.data(), &written, sizeof(written));
    return offer;
  }
  static Written read(const Offer& offer) {
    Written written;
    std::memcpy(&written, offer.data(), sizeof(written));
    return written;
  }

  const ProcessId self_;
  ReachCache reach_cache_;
  std::mutex mutex_;
  std::list<Shared> segments_;  // oldest first
  uint64_t made_ = 0;           // segments
};

// A child of fork() changes nothing in its parent's arenas.
ShmArena::~ShmArena() {
  if (!shared_.segment.is_ours()) return;
  rounds().signals().leave();
  const bool broken = rounds().signals().is_aborted();
  if (owes_slots_ && !broken) give_slots_back();
  source_.let_go(shared_, lease_, broken);
}

Status ShmArena::reserve_slots() {
  owes_slots_ = true;
  std::atomic<uint64_t>& reserved = shared_.registered().slot_bytes;
  if (reserved.fetch_add(sizeof(ArenaSlots)) + sizeof(ArenaSlots) > source_.most_slots_) {
    reserved.fetch_sub(sizeof(ArenaSlots));
    return {Code::unavailable, "processes that share it have as much as SLUICE_SHM_MEMORY allows"};
  }
  const Rounds::Extent slots = Rounds::slots(room());
  const size_t offset =
      shared_.offset(lease_) + slots.offset + rounds().rank() * sizeof(ArenaSlots);
  Status status = shared_.segment.reserve(offset, sizeof(ArenaSlots));
  if (status.ok()) {
    rounds().signals().hold_slots();
  } else {
    reserved.fetch_sub(sizeof(ArenaSlots));
  }
  return status;
}

void ShmArena::give_slots_back() {
  owes_slots_ = false;
  uint32_t held = 0;
  if (!rounds().signals().give_slots_back(&held)) return;
  const size_t offset = shared_.offset(lease_) + Rounds::slots(room()).offset;
  shared_.segment.release(offset, to_pages(rounds().size() * sizeof(ArenaSlots)));
  shared_.registered().slot_bytes.fetch_sub(held * sizeof(ArenaSlots));
}

}  // namespace

std::unique_ptr<ArenaSource> make_shm_source(const ProcessId& self, size_t most_slots) {
  return std::make_unique<ShmSource>(self, most_slots);
}

uint64_t shm_host() {
  struct stat about {};
  (void)stat("/dev/shm", &about);      // zeros if missing: unnamed memory needs no /dev/shm
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&](const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  };
  char host[65] = "";
  if (FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(host, sizeof(host), file) == nullptr) host[0] = 0;
    std::fclose(file);
  }
  if (host[0] == 0) (void)gethostname(host, sizeof(host) - 1);  // no /proc here
  mix(host, sizeof(host));
  mix(&about.st_dev, sizeof(about.st_dev));
  mix(&about.st_ino, sizeof(about.st_ino));
  return hash;
}

}  // namespace sluice
