// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of one of a dialer's attempts (dialer.h): (state, event) -> (next state, action). An
// action that ends nothing leads to the next event: after `greet` the greeting has been sent or
// not, after `look` the peer's kernel has acknowledged it or not, and so on. The table is pure; the
// dialer acts by it. tests/unit/transports/dialing_test.cc walks all of it.
#pragma once

#include <cstdint>

namespace sluice {

class Dialing {
 public:
  enum class State : uint8_t {
    connecting,  // until the kernel says it is connected
    asking,      // this side's greeting has been sent, and nothing of the answer has come
    hearing,     // some of the answer has come
    confirming   // all of it has, and it is the peer's: the last proof is due
  };
  enum class Event : uint8_t {
    nothing,         // has come, or not all that is due
    unanswered,      // nothing for so long that another socket may be answered sooner
    overdue,         // nothing, and this wait's limit has passed
    spurned,         // nothing has come; long ago the address closed a connection without an answer
    connected,       // says the kernel
    greeted,         // this side has
    invited,         // this side has sent its invitation, and awaits no answer
    acknowledged,    // by the peer's kernel: the greeting
    unacknowledged,  // not, though it was sent again and again
    part,            // of the answer
    answer,          // the peer's
    refusal,         // the peer's: it accepts no connection of this process any more
    noise,           // no answer of the peer's
    confirmed,       // this side has sent its last proof, if one is due
    absent,          // an error: nobody listens
    closed,          // an error: the other side has reset or ended the connection
    ended,           // the other side has sent a FIN
    failed,          // any other error
    spent            // the address may not be tried again
  };
  enum class Action : uint8_t {
    wait,
    wait_longer,  // until a new limit
    renew,        // the second socket
    greet,
    look,  // whether the peer's kernel acknowledges
    hear,
    confirm,
    retry,  // the other side may have had no room: the address once more, if it may be tried again
    // The attempt is over.
    take,    // this connection is the one
    refuse,  // all attempts are over: no other would be answered either
    miss,    // nobody, or another process, is there
    fail     // that is not known
  };
  struct Step {
    State next;
    Action action;
    const char*
        why;  // what is said of it once it is over; nullptr: the error's text (of a FIN: closed)
  };
  // The table. An event that it does not name changes nothing.
  static Step step(State state, Event event);

  struct Reasons {
    static constexpr const char* closed = "it was closed, perhaps by another process";
    static constexpr const char* cut_off = "it was closed amid its answer";
    static constexpr const char* noise = "an invalid answer: damaged, or another process is there";
    static constexpr const char* spurned =
        "it closed a connection, and answers on no other; are packets from it lost?";
  };
};

}  // namespace sluice
