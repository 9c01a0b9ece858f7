// SPDX-License-Identifier: BSD-3-Clause
//
// How two processes come to share one connection, although both may dial.
//
// The process with the lower id asks, the other answers, whichever of them dials. The asking side
// alone greets and chooses. It dials when it first needs the connection. The answering side waits;
// after a second, or at once if it is urged, it dials too, and says on its connection only that it
// invites the other (greeting.h). To the asking side an invited connection is like one that it has
// made itself: it greets on it as on its own, keeps the first on which an answer comes, and closes
// the others. So a firewall may let connections pass in either direction.
//
// If a connection to one of the peer's addresses stays silent, the peer may be late, or another
// machine may be there. So the asking side greets at its next address after a second, too, and the
// answering side invites there. Both keep what they have made.
//
//   asking side                                     answering side
//   connects, greets ->                             waits, reads the greeting, answers: both have
//   met
//
//   connects, and nothing passes                    waits a second, connects, invites ->
//   takes the invitation, greets on it ->           reads the greeting, answers: both have met
//
// Why the two cannot end on different connections: the answering side takes one connection. With
// proofs it takes the one with the last proof, and the asking side sends that proof only on the
// connection of its choice. Without proofs it answers on one, and the asking side chooses the one
// with the answer. Why neither waits for ever: until they have met, the asking side dials and takes
// each invitation. The answering side reads each greeting, and invites again a second after an
// invitation has ended. tests/unit/transports/meeting_test.cc walks all interleavings.
//
// The table says what a side does on each event: (side, state, event) -> (next state, action).
#pragma once

#include <cstdint>

#include "transports/transport.h"

namespace sluice {

class Meeting {
 public:
  enum class Side : uint8_t { asks, answers };
  enum class State : uint8_t {
    apart,    // not connected, and nothing is done about it
    waits,    // answering side: needs the connection, and gives the other side time to make it
    dials,    // connects; asking side: also on invitations
    invites,  // answering side: the other side has its invitation, as far as its kernel says
    met,      // connected, to the same connection as the other side
    over      // the link has failed
  };
  enum class Event : uint8_t {
    needed,     // something is pending
    idle,       // nothing is pending any more
    urged,      // the connection is needed, and waiting for the other side would not help
    overdue,    // answering side: it has waited long enough, or for its invitation to be answered
    invited,    // the other side invites
    connected,  // dialing has led to a connection: one to keep, or an invitation that was sent
    greeted,    // the other side has greeted, and proved itself
    uninvited,  // answering side: the connection with the invitation has ended
    short_of,   // dialing has failed, and the link goes on
    broke,      // the connection has ended, and the link may have another (link/resumption.h)
    ended       // the link has failed, for whatever reason
  };
  enum class Action : uint8_t {
    nothing,
    wait,    // from now
    dial,    // from now
    stop,    // dialing
    adopt,   // the connection with the invitation: dial on it, too
    greet,   // on the connection that the dialer has chosen
    invite,  // done: read the greeting on that connection
    accept,  // the connection with the greeting; stop dialing
    close,   // the connection: there is another
    refuse   // and tell the other side that the link has failed
  };
  struct Step {
    State next;
    Action action;
  };
  // The table. An event that it does not name changes nothing; a connection is closed.
  static Step step(Side side, State state, Event event);

  explicit Meeting(Side side) : side_(side) {}
  static Side side_of(const ProcessId& self, const ProcessId& peer) {
    return self < peer ? Side::asks : Side::answers;
  }

  Side side() const { return side_; }
  State state() const { return state_; }
  bool asks() const { return side_ == Side::asks; }
  // What enter() would say.
  Action answer_to(Event event) const { return step(side_, state_, event).action; }
  Action enter(Event event) {
    const Step taken = step(side_, state_, event);
    state_ = taken.next;
    return taken.action;
  }

 private:
  const Side side_;
  State state_ = State::apart;
};

}  // namespace sluice
