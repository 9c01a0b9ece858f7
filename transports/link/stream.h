// SPDX-License-Identifier: BSD-3-Clause
//
// A team's share of a link: posted operations, unexpected messages, and a window in each direction.
// Exists from the first frame or the opening of the channel, whichever is first, until the channel
// is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/base/status.h"
#include "transports/call_check.h"
#include "transports/link/frame.h"
#include "transports/link/link_shared.h"
#include "transports/link/link_state.h"
#include "transports/link/loans.h"
#include "transports/link/window.h"
#include "transports/tag_table.h"
#include "transports/transport.h"

namespace sluice {

class ConduitStack;
class FrameReader;
class LazyRails;
class Outbox;
class Stream;
class StreamTable;

// An unexpected message: its receive is not posted.
struct UnexpectedMessage {
  Tag tag{};
  UnexpectedMessage* next = nullptr;
  enum class State { rts_only, receiving, complete } state = State::rts_only;
  size_t bytes = 0;
  bool charged = false;  // takes room in the window
  std::unique_ptr<std::byte[]> data{};
  std::unique_ptr<const LentMessage> lent{};  // rts_only: to be got; else the sender awaits CTS
};

// A receive in progress: a frame whose payload is being read, and where to.
struct ReceiveInProgress {
  Frame frame;
  size_t moved = 0;                         // bytes of the payload so far
  Operation* receive = nullptr;             // the posted receive, whose pieces it fills; or
  UnexpectedMessage* unexpected = nullptr;  // the unexpected message; neither: payload dropped
  Stream* stream = nullptr;                 // whose receive it is; nullptr: payload dropped
};

// How a message is sent that the peer does not get from this side's memory (loans.h).
enum class MessagePath : uint8_t {
  inline_frame,  // as the payload of a frame
  spread         // in parts, over rails (rails.h)
};

// What a stream has of its link.
struct StreamContext {
  LinkState& link;
  LinkShared& shared;
  Outbox& out;
  FrameReader& reader;
  LazyRails& rails;
  const ConduitStack& conduits;
};

class Stream final : private Getter {
 public:
  // Receives of at least this size are read directly into place.
  static constexpr size_t large = size_t{8} << 10;

  Stream(const StreamContext& context, StreamTable& table, const TeamId& team);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const TeamId& team() const { return team_; }

  // Each operation completes through Completions::finish, at once or later.
  void post_send(Operation* operation);
  void post_recv(Operation* operation);
  void withdraw();
  void abort(const std::string& cause);

  // Handle frames from the peer. begin_receive() says where a data frame's payload goes;
  // end_receive() is called when all of it has been read.
  ReceiveInProgress begin_receive(const Frame& frame);
  bool expects(const Tag& tag) const { return posted_.find(tag) != nullptr; }
  void end_receive(const ReceiveInProgress& receiving);
  // lent: where the message lies, of an RGET; nullptr: it is to be sent. True if it has been
  // copied, which takes time.
  bool take_rts(const Frame& frame, std::unique_ptr<const LentMessage> lent = nullptr);
  void take_cts(const Tag& tag);
  void take_fin(const Tag& tag);
  void credited(uint32_t bytes);
  void aborted(const std::string& cause);

  const Status& aborted_by_peer() const { return aborted_; }

  // Ends all pending operations. What has arrived of messages without a receive stays.
  void end_pending(const Status& status);
  // The same once the link has ended: only messages that have arrived whole stay.
  void lose(const Status& status);

  // Tells the peer once its memory can't be read any more (FrameType::unread).
  static void tell_broken(PeerMemory& memory, Outbox& out);

  // Messages that no receive will take may still come for this team.
  bool left_open() const { return left_open_; }

  // For the table: how many bytes it takes while no channel has opened it; 0: one has.
  size_t unopened = 0;
  // Frees all messages that wait here. The link must have ended.
  void drop_arrived();

 private:
  MessagePath path_of(const Operation& send);
  bool is_to_spread(const Operation& send);
  bool lend(Operation* send);
  Operation* end_loan(const Tag& tag);
  void take_back(Operation* send);
  bool answer(Operation* receive, const Tag& theirs, size_t bytes, const LentMessage* lent);
  PeerMemory::Get get(const LentMessage& lent, Operation* receive);
  void begin_get(Operation* receive);
  void end_get(Operation* receive, bool is_right) override;
  void post_again(Operation* receive);
  void refuse_lent(Operation* receive, const Tag& theirs, size_t bytes);
  // (Each message goes through it.)
  inline void queue_message(Operation* operation, bool charged);
  void queue_data(Operation* operation, bool charged);
  void queue(FrameType type, const Tag& tag);
  void wait_for(Operation* receive);
  void free_room(size_t message);
  void deliver(UnexpectedMessage* unexpected, Operation* receive);
  void set_aside(ReceiveInProgress& receiving);
  void disagree(const Tag& theirs);
  Operation* stop_gets(std::optional<uint32_t> call, Operation* taken);
  Operation* take_receives(std::optional<uint32_t> call);
  Operation* take_sends(std::optional<uint32_t> call);
  template <typename End>
  void end_all(std::optional<uint32_t> call, End end);

  LinkState& link_;
  LinkShared& shared_;
  Outbox& out_;
  FrameReader& reader_;
  LazyRails& rails_;
  const ConduitStack& conduits_;
  StreamTable& table_;
  const TeamId team_;
  TagTable<Operation> posted_;
  TagTable<UnexpectedMessage> arrived_;
  SendWindow to_peer_;
  ReceiveWindow from_peer_;
  OperationList lent_;     // sends that the peer is to get
  OperationList getting_;  // receives whose messages are being read
  Refusals refusals_;
  CallCheck call_check_;
  Status aborted_;
  bool left_open_ = false;
};

}  // namespace sluice
