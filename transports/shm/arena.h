// SPDX-License-Identifier: BSD-3-Clause
//
// The arena contract: memory that all ranks of a team map, and the protocol by which they use it.
//
//   Lease     a team's part of a shared segment; all ranks of the team map it
//   Line      one rank's place for the flag and the first bytes of one round
//   Slot      one rank's place for longer data of a round. Lines and slots are written by that rank
//             only and read by all. Slot memory is reserved when first needed, and can be given
//             back
//   Round     a step that all ranks of the team count alike; a call takes one or more
//   Rounds    a rank's view of its lease; shared-memory algorithms are written with it
//   Cells     places of short calls in flight beside the rounds, which wait for nothing
//   WaitPolicy  the wait policy: Rounds only polls flags, the caller decides what to do between
//   polls
//
// A rank with data for round k waits until all ranks have read what its place held some rounds
// before (open), writes the data, and sets the flag (publish). The others wait for the flag (await)
// and read in place. A rank that reads nothing more of round k says so (take). There is no barrier
// at the end of a call, because the next call's rounds use other places. A flag and short data
// share a cache line, so a small message costs its reader one miss. There are many lines, so a rank
// with short data seldom checks what others have taken.
//
// If ranks can read and write each other's memory, a call may move its data with one copy (CMA:
// cma_get is a get, put a put), from and to the addresses that the owners publish in the first
// round. There each owner also says whether the kernel can copy all of its buffer
// (Cma::is_in_reach), and touches the pages that others will put into, which the program may have
// write-protected. If one can't be copied, the call uses the slots. A CMA failure after that is an
// error, and the team is broken: results may have overwritten operands, so the call can't be
// repeated. An owner leaves such a call only when all ranks that may need its memory have taken its
// round (await_taken), and after an error only when no rank writes into its memory any more
// (is_put_to).
//
// A line names the collective and the size of its data, so ranks that disagree get an error. Only
// open and the awaits block, and only as long as WaitPolicy lets them. No allocation, and no system
// call except a Cma's (and getcpu, if oversubscribed).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "src/base/status.h"
#include "transports/transport.h"

namespace sluice {

// Alignment of what one rank writes: two cache lines, because processors prefetch lines in pairs.
inline constexpr size_t arena_line = 128;

// A word that one rank writes and the others poll. It only grows.
struct alignas(arena_line) ArenaCounter {
  std::atomic<uint64_t> round;
};

// A round of a rank: flag, size of its data, and the data if short. Longer data is in a slot.
struct alignas(arena_line) ArenaLine {
  static constexpr size_t inlined = arena_line - 32;

  std::atomic<uint64_t> published;        // the round that is here
  uint32_t signature;                     // opaque here: the collective and its root
  uint32_t bytes;                         // of its data
  uint64_t call_bytes;                    // size of the whole call
  alignas(32) std::byte beside[inlined];  // the program's own operation may expect alignment
};

// Slots have two lengths. Short ones are for data between ranks that run at the same time: all of
// them stay in the first-level cache (measured: twice as fast). Long ones are for oversubscribed
// ranks and for data that is distributed among many ranks. A longer slot lets a rank do more in one
// scheduling turn: 4 and 8 ranks on 2 cores take 0.6 to 0.8 of the time with slots of 32 KB. Slots
// of 128 KB gain little more.
struct ArenaSlot {
  static constexpr size_t capacity = size_t{64} << 10;  // bytes of data in a round
};
struct ArenaShortSlot {
  static constexpr size_t capacity = size_t{2} << 10;
};

// Hints for ranks that share a processor.
struct alignas(arena_line) ArenaPlace {
  std::atomic<uint64_t> processor;  // where the rank waited last, plus one; 0: not known
  std::atomic<uint64_t> waits;      // there, for this round of another's; 0: for none
};

// Places of short calls in flight: a line each, and beside it room for what the line cannot hold.
template <uint32_t depth>
struct ArenaCells {
  static constexpr size_t capacity = 1024;  // bytes of data

  ArenaCounter taken;  // as ArenaRank::taken
  ArenaLine lines[depth];
  alignas(arena_line) std::byte data[depth][capacity];
};

struct ArenaRank {
  // By how many rounds a rank may be ahead, for each kind of place.
  static constexpr uint32_t lines_depth = 64;
  static constexpr uint32_t short_slots_depth = 4;
  static constexpr uint32_t slots_depth = 4;
  // Cells of the non-blocking calls, and sets of cells of a persistent request each.
  static constexpr uint32_t cells_depth = 8;
  static constexpr uint32_t persistent_depth = 4;  // a call may need three
  static constexpr uint32_t persistent_sets = 4;

  static constexpr uint32_t depth(size_t bytes) {
    return bytes <= ArenaLine::inlined         ? lines_depth
           : bytes <= ArenaShortSlot::capacity ? short_slots_depth
                                               : slots_depth;
  }

  ArenaCounter taken;     // reads no data of rounds up to this any more
  ArenaCounter combined;  // has written its part of this round's result
  ArenaCounter left;      // 1: will enter no further round
  ArenaCounter puts;      // target rank + 1 of a put in progress; 0: none
  ArenaPlace place;
  ArenaLine lines[lines_depth];
  ArenaCells<cells_depth> cells;
  ArenaCells<persistent_depth> persistent[persistent_sets];
};

// A rank's slots, thirty times as much memory as its lines.
struct ArenaSlots {
  alignas(arena_line) std::byte short_slots[ArenaRank::short_slots_depth][ArenaShortSlot::capacity];
  // Padded by a line; without that all slots would compete for the same cache sets.
  alignas(arena_line) std::byte slots[ArenaRank::slots_depth][ArenaSlot::capacity + arena_line];
};

// The start of a lease, before the ranks' areas. Holds the abort cause, if any.
struct alignas(arena_line) ArenaHeader {
  static constexpr size_t longest_cause = 1000;

  std::atomic<uint32_t> aborted;  // 0: no, 1: being written, 2: `cause` is valid
  uint64_t start;                 // the last round before the team's first
  uint64_t cells_start[1 + ArenaRank::persistent_sets];  // the same of calls in flight, by set
  uint32_t used;                    // ranks of the largest team since the memory was zeroed
  std::atomic<uint32_t> holding;    // ranks that have reserved slots
  std::atomic<uint32_t> returning;  // ranks that gave slots back or had none; all: reset to 0
  char cause[longest_cause];
};

// The wait policy of a blocking call, one for each thread in a call.
class WaitPolicy {
 public:
  virtual ~WaitPolicy() = default;
  // Called again and again while waiting for that rank; may spin, yield or sleep. False: give up.
  virtual bool wait(uint32_t rank) = 0;
  // Polls of a flag before the first call of wait(), and between two calls. looks_together: both,
  // if at least least_together of the team's ranks share this processor and all of them wait for
  // this short round.
  uint32_t looks = 100, looks_between = 100, looks_together = 100, least_together = 2;
  // True if the next wait() is the first for another flag, that is, if the wait before it
  // succeeded.
  bool fresh = true;
};

// CMA get and put: reads and writes other ranks' memory in one copy, at addresses that those ranks
// name. Ranks exchange introductions first. CMA is used only if each rank has then read and written
// a word of every other, and only on memory whose owner has found it in reach.
class Cma {
 public:
  struct Introduction {
    uint64_t process, address, content;
  };
  virtual ~Cma() = default;
  virtual Introduction introduction() const = 0;
  // Tries whether that rank's memory can be read and written. System calls.
  virtual bool probe(uint32_t rank, const Introduction& theirs) = 0;
  // The result of probe() for that rank's process in an earlier team, so that it need not be
  // repeated; no value if there was none.
  virtual std::optional<bool> met(uint32_t) const { return {}; }
  // Whether others can reach all of this memory, which is this process's own. The kernel does not
  // copy device memory that is mapped. Does not tell whether the program has write-protected it. A
  // system call, unless the answer is cached.
  virtual bool is_in_reach(const std::byte* data, size_t bytes) = 0;
  // CMA get. 0 if all was moved; else an errno value, and part may have been moved. If `to` is
  // write-protected, this process stores into it, so that the program's signal handler runs. An
  // error concerns that rank's memory. System calls.
  virtual int cma_get(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) = 0;
  // CMA put, with the same results.
  virtual int put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) = 0;
  // Access to the same memory for another thread. The arena must outlive it. May throw
  // std::bad_alloc.
  virtual std::unique_ptr<Cma> make_another() const = 0;
};

// What the ranks of a lease tell each other beside their rounds: that the team is aborted, that one
// has left, uses slots, or writes into another's memory.
class ArenaSignals {
 public:
  // memory: a lease.
  ArenaSignals(std::byte* memory, uint32_t rank, uint32_t ranks)
      : header_(reinterpret_cast<ArenaHeader*>(memory)),
        ranks_area_(reinterpret_cast<ArenaRank*>(memory + sizeof(ArenaHeader))),
        rank_(rank),
        size_(ranks) {}

  // Aborts the team: all ranks that wait see it, with the cause. The first cause stays.
  void abort(const std::string& cause) const {
    abort(reinterpret_cast<std::byte*>(header_), cause);
  }
  // For a rank without this object. Rounds::prepare() must have been called on the lease.
  static void abort(std::byte* memory, const std::string& cause);
  bool is_aborted() const { return header_->aborted.load(std::memory_order_acquire) != 0; }

  // Whether any rank still puts into this rank's memory. After this rank has called abort, false
  // means that no rank will.
  bool is_put_to() const {
    for (uint32_t rank = 0; rank < size_; ++rank) {
      const std::atomic<uint64_t>& puts = area(rank).puts.round;
      if (puts.load(std::memory_order_seq_cst) == rank_ + uint64_t{1}) return true;
    }
    return false;
  }
  // The abort cause; empty if not aborted. Waits up to 0.4 s for a rank that is still writing it.
  std::string cause() const;

  // This rank has reserved its slots.
  void hold_slots() const { header_->holding.fetch_add(1); }
  // This rank uses no slots any more, its own or others'. True for the team's last rank, with the
  // number of ranks that had reserved slots: no rank touches them until some are reserved again.
  bool give_slots_back(uint32_t* held) const {
    if (header_->returning.fetch_add(1) + 1 < size_) return false;
    *held = header_->holding.exchange(0);
    header_->returning.store(0);
    return true;
  }

  // This rank enters no further round.
  void leave() const { own().left.round.store(1, std::memory_order_release); }
  bool has_left(uint32_t rank) const {
    return area(rank).left.round.load(std::memory_order_acquire) != 0;
  }

  // Around a put into another rank's memory. False: not allowed, because a rank has aborted.
  bool begin_put(uint32_t rank) const {
    own().puts.round.store(rank + uint64_t{1}, std::memory_order_seq_cst);
    if (header_->aborted.load(std::memory_order_seq_cst) == 0) return true;
    end_put();
    return false;
  }
  void end_put() const { own().puts.round.store(0, std::memory_order_release); }

 private:
  ArenaRank& area(uint32_t rank) const { return ranks_area_[rank]; }
  ArenaRank& own() const { return area(rank_); }

  ArenaHeader* header_;
  ArenaRank* ranks_area_;
  uint32_t rank_, size_;
};

// Calls in flight whose data is short, of one set of cells. Each takes a place, by a number that
// all ranks count alike. A rank writes its own place, and looks at the others'; nothing waits.
// Calls may end in any order.
class Cells {
 public:
  static constexpr size_t capacity = ArenaCells<1>::capacity;
  static constexpr uint32_t sets = 1 + ArenaRank::persistent_sets;

  // memory: a lease. set: 0 that of the non-blocking calls; others of persistent requests.
  Cells(std::byte* memory, uint32_t rank, uint32_t ranks, uint32_t set);

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  // The next call's number.
  uint64_t begin() { return ++last_; }
  uint64_t last() const { return last_; }
  // Whether this rank may write its place: all ranks have read what it held before.
  bool may_write(uint64_t number) {
    return number <= all_taken_ + depth_ || find_taken_by_all(number);
  }
  std::byte* data(uint32_t rank, uint64_t number, size_t bytes) const;
  // bytes: of the data; call_bytes: of the call. signature: see ArenaLine.
  void publish(uint64_t number, uint32_t signature, size_t bytes, size_t call_bytes);
  // That rank's line, once its data is there; else nullptr.
  const ArenaLine* find(uint32_t rank, uint64_t number) const {
    const ArenaLine& there = line(rank, number);
    return there.published.load(std::memory_order_acquire) >= number ? &there : nullptr;
  }
  // This rank reads and writes nothing of that call any more.
  void end(uint64_t number);

 private:
  std::byte* taken_at(uint32_t rank) const { return of_first_ + rank * sizeof(ArenaRank); }
  std::atomic<uint64_t>& taken(uint32_t rank) const {
    return reinterpret_cast<ArenaCounter*>(taken_at(rank))->round;
  }
  ArenaLine& line(uint32_t rank, uint64_t number) const {
    auto* const lines = reinterpret_cast<ArenaLine*>(taken_at(rank) + sizeof(ArenaCounter));
    return lines[number & (depth_ - 1)];
  }
  bool find_taken_by_all(uint64_t number);

  std::byte* of_first_;  // the set of rank 0
  uint32_t rank_, size_;
  uint64_t depth_;      // a power of two
  uint64_t last_;       // number of the last call that has begun
  uint64_t all_taken_;  // all ranks have ended calls up to this one
  uint64_t ended_;      // this rank has ended calls up to this one,
  uint64_t later_ = 0;  // and of those behind: a bit each, the lowest for ended_ + 1
};

class Rounds {
 public:
  // A lease holds the header, all ranks' lines and, from a page boundary on, all ranks' slots.
  struct Extent {
    size_t offset, bytes;
  };
  static constexpr Extent lines(uint32_t ranks) {
    return {0, sizeof(ArenaHeader) + ranks * sizeof(ArenaRank)};
  }
  static constexpr Extent slots(uint32_t ranks) {
    return {(lines(ranks).bytes + page - 1) / page * page, ranks * sizeof(ArenaSlots)};
  }
  static constexpr size_t bytes(uint32_t ranks) { return slots(ranks).offset + slots(ranks).bytes; }

  // Prepares a lease for a team of this size, before any rank uses it. The memory was zeroed before
  // its first team. Earlier teams may have had other sizes; all their ranks have left without an
  // error.
  static void prepare(std::byte* memory, uint32_t ranks);

  // room: ranks for which the lease has room; 0: `ranks`.
  Rounds(std::byte* memory, uint32_t rank, uint32_t ranks, uint32_t room = 0)
      : ranks_area_(reinterpret_cast<ArenaRank*>(memory + sizeof(ArenaHeader))),
        slots_area_(reinterpret_cast<ArenaSlots*>(memory + slots(room == 0 ? ranks : room).offset)),
        rank_(rank),
        size_(ranks),
        round_(reinterpret_cast<const ArenaHeader*>(memory)->start),
        all_taken_(round_),
        signals_(memory, rank, ranks) {
    own().taken.round.store(round_, std::memory_order_release);
  }

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  // What ranks tell each other beside the rounds.
  const ArenaSignals& signals() const { return signals_; }

  // A call's rounds are counted from 1; end(n) moves past n rounds, on all ranks alike. signature:
  // must be equal on all ranks; so must bytes, the call's size as this rank's program has it.
  void begin(uint32_t signature, size_t bytes, WaitPolicy* wait_policy) {
    signature_ = signature;
    call_bytes_ = bytes;
    wait_policy_ = wait_policy;
  }
  void end(uint64_t rounds) { round_ += rounds; }

  // Waits until this rank may write its place for `bytes` bytes of round k. False: gave up.
  bool open(uint64_t k, size_t bytes) {
    const uint64_t needed = round_ + k;
    const uint32_t depth = ArenaRank::depth(bytes);
    return needed <= all_taken_ + depth || open_slowly(needed - depth);
  }
  // bytes: the size of the data, or another number that all ranks know alike (32 bits count).
  void publish(uint64_t k, size_t bytes) {
    ArenaLine& at = line(rank_, k);
    at.signature = signature_;
    at.bytes = static_cast<uint32_t>(bytes);
    at.call_bytes = call_bytes_;
    at.published.store(round_ + k, std::memory_order_release);
  }
  // Waits for that rank's data of round k, `bytes` long. False: gave up, or the ranks disagree.
  bool await(uint32_t rank, uint64_t k, size_t bytes) {
    const ArenaLine& at = line(rank, k);
    if (!await_round(rank, k, bytes <= ArenaShortSlot::capacity)) return false;
    return (at.signature == signature_ && at.bytes == static_cast<uint32_t>(bytes) &&
            at.call_bytes == call_bytes_) ||
           disagree_in_round(rank, k, bytes);
  }
  // Whether that data is there already.
  bool is_there(uint32_t rank, uint64_t k) const {
    return line(rank, k).published.load(std::memory_order_acquire) >= round_ + k;
  }
  // As await, but only that rank knows the size. Returns the data; null where await returns false.
  const std::byte* await_data(uint32_t rank, uint64_t k) {
    const ArenaLine& at = line(rank, k);
    if (!await_round(rank, k, false)) return nullptr;
    if (at.signature != signature_ || at.call_bytes != call_bytes_) {
      disagree_in_round(rank, k, at.bytes);
      return nullptr;
    }
    return data(rank, k, at.bytes);
  }
  // Lines for a value in an exchange. Each line is a round.
  template <typename T>
  static constexpr uint64_t lines_of = (sizeof(T) + ArenaLine::inlined - 1) / ArenaLine::inlined;
  // An allgather of one value per rank in rounds k to k + lines_of<T> - 1. Calls hear(rank, value)
  // for all ranks, this one included, then takes these rounds. Needs no slots. False as await.
  // mark: added to the published sizes, so that no rank mistakes these rounds for a call's.
  template <typename T, typename Hear>
  bool exchange(uint64_t k, const T& mine, const Hear& hear, size_t mark = 0) {
    static_assert(std::is_trivially_copyable_v<T> && lines_of<T> <= ArenaRank::lines_depth);
    const auto* const from = reinterpret_cast<const std::byte*>(&mine);
    for (uint64_t i = 0; i < lines_of<T>; ++i) {
      const size_t bytes = line_bytes<T>(i);
      if (!open(k + i, bytes)) return false;
      std::memcpy(line(rank_, k + i).beside, from + i * ArenaLine::inlined, bytes);
      publish(k + i, mark + bytes);
    }
    for (uint32_t rank = 0; rank < size_; ++rank) {
      T theirs = mine;
      auto* const to = reinterpret_cast<std::byte*>(&theirs);
      for (uint64_t i = 0; i < lines_of<T>; ++i) {
        const size_t bytes = line_bytes<T>(i);
        if (!await(rank, k + i, mark + bytes)) return false;
        std::memcpy(to + i * ArenaLine::inlined, line(rank, k + i).beside, bytes);
      }
      hear(rank, theirs);
    }
    mark_taken(k + lines_of<T> - 1);
    return true;
  }
  void combine(uint64_t k) { own().combined.round.store(round_ + k, std::memory_order_release); }
  bool await_combined(uint32_t rank, uint64_t k) {
    return await_value(area(rank).combined.round, round_ + k, rank);
  }
  void mark_taken(uint64_t k) { own().taken.round.store(round_ + k, std::memory_order_release); }

  // Address of a rank's data of round k. `bytes` selects line, short slot or slot, as in `open`.
  std::byte* data(uint32_t rank, uint64_t k, size_t bytes) const {
    if (bytes <= ArenaLine::inlined) return line(rank, k).beside;
    const uint64_t round = round_ + k;
    return bytes <= ArenaShortSlot::capacity
               ? slots_area_[rank].short_slots[round % ArenaRank::short_slots_depth]
               : slots_area_[rank].slots[round % ArenaRank::slots_depth];
  }

  // Waits until all ranks have taken this rank's round k. False: gave up.
  bool await_taken(uint64_t k) { return round_ + k <= all_taken_ || open_slowly(round_ + k); }
  // Null unless all ranks can use CMA.
  Cma* cma() const { return cma_; }
  void set_cma(Cma* cma) { cma_ = cma; }
  // CMA get and put. They need a cma, and the memory's owner must have declared it in reach in the
  // call's first round. It stays valid until this rank has taken that round. False if the copy
  // fails (failed_move) or, for a put, if a rank has aborted.
  bool cma_get(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) {
    return has_moved({rank, cma_->cma_get(rank, address, to, bytes), false});
  }
  bool put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) {
    if (!signals_.begin_put(rank)) return false;
    const int error = cma_->put(rank, address, from, bytes);
    signals_.end_put();
    return has_moved({rank, error, true});
  }
  // The get or put that failed: whose memory, and an errno value.
  struct FailedMove {
    uint32_t rank;
    int error;
    bool is_put;
  };
  const std::optional<FailedMove>& failed_move() const { return failed_move_; }

  // Set when an await finds another collective or size than expected.
  struct Disagreement {
    uint32_t rank, signature;
    size_t bytes, expected;
    bool about_own = false;  // `rank` expects `bytes` of this rank, which has `expected`
  };
  const std::optional<Disagreement>& disagreement() const { return disagreement_; }
  // Called by an algorithm that finds that `rank` has another size for this call. Returns false.
  bool disagree(uint32_t rank, size_t bytes, size_t expected) {
    disagreement_ = {rank, signature_, bytes, expected};
    return false;
  }
  // Called by one that finds that `rank` expects another size from this rank. Returns false.
  bool disagree_about_own(uint32_t rank, size_t bytes, size_t own) {
    disagreement_ = {rank, signature_, bytes, own, true};
    return false;
  }

 private:
  static constexpr size_t page = 4096;
  template <typename T>
  static constexpr size_t line_bytes(uint64_t i) {
    return std::min(sizeof(T) - i * ArenaLine::inlined, ArenaLine::inlined);
  }

  ArenaRank& area(uint32_t rank) const { return ranks_area_[rank]; }
  ArenaRank& own() const { return area(rank_); }
  ArenaLine& line(uint32_t rank, uint64_t k) const { return line_of(rank, round_ + k); }
  ArenaLine& line_of(uint32_t rank, uint64_t round) const {
    return area(rank).lines[round % ArenaRank::lines_depth];
  }
  bool await_value(const std::atomic<uint64_t>& word, uint64_t value, uint32_t rank) {
    return word.load(std::memory_order_acquire) >= value || await_slowly(word, value, rank);
  }
  bool await_round(uint32_t rank, uint64_t k, bool is_short) {
    const std::atomic<uint64_t>& published = line(rank, k).published;
    if (published.load(std::memory_order_acquire) >= round_ + k) return true;
    return is_short ? await_short_slowly(rank, round_ + k)
                    : await_slowly(published, round_ + k, rank);
  }
  bool await_slowly(const std::atomic<uint64_t>& word, uint64_t value, uint32_t rank);
  bool await_short_slowly(uint32_t rank, uint64_t round);
  static bool has_come(const std::atomic<uint64_t>& word, uint64_t value, uint32_t looks);
  void note_processor();
  bool all_here_wait_for(uint64_t round) const;
  bool open_slowly(uint64_t round);
  bool has_moved(const FailedMove& move) {
    if (move.error != 0) failed_move_ = move;
    return move.error == 0;
  }
  bool disagree_in_round(uint32_t rank, uint64_t k, size_t bytes);

  Cma* cma_ = nullptr;
  ArenaRank* ranks_area_;
  ArenaSlots* slots_area_;
  uint32_t rank_, size_;
  uint64_t round_;      // the last one before this call
  uint64_t all_taken_;  // all ranks have taken at least up to this round
  uint32_t signature_ = 0;
  size_t call_bytes_ = 0;
  WaitPolicy* wait_policy_ = nullptr;
  std::optional<Disagreement> disagreement_;
  std::optional<FailedMove> failed_move_;
  ArenaSignals signals_;
};

// Owns a rank's share of a lease. When all its ranks have let go, another team may get the lease.
class Arena {
 public:
  // memory: the lease that the rounds are in.
  Arena(const Rounds& rounds, std::byte* memory, uint32_t rank, uint32_t ranks);
  virtual ~Arena() = default;
  Rounds& rounds() { return rounds_; }
  Cells& cells(uint32_t set) { return cells_[set]; }
  // A lease has lines from the start, but slots only while its ranks need them. Reserves this
  // rank's slots, so that no access to them can fail. An error if there is no room, or the
  // processes of this segment have reserved as much as they may. In both cases this rank must call
  // give_slots_back in the end, and may reserve again only after all ranks have; the last one's
  // call returns the memory. System calls, taking a few tens of microseconds.
  virtual Status reserve_slots() = 0;
  virtual void give_slots_back() = 0;
  // Whether that rank's process still lives. A system call.
  virtual bool lives(uint32_t rank) = 0;
  // This rank's CMA access, which must be tried before use. Null if the arena has none.
  virtual Cma* cma() = 0;

 private:
  Rounds rounds_;
  std::vector<Cells> cells_;
};

// A segment that several processes map, and that exists as long as any of them maps it. All zero:
// none.
struct SegmentName {
  ProcessId maker;
  uint64_t number = 0;  // counts the segments that it made, from 1
  auto operator<=>(const SegmentName&) const = default;
};

struct HeldSegment {
  SegmentName name;                 // none: no such segment
  std::shared_ptr<const void> pin;  // while it lives, the process does not unmap the segment
};

// Makes arenas. The ranks of a team agree on one in two steps: the leader offers it, then all ranks
// take it up. After each step they tell each other the result. A segment serves all teams whose
// ranks are among the processes that it was made for. If all ranks named the same segment
// (held_for) and the offer lies in it (segment_of), they need not tell each other: all map the
// memory already, and the leader has reserved it.
class ArenaSource {
 public:
  static constexpr size_t offer_bytes = 64;
  using Offer = std::array<std::byte, offer_bytes>;

  virtual ~ArenaSource() = default;
  // The segment that `offer` would try first, among those that this process maps and that serve all
  // these processes. Processes that map the same segments name the same one. Local, no system call.
  virtual HeldSegment held_for(std::span<const ProcessId> processes) = 0;
  // The segment that the offer lies in, if this process maps it.
  virtual HeldSegment segment_of(const Offer& offer) = 0;
  // Called by the leader (rank 0). processes: of all ranks, in rank order. again: some ranks could
  // not reach the last offer. Then it offers other memory, made for these processes alone and
  // reached by a file name. Reserves what all ranks need for short calls. An error if there is
  // none.
  virtual Result<Offer> offer(std::span<const ProcessId> processes, bool again) = 0;
  // Called by all ranks, the leader too. An error if this process can't reach the memory: then no
  // rank may use it. If it maps the segment already, it can fail only for lack of memory of its own
  // (std::bad_alloc).
  virtual Result<std::unique_ptr<Arena>> take_up(const Offer& offer,
                                                 std::span<const ProcessId> processes,
                                                 uint32_t rank) = 0;
  // Called instead of take_up, for an offer in a segment that this process maps: aborts the arena
  // with this cause, so no rank uses it again. Throws nothing.
  virtual void reject(const Offer& offer, const std::string& cause) = 0;
  // Called by the leader when all ranks have answered: removes the memory's file name, if any.
  // missing: how many ranks could not take up the offer, and hold nothing of it.
  virtual void settle(const Offer& offer, uint32_t missing) = 0;
};

}  // namespace sluice
