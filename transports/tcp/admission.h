// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of a pending connection (acceptor.h): (state, event, facts) -> (next state, action).
// The event is what has come over the connection, the facts are what this side knows of it and of
// the process that it names. Some facts are costly to find, or finding them changes something. The
// table asks for these (`check`, `ask`) once the other facts allow it, and is then asked again with
// that event. What no row allows is turned away. tests/unit/transports/admission_test.cc walks all
// of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "transports/conduit.h"
#include "transports/tcp/greeting.h"
#include "transports/tcp/meeting.h"

namespace sluice {

class Admission {
 public:
  // Some values of an enumeration.
  template <typename T>
  struct SetOf {
    uint32_t bits = 0;
    constexpr SetOf(std::initializer_list<T> values) {
      for (const T value : values) bits |= 1U << static_cast<unsigned>(value);
    }
    constexpr bool has(T value) const { return (bits & SetOf{value}.bits) != 0; }
    constexpr bool has_all(const SetOf& values) const { return (values.bits & ~bits) == 0; }
    void add(T value) { bits |= SetOf{value}.bits; }
    void remove(T value) { bits &= ~SetOf{value}.bits; }
  };
  enum class State : uint8_t {
    silent,   // owes its greeting
    unknown,  // has greeted or invited, and is not known yet
    proving   // has greeted, was answered, and owes its last proof
  };
  enum class Event : uint8_t {
    nothing,     // not all has come that is due
    end,         // of the connection, with nothing of a greeting before it
    noise,       // no greeting to this process, or not one that may come here
    greeting,    // for the first connection of the two
    resumption,  // a greeting for a connection in place of one that broke
    invitation,  // either, but this side is to greet
    rail,        // a greeting for a rail (transports/link/rails.h)
    refusal,     // of this side's invitation
    last_proof,  // bytes where it is due
    no_memory    // for what came
  };
  enum class Fact : uint8_t {
    overdue,     // the connect deadline has passed
    unanswered,  // instead, where this side has invited: as long has passed since it last looked
    // One of: whether the process may do what it says.
    unexpected,
    met,        // no longer: the two have met, or parted for good
    undecided,  // it is not settled yet whether the link may have rails
    failed,     // no, and it is told: the link has failed
    expected,
    // One of: what shows who sent this.
    wrong,         // nothing
    uncheckable,   // for lack of memory, random numbers or OpenSSL
    unidentified,  // nobody can say before the process is known
    unchecked,     // a proof, perhaps
    key,           // this process's, from one that cannot prove itself
    proof,
    // One of, when it was asked: what the link says.
    welcomed,
    deferred,
    refused,
    dropped
  };
  using Facts = SetOf<Fact>;
  enum class Action : uint8_t {
    wait,
    look,   // whether the other kernel acknowledges the invitation
    check,  // the proof
    ask,    // the link
    answer,
    // The connection leaves the acceptor.
    welcome,    // to its link
    refuse,     // told that its link has failed
    leave,      // gone by itself, or not needed
    turn_away,  // not a peer's: counted and logged
    give_up,    // the other side refuses
    lose        // nobody acknowledges the invitation
  };
  struct Step {
    State next;
    Action action;
    const char* fault;  // why it is turned away
  };
  // The table.
  static Step step(State state, Event event, const Facts& facts);

  // What a connection did that is turned away, for the log. (A peer's bytes may have been damaged.)
  struct Faults {
    static constexpr const char* no_greeting = "sent an invalid greeting";
    static constexpr const char* no_key = "sent a greeting without a valid key";
    static constexpr const char* no_proof = "sent a greeting, but no valid proof after it";
    static constexpr const char* no_team = "sent the greeting of a process of no team";
    static constexpr const char* not_expected = "sent a peer's greeting out of turn";
    static constexpr const char* unread =
        "takes the place of one that broke, and more was sent over that than came";
    static constexpr const char* no_means =
        "could not be examined for lack of memory, random numbers or OpenSSL";
  };
  // What this process knows of another.
  struct Greeter {
    bool known = false;    // its key is; where it invites, all that its link needs
    bool in_team = false;  // its key is, so that the rest may follow at any time
    bool expected = true;  // may greet, or invite (who replays a greeting later gets no answer)
    bool failed = false;   // not expected, because its link has failed: it is told so
    std::optional<PublicKey> key{};  // if known; none: it cannot prove itself
    std::optional<Key> said_key{};   // if its link knows it: what answers without proofs say
    bool parted = false;             // their connection broke: it may only resume
    bool resumes = false;            // it may, because the two have or had a connection
    // Whether a connection may become a rail of its link; later: when that is settled; past: the
    // link has ended.
    enum class Rails : uint8_t { none, later, some, past } rails = Rails::none;
    std::chrono::steady_clock::time_point met{};  // when its link got its first connection
  };
  // Of one whose greeting, or invitation, its link's meeting answers so; the rest is not known.
  static Greeter greeter_of(Meeting::Action answer) {
    Greeter from;
    from.expected = answer == Meeting::Action::adopt || answer == Meeting::Action::accept;
    from.failed = answer == Meeting::Action::refuse;
    return from;
  }
  static Event event_of(const Greeting& said, bool invited);
  static bool names_process(Event event);
  // since: when it connected.
  static Fact standing_of(const Greeter& from, const Greeting& said,
                          std::chrono::steady_clock::time_point since);
  // can_prove: this side can. has_key: said without proofs, and the key is this process's.
  static Fact credential_of(const Greeter& from, const Greeting& said, bool can_prove,
                            bool has_key);
};

}  // namespace sluice
