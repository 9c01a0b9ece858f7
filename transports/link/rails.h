// SPDX-License-Identifier: BSD-3-Clause
//
// The rails of a link: further connections, over which large messages are spread. Where one flow
// gets only a part of the network (clouds cap each), several get more; they may also go over
// several networks. NCCL (sockets beside a control socket) and aws-ofi-nccl (rails) do the like.
//
//   connection 0    all frames. A large message is a SPREAD frame there, in its order, which says
//                   how many bytes of it go over which rails (spread.h)
//   rail k          the parts, one after the other in the order of their SPREADs, nothing else
//
// So messages match, take room in windows, are checked and aborted on connection 0 as they are
// without rails, and nothing overtakes there. A rail is read only while parts are due. If a rail
// ends with parts due or unsent, the link fails, even if the SPREAD that names the rail comes
// later. If it ends without any, it is dropped, and may be made again. Its number is not used
// again. The peer's BYE counts when all parts have come.
//
// The asking side (transports/tcp/meeting.h) makes the rails, with greetings that say the number,
// when its connection 0 is settled on a TCP socket and it first sends or expects a large message.
// If nothing answers at an address although bytes over connection 0 show that the peer is in a
// call, it tries the next address as well. The answering side takes as many as SLUICE_TCP_STREAMS
// says, and closes others. Until a rail is there, messages go over connection 0; a rail that cannot
// be made is no error.
//
// With SLUICE_TCP_STREAMS=auto each sender tries whether rails make it faster (spread_choice.h),
// and the asking side makes them later: when its own probe awaits them, or so many bytes have come
// that the peer's may.
#pragma once

#include <poll.h>

#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transports/link/diagnosis.h"
#include "transports/link/link_shared.h"
#include "transports/link/link_state.h"
#include "transports/link/rail.h"
#include "transports/link/spread.h"
#include "transports/link/spread_choice.h"
#include "transports/tcp/connector.h"
#include "transports/tcp/handshake.h"

namespace sluice {

class Connection;

class Rails {
 public:
  static constexpr uint32_t last_number = 1023;
  static constexpr size_t most_pieces = 64;  // of a message that is spread
  static constexpr size_t most_rails = 16;

  // The link owns this and the others. connection: number 0.
  Rails(LinkState& link, Connection& connection, LinkShared& shared, const PeerIdentity& peer,
        const Connector& connector)
      : link_(link),
        connection_(connection),
        shared_(shared),
        peer_(peer),
        connector_(connector),
        choice_(shared.options.tries_streams, shared.options.streams) {}
  ~Rails() {
    if (choice_.has_chosen_several()) --shared_.spreading;
  }
  Rails(const Rails&) = delete;
  Rails& operator=(const Rails&) = delete;

  // A large message is sent or expected: rails are to be made, unless a probe decides.
  void want() {
    if (choice_.wants_rails()) begin_to_dial();
  }
  // A large message of so many bytes is expected.
  void note_expected(size_t bytes);
  // One has come without rails.
  void note_plain() { choice_.note_received(false); }
  // Before this side writes, and often while it waits: for the probe, asks the kernel what has
  // arrived. Makes some system calls for each connection, until the probe has ended.
  void watch(bool will_write);
  // Answering side: the peer may be about to make some.
  bool awaits() const;
  // The peer has greeted on this connection, which is to be that rail. Closes it if it may not be.
  void accept(Socket socket, const Greeting& theirs);
  // The peer says that it has that rail. False if there is none, so that it is wrong.
  bool confirm(uint32_t number);

  // Whether a large message, which is to be sent now, is to be spread. Drops rails that have ended.
  // May throw std::bad_alloc.
  bool spreads(const Operation& send);
  // Queues its parts, and before them its SPREAD, on connection 0. False if there is no rail to
  // send on, or no memory: then nothing is queued.
  bool send(Operation* send, const TeamId& team, bool charged);
  // A SPREAD has come, of a message of so many bytes. The caller sets SpreadReceive::at. nullptr:
  // it cannot be right, and the link has failed. May throw std::bad_alloc; then the link must fail.
  SpreadReceive* expect(size_t bytes, const std::vector<Share>& parts);

  // Move what can be moved. True if anything moved. The link may have failed then.
  bool drive();
  bool read();
  void flush_now();
  bool has_to_send() const;
  // Whether poll has to look at rails, too, which drive() does; or watch() has something to see.
  bool polls() const { return is_busy() || choice_.watches(); }
  void add_to(std::vector<pollfd>& polls) const;
  bool may_sleep() const;
  // Called from time to time: drops what has ended, fails the link for a silent host.
  void check_rails();
  // Nothing of the link is pending any more.
  void rest();

  // The peer's BYE has come. False if nothing more is to come.
  bool take_bye() { return has_bye_ = !coming_.empty(); }
  bool flushed() const;
  void close();
  // How many are in use, for Channel::carrier.
  size_t in_use() const;

  // For streams.
  SpreadReceive* find(const UnexpectedMessage& unexpected);
  // Each message that comes in parts for that stream.
  template <typename Visit>
  void visit(const Stream& stream, Visit visit) {
    for (const auto& each : coming_) {
      if (each->at.stream == &stream) visit(*each);
    }
  }
  void forget(const Stream& stream);
  Operation* withdraw(const TeamId& team, std::optional<uint32_t> call);

 private:
  using Clock = std::chrono::steady_clock;
  using Sign = Diagnosis::Sign;

  bool asks() const;
  // Whether this side may have one more rail.
  bool has_room() const { return rails_.size() < shared_.options.streams; }
  // How many there are to send on.
  size_t open() const;
  std::vector<Share> plan(const Operation& send);
  bool is_busy() const;
  void begin_to_dial();
  void tell();
  static bool add_flow(const Rail& rail, SpreadProbe::Sample& sample);
  Rail* find(uint32_t number);
  Rail& add(std::unique_ptr<Rail> rail);
  void make();
  bool is_dialing_due();
  void dial();
  void note_heard();
  bool go_on(Rail& rail);
  Status take_dialed(Rail& rail);
  Status check(const Greeting& theirs, bool within_host) const;
  Status open_filter(Rail& rail) const;
  bool answer(const Socket& socket, const Greeting& theirs) const;
  void note_short(const std::string& why);
  bool is_buffered() const;
  bool move(auto is_so, auto act);
  bool receive(auto is_so);
  void drop_ended();
  bool may_drop(Sign sign, Diagnosis::Bytes parts, const std::string& how);
  bool drop(Rail& rail, Sign sign, const std::string& how);
  bool drop_silent(Rail& rail);
  void end(Rail& rail, const Rail::Outcome& outcome, const char* shortage);
  bool read_from(Rail& rail);
  bool flush(Rail& rail);
  void finish_receives();
  void finish_sends(Operation* sent);

  LinkState& link_;
  Connection& connection_;
  LinkShared& shared_;
  const PeerIdentity& peer_;
  const Connector& connector_;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::vector<std::unique_ptr<SpreadReceive>> coming_;
  std::bitset<last_number + 1> seen_;  // numbers so far
  uint32_t next_number_ = 1;           // asking side
  size_t turn_ = 0;                    // which of equal rails is the first
  Clock::time_point make_at_{};        // asking side: not before
  Clock::time_point dial_at_{};        // the same
  uint64_t heard_ = 0;                 // bytes over connection 0, when last looked while dialing
  Clock::time_point awaited_until_{};  // answering side
  SpreadChoice choice_;
  uint64_t carried_ = 0;  // bytes, by rails that have ended
  bool wanted_ = false, torn_ = false, has_bye_ = false, told_ = false;
};

// The rails of a link, which are made when they are first needed.
class LazyRails {
 public:
  LazyRails(LinkState& link, Connection& connection, LinkShared& shared, const PeerIdentity& peer,
            const Connector& connector)
      : link_(link), connection_(connection), shared_(shared), peer_(peer), connector_(connector) {}

  // Whether there are any.
  explicit operator bool() const { return bool(rails_); }
  Rails* operator->() const { return rails_.get(); }

  // May throw std::bad_alloc.
  Rails& make();
  // A message of so many bytes is to be sent or received: if it is large, rails are to be made.
  // Whether this side may spread it. May throw std::bad_alloc.
  bool want(size_t bytes);

 private:
  LinkState& link_;
  Connection& connection_;
  LinkShared& shared_;
  const PeerIdentity& peer_;
  const Connector& connector_;
  std::unique_ptr<Rails> rails_;
};

}  // namespace sluice
