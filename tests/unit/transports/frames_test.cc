// SPDX-License-Identifier: BSD-3-Clause
//
// Every type of frame, for a team of every state: what it does to the link.
#include <tuple>

#include "tests/unit/transports/tcp_played.h"

namespace sluice {
namespace {

// On the side that accepts the frame: its stream is open; there is none (yet); or it was closed
// while a receive was pending.
enum class StreamState { open, absent, dead };

const char* name_of(StreamState state) {
  if (state == StreamState::open) return "ToOpen";
  return state == StreamState::absent ? "ToAbsent" : "ToDead";
}

struct FrameOfType {
  FrameType type;
  const char* name;
  Code link;  // what the link then says of it
};

class Frames : public TcpPlayed,
               public testing::WithParamInterface<std::tuple<FrameOfType, StreamState>> {
 protected:
  // A message of another team, which tells whether the link goes on.
  Code code_of_link(Stranger& peer) {
    const TeamId team{Ranks::process(0), 2};
    const auto channel = open(team);
    Message message({1, 0, 0, 0}, 0);
    say(peer, {FrameType::data, true, 0, team, {1, 0, 0, 0}, 0});
    message.receive(*channel);
    EXPECT_TRUE(done_in(message, std::chrono::seconds(20)));
    return message.code();
  }
  void make_stream(StreamState state) {
    if (state == StreamState::open) return;
    if (state == StreamState::dead) {
      Message pending({5, 0, 0, 0}, 0);
      pending.receive(*channel_);
    }
    channel_.reset();
  }
};

TEST_P(Frames, EndTheLinkOrLeaveItAlone) {
  const auto& [sent, state] = GetParam();
  Stranger peer(blob_.entries[0]);
  greet(peer);
  make_stream(state);
  say(peer, {sent.type, sent.type == FrameType::data, 0, team_, {1, 1, 0, 0}, 0});
  EXPECT_EQ(code_of_link(peer), sent.link);
  if (sent.type == FrameType::offer) {
    EXPECT_EQ(hear(peer).type, FrameType::decline);
  }
  if (sent.type != FrameType::abort || state == StreamState::dead) return;
  if (!channel_) channel_ = open(team_);
  EXPECT_EQ(channel_->aborted_by_peer().code(), Code::aborted);
}

INSTANTIATE_TEST_SUITE_P(
    Types, Frames,
    testing::Combine(testing::Values(FrameOfType{FrameType::data, "Data", Code::ok},
                                     FrameOfType{FrameType::rts, "Rts", Code::ok},
                                     FrameOfType{FrameType::cts, "Cts", Code::ok},
                                     FrameOfType{FrameType::credit, "Credit", Code::ok},
                                     FrameOfType{FrameType::abort, "Abort", Code::ok},
                                     FrameOfType{FrameType::bye, "Bye", Code::peer_lost},
                                     FrameOfType{FrameType::offer, "Offer", Code::ok},
                                     FrameOfType{FrameType::accept, "Accept", Code::internal},
                                     FrameOfType{FrameType::decline, "Decline", Code::internal},
                                     FrameOfType{FrameType::shift, "Shift", Code::internal},
                                     FrameOfType{FrameType::spread, "Spread", Code::internal},
                                     FrameOfType{FrameType::rail, "Rail", Code::internal},
                                     FrameOfType{FrameType::rget, "Rget", Code::internal},
                                     FrameOfType{FrameType::fin, "Fin", Code::ok},
                                     FrameOfType{FrameType::unread, "Unread", Code::ok}),
                     testing::Values(StreamState::open, StreamState::absent, StreamState::dead)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) + name_of(std::get<1>(info.param));
    });

}  // namespace
}  // namespace sluice
