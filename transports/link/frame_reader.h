// SPDX-License-Identifier: BSD-3-Clause
//
// Reads the frames of a connection: those of teams go to the link's streams, whose payloads are
// read into place; those of the connection itself it returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "transports/link/frame.h"
#include "transports/link/inbox.h"
#include "transports/link/link_shared.h"
#include "transports/link/link_state.h"
#include "transports/link/stream.h"

namespace sluice {

class LazyRails;
class StreamTable;

class FrameReader {
 public:
  FrameReader(LinkState& link, LinkShared& shared, StreamTable& streams, LazyRails& rails)
      : link_(link), shared_(shared), streams_(streams), rails_(rails) {}

  // What has been read and not been parsed.
  Inbox& inbox() { return inbox_; }
  const Inbox& inbox() const { return inbox_; }
  // Reads once.
  Inbox::Read read(Conduit& conduit);

  enum class Step : uint8_t {
    starved,  // the rest has not been read, is deferred, or is no frame: then the link has failed
    moved,
    returned  // a frame of the connection itself: frame() and text(), until the next step
  };
  // Throws std::bad_alloc, in the middle of a frame.
  Step step();
  const Frame& frame() const { return receiving_.frame; }
  const std::string& text() const { return text_; }
  // Whether the next frame waits until other operations have been posted, or until what a long copy
  // has brought about has left.
  bool is_deferred() const { return deferrals_ > 0 || has_copied_; }

  // The receive in progress, if it is this stream's.
  ReceiveInProgress* receive_of(const Stream& stream) {
    return receiving_.stream == &stream ? &receiving_ : nullptr;
  }
  // The stream is closed: what comes of its message is dropped.
  void forget(const Stream& stream);
  // Another connection goes on where one broke. What has been read has been parsed, but for part of
  // a frame: if that is the broken connection's own, it is dropped when it has come.
  void go_on();
  // The link has ended.
  void clear();

 private:
  bool defers(const Frame& frame);
  Step handle(const Frame& frame);
  Step begin_receive(Stream* to, const Frame& frame);
  Step deposit();
  Step finish_receive();
  Step begin_get(Stream* to);
  Step begin_spread(Stream* to);

  LinkState& link_;
  LinkShared& shared_;
  StreamTable& streams_;
  LazyRails& rails_;
  Inbox inbox_;
  int deferrals_ = 0;        // of the frame that is next in the inbox
  bool has_copied_ = false;  // a message of the peer's memory, in this turn
  bool receives_ = false;
  bool drops_ = false;  // the frame of which part has come is of a connection that broke
  ReceiveInProgress receiving_;
  std::string text_;  // payload of a frame of the connection's own, or of an abort
};

}  // namespace sluice
