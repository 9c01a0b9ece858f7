// SPDX-License-Identifier: BSD-3-Clause
//
// The arena contract: memory that all ranks of a team map, and how they take turns in it.
//
//   Lease     a team's part of a shared segment; lives where all its ranks see it
//   Line      one rank's place for the flag and the first bytes of one round, and
//   Slot      for longer data; the rank alone writes there, all read. Its memory is reserved when
//             the team first needs it, and given back
//   Round     a step that all ranks of the team count alike: one call takes one or more
//   Rounds    a rank's view of its lease; what direct algorithms are written with
//   Patience  how to wait: spinning is done here, what comes after is the caller's
//
// A rank that has data for round k waits until everybody has taken what was in that place before,
// some rounds ago (open), writes, and says so (publish). The others wait for that (await) and read
// in place; when a rank will read nothing more of round k it says that (take). Nobody meets anybody
// at the end of a call: the next call's rounds go to other places. A flag and short data share a
// cache line, so a small message costs its reader one miss; there are many lines, so that whose
// data is short seldom looks for what others have taken.
//
// Where ranks can read and write each other's memory, a call may move its data with one copy
// (fetch, put), from and to the addresses that their owners publish in its first round. There each
// owner also says whether the kernel can copy all of its buffer (Fetcher::is_in_reach); if any
// can't be copied, the call goes through the slots. A fetch or put that fails after that is an
// error, and the team is broken: results may have overwritten operands already, so the call can't
// be repeated. An owner leaves such a call only when all ranks that may need its memory have taken
// its round (await_taken), and after an error only when nobody writes into its memory any more
// (is_put_to).
//
// What a slot holds says which collective it belongs to and how much there is: ranks that disagree
// find out. Nothing here blocks but open and the awaits, and these only as Patience lets them. No
// allocation, no system call but a Fetcher's (and getcpu, where ranks take turns). Lines are
// written by one rank each.
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

// What is under a rank's control in a lease. Two cache lines apart: processors fetch them in pairs.
inline constexpr size_t arena_line = 128;

// Words of a rank that others watch; each only grows.
struct alignas(arena_line) ArenaCounter {
  std::atomic<uint64_t> round;
};

// A round of a rank: that it is there, what it holds, and its data if that is short. The data of a
// longer one is in a slot.
struct alignas(arena_line) ArenaLine {
  static constexpr size_t inlined = arena_line - 32;

  std::atomic<uint64_t> published;        // the round that is here
  uint32_t what;                          // opaque here: which collective with which root
  uint32_t bytes;                         // of its data
  uint64_t call_bytes;                    // of the call that it belongs to, for messages
  alignas(32) std::byte beside[inlined];  // a program's own operation may want it aligned
};

// Two kinds of slots. Short ones are for streams between ranks that run at the same time: all of
// them stay in the first level of the cache (twice as fast, measured). Long ones are for ranks that
// take turns on a processor, and for what is dealt out among many: the longer they are, the more is
// done in a turn (4 and 8 ranks on 2 cores take 0.6 to 0.8 of the time that slots of 32 KB take,
// and those of 128 KB gain less again).
struct ArenaSlot {
  static constexpr size_t capacity = size_t{64} << 10;  // bytes of data in a round
};
struct ArenaShortSlot {
  static constexpr size_t capacity = size_t{2} << 10;
};

// Hints for those who wait on the same processor.
struct alignas(arena_line) ArenaPlace {
  std::atomic<uint64_t> processor;  // where the rank waited last, plus one; 0: not known
  std::atomic<uint64_t> waits;      // there, for this round of another's; 0: for none
};

struct ArenaRank {
  // Rounds that a rank may be ahead, by where their data is.
  static constexpr uint32_t lines_depth = 64;
  static constexpr uint32_t short_slots_depth = 4;
  static constexpr uint32_t slots_depth = 4;

  static constexpr uint32_t depth(size_t bytes) {
    return bytes <= ArenaLine::inlined         ? lines_depth
           : bytes <= ArenaShortSlot::capacity ? short_slots_depth
                                               : slots_depth;
  }

  ArenaCounter taken;     // reads no data of rounds up to this any more
  ArenaCounter combined;  // has written its part of this round's result
  ArenaCounter left;      // 1: will come to no further round
  ArenaCounter puts;      // into this rank's memory, less one; 0: into nobody's
  ArenaPlace place;
  ArenaLine lines[lines_depth];
};

// A rank's slots: thirty times as much memory as its lines.
struct ArenaSlots {
  alignas(arena_line) std::byte short_slots[ArenaRank::short_slots_depth][ArenaShortSlot::capacity];
  // A line apart: else all slots compete for the same sets of a cache.
  alignas(arena_line) std::byte slots[ArenaRank::slots_depth][ArenaSlot::capacity + arena_line];
};

// What precedes the ranks: why the team is done for, if it is.
struct alignas(arena_line) ArenaHeader {
  static constexpr size_t longest_cause = 1000;

  std::atomic<uint32_t> aborted;    // 0, 1: being written, 2: `cause` holds
  uint64_t start;                   // the last round before the team's first
  uint32_t used;                    // so many ranks' lines were in use since the memory was zeroed
  std::atomic<uint32_t> holding;    // ranks that reserved slots
  std::atomic<uint32_t> returning;  // that gave them back, or had none to give; all did: 0
  char cause[longest_cause];
};

// Goes on waiting, or not. One for each thread in a call.
class Patience {
 public:
  virtual ~Patience() = default;
  // A turn of waiting for that rank: lets time pass as it sees fit. False: the call is given up.
  virtual bool wait(uint32_t rank) = 0;
  // So often a flag is looked at before the first turn, and between turns; and before both, where
  // all the team's ranks that share this processor wait for the same short round, and are at least
  // so many.
  uint32_t looks = 100, looks_between = 100, looks_together = 100, least_together = 2;
  // The next turn is the first for another flag: what came before was not in vain.
  bool fresh = true;
};

// Reads and writes other ranks' memory, at addresses that they name, in one copy. Ranks introduce
// themselves to each other first; only where each then has read and written something of everybody
// is fetching tried, and then for memory that its owner has found within reach.
class Fetcher {
 public:
  struct Introduction {
    uint64_t process, address, content;
  };
  virtual ~Fetcher() = default;
  virtual Introduction introduction() const = 0;
  // Whether that rank's memory can be read and written. System calls.
  virtual bool meet(uint32_t rank, const Introduction& theirs) = 0;
  // What this process found when it met that rank's in an earlier team; nothing if it did not. Then
  // it need not meet it again.
  virtual std::optional<bool> met(uint32_t) const { return {}; }
  // Whether others can reach all of this memory of this process's own: the kernel does not copy a
  // card's memory that is mapped. A system call, unless it was asked lately.
  virtual bool is_in_reach(const std::byte* data, size_t bytes) = 0;
  // 0 if all was moved; else the system's error number, and part of it may have been. System calls.
  virtual int fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) = 0;
  // The other way.
  virtual int put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) = 0;
};

class Rounds {
 public:
  // A lease holds the header and all ranks' lines, and from a page's begin on all ranks' slots.
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

  // Gets a lease ready for a team of so many ranks, before any of them has it. Its memory was
  // zeroed before its first team, and teams of any size have had it since, whose ranks all let go
  // of it in good order.
  static void prepare(std::byte* memory, uint32_t ranks);

  // memory: a lease for `room` ranks at most.
  Rounds(std::byte* memory, uint32_t rank, uint32_t ranks, uint32_t room)
      : header_(reinterpret_cast<ArenaHeader*>(memory)),
        ranks_area_(reinterpret_cast<ArenaRank*>(memory + sizeof(ArenaHeader))),
        slots_area_(reinterpret_cast<ArenaSlots*>(memory + slots(room).offset)),
        rank_(rank),
        size_(ranks),
        round_(header_->start),
        all_taken_(round_) {
    own().taken.round.store(round_, std::memory_order_release);
  }
  Rounds(std::byte* memory, uint32_t rank, uint32_t ranks) : Rounds(memory, rank, ranks, ranks) {}

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }

  // Rounds of one call are counted from 1 on; `end` makes them the past, on all ranks alike.
  // what: equal on all ranks, or they disagree. bytes: what the program calls the size of this
  // call, which is told where they disagree about others.
  void begin(uint32_t what, size_t bytes, Patience* patience) {
    what_ = what;
    call_bytes_ = bytes;
    patience_ = patience;
  }
  void end(uint64_t rounds) { round_ += rounds; }

  // This rank has reserved its slots.
  void hold_slots() { header_->holding.fetch_add(1); }
  // It goes to them no more, and reads no other's. True for the last of the team's ranks, with how
  // many had reserved theirs: nobody will touch them until some are reserved again.
  bool give_slots_back(uint32_t* held) {
    if (header_->returning.fetch_add(1) + 1 < size_) return false;
    *held = header_->holding.exchange(0);
    header_->returning.store(0);
    return true;
  }

  // Waits until this rank's place for so many bytes of round k may be written.
  bool open(uint64_t k, size_t bytes) {
    const uint64_t needed = round_ + k;
    const uint32_t depth = ArenaRank::depth(bytes);
    return needed <= all_taken_ + depth || open_slowly(needed - depth);
  }
  // bytes: of its data, or another number that all ranks know alike (its last 32 bits count).
  void publish(uint64_t k, size_t bytes) {
    ArenaLine& at = line(rank_, k);
    at.what = what_;
    at.bytes = static_cast<uint32_t>(bytes);
    at.call_bytes = call_bytes_;
    at.published.store(round_ + k, std::memory_order_release);
  }
  // Until that rank's data of round k is there, `bytes` of them.
  bool await(uint32_t rank, uint64_t k, size_t bytes) {
    const ArenaLine& at = line(rank, k);
    if (!await_round(rank, k, bytes <= ArenaShortSlot::capacity)) return false;
    return (at.what == what_ && at.bytes == static_cast<uint32_t>(bytes)) ||
           disagree_in_round(rank, k, bytes);
  }
  // Whether it is already.
  bool is_there(uint32_t rank, uint64_t k) const {
    return line(rank, k).published.load(std::memory_order_acquire) >= round_ + k;
  }
  // Of a round whose size its rank alone knows: where its data is; null as `await` is false.
  const std::byte* await_data(uint32_t rank, uint64_t k) {
    const ArenaLine& at = line(rank, k);
    if (!await_round(rank, k, false)) return nullptr;
    if (at.what != what_) return disagree_in_round(rank, k, at.bytes), nullptr;
    return data(rank, k, at.bytes);
  }
  // How many lines a value takes in an exchange, each of them a round.
  template <typename T>
  static constexpr uint64_t lines_of = (sizeof(T) + ArenaLine::inlined - 1) / ArenaLine::inlined;
  // Rounds k to k + lines_of<T> - 1 as an exchange of values, one of each rank's: hear(rank, value)
  // of everybody's, this rank's included. Done with these rounds then. Needs no slots. mark: added
  // to what is told of its bytes, so that nobody takes it for a round of a call's.
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
    take(k + lines_of<T> - 1);
    return true;
  }
  void combine(uint64_t k) { own().combined.round.store(round_ + k, std::memory_order_release); }
  bool await_combined(uint32_t rank, uint64_t k) {
    return await_value(area(rank).combined.round, round_ + k, rank);
  }
  // This rank goes.
  void leave() { own().left.round.store(1, std::memory_order_release); }
  bool has_left(uint32_t rank) const {
    return area(rank).left.round.load(std::memory_order_acquire) != 0;
  }
  void take(uint64_t k) { own().taken.round.store(round_ + k, std::memory_order_release); }

  // Where a rank's data of round k is: `bytes` of it, as in `open`, decide.
  std::byte* data(uint32_t rank, uint64_t k, size_t bytes) const {
    if (bytes <= ArenaLine::inlined) return line(rank, k).beside;
    const uint64_t round = round_ + k;
    return bytes <= ArenaShortSlot::capacity
               ? slots_area_[rank].short_slots[round % ArenaRank::short_slots_depth]
               : slots_area_[rank].slots[round % ArenaRank::slots_depth];
  }

  // Until all have taken round k of this rank's.
  bool await_taken(uint64_t k) { return round_ + k <= all_taken_ || open_slowly(round_ + k); }
  // Null where not all ranks can read the others' memory.
  Fetcher* fetcher() const { return fetcher_; }
  void set_fetcher(Fetcher* fetcher) { fetcher_ = fetcher; }
  // With a fetcher, where that rank has said in the call's first round that this is in reach, and
  // stays until this rank has taken that round: from there to here, and from here to there. False
  // where that fails, or a put comes after somebody has given up.
  bool fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) {
    return has_moved({rank, fetcher_->fetch(rank, address, to, bytes), false});
  }
  bool put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) {
    if (!begin_put(rank)) return false;
    const int error = fetcher_->put(rank, address, from, bytes);
    end_put();
    return has_moved({rank, error, true});
  }
  // Where one of them failed: whose memory it was, and the system's error number.
  struct FailedMove {
    uint32_t rank;
    int error;
    bool is_put;
  };
  const std::optional<FailedMove>& failed_move() const { return failed_move_; }

  // Where an await found what it did not expect.
  struct Disagreement {
    uint32_t rank, what;
    size_t bytes, expected;
    bool about_own = false;  // that rank expects so many bytes of this one, which has `expected`
  };
  const std::optional<Disagreement>& disagreement() const { return disagreement_; }
  // An algorithm's finding: that rank has so many bytes for this call. False.
  bool disagree(uint32_t rank, size_t bytes, size_t expected) {
    disagreement_ = {rank, what_, bytes, expected};
    return false;
  }
  // And that it expects so many of this rank's.
  bool disagree_about_own(uint32_t rank, size_t bytes, size_t own) {
    disagreement_ = {rank, what_, bytes, own, true};
    return false;
  }

  // The team is done for: whoever waits learns it, and why. The first cause stays.
  void abort(const std::string& cause) { abort(reinterpret_cast<std::byte*>(header_), cause); }
  // The same by a rank that has no view of the lease, which `prepare` was called on.
  static void abort(std::byte* memory, const std::string& cause);
  bool is_aborted() const { return header_->aborted.load(std::memory_order_acquire) != 0; }

  // Whether anybody still writes into this rank's memory. Once it has called abort, and this is
  // false, nobody will.
  bool is_put_to() const {
    for (uint32_t rank = 0; rank < size_; ++rank) {
      const std::atomic<uint64_t>& puts = area(rank).puts.round;
      if (puts.load(std::memory_order_seq_cst) == rank_ + uint64_t{1}) return true;
    }
    return false;
  }
  // Empty as long as it is not.
  std::string cause() const;

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
  // Around what writes into another rank's memory. False: not now that somebody has given up.
  bool begin_put(uint32_t rank) {
    own().puts.round.store(rank + uint64_t{1}, std::memory_order_seq_cst);
    if (header_->aborted.load(std::memory_order_seq_cst) == 0) return true;
    end_put();
    return false;
  }
  void end_put() { own().puts.round.store(0, std::memory_order_release); }
  bool has_moved(const FailedMove& move) {
    if (move.error != 0) failed_move_ = move;
    return move.error == 0;
  }
  bool disagree_in_round(uint32_t rank, uint64_t k, size_t bytes);

  ArenaHeader* header_;
  ArenaRank* ranks_area_;
  ArenaSlots* slots_area_;
  uint32_t rank_, size_;
  uint64_t round_;      // the last one before this call
  uint64_t all_taken_;  // everybody has taken so many at least
  uint32_t what_ = 0;
  size_t call_bytes_ = 0;
  Patience* patience_ = nullptr;
  Fetcher* fetcher_ = nullptr;
  std::optional<Disagreement> disagreement_;
  std::optional<FailedMove> failed_move_;
};

// A lease, for as long as this lives; once all its ranks have let go, another team may have it.
class Arena {
 public:
  explicit Arena(const Rounds& rounds) : rounds_(rounds) {}
  virtual ~Arena() = default;
  Rounds& rounds() { return rounds_; }
  // A lease has lines from the start, slots only while its ranks want them. Reserves this rank's:
  // no access to them can fail then. An error where there is no room, or processes of this segment
  // have as many as they may. Either way this rank gives them back in the end, and reserves none
  // before all ranks have. The last one's returns their memory. System calls, in a few tens of
  // microseconds.
  virtual Status reserve_slots() = 0;
  virtual void give_slots_back() = 0;
  // Whether the process of that rank still lives. A system call.
  virtual bool lives(uint32_t rank) = 0;
  // This rank's own; whether it works must be tried. Null where there is no such thing.
  virtual Fetcher* fetcher() = 0;

 private:
  Rounds rounds_;
};

// A segment that several processes map, for as long as any of them does. All zero: none.
struct SegmentName {
  ProcessId maker;
  uint64_t number = 0;  // of those that it made, from 1 on
  auto operator<=>(const SegmentName&) const = default;
};

struct HeldSegment {
  SegmentName name;                 // none: no such segment
  std::shared_ptr<const void> pin;  // while it lives, the process does not unmap the segment
};

// Where a process gets arenas. The ranks of a team agree on one in two steps, between which they
// tell each other how it went: the leader offers, all take the offer up. A segment serves all
// teams of the processes that it was made for, and of some of them. Where all ranks have named one
// segment (held_for) and the offer lies in it (segment_of), they need not tell each other: all map
// that memory already, and the leader has reserved it.
class ArenaSource {
 public:
  static constexpr size_t offer_bytes = 64;
  using Offer = std::array<std::byte, offer_bytes>;

  virtual ~ArenaSource() = default;
  // The segment that `offer` would take first, of those that this process maps and that serve all
  // these processes. Processes that map the same segments name the same one. Local, no system call.
  virtual HeldSegment held_for(std::span<const ProcessId> processes) = 0;
  // The segment that an offer lies in, if this process maps it.
  virtual HeldSegment segment_of(const Offer& offer) = 0;
  // The leader's (rank 0). processes: of all ranks, in rank order. again: some could not reach what
  // was offered last; other memory, made for these processes alone, to be reached in another way.
  // Reserves what all ranks need for short calls. An error where there is none.
  virtual Result<Offer> offer(std::span<const ProcessId> processes, bool again) = 0;
  // All ranks', the leader included. An error where this process can't reach that memory: then
  // nobody may use it. Where it maps the segment already, nothing can be missing but memory of its
  // own (std::bad_alloc).
  virtual Result<std::unique_ptr<Arena>> take_up(const Offer& offer,
                                                 std::span<const ProcessId> processes,
                                                 uint32_t rank) = 0;
  // In place of take_up, of an offer in a segment that this process maps: the others learn the
  // cause in the arena, and nobody uses it again. Throws nothing.
  virtual void refuse(const Offer& offer, const std::string& cause) = 0;
  // The leader's, when all have answered: the memory needs no name any more. missing: so many ranks
  // could not take it up, and hold nothing of it.
  virtual void settle(const Offer& offer, uint32_t missing) = 0;
};

}  // namespace sluice
