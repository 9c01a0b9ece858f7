// SPDX-License-Identifier: BSD-3-Clause
//
// A connection that is cut after any number of bytes in one direction, by a proxy between two
// ranks, from the first byte of the greeting on: what the ranks exchange comes right, or both say
// what ended it.
#include <algorithm>
#include <regex>

#include "tests/unit/support/sweep.h"
#include "tests/unit/transports/tcp_rig.h"
#include "tests/unit/transports/tls_rig.h"
#include "transports/shm/upgrade.h"

namespace sluice::cuts {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// One direction of a connection.
struct Half {
  size_t passed = 0;
  std::vector<std::byte> held{};  // that the receiver has had no room for
  bool over = false;              // its end has been passed on
};

struct Cut {
  size_t connection;  // in the order in which they are made
  size_t from;        // 0: from the side that connects
  size_t bytes;
  bool reset;  // else each side gets a FIN
};

// Passes connections on to where a rank listens, as often as pass() is called.
class Proxy {
 public:
  Proxy(const AddressBlob::Entry& to, const Cut& cut) : to_(to), cut_(cut) {}

  AddressBlob::Entry entry() const { return {loopback(), 8, listener_.port}; }
  bool has_cut() const { return has_cut_; }

  void pass() {
    for (auto accepted = accept_from(listener_.socket); accepted.ok() && *accepted;
         accepted = accept_from(listener_.socket)) {
      lines_.push_back(std::make_unique<Line>());
      lines_.back()->end[0] = std::move(*accepted);
      lines_.back()->end[1] = connected();
    }
    for (size_t i = 0; i < lines_.size(); ++i) {
      for (const size_t from : {0, 1}) pass(i, from);
    }
  }

 private:
  struct Line {
    Socket end[2];
    Half half[2];
  };

  Socket connected() const {
    auto made = make_socket(to_.address, {});
    EXPECT_TRUE(made.ok());
    const SocketAddress to = to_socket_address(to_.address, to_.port);
    (void)!connect(made->fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.size);
    return std::move(*made);
  }

  size_t room(size_t connection, size_t from) const {
    const bool is_cut = !has_cut_ && connection == cut_.connection && from == cut_.from;
    return is_cut ? cut_.bytes - lines_[connection]->half[from].passed : SIZE_MAX;
  }

  void pass(size_t connection, size_t from) {
    Line& line = *lines_[connection];
    Half& half = line.half[from];
    if (!line.end[0] || half.over) return;
    if (half.held.empty()) {
      std::byte bytes[4096];
      const ssize_t got = recv(line.end[from].fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == ENOTCONN)) return;
      if (got < 0) return end(line, true);
      if (got == 0) {
        half.over = true;
        (void)shutdown(line.end[1 - from].fd(), SHUT_WR);
        return;
      }
      half.held.assign(bytes, bytes + got);
    }
    const size_t most = std::min(half.held.size(), room(connection, from));
    const ssize_t sent =
        send(line.end[1 - from].fd(), half.held.data(), most, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == ENOTCONN ? void() : end(line, true);
    half.passed += static_cast<size_t>(sent);
    half.held.erase(half.held.begin(), half.held.begin() + sent);
    if (room(connection, from) > 0) return;
    has_cut_ = true;
    end(line, cut_.reset);
  }

  static void end(Line& line, bool reset) {
    for (const size_t side : {0, 1}) {
      reset_when_closed(line.end[side], reset);
      line.half[side].over = true;
      if (reset) {
        line.end[side].close();
      } else {
        (void)shutdown(line.end[side].fd(), SHUT_WR);
      }
    }
  }

  const Listener listener_ = std::move(*listen_on(loopback(), {}));
  const AddressBlob::Entry to_;
  const Cut cut_;
  bool has_cut_ = false;
  std::vector<std::unique_ptr<Line>> lines_;
};

enum class Kind { clear, tls, shm, shm_over_tls, streams, streams_tls };

bool has_tls(Kind kind) {
  return kind == Kind::tls || kind == Kind::shm_over_tls || kind == Kind::streams_tls;
}

TcpOptions options_of(Kind kind) {
  TcpOptions made;
  made.interfaces = "127.0.0.0/8";
  made.dial_after = milliseconds(20);
  made.connect_timeout = seconds(2);
  if (has_tls(kind)) {
    made.prover = tls_prover();
    made.filter = tls_filters();
  }
  if (kind == Kind::shm || kind == Kind::shm_over_tls) made.upgrades = {make_shm_upgrades()};
  if (kind == Kind::streams || kind == Kind::streams_tls) made.streams = 2;
  return made;
}

// The sweep of all bytes is so many tests: from another byte each, in steps of as many.
size_t parts() { return sweep<size_t>(8, 1, 1); }

class Cuts : public testing::TestWithParam<std::tuple<Kind, size_t, bool, size_t>> {
 protected:
  static Kind kind() { return std::get<0>(GetParam()); }
  static size_t from() { return std::get<1>(GetParam()); }
  static bool reset() { return std::get<2>(GetParam()); }
  static size_t first() { return std::get<3>(GetParam()); }
  void SetUp() override {
    if (has_tls(kind()) && !describe_tls(tls_options().folder).ok()) {
      GTEST_SKIP() << "built without OpenSSL?";
    }
  }

  // What went wrong in some rounds of messages each way, one text for each side; empty: nothing.
  struct Outcome {
    std::string why[2];
    bool hangs = false, is_wrong = false, was_cut = false;
  };
  Outcome exchange_over(const Cut& cut) {
    Ranks ranks(tcp(options_of(kind())), 2);
    AddressBlob blob = address_of(ranks.at(1));
    Proxy proxy(blob.entries.front(), cut);
    blob.entries = {proxy.entry()};
    const TeamId team{Ranks::process(0), 1};
    auto opened = ranks.at(0).open(team, {Ranks::process(1), blob.encode(), Ranks::label(1)});
    EXPECT_TRUE(opened.ok());
    Channel* const channels[] = {opened->get(), &ranks.channel(1, 0)};
    Outcome outcome;
    for (uint32_t call = 0; call < rounds && outcome.why[0].empty() && outcome.why[1].empty();
         ++call) {
      Messages messages;
      for (const size_t side : {0, 1}) {
        for (const size_t bytes : sizes()) {
          const Tag tag{call, static_cast<uint32_t>(bytes), 0, 0};
          add(messages, tag, bytes).receive(*channels[side]);
          add(messages, tag, bytes).fill().send(*channels[side]);
        }
      }
      outcome.hangs = !ranks.drive([&] {
        proxy.pass();
        return Ranks::all_done(messages);
      });
      if (outcome.hangs) break;
      note(messages, outcome);
    }
    outcome.was_cut = proxy.has_cut();
    return outcome;
  }
  // If a link failed, one side says what it saw, and the other at least that this one has ended it.
  static void expect_reasons(const std::string (&why)[2]) {
    const std::string seen = std::string(reset() ? "Connection reset by peer|"
                                                   "closed a connection, and answers on no other"
                                                 : "closed the connection without a goodbye|"
                                                   "it was closed amid its answer") +
                             "|its connection ended before it had proved itself|"
                             "a connection for large messages ended amid one";
    const std::string heard =
        "|closed the connection without a goodbye|has given up its connection";
    const auto says = [](const std::string& text, const std::string& what) {
      return text.empty() || std::regex_search(text, std::regex(what));
    };
    EXPECT_TRUE(says(why[0], seen + heard) && says(why[1], seen + heard)) << why[0] << why[1];
    EXPECT_TRUE(says(why[0] + why[1], seen)) << why[0] << why[1];
  }
  static constexpr uint32_t rounds = 4;
  std::vector<size_t> sizes() const {
    const bool large = kind() == Kind::streams || kind() == Kind::streams_tls;
    return large ? std::vector<size_t>{8, 70'000} : std::vector<size_t>{8, 300};
  }
  static void note(Messages& messages, Outcome& outcome) {
    for (size_t i = 0; i < messages.size(); ++i) {
      Message& each = *messages[i];
      if (!each.ok()) outcome.why[i / (messages.size() / 2)] = each.why();
      outcome.is_wrong |= each.ok() && !each.holds_pattern();
    }
  }
};

TEST_P(Cuts, AreRightOrAnErrorThatSaysWhy) {
  const size_t step = sweep<size_t>(parts(), 331, 331), most = sweep<size_t>(4000, 2000, 2000);
  const size_t in_greeting = std::min<size_t>(step, 30);
  size_t cuts = 0;
  for (const size_t connection : {0, 1}) {
    for (size_t bytes = first(); bytes < most;
         bytes += bytes < Greeting::bytes ? in_greeting : step) {
      SCOPED_TRACE("connection " + std::to_string(connection) + ", byte " + std::to_string(bytes));
      const Outcome outcome = exchange_over({connection, from(), bytes, reset()});
      ASSERT_FALSE(outcome.hangs);
      EXPECT_FALSE(outcome.is_wrong);
      expect_reasons(outcome.why);
      if (!outcome.was_cut) break;
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 2U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Cuts,
                         testing::Combine(testing::Values(Kind::clear, Kind::tls, Kind::shm,
                                                          Kind::shm_over_tls, Kind::streams,
                                                          Kind::streams_tls),
                                          testing::Values(0, 1), testing::Bool(),
                                          testing::Range<size_t>(0, parts())));

}  // namespace
}  // namespace sluice::cuts
