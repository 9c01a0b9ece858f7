// SPDX-License-Identifier: BSD-3-Clause
//
// The acceptor: the listening sockets, and the pending connections, which have not greeted
// yet, or not proved who they are (greeting.h). The first connection of a process that has done so
// goes to its link; later ones are closed, unless they are to be rails (transports/link/rails.h). A
// connection that begins with anything but a greeting with this process's key, or the first proof,
// is closed without an answer. The key is good only of a process that cannot prove itself. The
// proof of a process that is not known yet (PeerKeys) waits, and so does an invitation (meeting.h)
// until the link knows its peer. All of this is decided by the table of admission.h.
//
// Also pending are the connections on which this process has sent an invitation. There the peer
// greets, when it enters a call: they have no deadline, and take no stranger's room.
//
// Any user of the host can connect and send nothing, and whoever has recorded a greeting can send
// it again and get an answer. So few pending connections may be silent, they leave some descriptors
// free for peers and for the program, and none stays longer than the connect deadline, or four
// times as long after an answer. Those that have said something may be more where there are many
// peers: all may come at once to a process that is late, each at several addresses. Invitations of
// peers stay until this process needs them, which may be in a later call. If there is no room for
// another, one that has not greeted within 0.1 s is closed, or else one that has not sent its last
// proof within 2 s. Until then new connections wait in the kernel. What was turned away is counted.
// The log says why and from where the first came, then the tenth, the hundredth and so on, and the
// number at the end. It does not say that this was no peer: a peer's greeting may arrive damaged.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "transports/tcp/admission.h"
#include "transports/tcp/context.h"
#include "transports/tcp/greeting.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/socket.h"

namespace sluice {

class Acceptor {
 public:
  using Welcome = std::function<void(Socket, const Greeting&)>;

  using Greeter = Admission::Greeter;
  using Knows = std::function<Greeter(const ProcessId&, bool invites)>;
  // What a peer that has proved to be one is told. close: nothing.
  struct Response {
    enum class Kind : uint8_t { welcome, later, refuse, close } kind = Kind::welcome;
    ByteCounts counts{};  // for one that resumes
  };
  // Allocates what the process of this greeting or invitation needs, which has proved to be a peer,
  // before it is answered; makes ready for one that resumes. May throw std::bad_alloc.
  using Prepare = std::function<Response(const Greeting&)>;
  // Called if a connection greeted as that process, was answered, and ended without the last proof,
  // and the process has no other here. The process may have ended, its connection may have broken,
  // or somebody has replayed its greeting. error: an errno value if it broke, else 0. What this
  // side closes says nothing of the process, which comes again.
  using Left = std::function<void(const ProcessId&, int error)>;
  // Called if the connection with the invitation for that process has ended without a greeting.
  // address: where it led.
  enum class Reply : uint8_t {
    none,
    dropped,        // this process has dropped it
    refused,        // it has said that it has given up its link to this process
    unacknowledged  // its kernel has not acknowledged the invitation by the deadline
  };
  using Uninvited = std::function<void(const ProcessId&, Reply reply, const std::string& address)>;

  Acceptor(const TcpContext& context, Knows knows, Prepare prepare, Left left, Uninvited uninvited)
      : context_(context),
        knows_(std::move(knows)),
        prepare_(std::move(prepare)),
        left_(std::move(left)),
        uninvited_(std::move(uninvited)),
        room_(most_silent) {}

  // Listens on every chosen interface for which the address has room, and with
  // TcpContext::proves_host on a local socket, if that is to be had. An interface where that is not
  // possible is left out; an error if that leaves none, or only loopback of what the user has
  // chosen.
  Status open();
  // How many times the connect deadline a process that was answered may take for its last proof. It
  // waited for the answer in a call, but on a busy host its turn may come late.
  static constexpr int deadlines_to_prove = 4;
  void close();
  // So many peers are known, which may connect. Throws std::bad_alloc, if there are more than ever.
  void expect(size_t peers);
  // The entries of this process's address.
  const std::vector<AddressBlob::Entry>& entries() const { return entries_; }

  // Accepts new connections, and passes on those that have greeted. True if any were accepted. An
  // error if accepting fails although no connection is pending. Throws std::bad_alloc.
  Result<bool> admit(const Welcome& welcome);
  // This side has sent that invitation over the socket. Throws std::bad_alloc.
  void await_greeting(Socket socket, const Greeting& invitation);
  // Whether the kernel at the other end of an invitation for that process has acknowledged it.
  bool is_invited(const ProcessId& process) const;
  // Closes a pending connection. False if there is none.
  bool drop_one();
  // How many connections it has closed because they were not a peer's.
  uint64_t turned_away() const { return turned_away_; }
  // Adds the sockets to poll.
  void add_to(std::vector<pollfd>& polls) const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t most_silent = 32;
  struct PendingConnection {
    Socket socket;
    std::string from;                      // the address of the other side, for the log
    Clock::time_point since;               // when it was connected (accepted later)
    std::optional<Greeting> invitation{};  // that this side has sent
    Admission::State state = Admission::State::silent;
    size_t got = 0;
    std::array<std::byte, Greeting::most_bytes> bytes{};
    Greeting greeting{};
    Key proof{};                  // the last proof must be this
    const char* fault = nullptr;  // why it is turned away
    int error = 0;                // errno with which it broke
    bool proves() const { return state == Admission::State::proving; }
    size_t due() const;
  };
  using Action = Admission::Action;
  using Event = Admission::Event;
  using Fact = Admission::Fact;

  bool has_room_for(const Interface& interface) const;
  bool is_full() const;
  bool has_another(const ProcessId& process) const;
  bool chooses() const;
  bool is_reachable() const;
  void open_local();
  void warn_of_overflow(const Listener& listener);
  Result<bool> admit_from(const Listener& listener, const Welcome& welcome);
  bool make_room(const Welcome& welcome);
  std::vector<PendingConnection>::iterator least();
  void hear_all(const Welcome& welcome);
  void hear_each(std::vector<PendingConnection>& all, const Welcome& welcome);
  void end(const PendingConnection& pending, Action action);
  bool drop_invitation();
  Action hear(PendingConnection& pending) const;
  Event receive(PendingConnection& pending) const;
  bool is_late(const PendingConnection& pending) const;
  Action decide(PendingConnection& pending, Event event, bool late) const;
  Admission::Facts learn(const PendingConnection& pending, Event event, bool late,
                         Greeter& from) const;
  Fact check(const PendingConnection& pending, const Greeter& from, PairKey& key) const;
  Action tell(PendingConnection& pending, const Admission::Step& step, const Greeter& from,
              const PairKey& key, const ByteCounts& counts) const;
  void count_turned_away(const std::string& from, const char* what_it_did);

  const TcpContext& context_;
  const Knows knows_;
  const Prepare prepare_;
  const Left left_;
  const Uninvited uninvited_;
  std::vector<Listener> listeners_;
  std::vector<AddressBlob::Entry> entries_;
  std::vector<PendingConnection> pending_;
  std::vector<PendingConnection> invited_;  // likewise, where this side has invited
  uint64_t turned_away_ = 0;
  uint64_t reported_ = 0;        // of these, at the last report
  bool has_overflowed_ = false;  // the queue of a listening socket was seen full
  size_t room_;                  // for pending_
  bool lacks_ = false;           // it is not empty, and there is no descriptor for another
};

}  // namespace sluice
