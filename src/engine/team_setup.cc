// SPDX-License-Identifier: BSD-3-Clause
//
// Team set-up: Team::form and its relatives.
#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <optional>

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
  hello.choices_digest = process.outcomes.digest();
  hello.settings_size = static_cast<uint32_t>(process.settings.size());
  hello.able = process.endpoint != nullptr;
  hello.strict = process.knobs.on_mismatch == "abort";
  return hello;
}

// Why this process can't make new connections; empty if no reason is known. (A lack that appears
// later is an error. With encryption every lack is an error, because MPI would send in clear.)
std::string find_lack(const Process& process) {
  if (process.knobs.tls != "off") return "";
  if (!process.unable.empty()) {
    return "no " + process.knobs.transport + " transport here: " + process.unable;
  }
  const bool lacks = process.endpoint && !process.endpoint->can_connect();
  return lacks ? "no descriptors left for connections here" : "";
}

// A rank's message after the hellos, once or twice: whether it is ready. The leader's message also
// offers an arena, if all ranks may share memory.
struct ReadyMessage {
  Verdict verdict;
  ArenaOffer offer;
};

// A text of each rank, of lengths that all ranks know.
class Texts {
 public:
  // The memory for the exchange. May throw std::bad_alloc.
  void prepare(std::vector<uint32_t> sizes, const std::string& mine) {
    sizes_ = std::move(sizes);
    mine_.resize(*std::ranges::max_element(sizes_));
    std::ranges::copy(std::as_bytes(std::span(mine)), mine_.begin());
    all_.resize(mine_.size() * sizes_.size());
  }
  // Returns all ranks' texts, in rank order. May throw std::bad_alloc, but only after the exchange.
  Result<std::vector<std::string>> exchange(Bootstrap& bootstrap) {
    if (Status status = bootstrap.allgather(mine_, all_); !status.ok()) return status;
    std::vector<std::string> texts;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      texts.emplace_back(reinterpret_cast<const char*>(all_.data()) + i * mine_.size(), sizes_[i]);
    }
    return texts;
  }

 private:
  std::vector<uint32_t> sizes_;
  std::vector<std::byte> mine_, all_;  // padded to the longest
};

// Team set-up on one rank: a sequence of exchanges. All ranks take part in each, and all know from
// the hellos and texts which ones follow:
//
//   hellos     the only exchange if all ranks name the same cached team or the same earlier team
//   words      each rank has its team, or knows that MPI keeps the communicator
//   hints      if they differ, as texts, which decide whether MPI keeps it; then words again
//   settings   if they differ, as texts, for the message
//   answers    if all ranks are on one host: whether they could map its memory (shared_arena.h)
//
// A rank that lacks memory says so in its next hello or word, and all ranks then give up. The
// memory for the exchanges themselves is allocated before the first.
class TeamSetup {
 public:
  // verdict: what this rank says in its hello.
  TeamSetup(Process& process, Bootstrap& bootstrap, const std::string& name, Hints* hints,
            Verdict verdict)
      : process_(process),
        bootstrap_(bootstrap),
        name_(name),
        hints_(hints),
        packed_(bootstrap.size() * Hello::packed_size),
        ready_messages_(bootstrap.size()),
        verdict_(verdict) {}

  Result<std::unique_ptr<Team>> run();

 private:
  enum class Outcome { team, mpi, differs, asks };  // asks: the hints' texts decide

  void prepare();
  void introduce();
  SegmentName prepare_known();
  Status say_hello();
  Result<std::unique_ptr<Team>> join_known(uint32_t number, const ArenaOffer& offer);
  std::unique_ptr<Team> finish(std::unique_ptr<NewTeam> team);
  void forget_known();
  void note_known();
  void consider();
  Outcome find_outcome();
  void report_lack();
  void report_choices();
  void make_team(const TeamId& id, std::vector<Peer> peers, std::vector<uint32_t> hosts);
  Status settle();
  Status agree_on_hints();
  Outcome apply_hints(std::vector<std::string> complaints);
  Status differ();
  std::string find_differences();
  Status share_memory();
  void prepare_texts();

  // Runs a step that may lack memory. If it does, this rank's next hello or word says so.
  template <typename Step>
  void attempt(const Step& step) {
    if (verdict_ != Verdict::ready) return;
    try {
      step();
    } catch (const std::bad_alloc&) {
      process_.reserve.release();
      verdict_ = Verdict::memory;
    }
  }
  bool is_any(bool (*is)(const Hello& hello)) const { return std::ranges::any_of(hellos_, is); }
  static bool lacks(const Hello& hello) { return hello.current.lacks; }
  static bool is_unfit(const Hello& hello) { return !hello.able && !hello.current.lacks; }
  bool has_common_choices() const;
  bool is_strict() const {
    return is_any([](const Hello& hello) { return hello.strict; });
  }
  bool may_share_memory() const;
  template <typename Of>
  bool differs_in(Of of) const {
    return std::ranges::any_of(hellos_,
                               [&](const Hello& each) { return of(each) != of(hellos_[0]); });
  }
  // Whether versions are equal and settings are not.
  bool has_other_settings() const {
    return !differs_in([](const Hello& hello) { return hello.version; }) &&
           differs_in([](const Hello& hello) { return hello.settings_digest; });
  }

  Process& process_;
  Bootstrap& bootstrap_;
  const std::string& name_;
  Hints* const hints_;
  std::array<std::byte, Hello::packed_size> hello_{};
  std::vector<std::byte> packed_;             // all ranks' hellos
  std::vector<ReadyMessage> ready_messages_;  // all ranks'
  Verdict verdict_;                           // of this rank's next hello or word
  uint64_t group_fingerprint_ = 0;
  std::string lack_;                         // what this rank lacks
  std::shared_ptr<const KnownGroup> known_;  // named in the hello, with team_ and offer_ made
  ArenaOffer offer_;
  std::unique_ptr<NewTeam> kept_;  // named in the hello
  std::vector<Hello> hellos_;
  Texts texts_;  // that are exchanged next
  Outcome outcome_ = Outcome::team;
  std::unique_ptr<NewTeam> team_;  // made before it is known whether all ranks want it
  std::optional<ArenaAgreement> arena_;
  bool shares_ = false;  // agreed in `answers`: all ranks have the arena
};

Result<std::unique_ptr<Team>> TeamSetup::run() {
  attempt([&] { prepare(); });
  if (Status status = say_hello(); !status.ok()) return status;
  if (have_kept_the_same(packed_)) return finish(std::move(kept_));
  uint32_t number = 0;
  ArenaOffer offer;
  if (know_the_same(packed_, &number, &offer)) return join_known(number, offer);
  forget_known();
  attempt([&] { consider(); });
  if (Status status = settle(); !status.ok()) return status;
  if (outcome_ == Outcome::asks) {
    if (Status status = agree_on_hints(); !status.ok()) return status;
    if (Status status = settle(); !status.ok()) return status;
  }
  if (outcome_ == Outcome::differs) {
    if (Status status = differ(); !status.ok()) return status;
  }
  if (outcome_ != Outcome::team) return std::unique_ptr<Team>();
  if (Status status = share_memory(); !status.ok()) return team_->fail_call(status);
  if (!hints_->empty()) team_->apply(*hints_);
  note_known();
  return finish(std::move(team_));
}

std::unique_ptr<Team> TeamSetup::finish(std::unique_ptr<NewTeam> team) {
  team->set_communicator(group_fingerprint_, any_sees_devices(packed_));
  return team;
}

// Prepares the hello. A cached team is made ready to serve before the hello names it.
void TeamSetup::prepare() {
  group_fingerprint_ = bootstrap_.group_fingerprint();
  if (hints_->empty()) {
    kept_ = process_.team_cache.remove(group_fingerprint_, bootstrap_.rank(), bootstrap_.size());
  }
  if (kept_) {
    kept_->serve(name_);
  } else {
    lack_ = find_lack(process_);  // not asked of a cached team, which has served already
  }
  const SegmentName held = prepare_known();
  introduce();
  std::ranges::copy(process_.introduction, hello_.begin());
  const std::string hints = to_text(*hints_);
  Hello::Volatile{.kept = kept_ ? kept_->id() : TeamId{},
                  .teams_formed = process_.teams_formed++,
                  .hints_digest = digest(hints),
                  .hints_size = static_cast<uint32_t>(hints.size()),
                  .lacks = !lack_.empty(),
                  .sees_devices = process_.sees_devices && process_.sees_devices(),
                  .known = known_ ? known_->id : TeamId{},
                  .held = held,
                  .offer = offer_}
      .pack(hello_);
}

// (What runs in std::call_once must not throw: no exception passes the C library's frames if libgcc
// is linked statically.)
void TeamSetup::introduce() {
  const std::lock_guard lock(process_.introducing);
  if (!process_.introduction.empty()) return;
  std::vector<std::byte> made(Hello::packed_size);
  describe_self(process_).pack(made);
  process_.introduction = std::move(made);
}

// Makes a team of the ranks that this communicator probably has, by its fingerprint. Returns the
// segment that this rank maps for them. (Only the view of the arena is allocated later.)
SegmentName TeamSetup::prepare_known() {
  if (kept_ || !lack_.empty() || !hints_->empty()) return {};
  known_ = process_.known_groups.find(group_fingerprint_, bootstrap_.rank(), bootstrap_.size());
  if (!known_) return {};
  make_team(known_->id, known_->peers, known_->hosts);
  if (known_->uses_outcomes) team_->use_outcomes();
  if (!known_->shares) return {};
  offer_ = arena_->offer();
  const bool is_missing = bootstrap_.rank() == 0 && !offer_.made;
  const SegmentName held = is_missing ? SegmentName{} : arena_->segment(offer_);
  if (held == SegmentName{}) forget_known();
  return held;
}

// Replaces all exchanges after the hellos. Other ranks use the team at once, so an error here
// breaks it (fail_call).
Result<std::unique_ptr<Team>> TeamSetup::join_known(uint32_t number, const ArenaOffer& offer) try {
  team_->set_id({known_->peers[0].process, number});
  if (!arena_) return finish(std::move(team_));
  auto arena = arena_->accept(offer);
  if (arena.status().code() == Code::memory) {
    process_.reserve.release();
    arena = arena_->accept(offer);
  }
  if (!arena.ok()) {
    arena_->reject(offer, arena.status());
    return team_->fail_call(arena.status());
  }
  const Status status = team_->share(std::move(*arena));
  if (!status.ok()) return team_->fail_call(status);
  return finish(std::move(team_));
} catch (const std::bad_alloc&) {
  process_.reserve.release();
  return team_->fail_call(process_.no_memory);
}

void TeamSetup::forget_known() {
  if (arena_) arena_->withdraw(offer_);
  arena_.reset();
  team_.reset();
  known_.reset();
  offer_ = {};
}

// Remembers the team as a KnownGroup, if there is memory for that.
void TeamSetup::note_known() try {
  if (may_share_memory() && !shares_) return;
  auto known = std::make_shared<KnownGroup>();
  known->id = team_->id();
  known->rank = bootstrap_.rank();
  for (const Hello& hello : hellos_) known->peers.push_back(hello.self);
  known->hosts = number_hosts(hellos_);
  known->uses_outcomes = has_common_choices();
  known->shares = shares_;
  process_.known_groups.put(group_fingerprint_, std::move(known));
} catch (const std::bad_alloc&) {
}

// Exchanges hellos. If all ranks name the same cached team, it serves the new communicator. (The
// ranks of a team are distinct processes, and a rank names only a team of the communicator's size
// in which it has the same rank. So if all name one team, they are its ranks in its order.)
Status TeamSetup::say_hello() {
  if (verdict_ != Verdict::ready) {
    kept_.reset();
    forget_known();
    Hello::Volatile current;
    current.verdict = verdict_;
    current.pack(hello_);
  }
  Status status = bootstrap_.allgather(hello_, packed_);
  if (status.ok()) status = check_hellos(packed_);
  if (!status.ok()) forget_known();
  return verdict_ == Verdict::memory ? process_.no_memory : status;
}

// Evaluates all ranks' hellos. Allocates what is needed before this rank says that it is ready.
void TeamSetup::consider() {
  kept_.reset();
  TeamId latest;  // the highest id of the cached teams that ranks named
  hellos_.resize(bootstrap_.size());
  for (size_t i = 0; i < hellos_.size(); ++i) {
    hellos_[i].unpack(std::span(packed_).subspan(i * Hello::packed_size, Hello::packed_size));
    latest = std::max(latest, hellos_[i].current.kept);
  }
  process_.team_cache.drop(group_fingerprint_, bootstrap_.rank(), bootstrap_.size(), latest);
  outcome_ = find_outcome();
  if (outcome_ == Outcome::team || outcome_ == Outcome::asks) {
    std::vector<Peer> peers;
    for (const Hello& hello : hellos_) peers.push_back(hello.self);
    const TeamId id{peers[0].process, hellos_[0].current.teams_formed};
    make_team(id, std::move(peers), number_hosts(hellos_));
    if (has_common_choices()) team_->use_outcomes();
    report_choices();
  }
  prepare_texts();
}

TeamSetup::Outcome TeamSetup::find_outcome() {
  if (is_any(is_unfit) || differs_in([](const Hello& hello) { return hello.version; }) ||
      differs_in([](const Hello& hello) { return hello.settings_digest; })) {
    return Outcome::differs;
  }
  if (is_any(lacks)) {
    report_lack();
    return Outcome::mpi;
  }
  const bool asks = differs_in([](const Hello& hello) { return hello.current.hints_digest; });
  return asks ? Outcome::asks : apply_hints({});
}

// A process that lacks something warns once, and logs infos after that. If rank 0 lacks nothing, it
// logs at level info which ranks do.
void TeamSetup::report_lack() {
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

// Whether all ranks have read the same file of choices, and any.
bool TeamSetup::has_common_choices() const {
  const auto choices = [](const Hello& hello) { return hello.choices_digest; };
  return hellos_[0].choices_digest != 0 && !differs_in(choices);
}

// Rank 0 warns once in its process.
void TeamSetup::report_choices() {
  const auto choices = [](const Hello& hello) { return hello.choices_digest; };
  if (bootstrap_.rank() != 0 || !differs_in(choices)) return;
  const bool again = process_.warned_of_choices.exchange(true);
  std::vector<Rank> without;
  for (Rank rank = 0; rank < hellos_.size(); ++rank) {
    if (choices(hellos_[rank]) == 0) without.push_back(rank);
  }
  log(again ? Level::info : Level::warning, "SLUICE_CHOICE_FILE is not used on %s: %s%s",
      name_.c_str(),
      without.empty() ? "ranks have read different files" : describe_ranks(without).c_str(),
      without.empty() ? "" : " can't use one");
}

void TeamSetup::make_team(const TeamId& id, std::vector<Peer> peers, std::vector<uint32_t> hosts) {
  if (known_ ? known_->shares : may_share_memory()) {
    std::vector<ProcessId> processes;
    for (const Peer& peer : peers) processes.push_back(peer.process);
    arena_.emplace(*process_.arenas, bootstrap_, std::move(processes));
  }
  team_ = make_new_team(process_, name_, bootstrap_.rank(), id, std::move(peers), std::move(hosts));
}

// All ranks are on one host, and shared memory is not switched off.
bool TeamSetup::may_share_memory() const {
  const auto host = [](const Hello& hello) { return hello.host; };
  return process_.arenas && hellos_[0].host != 0 && hellos_.size() > 1 && !differs_in(host);
}

// Exchanges words. Ok if all ranks have what they need so far; else an error on all ranks.
Status TeamSetup::settle() {
  ReadyMessage mine{verdict_, {}};
  const bool offers = verdict_ == Verdict::ready && outcome_ == Outcome::team && arena_;
  if (offers) mine.offer = arena_->offer();
  Status status = bootstrap_.allgather(std::as_bytes(std::span(&mine, 1)),
                                       std::as_writable_bytes(std::span(ready_messages_)));
  if (!status.ok()) return status;
  const auto is_ready = [](const ReadyMessage& message) {
    return message.verdict == Verdict::ready;
  };
  if (std::ranges::all_of(ready_messages_, is_ready)) return {};
  if (offers) arena_->withdraw(mine.offer);
  if (verdict_ != Verdict::ready) return process_.no_memory;
  std::vector<Verdict> verdicts;
  for (const ReadyMessage& message : ready_messages_) verdicts.push_back(message.verdict);
  return judge(verdicts);
}

void TeamSetup::prepare_texts() {
  const bool hints = outcome_ == Outcome::asks;
  if (!hints && !(outcome_ == Outcome::differs && has_other_settings())) return;
  std::vector<uint32_t> sizes;
  for (const Hello& hello : hellos_) {
    sizes.push_back(hints ? hello.current.hints_size : hello.settings_size);
  }
  texts_.prepare(std::move(sizes), hints ? to_text(*hints_) : process_.settings);
}

// Reduces *hints_ to those that all ranks gave alike.
Status TeamSetup::agree_on_hints() {
  Status status;
  attempt([&] {
    const auto texts = texts_.exchange(bootstrap_);
    status = texts.status();
    if (!texts.ok()) return;
    std::string differences;
    *hints_ = common_hints(*texts, &differences);
    outcome_ = apply_hints({"ranks differ: " + differences});
  });
  return status;
}

// Reduces *hints_, which all ranks gave, to the valid ones. The leader logs the complaints.
TeamSetup::Outcome TeamSetup::apply_hints(std::vector<std::string> complaints) {
  std::ranges::move(drop_nonsense(hints_), std::back_inserter(complaints));
  for (const std::string& complaint : complaints) {
    if (bootstrap_.rank() > 0) break;
    log(Level::warning, "a hint on %s is ignored: %s", name_.c_str(), complaint.c_str());
  }
  return asks_for_mpi(*hints_) ? Outcome::mpi : Outcome::team;
}

// Returns an error, or warns if all ranks agreed to go on in MPI. The outcome is known by now: a
// rank without memory to describe the differences does as the others do.
Status TeamSetup::differ() {
  std::string text;
  try {
    text = find_differences();
  } catch (const std::bad_alloc&) {
  }
  if (is_strict()) {
    const bool may_go_on = process_.knobs.tls == "off" && !is_any(is_unfit);
    return {Code::mismatch, "ranks differ: " + text +
                                (may_go_on ? " (SLUICE_ON_MISMATCH=mpi goes on in MPI)" : "")};
  }
  if (bootstrap_.rank() == 0) {
    log(Level::warning, "setting up %s: ranks differ: %s; MPI keeps it", name_.c_str(),
        text.c_str());
  }
  return {};
}

// Describes what keeps these ranks from forming a team. May throw std::bad_alloc, but only after
// the exchange, if there is one.
std::string TeamSetup::find_differences() {
  if (has_other_settings()) {
    const auto texts = texts_.exchange(bootstrap_);
    return texts.ok() ? describe_differences(*texts)
                      : "settings (" + texts.status().message() + ")";
  }
  std::vector<std::string> versions;
  std::vector<Rank> unable;
  for (Rank rank = 0; rank < hellos_.size(); ++rank) {
    versions.push_back("version=" + hellos_[rank].version);
    if (is_unfit(hellos_[rank])) unable.push_back(rank);
  }
  const std::string text = describe_differences(versions);
  return text.empty() ? describe_ranks(unable) + " could not set it up, and said why"
                      : "Sluice's " + text;
}

// Agrees on an arena by the last exchanges, and gives it to the team. The caller reports an error
// through the team (fail_call).
Status TeamSetup::share_memory() try {
  if (!arena_) return {};
  auto arena = arena_->agree(ready_messages_[0].offer, name_);
  if (!arena.ok()) return arena.status();
  shares_ = *arena != nullptr;
  return team_->share(std::move(*arena));
} catch (const std::bad_alloc&) {
  process_.reserve.release();
  return process_.no_memory;
}

// Allocates what the exchanges need, if necessary from the reserve.
TeamSetup begin_setup(Process& process, Bootstrap& bootstrap, const std::string& name, Hints* hints,
                      Verdict verdict) {
  try {
    return TeamSetup(process, bootstrap, name, hints, verdict);
  } catch (const std::bad_alloc&) {
    process.reserve.release();
  }
  return TeamSetup(process, bootstrap, name, hints, verdict);
}

}  // namespace

void Team::retire(Process& process, std::unique_ptr<Team> team) try {
  // Every Team is a NewTeam.
  std::unique_ptr<NewTeam> made(static_cast<NewTeam*>(team.release()));
  const uint64_t group_fingerprint = made->group_fingerprint();
  if (made->retire()) process.team_cache.put(group_fingerprint, std::move(made));
} catch (const std::bad_alloc&) {  // the team is not cached
}

Result<std::unique_ptr<Team>> Team::form(Process& process, Bootstrap& bootstrap,
                                         const std::string& name, Hints* hints) {
  try {
    process.reserve.fill();
    auto formed = begin_setup(process, bootstrap, name, hints, Verdict::ready).run();
    return formed.ok() ? std::move(formed) : formed.status().with("setting up " + name);
  } catch (const std::bad_alloc&) {
    return process.no_memory;
  }
}

bool Team::report_failed_rank(Process& process, Bootstrap& bootstrap) try {
  Hints hints;
  const std::string name;
  TeamSetup setup = begin_setup(process, bootstrap, name, &hints, Verdict::failed);
  try {
    (void)setup.run();
  } catch (const std::bad_alloc&) {  // the other ranks have been told
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace sluice
