// SPDX-License-Identifier: BSD-3-Clause
//
// What a link does while it has no sound connection: before the two sides have met, when a
// connection breaks, and until another one has taken its place (resumption.h). All code that
// notices a sign of the peer asks this table, so the sign has one meaning everywhere.
//
// A link ends only for a certain cause: the peer has ended (a FIN, or nobody listens at its
// address), it reports that its link has failed, bytes are lost, or a limit has passed without a
// sign of life. Until then the link waits. If the peer has ended, bytes in an upgrade's memory are
// read first, because an ABORT among them may say why.
//
// The rows exclude each other. What no row names changes nothing. The table is pure; Link, and
// Rails for their connections, act by it. tests/unit/transports/diagnosis_test.cc walks all rows,
// and all states of two sides that act by it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/base/status.h"
#include "transports/tcp/meeting.h"

namespace sluice {

struct Diagnosis {
  using Side = Meeting::Side;
  enum class Stage : uint8_t {
    unmet,    // the two have not met
    opening,  // both have greeted for the first time, and agree on encryption
    open,     // it carries frames, or is to; if it breaks, another one may go on
    last,     // as open, but no other may follow: BYE was said, a frame is cut off, or there is no
              // address of the peer
    local,    // a local socket, which ends with the peer's process
    parted,   // it broke, and another one may go on
    rail      // a further connection beside an open one (rails.h)
  };
  enum class Sign : uint8_t {
    nothing,   // of the peer; something needs the connection
    back,      // both have greeted again, and said their counts
    broke,     // the connection ended without a FIN, or the host answers only on others
    stalled,   // the peer's part of the filter's handshake, or the acknowledgement of this side's,
               // does not come
    ended,     // the peer has ended its side of the connection
    silent,    // its host does not answer
    absent,    // nobody listens where the peer did, or another process
    refused,   // it says that it has given up the link
    deserted,  // nobody of this host listens where it did, if it is here
    unproved,  // it greeted, was answered, and left without its last proof
    spurned    // it closes this side's invitations, and answers none
  };
  // Of frames that were on a connection which broke; of a rail, of parts.
  enum class Bytes : uint8_t {
    none,    // are missing
    coming,  // some may come yet: they are in an upgrade's memory, or on their way
    lost
  };
  // Of the wait that the stage and the sign are about (Link::limit_of).
  enum class Limit : uint8_t { running, passed };
  struct Symptoms {
    Side side;
    Stage stage;
    Sign sign;
    Bytes bytes = Bytes::none;
    Limit limit = Limit::running;
  };

  enum class Remedy : uint8_t {
    none,
    wait,
    dial,    // to greet
    invite,  // dial to invite the asking side
    part,    // drop the connection, and keep what is queued; of a rail: drop it
    resume,  // over the new connection
    give_up  // the link, for the cause
  };
  enum class Cause : uint8_t {
    none,
    unreached,      // it could not be connected to
    refused,        // it had given up the link before they met
    never_came,     // it ended before it connected
    unproved,       // it ended before its last proof
    spurned,        // it closes what is to connect the two
    broke_opening,  // the first connection broke before it was ready
    stalled,        // its opening came to a halt
    broke_last,     // it broke, and no other may go on
    ended,          // the peer has ended it
    silent,         // its host has not answered
    silent_since,   // the connection broke, and since then its host has not answered
    absent_since,   // the connection broke, and since then nobody answers as the peer
    refused_since,  // the connection broke, and the peer has given up the link
    lost,           // the connection broke, and bytes are lost
    rail_broke,     // a rail broke that parts were on
    rail_ended      // the peer has ended such a rail
  };
  Remedy remedy = Remedy::none;
  Cause cause = Cause::none;
  bool operator==(const Diagnosis&) const = default;

  // The table. none: whatever it is.
  struct Row {
    std::optional<Side> side;
    Stage stage;
    Sign sign;
    std::optional<Bytes> bytes;
    std::optional<Limit> limit;
    Remedy remedy;
    Cause cause = Cause::none;
    bool names(const Symptoms& seen) const {
      return stage == seen.stage && sign == seen.sign && side.value_or(seen.side) == seen.side &&
             bytes.value_or(seen.bytes) == seen.bytes && limit.value_or(seen.limit) == seen.limit;
    }
  };
  static std::span<const Row> rows();
  static Diagnosis of(const Symptoms& seen);
};

// The error of a link that is given up for that cause. peer: its name. broke: why the connection
// ended, for the causes since then. how: what was noticed; for some causes, the whole error.
Status explain(Diagnosis::Cause cause, const std::string& peer, const std::string& broke,
               const Status& how);

}  // namespace sluice
