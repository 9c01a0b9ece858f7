// SPDX-License-Identifier: BSD-3-Clause
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <list>
#include <mutex>

#include "transports/shm/segment.h"
#include "transports/shm/shm.h"
#include "transports/shm/single_copy.h"

namespace sluice {
namespace {

constexpr size_t first_bytes = size_t{2} << 20;  // a set's first segment has leases for about this
constexpr size_t first_leases = 8, most_leases = 64;  // each later one has twice as many
constexpr size_t most_segments = 64;                  // of a process: each has a descriptor
constexpr std::ptrdiff_t most_idle = 16;              // segments without a lease of ours
constexpr size_t most_held = 256;  // leases of a process: some 280 KB of memory for each rank
constexpr size_t page = 4096;

// The beginning of a segment: which leases are taken, and by how many processes still.
struct Register {
  std::atomic<uint32_t> holders[most_leases];
};
static_assert(sizeof(Register) <= page);

// On the way from the leader to the others.
struct Written {
  Segment::Handle handle;
  uint64_t leases;  // in all
  uint64_t lease;
};
static_assert(sizeof(Written) <= ArenaSource::offer_bytes);

size_t lease_bytes(size_t ranks) {
  return (Rounds::bytes(static_cast<uint32_t>(ranks)) + page - 1) / page * page;
}

size_t segment_bytes(size_t ranks, size_t leases) { return page + leases * lease_bytes(ranks); }

std::vector<ProcessId> sorted(std::span<const ProcessId> processes) {
  std::vector<ProcessId> set(processes.begin(), processes.end());
  std::sort(set.begin(), set.end());
  return set;
}

uint32_t index_of(const std::vector<ProcessId>& set, const ProcessId& process) {
  return static_cast<uint32_t>(std::lower_bound(set.begin(), set.end(), process) - set.begin());
}

// A segment and whose it is. Kept for a while when this process has no lease in it: processes that
// met once meet again.
struct Shared {
  Segment segment;
  std::vector<ProcessId> set;
  size_t leases;
  size_t held = 0;  // by this process

  Register& registered() const { return *reinterpret_cast<Register*>(segment.data()); }
  size_t offset(uint32_t lease) const { return page + lease * lease_bytes(set.size()); }
  // What a rank writes in a lease.
  Status reserve(uint32_t lease, uint32_t rank) {
    for (const Rounds::Extent part : {Rounds::common(), Rounds::part(rank)}) {
      Status status = segment.reserve(offset(lease) + part.offset, part.bytes);
      if (!status.ok()) return status;
    }
    return {};
  }
};

class ShmSource;

class ShmArena final : public Arena {
 public:
  ShmArena(ShmSource& source, Shared& shared, uint32_t lease, std::span<const ProcessId> processes,
           uint32_t rank)
      : Arena(Rounds(shared.segment.data() + shared.offset(lease), rank,
                     static_cast<uint32_t>(processes.size()))),
        source_(source),
        shared_(shared),
        lease_(lease),
        single_copy_(static_cast<uint32_t>(processes.size())) {
    for (const ProcessId& process : processes) indices_.push_back(index_of(shared.set, process));
    rounds().enter();
  }
  ~ShmArena() override;
  Fetcher* fetcher() override { return &single_copy_; }
  bool lives(uint32_t rank) override { return shared_.segment.lives(indices_[rank]); }

 private:
  ShmSource& source_;
  Shared& shared_;
  const uint32_t lease_;
  SingleCopy single_copy_;
  std::vector<uint32_t> indices_;  // in the set, by rank
};

class ShmSource final : public ArenaSource {
 public:
  explicit ShmSource(const ProcessId& self) : self_(self) {}

  Result<Offer> offer(std::span<const ProcessId> processes, bool again) override {
    const std::lock_guard lock(mutex_);
    if (held_ >= most_held) return too_many("leases");
    const std::vector<ProcessId> set = sorted(processes);
    if (again) drop_unreached(set);
    size_t leases = std::clamp<size_t>(first_bytes / lease_bytes(set.size()), 1, first_leases);
    for (Shared& shared : segments_) {
      if (shared.set != set) continue;
      leases = std::min(2 * shared.leases, most_leases);
      for (uint32_t lease = 0; !again && lease < shared.leases; ++lease) {
        if (hire(shared, lease)) return write(shared, lease);
      }
    }
    const auto way = again ? Segment::Way::named : Segment::Way::unnamed;
    auto made = make(way, set, leases);
    if (!made.ok() && !again) {
      made = make(Segment::Way::named, set, leases);
    }
    if (!made.ok()) return made.status();
    Shared& shared = **made;
    Status status = shared.segment.reserve(0, page);
    if (status.ok()) status = shared.segment.give_name();
    if (!status.ok()) {
      segments_.pop_back();
      return status;
    }
    hire(shared, 0);
    return write(shared, 0);
  }

  Result<std::unique_ptr<Arena>> take_up(const Offer& offer, std::span<const ProcessId> processes,
                                         uint32_t rank) override {
    const std::lock_guard lock(mutex_);
    Written written;
    std::memcpy(&written, offer.data(), sizeof(written));
    const std::vector<ProcessId> set = sorted(processes);
    if (written.leases > most_leases || written.lease >= written.leases) {
      return Status{Code::mismatch, "an offer of shared memory that makes no sense"};
    }
    if (held_ >= most_held) return too_many("leases");
    Shared* shared = find(written.handle);
    if (shared == nullptr) {
      const size_t bytes = segment_bytes(set.size(), written.leases);
      auto opened = add(Segment::open(written.handle, bytes), set, written.leases);
      if (!opened.ok()) return opened.status();
      shared = *opened;
    }
    const auto lease = static_cast<uint32_t>(written.lease);
    if (Status status = shared->reserve(lease, rank); !status.ok()) return status;
    ++shared->held;
    ++held_;
    return std::unique_ptr<Arena>(
        std::make_unique<ShmArena>(*this, *shared, lease, processes, rank));
  }

  void settle(const Offer& offer, uint32_t missing) override {
    const std::lock_guard lock(mutex_);
    Written written;
    std::memcpy(&written, offer.data(), sizeof(written));
    Shared* const shared = find(written.handle);
    if (shared == nullptr) return;
    shared->segment.remove_name();
    shared->registered().holders[written.lease].fetch_sub(missing);
  }

  // A team that broke may have stopped anywhere: its lease is not given out again.
  void let_go(Shared& shared, uint32_t lease, bool broken) {
    const std::lock_guard lock(mutex_);
    if (!broken) shared.registered().holders[lease].fetch_sub(1);
    --shared.held;
    --held_;
    const auto is_idle = [](const Shared& each) { return each.held == 0; };
    if (std::count_if(segments_.begin(), segments_.end(), is_idle) > most_idle) {
      segments_.erase(std::find_if(segments_.begin(), segments_.end(), is_idle));
    }
  }

 private:
  static Status too_many(const char* what) {
    return {Code::unavailable,
            std::string("this process has too many ") + what + " of shared memory already"};
  }

  void drop_unreached(const std::vector<ProcessId>& set) {
    segments_.remove_if(
        [&](const Shared& shared) { return shared.set == set && shared.held == 0; });
  }
  Shared* find(const Segment::Handle& handle) {
    const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const Shared& shared) {
      return shared.segment.handle() == handle;
    });
    return found == segments_.end() ? nullptr : &*found;
  }
  Result<Shared*> make(Segment::Way way, const std::vector<ProcessId>& set, size_t leases) {
    return add(Segment::create(segment_bytes(set.size(), leases), way), set, leases);
  }
  Result<Shared*> add(Result<Segment> segment, const std::vector<ProcessId>& set, size_t leases) {
    if (!segment.ok()) return segment.status();
    if (segments_.size() >= most_segments) return too_many("segments");
    if (!segment->sign(index_of(set, self_))) {
      return Status{Code::unavailable, "shared memory grants no locks"};
    }
    return &segments_.emplace_back(Shared{std::move(*segment), set, leases});
  }

  // Takes the lease for all its future holders.
  static bool hire(Shared& shared, uint32_t lease) {
    uint32_t nobody = 0;
    return shared.registered().holders[lease].compare_exchange_strong(
        nobody, static_cast<uint32_t>(shared.set.size()));
  }
  static Offer write(const Shared& shared, uint32_t lease) {
    const Written written{shared.segment.handle(), shared.leases, lease};
    Offer offer{};
    std::memcpy(offer.data(), &written, sizeof(written));
    return offer;
  }

  const ProcessId self_;
  std::mutex mutex_;
  std::list<Shared> segments_;  // oldest first
  size_t held_ = 0;             // leases
};

// A child of fork() has no say in its parent's arenas.
ShmArena::~ShmArena() {
  if (!shared_.segment.is_ours()) return;
  rounds().leave();
  source_.let_go(shared_, lease_, rounds().is_aborted());
}

}  // namespace

std::unique_ptr<ArenaSource> make_shm_source(const ProcessId& self) {
  return std::make_unique<ShmSource>(self);
}

uint64_t shm_host() {
  struct stat about {};
  (void)stat("/dev/shm", &about);  // zeros where there is none: memory without a name needs none
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&](const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  };
  char boot[64] = "";
  if (FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(boot, sizeof(boot), file) == nullptr) boot[0] = 0;
    std::fclose(file);
  }
  mix(boot, sizeof(boot));
  mix(&about.st_dev, sizeof(about.st_dev));
  mix(&about.st_ino, sizeof(about.st_ino));
  return hash;
}

}  // namespace sluice
