// SPDX-License-Identifier: BSD-3-Clause
//
// The arena contract: memory that all ranks of a team map, and how they take turns in it.
//
//   Lease     a team's part of a shared segment; lives where all its ranks see it
//   Line      one rank's place for the flag and the first bytes of one round, and
//   Slot      for longer data; the rank alone writes there, all read
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
// Where ranks reach each other's memory, a call may move its data with one copy (fetch, put), from
// and to where their owners have said that it is. That this worked once is no promise: a process
// may change its user, or an address come to stand for memory of another kind, out of the kernel's
// reach. A rank for which it fails asks the owner of the memory, which moves that data itself,
// piece by piece, by way of the other's slot. It does so while it waits, and must wait: in such
// calls nobody leaves before all that may need its memory have taken (await_taken). So the call
// goes on where it was, and nothing of it is done twice, which could not be where results have
// overwritten operands. That is not quick, and from then on all say that their memory is out of
// reach; their calls go through the slots.
//
// What a slot holds says which collective it belongs to and how much there is: ranks that disagree
// find out. Nothing here blocks but open and the awaits, and these only as Patience lets them. No
// allocation, no system call but a Fetcher's (and getcpu, where ranks take turns). Lines are
// written by one rank each, but for errands.
#pragma once

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

// What a rank asks of the one whose memory it can't reach.
struct alignas(arena_line) ArenaErrand {
  std::atomic<uint64_t> asked;  // its number, and whose memory, plus one; only grows
  std::atomic<uint64_t> done;   // by that one: as asked
  uint64_t address;             // there
  uint32_t bytes;
  uint32_t is_put;  // into that memory
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
  ArenaErrand errand;
  ArenaPlace place;
  ArenaLine lines[lines_depth];
  alignas(arena_line) std::byte short_slots[short_slots_depth][ArenaShortSlot::capacity];
  // A line apart: else all slots compete for the same sets of a cache.
  alignas(arena_line) std::byte slots[slots_depth][ArenaSlot::capacity + arena_line];
};

// What precedes the ranks: why the team is done for, if it is, and whether single copy is.
struct alignas(arena_line) ArenaHeader {
  static constexpr size_t longest_cause = 1000;

  std::atomic<uint32_t> aborted;  // 0, 1: being written, 2: `cause` holds
  std::atomic<uint32_t> strays;   // 1: some rank could not reach another's memory when it had to
  char cause[longest_cause];
};

// Goes on waiting, or not. One for each thread in a call.
class Patience {
 public:
  virtual ~Patience() = default;
  // A turn of waiting for that rank: lets time pass as it sees fit. False: the call is given up.
  virtual bool wait(uint32_t rank) = 0;
  // So often a flag is looked at between turns; and first, where all the team's ranks that share
  // this processor wait for the same short round, and are at least so many.
  uint32_t looks = 100, looks_together = 100, least_together = 2;
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
  // Whether that rank's memory can be read and written.
  virtual bool meet(uint32_t rank, const Introduction& theirs) = 0;
  // Whether others can reach this memory of this process's own: a card's, where it is mapped, may
  // be beyond the kernel's copying. A system call, unless it was asked lately.
  virtual bool is_in_reach(const std::byte* data, size_t bytes) = 0;
  // False if that can't be done (any more); part of it may have been. System calls.
  virtual bool fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) = 0;
  // The other way.
  virtual bool put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes) = 0;
};

class Rounds {
 public:
  static constexpr size_t bytes(uint32_t ranks) {
    return sizeof(ArenaHeader) + ranks * sizeof(ArenaRank);
  }

  // What all ranks write, and what one does.
  struct Extent {
    size_t offset, bytes;
  };
  static constexpr Extent common() { return {0, sizeof(ArenaHeader)}; }
  static constexpr Extent part(uint32_t rank) {
    return {sizeof(ArenaHeader) + rank * sizeof(ArenaRank), sizeof(ArenaRank)};
  }

  // memory: bytes(ranks) of it, zeroed before its first lease, at the same state for all ranks.
  Rounds(std::byte* memory, uint32_t rank, uint32_t ranks)
      : header_(reinterpret_cast<ArenaHeader*>(memory)),
        ranks_area_(reinterpret_cast<ArenaRank*>(memory + sizeof(ArenaHeader))),
        rank_(rank),
        size_(ranks),
        round_(own().taken.round.load(std::memory_order_relaxed)),
        all_taken_(round_) {}

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
  // Round k as an exchange of small values, one of each rank's: hear(rank, value) of everybody's,
  // this rank's included. Done with the round then.
  template <typename T, typename Hear>
  bool exchange(uint64_t k, const T& mine, const Hear& hear) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= ArenaSlot::capacity);
    if (!open(k, sizeof(T))) return false;
    std::memcpy(data(rank_, k, sizeof(T)), &mine, sizeof(T));
    publish(k, sizeof(T));
    for (uint32_t rank = 0; rank < size_; ++rank) {
      T theirs = mine;
      if (!await(rank, k, sizeof(T))) return false;
      std::memcpy(&theirs, data(rank, k, sizeof(T)), sizeof(T));
      hear(rank, theirs);
    }
    take(k);
    return true;
  }
  void combine(uint64_t k) { own().combined.round.store(round_ + k, std::memory_order_release); }
  bool await_combined(uint32_t rank, uint64_t k) {
    return await_value(area(rank).combined.round, round_ + k, rank);
  }
  // This rank comes or goes.
  void enter() {
    own().left.round.store(0, std::memory_order_release);
    header_->strays.store(0, std::memory_order_relaxed);  // nobody has begun before all are here
  }
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
               ? area(rank).short_slots[round % ArenaRank::short_slots_depth]
               : area(rank).slots[round % ArenaRank::slots_depth];
  }

  // Until all have taken round k of this rank's.
  bool await_taken(uint64_t k) { return round_ + k <= all_taken_ || open_slowly(round_ + k); }
  // Until that rank has.
  bool await_taken(uint32_t rank, uint64_t k) {
    return await_value(area(rank).taken.round, round_ + k, rank);
  }
  // Null where not all ranks can read the others' memory.
  Fetcher* fetcher() const { return fetcher_; }
  void set_fetcher(Fetcher* fetcher) { fetcher_ = fetcher; }
  // With a fetcher. Whether the others can reach this memory of this rank's; what ranks tell each
  // other decides. False from when on any could not.
  bool is_in_reach(const std::byte* data, size_t bytes) {
    return !strays() && fetcher_->is_in_reach(data, bytes);
  }
  bool strays() const { return header_->strays.load(std::memory_order_acquire) != 0; }
  // With a fetcher, in a call's first round, where that rank has said in it that this is in reach,
  // and stays until this rank has taken it: from there to here, and from here to there. They may
  // wait; false where the call is given up.
  bool fetch(uint32_t rank, uint64_t address, std::byte* to, size_t bytes) {
    return fetcher_->fetch(rank, address, to, bytes) || ask_for(rank, address, to, bytes);
  }
  bool put(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes);

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
  void abort(const std::string& cause);
  bool is_aborted() const { return header_->aborted.load(std::memory_order_acquire) != 0; }

  // Around what writes into another rank's memory. False: not now that somebody has given up.
  bool begin_put(uint32_t rank) {
    own().puts.round.store(rank + uint64_t{1}, std::memory_order_seq_cst);
    if (header_->aborted.load(std::memory_order_seq_cst) == 0) return true;
    end_put();
    return false;
  }
  void end_put() { own().puts.round.store(0, std::memory_order_release); }
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
  static constexpr uint64_t errand_round = 2;

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
  bool ask_for(uint32_t rank, uint64_t address, std::byte* to, size_t bytes);
  bool ask_to_take(uint32_t rank, uint64_t address, const std::byte* from, size_t bytes);
  bool ask(uint32_t rank, uint64_t address, size_t bytes, bool is_put);
  bool serve();
  // Where the data of that rank's errand passes: in its slot of a round that is not there yet.
  std::byte* errand_data(uint32_t rank) const {
    return data(rank, errand_round, ArenaSlot::capacity);
  }
  bool disagree_in_round(uint32_t rank, uint64_t k, size_t bytes);

  ArenaHeader* header_;
  ArenaRank* ranks_area_;
  uint32_t rank_, size_;
  uint64_t round_;      // the last one before this call
  uint64_t all_taken_;  // everybody has taken so many at least
  uint32_t what_ = 0;
  size_t call_bytes_ = 0;
  Patience* patience_ = nullptr;
  Fetcher* fetcher_ = nullptr;
  std::optional<Disagreement> disagreement_;
};

// A lease, for as long as this lives; once all its ranks have let go, another team may have it.
class Arena {
 public:
  explicit Arena(const Rounds& rounds) : rounds_(rounds) {}
  virtual ~Arena() = default;
  Rounds& rounds() { return rounds_; }
  // Whether the process of that rank still lives. A system call.
  virtual bool lives(uint32_t rank) = 0;
  // This rank's own; whether it works must be tried. Null where there is no such thing.
  virtual Fetcher* fetcher() = 0;

 private:
  Rounds rounds_;
};

// Where a process gets arenas. The ranks of a team agree on one in two steps, between which they
// tell each other how it went: the leader offers, all take the offer up.
class ArenaSource {
 public:
  static constexpr size_t offer_bytes = 64;
  using Offer = std::array<std::byte, offer_bytes>;

  virtual ~ArenaSource() = default;
  // The leader's (rank 0). processes: of all ranks, in rank order. again: some could not reach what
  // was offered last; other memory, to be reached in another way. An error where there is none.
  virtual Result<Offer> offer(std::span<const ProcessId> processes, bool again) = 0;
  // All ranks', the leader included: reserves what this rank will write, near its processor. An
  // error where this process can't reach that memory, or it has no room: then nobody may use it.
  virtual Result<std::unique_ptr<Arena>> take_up(const Offer& offer,
                                                 std::span<const ProcessId> processes,
                                                 uint32_t rank) = 0;
  // The leader's, when all have answered: the memory needs no name any more. missing: so many ranks
  // could not take it up, and hold nothing of it.
  virtual void settle(const Offer& offer, uint32_t missing) = 0;
};

}  // namespace sluice
