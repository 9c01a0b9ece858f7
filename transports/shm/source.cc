// SPDX-License-Identifier: BSD-3-Clause
#include <sys/stat.h>
#include <unistd.h>

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

constexpr size_t leases_bytes = size_t{1} << 20;  // a segment has leases for about so much
constexpr size_t most_leases = 8;
constexpr size_t most_segments = 64;      // of a process: each has a descriptor
constexpr std::ptrdiff_t most_idle = 16;  // segments without a lease of ours
constexpr size_t page = 4096;

// The beginning of a segment: which leases are taken, and by how many processes still.
struct Register {
  std::atomic<uint32_t> holders[most_leases];
};
static_assert(sizeof(Register) <= page);

// On the way from the leader to the others.
struct Written {
  Segment::Name name;
  uint64_t bytes;
  uint64_t lease;
};
static_assert(sizeof(Written) <= ArenaSource::offer_bytes);

size_t lease_bytes(size_t ranks) {
  return (Rounds::bytes(static_cast<uint32_t>(ranks)) + page - 1) / page * page;
}

size_t leases_for(size_t ranks) {
  return std::clamp<size_t>(leases_bytes / lease_bytes(ranks), 1, most_leases);
}

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
  size_t leased = 0;  // by this process

  Register& leases() const { return *reinterpret_cast<Register*>(segment.data()); }
  std::byte* lease(uint32_t number) const {
    return segment.data() + page + number * lease_bytes(set.size());
  }
};

class ShmSource;

class ShmArena final : public Arena {
 public:
  ShmArena(ShmSource& source, Shared& shared, uint32_t lease, std::span<const ProcessId> processes,
           uint32_t rank)
      : source_(source),
        shared_(shared),
        lease_(lease),
        rounds_(shared.lease(lease), rank, static_cast<uint32_t>(processes.size())),
        single_copy_(static_cast<uint32_t>(processes.size())) {
    for (const ProcessId& process : processes) indices_.push_back(index_of(shared.set, process));
    rounds_.enter();
  }
  ~ShmArena() override;
  Rounds& rounds() override { return rounds_; }
  Fetcher* fetcher() override { return &single_copy_; }
  bool lives(uint32_t rank) override { return shared_.segment.lives(indices_[rank]); }

 private:
  ShmSource& source_;
  Shared& shared_;
  const uint32_t lease_;
  Rounds rounds_;
  SingleCopy single_copy_;
  std::vector<uint32_t> indices_;  // in the set, by rank
};

class ShmSource final : public ArenaSource {
 public:
  explicit ShmSource(const ProcessId& self) : self_(self) {}

  Result<Offer> offer(std::span<const ProcessId> processes, bool fresh) override {
    const std::lock_guard lock(mutex_);
    const std::vector<ProcessId> set = sorted(processes);
    for (Shared& shared : segments_) {
      if (fresh || shared.set != set) continue;
      for (uint32_t lease = 0; lease < leases_for(set.size()); ++lease) {
        if (hire(shared, lease)) return write(shared.segment, set.size(), lease);
      }
    }
    if (segments_.size() >= most_segments) return too_many();
    auto made = Segment::create(bytes_for(set.size()));
    if (!made.ok()) return made.status();
    Shared& shared = segments_.emplace_back(Shared{std::move(*made), set});
    hire(shared, 0);
    if (!shared.segment.sign(index_of(set, self_))) {
      segments_.pop_back();
      return Status{Code::unavailable, "/dev/shm grants no locks"};
    }
    return write(shared.segment, set.size(), 0);
  }

  Result<std::unique_ptr<Arena>> take_up(const Offer& offer, std::span<const ProcessId> processes,
                                         uint32_t rank) override {
    const std::lock_guard lock(mutex_);
    Written written;
    std::memcpy(&written, offer.data(), sizeof(written));
    const std::vector<ProcessId> set = sorted(processes);
    if (written.bytes != bytes_for(set.size()) || written.lease >= leases_for(set.size())) {
      return Status{Code::mismatch, "an offer of shared memory that makes no sense"};
    }
    auto found = std::find_if(segments_.begin(), segments_.end(), [&](const Shared& shared) {
      return shared.segment.name() == written.name;
    });
    if (found == segments_.end()) {
      if (segments_.size() >= most_segments) return too_many();
      auto opened = Segment::open(written.name, written.bytes);
      if (!opened.ok()) return opened.status();
      found = segments_.insert(segments_.end(), Shared{std::move(*opened), set});
      if (!found->segment.sign(index_of(set, self_))) {
        segments_.erase(found);
        return Status{Code::unavailable, "/dev/shm grants no locks"};
      }
    }
    ++found->leased;
    return std::unique_ptr<Arena>(std::make_unique<ShmArena>(
        *this, *found, static_cast<uint32_t>(written.lease), processes, rank));
  }

  void settle(const Offer& offer) override {
    const std::lock_guard lock(mutex_);
    Written written;
    std::memcpy(&written, offer.data(), sizeof(written));
    for (Shared& shared : segments_) {
      if (shared.segment.name() == written.name) shared.segment.remove_name();
    }
  }

  // A child of fork() has copies of its parent's arenas, and no say in them.
  bool is_ours() const { return getpid() == process_; }

  // A team that broke may have stopped anywhere: its lease is not given out again.
  void let_go(Shared& shared, uint32_t lease, bool broken) {
    const std::lock_guard lock(mutex_);
    if (!broken) shared.leases().holders[lease].fetch_sub(1);
    --shared.leased;
    const auto is_idle = [](const Shared& each) { return each.leased == 0; };
    if (std::count_if(segments_.begin(), segments_.end(), is_idle) > most_idle) {
      segments_.erase(std::find_if(segments_.begin(), segments_.end(), is_idle));
    }
  }

 private:
  static Status too_many() {
    return {Code::unavailable, "this process has " + std::to_string(most_segments) +
                                   " pieces of shared memory already"};
  }
  static size_t bytes_for(size_t ranks) { return page + leases_for(ranks) * lease_bytes(ranks); }

  // Takes the lease for all its future holders.
  static bool hire(Shared& shared, uint32_t lease) {
    uint32_t nobody = 0;
    return shared.leases().holders[lease].compare_exchange_strong(
        nobody, static_cast<uint32_t>(shared.set.size()));
  }
  static Offer write(const Segment& segment, size_t ranks, uint32_t lease) {
    const Written written{segment.name(), bytes_for(ranks), lease};
    Offer offer{};
    std::memcpy(offer.data(), &written, sizeof(written));
    return offer;
  }

  const ProcessId self_;
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::list<Shared> segments_;  // oldest first
};

ShmArena::~ShmArena() {
  if (!source_.is_ours()) return;
  rounds_.leave();
  source_.let_go(shared_, lease_, !rounds_.cause().empty());
}

}  // namespace

std::unique_ptr<ArenaSource> make_shm_source(const ProcessId& self) {
  return std::make_unique<ShmSource>(self);
}

uint64_t shm_host() {
  struct stat about {};
  if (stat("/dev/shm", &about) != 0) return 0;
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
