// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/support/arenas.h"

#include <cstring>
#include <new>
#include <thread>

namespace sluice::testing {

class HeapFetcher final : public Fetcher {
 public:
  HeapFetcher(ArenaHub& hub, uint32_t rank) : hub_(hub), rank_(rank) {}
  Introduction introduction() const override { return {1, 2, 3}; }
  bool meet(uint32_t, const Introduction& theirs) override { return theirs.content == 3; }
  bool is_in_reach(const std::byte*, size_t) override { return rank_ != hub_.hidden_; }
  bool fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) override {
    if (rank == hub_.forgotten_ || rank == hub_.hidden_) return false;
    return move(to, reinterpret_cast<const std::byte*>(address), bytes);
  }
  bool put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) override {
    return rank != hub_.hidden_ && move(reinterpret_cast<std::byte*>(address), from, bytes);
  }

 private:
  bool move(std::byte* to, const std::byte* from, size_t bytes) {
    const bool fails = ++hub_.moves_ % hub_.fails_every_ == 0;
    std::memcpy(to, from, fails ? bytes / 2 : bytes);
    return !fails;
  }

  ArenaHub& hub_;
  const uint32_t rank_;
};

class HeapArena final : public Arena {
 public:
  HeapArena(ArenaHub& hub, std::byte* memory, uint32_t rank, uint32_t ranks)
      : Arena(Rounds(memory, rank, ranks)), hub_(hub), fetcher_(hub, rank) {
    rounds().enter();
  }
  ~HeapArena() override { rounds().leave(); }
  bool lives(uint32_t rank) override { return hub_.dead_ != rank; }
  Fetcher* fetcher() override { return hub_.fetches_ ? &fetcher_ : nullptr; }

 private:
  ArenaHub& hub_;
  HeapFetcher fetcher_;
};

class HeapSource final : public ArenaSource {
 public:
  explicit HeapSource(ArenaHub& hub) : hub_(hub) {}

  Result<Offer> offer(std::span<const ProcessId> processes, bool) override {
    std::this_thread::sleep_for(hub_.before_offers_);
    const std::lock_guard lock(hub_.mutex_);
    const size_t bytes = Rounds::bytes(static_cast<uint32_t>(processes.size())) + arena_line;
    hub_.memory_.push_back(std::make_unique<std::byte[]>(bytes));
    const auto address = reinterpret_cast<uintptr_t>(hub_.memory_.back().get());
    const uintptr_t aligned = (address + arena_line - 1) / arena_line * arena_line;
    Offer offer{};
    std::memcpy(offer.data(), &aligned, sizeof(aligned));
    return offer;
  }
  Result<std::unique_ptr<Arena>> take_up(const Offer& offer, std::span<const ProcessId> processes,
                                         uint32_t rank) override {
    if (rank == 1) std::this_thread::sleep_for(hub_.before_taking_up_);
    if (rank == hub_.blind_) return Status{Code::unavailable, "a blind rank"};
    uintptr_t address;
    std::memcpy(&address, offer.data(), sizeof(address));
    return std::unique_ptr<Arena>(
        std::make_unique<HeapArena>(hub_, reinterpret_cast<std::byte*>(address), rank,
                                    static_cast<uint32_t>(processes.size())));
  }
  void settle(const Offer&, uint32_t missing) override { hub_.missing_ += missing; }

 private:
  ArenaHub& hub_;
};

std::unique_ptr<ArenaSource> ArenaHub::source() { return std::make_unique<HeapSource>(*this); }

void ArenaHub::kill(uint32_t rank) { dead_ = rank; }

}  // namespace sluice::testing
