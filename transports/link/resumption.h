// SPDX-License-Identifier: BSD-3-Clause
//
// How a link outlives its connection. Between two calls a connection may end although both
// processes live: keepalive gives up in an outage, a firewall or a router that has forgotten it
// resets it, a network fails over. The link then keeps its queue, its streams and its place in the
// frame that was on the way, and connects again when an operation needs it. In their greetings both
// sides say how many bytes of frames they have sent and received over all connections of the link
// (ByteCounts, transports/tcp/greeting.h). If each has what the other sent, the bytes go on where
// they stopped. Else some are lost, nobody keeps a copy, and the link fails.
//
//   a side that notices the end        broken: reads what came before, closes its socket
//   an operation is pending there      seeking: connects; nobody listens: the process is dead, at
//                                      once; no answer: again, until SLUICE_PEER_TIMEOUT
//   the side with the lower id         greets, with its counts; it waits for the answer, and its
//                                      peer may be busy for any time
//   the other side                     may have noticed nothing; after the first proof it reads
//                                      its old connection to the end, drops it, and answers
//   both                               a new filter, and a new negotiation of upgrades
//
// A FIN ends a link, a reset or a timeout breaks a connection. A process that ends, or gives its
// link up, sends a FIN (ConduitStack::end), and so its peer does not look for it. (If a process is
// killed that has not read everything, its kernel sends a reset; but then nobody listens at its
// address.) Whoever drops a connection to have another resets it.
//
// The side with the lower id numbers its searches, and each of its greetings has the number. Before
// the next search begins, it resets all connections of the last one but the one that it chose. On
// that one it confirms the answer (greeting.h), and only then the other side sends on it. Both
// sides know the number that brought the connection in place; that of the first is 0. So the number
// of a late or replayed greeting is not above that of the connection in place, and the greeting
// changes nothing (takes). An invitation says the number of the connection that broke: it ends the
// other side's end of that connection, and no newer one.
//
// So an end in the middle of a call is an error if bytes were on their way, and else is not. A real
// end is final: BYE, a dead process, a failed link.
//
// What ends it, diagnosis.h says. The table is pure; Link acts by it.
#pragma once

#include <cstdint>

#include "transports/tcp/meeting.h"

namespace sluice {

class Resumption {
 public:
  enum class State : uint8_t {
    fresh,    // was never open: what ends the connection ends the link
    whole,    // is open, as far as this side knows
    broken,   // the connection ended without BYE, and nothing needs it
    seeking,  // broken, and an operation waits for another connection
    over      // the link has ended
  };
  enum class Event : uint8_t {
    opened,    // both have greeted for the first time
    broke,     // the connection ended without BYE
    needed,    // something is pending
    unneeded,  // nothing is any more
    resumed,   // both have greeted on a new connection, and their counts agree
    ended      // BYE, or something else has ended the link
  };
  enum class Action : uint8_t {
    none,
    part,  // drop the connection, and keep what is queued
    seek,  // connect
    rest,  // stop connecting
    go_on  // over the new connection
  };
  struct Step {
    State next;
    Action action;
  };
  // The table.
  static Step step(State state, Event event);

  // Whether a side with a link in that state takes a connection on which the other side resumes:
  // with a greeting on the answering side, with an invitation on the asking side. number: of the
  // greeting or invitation, beside that of the connection in place.
  enum class Number : uint8_t { older, same, newer };
  static bool takes(Meeting::Side side, State state, Number number);
  bool takes(Meeting::Side side, uint64_t number) const;

  // That of the search which brought the connection in place, or the one that broke.
  uint64_t number() const { return number_; }
  void bring(uint64_t number) { number_ = number; }

  State state() const { return state_; }
  bool seeks() const { return state_ == State::seeking; }
  // Goes to the next state, and says what to do.
  Action enter(Event event) {
    const Step taken = step(state_, event);
    state_ = taken.next;
    return taken.action;
  }

 private:
  State state_ = State::fresh;
  uint64_t number_ = 0;
};

}  // namespace sluice
