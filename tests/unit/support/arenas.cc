// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/support/arenas.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

namespace sluice::testing {

class HeapCma final : public Cma {
 public:
  HeapCma(ArenaHub& hub, uint32_t rank) : hub_(hub), rank_(rank) {}
  Introduction introduction() const override { return {1, 2, 3}; }
  bool probe(uint32_t rank, const Introduction& theirs) override {
    const bool are_parted = rank_ == hub_.parted_.mover && rank == hub_.parted_.owner;
    return theirs.content == 3 && !are_parted;
  }
  bool is_in_reach(const std::byte*, size_t) override { return rank_ != hub_.hidden_; }
  int cma_get(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) override {
    return move({rank_, rank, false}, to, reinterpret_cast<const std::byte*>(address), bytes);
  }
  int put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) override {
    return move({rank_, rank, true}, reinterpret_cast<std::byte*>(address), from, bytes);
  }
  std::unique_ptr<Cma> make_another() const override {
    return std::make_unique<HeapCma>(hub_, rank_);
  }

 private:
  int move(const ArenaHub::Move& which, std::byte* to, const std::byte* from, size_t bytes) {
    if (which.owner == hub_.hidden_) return EFAULT;
    if (hub_.before_moves_) hub_.before_moves_(which);
    const bool fails = ++hub_.moves_ == hub_.failing_;
    std::memcpy(to, from, fails ? bytes / 2 : bytes);
    return fails ? hub_.error_ : 0;
  }

  ArenaHub& hub_;
  const uint32_t rank_;
};

class HeapArena final : public Arena {
 public:
  HeapArena(ArenaHub& hub, std::byte* memory, uint32_t rank, uint32_t ranks)
      : Arena(Rounds(memory, rank, ranks), memory, rank, ranks),
        hub_(hub),
        slots_(memory + Rounds::slots(ranks).offset, ranks * sizeof(ArenaSlots)),
        cma_(hub, rank) {}
  ~HeapArena() override {
    rounds().signals().leave();
    if (owes_slots_) return;
    for (const std::byte each : own_slots()) hub_.touched_ += each != std::byte{0};
  }
  Status reserve_slots() override {
    owes_slots_ = true;
    ++hub_.reservations_;
    for (const std::byte each : own_slots()) hub_.touched_ += each != std::byte{0};
    if (hub_.without_slots_ == rounds().rank()) return {Code::unavailable, "no room for slots"};
    rounds().signals().hold_slots();
    return {};
  }
  void give_slots_back() override {
    owes_slots_ = false;
    uint32_t held = 0;
    if (rounds().signals().give_slots_back(&held)) std::memset(slots_.data(), 0, slots_.size());
  }
  bool lives(uint32_t rank) override {
    if (hub_.before_looks_) hub_.before_looks_(rank);
    return hub_.dead_ != rank;
  }
  Cma* cma() override { return hub_.has_cma_ ? &cma_ : nullptr; }

 private:
  std::span<std::byte> own_slots() {
    return slots_.subspan(rounds().rank() * sizeof(ArenaSlots), sizeof(ArenaSlots));
  }

  ArenaHub& hub_;
  const std::span<std::byte> slots_;  // of all ranks
  bool owes_slots_ = false;
  HeapCma cma_;
};

class HeapSource final : public ArenaSource {
 public:
  explicit HeapSource(ArenaHub& hub) : hub_(hub) {}

  // There is only one segment. A rank counts as mapping it once it has taken up an offer.
  HeldSegment held_for(std::span<const ProcessId>) override {
    return {has_taken_up_ ? SegmentName{{1, 1}, 1} : SegmentName{}, nullptr};
  }
  HeldSegment segment_of(const Offer&) override { return held_for({}); }
  Result<Offer> offer(std::span<const ProcessId> processes, bool) override {
    std::this_thread::sleep_for(hub_.before_offers_);
    const std::lock_guard lock(hub_.mutex_);
    const size_t bytes = Rounds::bytes(static_cast<uint32_t>(processes.size())) + arena_line;
    hub_.memory_.push_back(std::make_unique<std::byte[]>(bytes));
    const auto address = reinterpret_cast<uintptr_t>(hub_.memory_.back().get());
    const uintptr_t aligned = (address + arena_line - 1) / arena_line * arena_line;
    hub_.last_ = reinterpret_cast<ArenaHeader*>(aligned);
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
    has_taken_up_ = true;
    return std::unique_ptr<Arena>(
        std::make_unique<HeapArena>(hub_, reinterpret_cast<std::byte*>(address), rank,
                                    static_cast<uint32_t>(processes.size())));
  }
  void reject(const Offer& offer, const std::string& cause) override {
    uintptr_t address;
    std::memcpy(&address, offer.data(), sizeof(address));
    ArenaSignals::abort(reinterpret_cast<std::byte*>(address), cause);
  }
  void settle(const Offer&, uint32_t missing) override { hub_.missing_ += missing; }

 private:
  ArenaHub& hub_;
  bool has_taken_up_ = false;
};

std::unique_ptr<ArenaSource> ArenaHub::source() { return std::make_unique<HeapSource>(*this); }

bool ArenaHub::is_aborted() {
  const std::lock_guard lock(mutex_);
  return last_->aborted != 0;
}

void ArenaHub::kill(uint32_t rank) { dead_ = rank; }

}  // namespace sluice::testing
