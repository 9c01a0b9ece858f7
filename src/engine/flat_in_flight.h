// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a short call in flight of ranks that share an arena: each writes its operand beside a flag,
// and computes the result from those that it needs once their flags have come. Of 8 bytes between
// two ranks that takes a third of the time of a plan over links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/engine/executor.h"
#include "transports/shm/arena.h"

namespace sluice {

class FlatInFlight final : public Executor {
 public:
  // Whether such calls can go this way; equal on all ranks.
  static bool serves(const Call& call, Rank ranks);

  explicit FlatInFlight(Cells& cells) : cells_(cells) {}

  Status start(const Algorithm& algorithm, const Call& call, uint32_t number) override;
  State advance() override;
  // False: other ranks still read what its place held, so no later call can write either.
  bool has_written() const { return has_written_; }
  Failure failure() const override { return failure_; }
  void cancel() override { call_ = nullptr; }
  std::string awaited() const override;
  bool notices_death() const override { return false; }
  void trim() override {}

 private:
  struct Operand {
    const std::byte* data;
    size_t bytes;
  };
  bool writes() const;
  bool reads(Rank rank) const;
  Operand own() const;
  bool publish();
  bool have_come();
  bool is_like_own(Rank rank, const ArenaLine& line);
  void finish();
  void reduce();

  Cells& cells_;
  const Call* call_ = nullptr;
  uint64_t number_ = 0;
  uint32_t signature_ = 0;
  bool has_written_ = false;
  Rank next_ = 0;  // the ranks before it have come
  Failure failure_;
};

}  // namespace sluice
