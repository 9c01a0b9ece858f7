// SPDX-License-Identifier: BSD-3-Clause
//
// How the two sides of a link agree on an upgrade (transports/conduit.h):
//
//   connecting side   OFFER ->            (probe) ->             SHIFT ->
//   accepting side            <- ACCEPT              <- (probe)            <- SHIFT
//
//   or <- DECLINE in place of ACCEPT, and the next offer: of the same maker, or of the next
//
// If no offer is left, the connecting side says so by a last DECLINE.
// The accepting side can receive over the upgrade before it accepts, and the connecting side before
// its probe, which crosses the upgrade itself. Only the connecting side ends an accepted offer: by
// its SHIFT, or by a DECLINE if a probe failed; the accepting side tells it of its own probe. So
// both decide alike. Each side's frames before its SHIFT go over the base, those after it over the
// upgrade.
//
// What a side does on each of the other's frames is a table: (side, state, message) -> (next state,
// action). It has no row for what a peer of this version never sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "transports/conduit.h"
#include "transports/link/conduit_stack.h"
#include "transports/link/frame.h"
#include "transports/link/link_shared.h"
#include "transports/link/outbox.h"

namespace sluice {

class UpgradeNegotiation {
 public:
  enum class Side : uint8_t { connecting, accepting };
  enum class State : uint8_t {
    idle,      // no offer (yet, or again)
    offered,   // connecting side: the answer is awaited
    probing,   // accepted; neither side has said more
    failed,    // accepting side: has said that its probe failed, and awaits the withdrawal
    shifting,  // connecting side: its SHIFT is queued or sent; the peer's is awaited
    done,      // the peer's SHIFT has come
    settled    // there will be no upgrade
  };
  // A frame, for a DECLINE with what its first byte says.
  enum class Message : uint8_t {
    offer,
    accept,
    decline,
    no_more_offers,
    probe_failed,
    try_another,
    shift
  };
  enum class Action : uint8_t {
    reject,       // the link fails: the message is out of turn
    ignore,       // it crossed this side's withdrawal
    attach,       // to what is offered, and answer
    begin_probe,  // with what the peer answered
    offer_again,  // the maker's next choice
    offer_next,   // the next maker's
    withdraw,     // the offer, and make the next
    drop,         // what was accepted
    settle,       // the link stays on its base
    take_over,    // read over the upgrade; the accepting side shifts too
    give_up       // the link fails: one side has shifted, on the other the probe failed
  };
  struct Step {
    State next;
    Action action;
  };
  // The table.
  static Step step(Side side, State state, Message message);

  // shared, conduits (whose upgrade it sets), out and label belong to the link.
  UpgradeNegotiation(LinkShared& shared, ConduitStack& conduits, Outbox& out,
                     const std::string& label, Side side)
      : shared_(shared), conduits_(conduits), out_(out), label_(label), side_(side) {}

  // The following return an error if the link must fail; they may throw std::bad_alloc.

  // Another connection takes the place of one that broke. (Nothing is in use or offered.)
  void restart();
  // Connecting side, once the peer's answer has proved its identity and the base is complete.
  Status offer();
  // On a frame from the peer, with its payload.
  Status receive(FrameType type, const std::string& text);
  // Between the offer's acceptance and the connecting side's SHIFT: asks how the probe goes.
  Status try_upgrade();

  // There will be no upgrade.
  bool is_settled() const {
    return state_ == State::settled || (state_ == State::idle && !can_upgrade());
  }
  // Whether a link that is only sent on must be read at this call, because an offer or answer would
  // not be seen otherwise.
  bool must_look();
  // Why the link may not stay on its base, although it does; it fails when the last DECLINE has
  // left.
  const Status& refusal() const { return refusal_; }

 private:
  // Why an offer came to nothing, or none was made.
  struct Reason {
    std::string text;
    bool is_peers = false;  // it said so
  };

  bool connects() const { return side_ == Side::connecting; }
  bool permits(const UpgradeMaker& maker) const { return !conduits_.filter() || !maker.exposes(); }
  bool can_upgrade() const;
  void leave_maker() { ++next_maker_, next_choice_ = 0; }
  Status act(Action action, Message message, const std::string& text);
  Status attach(const std::string& offer);
  Status begin_probe(const std::string& answer);
  Status withdraw();
  Status end_offers();
  Status settle();
  void take_over();
  Status reject(Message message) const;
  Status refuse(const std::string& text) const;
  void push_decline(Message kind);
  void push_shift();

  LinkShared& shared_;
  ConduitStack& conduits_;
  Outbox& out_;
  const std::string& label_;
  const Side side_;
  State state_ = State::idle;
  size_t next_maker_ = 0;   // of TcpOptions::upgrades, to be offered next
  size_t next_choice_ = 0;  // of that maker's
  Reason reason_;
  Status refusal_;
  uint32_t looks_ = 0;  // calls of must_look so far
};

}  // namespace sluice
