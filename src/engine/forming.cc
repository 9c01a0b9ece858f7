// SPDX-License-Identifier: BSD-3-Clause
//
// How a team comes about: Team::form.
#include <algorithm>
#include <mutex>
#include <new>

#include "src/base/log.h"
#include "src/engine/agreement.h"
#include "src/engine/new_team.h"
#include "src/engine/shared_arena.h"
#include "src/engine/team.h"

namespace sluice {
namespace {

Hello describe_self(const Process& process) {
  Hello hello;
  hello.version = process.version;
  hello.self = {process.id, {}, process.label};
  if (process.endpoint) hello.self.address = process.endpoint->address();
  hello.host = process.host;
  hello.settings_digest = digest(process.settings);
  hello.settings_size = static_cast<uint32_t>(process.settings.size());
  hello.enabled = process.knobs.enable;
  hello.able = process.endpoint != nullptr;
  hello.strict = process.knobs.on_mismatch == "abort";
  return hello;
}

// Why this process can't reach others that it has not reached yet; empty: nothing is known to be in
// the way. (What it lacks later is an error then.)
std::string find_lack(const Process& process) {
  if (!process.unable.empty()) {
    return "no " + process.knobs.transport + " transport here: " + process.unable;
  }
  const bool lacks = process.endpoint && !process.endpoint->can_connect();
  return lacks ? "no descriptors left for connections here" : "";
}

// This rank's hello, packed.
std::vector<std::byte> introduce(Process& process, const std::string& hints, const TeamId& kept,
                                 bool lacks = false) {
  std::call_once(process.introduced, [&] {
    process.introduction.resize(Hello::packed_size);
    describe_self(process).pack(process.introduction);
  });
  std::vector<std::byte> packed = process.introduction;
  Hello::Occasion{.kept = kept,
                  .teams_formed = process.teams_formed++,
                  .hints_digest = digest(hints),
                  .hints_size = static_cast<uint32_t>(hints.size()),
                  .lacks = lacks}
      .pack(packed);
  return packed;
}

// Why a rank takes no part in a team, for the others: one byte, the same in all versions.
enum class Verdict : uint8_t { ready, timeout, memory, failed, trouble };

Verdict verdict_of(const Status& status) {
  if (status.code() == Code::timeout) return Verdict::timeout;
  return status.code() == Code::memory ? Verdict::memory : Verdict::trouble;
}

constexpr std::pair<Verdict, const char*> explanations[] = {
    {Verdict::timeout, " gave up waiting for all ranks to come (SLUICE_SETUP_TIMEOUT)"},
    {Verdict::memory, " had no memory to set it up"},
    {Verdict::failed, " saw an earlier call on it fail"},
    {Verdict::trouble, " could not set it up"},
};

bool leave_with(Verdict verdict, Bootstrap& bootstrap) {
  const std::byte byte{static_cast<uint8_t>(verdict)};
  return bootstrap.leave({&byte, 1});
}

// Ok if all ranks are ready.
Status judge(std::span<const std::byte> verdicts) {
  for (const auto& [verdict, words] : explanations) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < verdicts.size(); ++rank) {
      if (verdicts[rank] == static_cast<std::byte>(verdict)) ranks.push_back(rank);
    }
    if (!ranks.empty()) return {Code::aborted, describe_ranks(ranks) + words};
  }
  return {};
}

// Whether the others have this rank's part of an exchange that ended so.
bool has_taken_part(const Status& status) { return status.code() != Code::memory; }

// This rank has given up; those who find that all have kept this team learn it there.
void turn_down(NewTeam& kept, const std::string& name, const Status& cause) {
  try {
    kept.serve(name);
  } catch (const std::bad_alloc&) {  // then it goes by its old name
  }
  (void)kept.refuse(cause);
}

// A communicator's set-up on one rank: some exchanges, of which hellos and texts say how many.
//
//   hellos     where all name the same kept team, that was all
//   verdicts   each has its team, or knows that MPI keeps the communicator
//   hints      where they differ, as texts; and verdicts again, for the texts say whose it is
//   settings   where they differ, as texts, so that people can be told
//   offers     of shared memory, where all are on one host (shared_arena.h)
//
// Who fails leaves behind its part in all that the others may still exchange, and so no rank is
// without the others where it ends. All ranks know what comes of it before they give their
// verdicts. Where it is MPI, the verdicts are waited for without a deadline: all have come by then,
// and whose time was up in the last exchange of all could tell nobody. Where it is a team, those
// that are late learn it there.
class Formation {
 public:
  Formation(Process& process, Bootstrap& bootstrap, const std::string& name, Hints* hints)
      : process_(process), bootstrap_(bootstrap), name_(name), hints_(hints) {}

  Result<std::unique_ptr<Team>> run() {
    Status trouble = process_.no_memory;
    try {
      auto formed = form();
      if (formed.ok()) return formed;
      trouble = formed.status();
    } catch (const std::bad_alloc&) {
    }
    return depart(trouble);
  }

 private:
  enum class Outcome { team, mpi, differs, asks };  // asks: the hints' texts decide
  // What the others expect next of this rank.
  enum class Next { hello, verdict, hints, settings, offer, calls, nothing };
  using Limit = Bootstrap::Limit;

  Result<std::unique_ptr<Team>> form();
  Status say_hello();
  Result<std::unique_ptr<Team>> serve_again();
  Status consider();
  Outcome find_outcome();
  void tell_of_lack();
  void make_team();
  Status settle();
  Next after_verdicts() const;
  Status agree_on_hints();
  Outcome heed_hints(std::vector<std::string> complaints);
  Status differ();
  std::string find_differences();
  Status share_memory();
  Result<std::vector<std::string>> exchange_texts(const std::string& mine,
                                                  const std::vector<uint32_t>& sizes, Limit limit,
                                                  Next next);
  Status depart(const Status& cause);
  void leave(const Status& cause);
  bool leave_text(const std::vector<uint32_t>& sizes);

  bool is_any(bool (*is)(const Hello& hello)) const { return std::ranges::any_of(hellos_, is); }
  static bool lacks(const Hello& hello) { return hello.occasion.lacks; }
  static bool is_unfit(const Hello& hello) { return !hello.able && !hello.occasion.lacks; }
  bool is_strict() const {
    return is_any([](const Hello& hello) { return hello.strict; });
  }
  bool may_share_memory() const;
  template <typename Of>
  bool differs_in(Of of) const {
    return std::ranges::any_of(hellos_,
                               [&](const Hello& each) { return of(each) != of(hellos_[0]); });
  }
  template <typename Of>
  std::vector<uint32_t> sizes(Of of) const {
    std::vector<uint32_t> all;
    for (const Hello& hello : hellos_) all.push_back(of(hello));
    return all;
  }
  static uint32_t hints_size(const Hello& hello) { return hello.occasion.hints_size; }
  static uint32_t settings_size(const Hello& hello) { return hello.settings_size; }

  Process& process_;
  Bootstrap& bootstrap_;
  const std::string& name_;
  Hints* const hints_;
  Next next_ = Next::hello;
  std::string lack_;  // of this rank
  std::vector<std::byte> hello_, packed_, verdicts_;
  std::unique_ptr<NewTeam> kept_;  // named in the hello
  std::vector<Hello> hellos_;
  Outcome outcome_ = Outcome::team;
  std::unique_ptr<NewTeam> team_;  // where it may come to one
};

Result<std::unique_ptr<Team>> Formation::form() {
  if (Status status = say_hello(); !status.ok()) return status;
  if (have_kept_the_same(packed_)) return serve_again();
  if (Status status = consider(); !status.ok()) return status;
  if (Status status = settle(); !status.ok()) return status;
  if (outcome_ == Outcome::asks) {
    if (Status status = agree_on_hints(); !status.ok()) return status;
    if (Status status = settle(); !status.ok()) return status;
  }
  if (outcome_ == Outcome::differs) {
    if (Status status = differ(); !status.ok()) return status;
  }
  if (outcome_ != Outcome::team) return std::unique_ptr<Team>();
  if (Status status = share_memory(); !status.ok()) return status;
  if (!hints_->empty()) team_->heed(*hints_);
  team_->set_mark(bootstrap_.mark());
  return std::unique_ptr<Team>(std::move(team_));
}

Status Formation::say_hello() {
  if (hints_->empty()) {
    kept_ = process_.shelf.take(bootstrap_.mark(), bootstrap_.rank(), bootstrap_.size());
  }
  if (!kept_) lack_ = find_lack(process_);  // a team that served can serve
  hello_ = introduce(process_, to_text(*hints_), kept_ ? kept_->id() : TeamId{}, !lack_.empty());
  packed_.resize(bootstrap_.size() * Hello::packed_size);
  verdicts_.resize(bootstrap_.size());
  Status status = bootstrap_.allgather(hello_, packed_, Limit::deadline);
  if (has_taken_part(status)) next_ = Next::verdict;
  return status;
}

// A team that all ranks have kept serves the new communicator too. That takes no verdict: who gave
// up on this rank's account has told the team. (The ranks of a team are distinct processes, each
// with one rank: where as many ranks as it has all have kept it, each with the rank it has there,
// they are its ranks in its order.)
Result<std::unique_ptr<Team>> Formation::serve_again() {
  next_ = Next::nothing;
  kept_->serve(name_);
  return std::unique_ptr<Team>(std::move(kept_));
}

// Everybody's hello; what takes memory is done before this rank says that it is ready.
Status Formation::consider() {
  kept_.reset();
  TeamId latest;  // that any rank has offered to use again
  hellos_.resize(bootstrap_.size());
  for (size_t i = 0; i < hellos_.size(); ++i) {
    const auto bytes = std::span(packed_).subspan(i * Hello::packed_size, Hello::packed_size);
    if (!hellos_[i].unpack(bytes)) {
      next_ = Next::nothing;
      return {Code::mismatch,
              "rank " + std::to_string(i) + " runs a Sluice that speaks another language"};
    }
    latest = std::max(latest, hellos_[i].occasion.kept);
  }
  process_.shelf.drop(bootstrap_.mark(), bootstrap_.rank(), bootstrap_.size(), latest);
  outcome_ = find_outcome();
  if (outcome_ == Outcome::team || outcome_ == Outcome::asks) make_team();
  return {};
}

Formation::Outcome Formation::find_outcome() {
  if (!is_any([](const Hello& hello) { return hello.enabled; })) return Outcome::mpi;
  if (is_any(is_unfit) || differs_in([](const Hello& hello) { return hello.version; }) ||
      differs_in([](const Hello& hello) { return hello.settings_digest; })) {
    return Outcome::differs;
  }
  if (is_any(lacks)) {
    tell_of_lack();
    return Outcome::mpi;
  }
  const bool asks = differs_in([](const Hello& hello) { return hello.occasion.hints_digest; });
  return asks ? Outcome::asks : heed_hints({});
}

// A warning once in a process that lacks something; and who does, for those who want to know.
void Formation::tell_of_lack() {
  if (!lack_.empty()) {
    const bool again = process_.warned_of_lack.exchange(true);
    log(again ? Level::info : Level::warning, "MPI keeps %s: %s", name_.c_str(), lack_.c_str());
  } else if (bootstrap_.rank() == 0) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < hellos_.size(); ++rank) {
      if (lacks(hellos_[rank])) ranks.push_back(rank);
    }
    log(Level::info, "MPI keeps %s: %s can't connect", name_.c_str(),
        describe_ranks(ranks).c_str());
  }
}

void Formation::make_team() {
  std::vector<Peer> peers;
  for (const Hello& hello : hellos_) peers.push_back(hello.self);
  const TeamId id{peers[0].process, hellos_[0].occasion.teams_formed};
  team_ = make_new_team(process_, name_, bootstrap_.rank(), id, std::move(peers),
                        number_hosts(hellos_));
}

Status Formation::settle() {
  const std::byte ready{static_cast<uint8_t>(Verdict::ready)};
  const bool is_mpis = outcome_ == Outcome::mpi || (outcome_ == Outcome::differs && !is_strict());
  Status status =
      bootstrap_.allgather({&ready, 1}, verdicts_, is_mpis ? Limit::none : Limit::deadline);
  if (!has_taken_part(status)) return status;
  next_ = after_verdicts();
  if (!status.ok()) return status;
  status = judge(verdicts_);
  if (!status.ok()) next_ = Next::nothing;
  return status;
}

Formation::Next Formation::after_verdicts() const {
  const auto version = [](const Hello& hello) { return hello.version; };
  const auto settings = [](const Hello& hello) { return hello.settings_digest; };
  switch (outcome_) {
    case Outcome::team:
      return may_share_memory() ? Next::offer : Next::calls;
    case Outcome::asks:
      return Next::hints;
    case Outcome::differs:
      return !differs_in(version) && differs_in(settings) ? Next::settings : Next::nothing;
    case Outcome::mpi:
      break;
  }
  return Next::nothing;
}

// All ranks' texts, in rank order. sizes: of each rank's. next: what the others expect after this.
Result<std::vector<std::string>> Formation::exchange_texts(const std::string& mine,
                                                           const std::vector<uint32_t>& sizes,
                                                           Limit limit, Next next) {
  const size_t longest = *std::ranges::max_element(sizes);
  std::vector<std::byte> packed(longest), all(longest * sizes.size());
  std::ranges::copy(std::as_bytes(std::span(mine)), packed.begin());
  Status status = bootstrap_.allgather(packed, all, limit);
  if (has_taken_part(status)) next_ = next;
  if (!status.ok()) return status;
  std::vector<std::string> texts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    texts.emplace_back(reinterpret_cast<const char*>(all.data()) + i * longest, sizes[i]);
  }
  return texts;
}

// Leaves of *hints_ what all ranks gave.
Status Formation::agree_on_hints() {
  const auto texts =
      exchange_texts(to_text(*hints_), sizes(hints_size), Limit::deadline, Next::verdict);
  if (!texts.ok()) return texts.status();
  std::string differences;
  *hints_ = common_hints(*texts, &differences);
  outcome_ = heed_hints({"ranks differ: " + differences});
  return {};
}

// Leaves of *hints_, which all gave, what makes sense.
Formation::Outcome Formation::heed_hints(std::vector<std::string> complaints) {
  std::ranges::move(drop_nonsense(hints_), std::back_inserter(complaints));
  for (const std::string& complaint : complaints) {
    if (bootstrap_.rank() > 0) break;
    log(Level::warning, "a hint on %s is ignored: %s", name_.c_str(), complaint.c_str());
  }
  return asks_for_mpi(*hints_) ? Outcome::mpi : Outcome::team;
}

// An error, or a warning where all agree to go on in MPI. That is settled: who can't find out how
// they differ does as the others do.
Status Formation::differ() {
  std::string text;
  try {
    text = find_differences();
  } catch (const std::bad_alloc&) {
  }
  if (next_ == Next::settings) (void)leave_text(sizes(settings_size));
  next_ = Next::nothing;
  if (is_strict()) {
    return {Code::mismatch, "ranks differ: " + text + " (SLUICE_ON_MISMATCH=mpi goes on in MPI)"};
  }
  if (bootstrap_.rank() == 0) {
    log(Level::warning, "setting up %s: ranks differ: %s; MPI keeps it", name_.c_str(),
        text.c_str());
  }
  return {};
}

// What keeps these ranks from forming a team, in words.
std::string Formation::find_differences() {
  std::vector<std::string> versions;
  std::vector<Rank> unable;
  for (Rank rank = 0; rank < hellos_.size(); ++rank) {
    versions.push_back("version=" + hellos_[rank].version);
    if (is_unfit(hellos_[rank])) unable.push_back(rank);
  }
  if (std::string text = describe_differences(versions); !text.empty()) return "Sluice's " + text;
  if (next_ != Next::settings) return describe_ranks(unable) + " can't use the transport";
  const Limit limit = is_strict() ? Limit::deadline : Limit::none;
  const auto texts = exchange_texts(process_.settings, sizes(settings_size), limit, Next::nothing);
  return texts.ok() ? describe_differences(*texts) : "settings (" + texts.status().message() + ")";
}

// All ranks are on one host, and not told to do without its memory.
bool Formation::may_share_memory() const {
  const auto host = [](const Hello& hello) { return hello.host; };
  return process_.arenas && hellos_[0].host != 0 && hellos_.size() > 1 && !differs_in(host);
}

Status Formation::share_memory() {
  if (!may_share_memory()) return {};
  std::vector<ProcessId> processes;
  for (const Hello& hello : hellos_) processes.push_back(hello.self.process);
  next_ = Next::calls;
  auto arena = agree_on_arena(*process_.arenas, bootstrap_, processes, name_);
  if (!arena.ok()) return arena.status();
  return team_->share(std::move(*arena));
}

// This rank's part in what is still to come.
void Formation::leave(const Status& cause) {
  const Verdict verdict = verdict_of(cause);
  switch (next_) {
    case Next::hello:
      if (hello_.empty()) hello_ = introduce(process_, {}, {});
      if (!bootstrap_.leave(hello_)) return;
      [[fallthrough]];
    case Next::verdict:
      (void)leave_with(verdict, bootstrap_);
      return;
    case Next::hints:
      if (leave_text(sizes(hints_size))) (void)leave_with(verdict, bootstrap_);
      return;
    case Next::settings:
      (void)leave_text(sizes(settings_size));
      return;
    case Next::offer:
      leave_arena_agreement(bootstrap_, cause.code());
      return;
    case Next::calls:
    case Next::nothing:
      return;
  }
}

bool Formation::leave_text(const std::vector<uint32_t>& sizes) {
  return bootstrap_.leave(std::vector<std::byte>(*std::ranges::max_element(sizes)));
}

Status Formation::depart(const Status& cause) {
  if (cause.code() == Code::memory) process_.reserve.release();
  try {
    leave(cause);
  } catch (const std::bad_alloc&) {  // no more can be said
  }
  if (kept_) turn_down(*kept_, name_, cause);
  const bool has_team = next_ == Next::offer || next_ == Next::calls;
  return has_team ? team_->refuse(cause) : cause;
}

}  // namespace

void Team::retire(Process& process, std::unique_ptr<Team> team) try {
  // There are no other teams.
  std::unique_ptr<NewTeam> made(static_cast<NewTeam*>(team.release()));
  const uint64_t mark = made->mark();
  if (made->retire()) process.shelf.put(mark, std::move(made));
} catch (const std::bad_alloc&) {  // then it is not kept
}

Result<std::unique_ptr<Team>> Team::form(Process& process, Bootstrap& bootstrap,
                                         const std::string& name, Hints* hints) {
  try {
    process.reserve.fill();
    auto formed = Formation(process, bootstrap, name, hints).run();
    return formed.ok() ? std::move(formed) : formed.status().with("setting up " + name);
  } catch (const std::bad_alloc&) {
    return process.no_memory;
  }
}

void Team::stay_away(Process& process, Bootstrap& bootstrap) try {
  process.reserve.release();
  if (bootstrap.leave(introduce(process, {}, {}))) (void)leave_with(Verdict::failed, bootstrap);
} catch (const std::bad_alloc&) {
  log(Level::warning, "no memory to tell others that a communicator's calls fail here");
}

}  // namespace sluice
