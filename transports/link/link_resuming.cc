// SPDX-License-Identifier: BSD-3-Clause
//
// What a link does about a connection that it lacks, by its diagnosis; and how another connection
// takes the place of one that broke.
#include <algorithm>
#include <utility>

#include "transports/link/link.h"

namespace sluice {
namespace {

constexpr int most_looks = 1000;  // for what has come, and a device reports a moment later

}  // namespace

Diagnosis::Stage Link::stage() const {
  const Stage stage = connection_.stage();
  return stage == Stage::open && !connector_.has_address() ? Stage::last : stage;
}

Diagnosis::Remedy Link::react(Diagnosis::Sign sign, const Status& how, Diagnosis::Bytes bytes,
                              Diagnosis::Limit limit) {
  if (!status_.ok()) return Remedy::none;
  const Diagnosis found = Diagnosis::of({meeting_.side(), stage(), sign, bytes, limit});
  if (found.remedy == Remedy::part) part(how.message());
  if (found.remedy == Remedy::give_up) {
    fail(explain(found.cause, peer_.label, broken_by_, how));
  }
  return found.remedy;
}

void Link::part(const std::string& how) {
  broken_by_ = how;
  since_.broke = Clock::now();
  (void)resumption_.enter(Resumption::Event::broke);
  (void)meeting_.enter(Meeting::Event::broke);
  connection_.disconnect();
}

Search::Sign Link::sign_of_life() const {
  const auto proof_due = Acceptor::deadlines_to_prove * shared_.options.connect_timeout;
  const bool welcomed = since_.welcomed != Clock::time_point{};
  if (welcomed && Clock::now() - since_.welcomed < proof_due) return Search::Sign::proves;
  const bool invited =
      meeting_.state() == Meeting::State::invites && connector_.has_invited_peer() &&
      Clock::now() - since_.waits >= Search::time_to_hold && shared_.is_invited(peer_.process);
  const bool held = invited || connector_.is_held(Search::time_to_hold);
  return held ? Search::Sign::held : Search::Sign::none;
}

// That nobody listens shows at once on this host. To dial shows it where an address has taken a
// connection of this side's before; elsewhere a firewall may refuse those of one side alone.
void Link::check_desertion() {
  if (!status_.ok() || !resumption_.seeks() || !connector_.is_deserted()) return;
  (void)react(Sign::absent, {Code::peer_lost, "its ports on this host are free"}, read_last());
}

// An address that has never answered as the peer has a second to.
void Link::check_search() {
  const auto limit = shared_.options.peer_timeout;
  if (!resumption_.seeks()) return;
  const bool invites = meeting_.state() == Meeting::State::invites;
  const bool others = !connector_.has_invited_peer() && connector_.may_invite_elsewhere();
  if (invites && others && Clock::now() - since_.waits >= Search::time_to_hold) {
    connector_.try_another();
    act_on(Meeting::Event::overdue);
  }
  if (!search_.is_over(Clock::now(), sign_of_life(), limit)) return;
  if (const Status found = connector_.failure(); dials() && found.code() == Code::peer_lost) {
    (void)react(Sign::absent, found, read_last());
    return;
  }
  const auto time = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
  (void)react(Sign::silent,
              {Code::peer_lost, "its host has not answered for " + std::to_string(time) + " s" +
                                    (unreached_.empty() ? "" : " (" + unreached_ + ")")},
              Bytes::none, Limit::passed);
}

// What came before the connection broke, as far as windows allow. due: how much the peer has sent.
void Link::read_rest(uint64_t due) {
  (void)connection_.conduits()
      .hear();  // nothing else looks under an upgrade while nothing is pending
  const auto lacks = [&] { return is_parted() && counts().received < due; };
  int looks = 0;
  demand.poll_idle = true;
  do {
    shared_.completions.heard = shared_.completions.finished;  // nothing is deferred
  } while (connection_.read_rest() || (lacks() && ++looks < most_looks));
  demand.poll_idle = false;
}

// The peer has ended, perhaps. Whether more of what it said before may come.
Diagnosis::Bytes Link::read_last() {
  if (!is_parted()) return Bytes::none;
  Upgrade* const left = connection_.conduits().left();
  const bool is_last = left == nullptr || left->end();
  read_rest();
  return is_last ? Bytes::none : Bytes::coming;
}

// What was written to an upgrade is on its way. Before it has come, the peer's counts tell nothing.
bool Link::awaits_writes() {
  return connection_.conduits().output() == Upgrade::Output::on_its_way &&
         Clock::now() - since_.broke < shared_.options.connect_timeout;
}

// Of what an upgrade carried, the peer may read some yet. Without proofs a stranger may have
// recorded the key: counts that differ end no connection, but wait until it has ended.
Acceptor::Response Link::prepare(const Greeting& asked) {
  using Kind = Acceptor::Response::Kind;
  missed_.when = {};
  since_.greeted = Clock::now();
  if (!asked.resumes) return {};
  const bool reads_later = connection_.conduits().output() != Upgrade::Output::lost;
  const Status again(Code::peer_lost, "it has connected again");
  read_rest(asked.counts.sent);
  if (!status_.ok()) return {Kind::refuse};
  if (!may_resume() || !resumption_.takes(meeting_.side(), asked.search)) return {Kind::close};
  const ByteCounts ours = counts();
  if (connection_) {
    const bool same =
        asked.counts.sent == ours.received &&
        (asked.counts.received == ours.sent || (reads_later && asked.counts.received < ours.sent));
    const bool waits = asked.counts.sent > ours.received || !(same || asked.proves);
    const Bytes bytes = waits ? Bytes::coming : same ? Bytes::none : Bytes::lost;
    if (react(Sign::back, again, bytes) == Remedy::wait) return {Kind::later};
  }
  const Bytes bytes = awaits_writes() ? Bytes::coming : Bytes::none;
  if (react(Sign::back, again, bytes) == Remedy::wait) return {Kind::later};
  if (!asked.invites) since_.welcomed = Clock::now();
  return {Kind::welcome, ours};
}

void Link::resume(Socket socket, const Greeting& theirs) {
  read_rest(theirs.counts.sent);
  if (!may_resume()) return;
  if (!meeting_.asks() && !resumption_.takes(meeting_.side(), theirs.search)) return;
  const Status lost = missing(theirs.counts);
  const Bytes bytes = lost.ok() ? Bytes::none : Bytes::lost;
  if (connection_) (void)react(Sign::back, {Code::peer_lost, "it has connected again"}, bytes);
  if (react(Sign::back, lost, bytes) != Remedy::resume) return;
  if (!meeting_.asks()) act_on(Meeting::Event::greeted);
  connector_.stop();
  connector_.invitations().forget();
  connector_.note_met(socket);
  since_.welcomed = {};
  const bool within_host = is_within_host(socket);
  (void)resumption_.enter(Resumption::Event::resumed);
  resumption_.bring(theirs.search);
  connection_.resume(std::move(socket), within_host, theirs);
}

// Ok if each side has what the other has sent. (What it had not read when it greeted, and this side
// has sent over an upgrade that keeps it, the peer reads and judges.)
Status Link::missing(const ByteCounts& theirs) {
  const ByteCounts ours = counts();
  const bool keeps = connection_.conduits().output() == Upgrade::Output::kept;
  const bool has_come = ours.sent == theirs.received || (keeps && theirs.received < ours.sent);
  if (has_come && theirs.sent == ours.received) return {};
  const auto bytes = [](uint64_t sent, uint64_t received) {
    return std::to_string(sent - std::min(sent, received)) + " bytes ";
  };
  return {Code::peer_lost, bytes(ours.sent, theirs.received) + "on the way to it and " +
                               bytes(theirs.sent, ours.received) + "from it were lost"};
}

}  // namespace sluice
