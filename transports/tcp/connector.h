// SPDX-License-Identifier: BSD-3-Clause
//
// The way from this process to a peer: the peer's addresses, and the dialer while this side dials,
// to greet or to invite (meeting.h). If settings differ within a host and between hosts
// (TcpContext::proves_host), there are two ways. A peer that may be on this host is first tried at
// its local socket alone. If nobody answers there, it is taken to be on another host.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/tcp/address.h"
#include "transports/tcp/dialer.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/invitations.h"
#include "transports/tcp/socket.h"

namespace sluice {

class Connector {
 public:
  Connector(const TcpContext& context, const PeerIdentity& peer, FirstWords words)
      : context_(context), peer_(peer), words_(words) {}

  // The peer's address has come.
  void learn(const AddressBlob& address);
  // Whether the peer is on this host, as far as the two say of themselves. Decides how to connect.
  bool may_be_within_host() const { return same_host_; }
  // The same of a connection that is no local socket.
  bool counts_as_within_host() const { return same_host_ && !context_.proves_host(); }

  // Whether it has an address of the peer's.
  bool has_address() const { return !candidates_.empty(); }
  // Whether one leads to another host.
  bool leads_away() const;

  // The next connection replaces one that broke. search: the number of the search that made that
  // one. Each dialer of an asking side is one search, and ends all its attempts before the next
  // begins.
  void resume(const ByteCounts& counts, uint64_t search) { resuming_ = {counts, search}; }
  // Connects further. failed: failure() says why. May throw std::bad_alloc.
  Dialer::State advance();
  // Dials on this connection too, over which the peer has invited. May throw std::bad_alloc.
  void adopt(Socket socket);
  bool dials() const { return bool(dialer_); }
  // While it dials: Dialer::is_held.
  bool is_held(std::chrono::milliseconds time) const { return dialer_ && dialer_->is_held(time); }
  // Over this socket, which is connected, the two have met.
  void note_met(const Socket& socket);
  // While it dials: adds the sockets to poll.
  void add_to(std::vector<pollfd>& polls) const { dialer_->add_to(polls); }
  // Once connected; to be called once.
  struct Connected {
    Socket socket;
    std::optional<Greeting> answer;  // the peer's, to this side's greeting; none to an invitation
    Greeting words;                  // that this side has said
  };
  Connected take_connected();
  // A dialer for a rail. Several networks that both hosts are on are used in turns, by its number.
  // May throw std::bad_alloc.
  Result<std::unique_ptr<Dialer>> dial_rail(uint32_t number) const;
  // Begins another connection between the hosts of one, to where the peer listens. An error if that
  // is not known, or for lack of descriptors.
  Result<Socket> connect_beside(const Socket& connected) const;
  // An invitation came to nothing, or is not answered: the next is for the peer's next address.
  void try_another();
  // What the inviting side has sent.
  Invitations& invitations() { return invitations_; }
  const Invitations& invitations() const { return invitations_; }
  // There have been fewer invitations than the peer has addresses.
  bool may_invite_elsewhere() const { return invitations_.count() < candidates_.size(); }
  // The latest led to an address that has answered as the peer before.
  bool has_invited_peer() const { return has_answered(invitations_.latest()); }
  // Code::memory also if this process lacks descriptors: another attempt may succeed. While it
  // dials: Dialer::absence, with Code::peer_lost; ok: it is empty.
  Status failure() const;
  // The beginning of each error: what this process has awaited, and of whom.
  std::string lead() const;
  bool ran_short() const { return ran_short_; }
  // The peer itself has said that it does not want this process any more.
  bool is_refused() const { return dialer_ && dialer_->refused(); }
  // Drops a connection that is half made.
  void stop() { dialer_.reset(); }

  // Whether no process of this host listens at the peer's addresses, if that is where it is.
  bool is_deserted() const;

 private:
  bool dials_locally() const { return !candidates_.empty() && candidates_.front().local; }
  Status begin();
  Status set_up();
  Dialer::State fail();
  Dialer::State dial_between_hosts();
  Status unreachable() const;
  bool has_answered(const std::string& address) const;

  const TcpContext& context_;
  const PeerIdentity& peer_;
  const FirstWords words_;
  std::vector<Candidate> candidates_;
  bool same_host_ = false;
  Invitations invitations_;
  std::optional<Resuming> resuming_;
  uint64_t searches_ = 0;  // asking side: so far
  std::unique_ptr<Dialer> dialer_;
  Status failure_;
  bool ran_short_ = false;
};

}  // namespace sluice
