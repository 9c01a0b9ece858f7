// SPDX-License-Identifier: BSD-3-Clause
//
// Recursive doubling of scans, for the plans that contain one.
#pragma once

#include <optional>

#include "collectives/scan/scan.h"

namespace sluice {

// The steps of one rank among so many that the plan talks to (PlanBuilder::talk_among). collective:
// scan or exscan. Results are built in `place`, whose memory may be the operand's.
class ScanDoubling {
 public:
  ScanDoubling(PlanBuilder& plan, Collective collective, const Piece& operand, const Piece& place)
      : plan_(plan),
        collective_(collective),
        place_(place),
        received_(plan, operand),
        kept_(plan, operand),
        cube_(operand) {}

  // Where the rank's result is: in `place`, or the operand on rank 0 of a scan; none on rank 0 of
  // an exscan.
  std::optional<Piece> run(Rank rank, Rank size);

 private:
  // A block of scratch, from its first use.
  class Scratch {
   public:
    Scratch(PlanBuilder& plan, const Piece& like) : plan_(plan), like_(like) {}
    const Piece& operator*() {
      if (!piece_) piece_ = plan_.scratch(like_);
      return *piece_;
    }

   private:
    PlanBuilder& plan_;
    const Piece like_;
    std::optional<Piece> piece_;
  };

  void be_lower(Rank peer, bool keeps);
  void be_upper(Rank peer, bool sends, bool keeps);

  PlanBuilder& plan_;
  const Collective collective_;
  const Piece place_;
  Scratch received_, kept_;
  Piece cube_;                   // the combination of this rank's cube
  std::optional<Piece> result_;  // so far
};

}  // namespace sluice
