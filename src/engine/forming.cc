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

// All ranks' texts, in rank order; asked for when digests differ. sizes: of each rank's.
Result<std::vector<std::string>> exchange_texts(const std::string& mine,
                                                const std::vector<size_t>& sizes,
                                                Bootstrap& bootstrap) {
  const size_t longest = *std::ranges::max_element(sizes);
  std::vector<std::byte> packed(longest), all(longest * sizes.size());
  std::transform(mine.begin(), mine.end(), packed.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  if (Status status = bootstrap.allgather(packed, all); !status.ok()) return status;
  std::vector<std::string> texts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    texts.emplace_back(reinterpret_cast<const char*>(all.data()) + i * longest, sizes[i]);
  }
  return texts;
}

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

// This rank's hello, packed.
std::vector<std::byte> introduce(Process& process, const std::string& hints, const TeamId& kept) {
  std::call_once(process.introduced, [&] {
    process.introduction.resize(Hello::packed_size);
    describe_self(process).pack(process.introduction);
  });
  std::vector<std::byte> packed = process.introduction;
  Hello::Occasion{.kept = kept,
                  .teams_formed = process.teams_formed++,
                  .hints_digest = digest(hints),
                  .hints_size = static_cast<uint32_t>(hints.size())}
      .pack(packed);
  return packed;
}

Status no_memory() { return {Code::memory, "no memory to set it up"}; }

// What a rank knows once it has everybody's hello, with all that takes memory done.
struct Prospect {
  Status trouble;  // this rank's own
  std::vector<Hello> hellos;
  bool same_version = false;
  bool wanted = false;            // Sluice is on, somewhere
  std::unique_ptr<NewTeam> team;  // if nothing differs
};

bool any_of_hellos(const std::vector<Hello>& hellos, bool (*is)(const Hello& hello)) {
  return std::ranges::any_of(hellos, is);
}

void read_hellos(std::span<const std::byte> packed, Prospect* prospect) {
  std::vector<Hello>& hellos = prospect->hellos;
  hellos.resize(packed.size() / Hello::packed_size);
  for (size_t i = 0; i < hellos.size(); ++i) {
    if (hellos[i].unpack(packed.subspan(i * Hello::packed_size, Hello::packed_size))) continue;
    prospect->trouble = {Code::mismatch, "rank " + std::to_string(i) +
                                             " runs a Sluice that speaks another language"};
    return;
  }
  prospect->same_version = std::ranges::all_of(
      hellos, [&](const Hello& hello) { return hello.version == hellos[0].version; });
  prospect->wanted = any_of_hellos(hellos, [](const Hello& hello) { return hello.enabled; });
}

Prospect consider(Process& process, const Bootstrap& bootstrap, std::span<const std::byte> packed,
                  const std::string& name) {
  Prospect prospect;
  try {
    read_hellos(packed, &prospect);
    const std::vector<Hello>& hellos = prospect.hellos;
    const bool fits = std::ranges::all_of(hellos, [&](const Hello& hello) {
      return hello.able && hello.settings_digest == hellos[0].settings_digest;
    });
    if (!prospect.trouble.ok() || !prospect.same_version || !prospect.wanted || !fits) {
      return prospect;
    }
    std::vector<Peer> peers;
    for (const Hello& hello : hellos) peers.push_back(hello.self);
    const TeamId id{peers[0].process, hellos[0].occasion.teams_formed};
    prospect.team =
        make_new_team(process, name, bootstrap.rank(), id, std::move(peers), number_hosts(hellos));
  } catch (const std::bad_alloc&) {
    prospect.trouble = no_memory();
  }
  return prospect;
}

// Why a rank takes no part in a team, for the others: one byte.
enum class Verdict : uint8_t { ready, timeout, memory, failed };

Verdict verdict_of(const Status& status) {
  if (status.ok()) return Verdict::ready;
  return status.code() == Code::timeout ? Verdict::timeout : Verdict::memory;
}

constexpr std::pair<Verdict, const char*> explanations[] = {
    {Verdict::timeout, " gave up waiting for all ranks to come (SLUICE_SETUP_TIMEOUT)"},
    {Verdict::memory, " had no memory to set it up"},
    {Verdict::failed, " saw an earlier call on it fail"},
};

void leave_with(Verdict verdict, Bootstrap& bootstrap) {
  const std::byte byte{static_cast<uint8_t>(verdict)};
  bootstrap.leave({&byte, 1});
}

// Before any rank counts on the team, all say that they have it.
Status settle(Bootstrap& bootstrap, std::span<std::byte> verdicts) {
  const std::byte ready{static_cast<uint8_t>(Verdict::ready)};
  if (Status status = bootstrap.allgather({&ready, 1}, verdicts); !status.ok()) return status;
  for (const auto& [verdict, words] : explanations) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < verdicts.size(); ++rank) {
      if (verdicts[rank] == static_cast<std::byte>(verdict)) ranks.push_back(rank);
    }
    if (!ranks.empty()) return {Code::aborted, describe_ranks(ranks) + words};
  }
  return {};
}

// What keeps these ranks from forming a team, in words.
Result<std::string> find_differences(const Process& process, const std::vector<Hello>& hellos,
                                     Bootstrap& bootstrap) {
  std::vector<std::string> versions;
  std::vector<size_t> sizes;
  std::vector<Rank> unable;
  bool settings_differ = false;
  for (Rank rank = 0; rank < hellos.size(); ++rank) {
    versions.push_back("version=" + hellos[rank].version);
    sizes.push_back(hellos[rank].settings_size);
    if (!hellos[rank].able) unable.push_back(rank);
    settings_differ |= hellos[rank].settings_digest != hellos[0].settings_digest;
  }
  if (std::string text = describe_differences(versions); !text.empty()) return "Sluice's " + text;
  if (settings_differ) {
    auto texts = exchange_texts(process.settings, sizes, bootstrap);
    if (!texts.ok()) return texts.status();
    return describe_differences(*texts);
  }
  return describe_ranks(unable) + " can't use the transport";
}

// Ranks differ: an error, or a warning where all agree to go on in MPI.
Status differ(const Process& process, const std::vector<Hello>& hellos, Bootstrap& bootstrap,
              const std::string& name) {
  const auto differences = find_differences(process, hellos, bootstrap);
  if (!differences.ok()) return differences.status();
  const std::string text = "ranks differ: " + *differences;
  if (any_of_hellos(hellos, [](const Hello& hello) { return hello.strict; })) {
    return {Code::mismatch, text + " (SLUICE_ON_MISMATCH=mpi goes on in MPI)"};
  }
  if (bootstrap.rank() == 0) {
    log(Level::warning, "setting up %s: %s; MPI keeps it", name.c_str(), text.c_str());
  }
  return {};
}

// All ranks are on one host, and not told to do without its memory.
bool may_share_memory(const Process& process, const std::vector<Hello>& hellos) {
  const uint64_t host = hellos[0].host;
  const auto is_here = [&](const Hello& hello) { return hello.host == host; };
  return process.arenas && host != 0 && hellos.size() > 1 && std::ranges::all_of(hellos, is_here);
}

bool hints_differ(const std::vector<Hello>& hellos) {
  return std::ranges::any_of(hellos, [&](const Hello& hello) {
    return hello.occasion.hints_digest != hellos[0].occasion.hints_digest;
  });
}

// What comes after the exchange in which a rank fails.
enum class Next { texts, arena, team };

// A rank fails when it and others have the team already: those that are late learn it in the
// arena's exchange, or where there is none, from the team.
Status give_up(const Process& process, Bootstrap& bootstrap, const Prospect& prospect,
               const Status& cause, Next next) {
  if (cause.code() == Code::aborted || !prospect.team) return cause;
  if (next == Next::texts && hints_differ(prospect.hellos)) {
    size_t longest = 0;
    for (const Hello& hello : prospect.hellos) {
      longest = std::max<size_t>(longest, hello.occasion.hints_size);
    }
    bootstrap.leave(std::vector<std::byte>(longest));
  }
  if (next != Next::team && may_share_memory(process, prospect.hellos)) {
    leave_arena_agreement(bootstrap);
  }
  return prospect.team->refuse(cause);
}

Status share_memory(Process& process, Bootstrap& bootstrap, const Prospect& prospect,
                    const std::string& name) {
  const std::vector<Hello>& hellos = prospect.hellos;
  if (!may_share_memory(process, hellos)) return {};
  std::vector<ProcessId> processes;
  for (const Hello& hello : hellos) processes.push_back(hello.self.process);
  auto arena = agree_on_arena(*process.arenas, bootstrap, processes, name);
  if (!arena.ok()) return give_up(process, bootstrap, prospect, arena.status(), Next::team);
  return prospect.team->share(std::move(*arena));
}

// Leaves of *hints what all ranks gave, and makes sense.
Status agree_on_hints(Bootstrap& bootstrap, const std::vector<Hello>& hellos,
                      const std::string& name, Hints* hints) {
  std::vector<size_t> sizes;
  for (const Hello& hello : hellos) sizes.push_back(hello.occasion.hints_size);
  std::vector<std::string> complaints;
  if (hints_differ(hellos)) {
    const auto texts = exchange_texts(to_text(*hints), sizes, bootstrap);
    if (!texts.ok()) return texts.status();
    complaints.emplace_back();
    *hints = common_hints(*texts, &complaints.back());
    complaints.back() = "ranks differ: " + complaints.back();
  }
  std::ranges::move(drop_nonsense(hints), std::back_inserter(complaints));
  for (const std::string& complaint : complaints) {
    if (bootstrap.rank() > 0) break;
    log(Level::warning, "a hint on %s is ignored: %s", name.c_str(), complaint.c_str());
  }
  return {};
}

// What a team gets once all ranks have it; nullptr where they ask for MPI.
Result<std::unique_ptr<Team>> equip(Process& process, Bootstrap& bootstrap, Prospect* prospect,
                                    const std::string& name, Hints* hints) {
  if (Status status = agree_on_hints(bootstrap, prospect->hellos, name, hints); !status.ok()) {
    return give_up(process, bootstrap, *prospect, status, Next::arena);
  }
  if (asks_for_mpi(*hints)) return std::unique_ptr<Team>();
  if (Status status = share_memory(process, bootstrap, *prospect, name); !status.ok()) {
    return status;
  }
  if (!hints->empty()) prospect->team->heed(*hints);
  prospect->team->set_mark(bootstrap.mark());
  return std::unique_ptr<Team>(std::move(prospect->team));
}

// A team that all ranks have kept serves the new communicator too. That takes no verdict: who gave
// up on this rank's account has told the team.
Result<std::unique_ptr<Team>> serve_again(std::unique_ptr<NewTeam> kept, const std::string& name) {
  try {
    kept->serve(name);
  } catch (const std::bad_alloc&) {
    return kept->refuse(no_memory());
  }
  return std::unique_ptr<Team>(std::move(kept));
}

// This rank has given up; those who find that all have kept this team learn it there.
void turn_down(NewTeam& kept, const std::string& name, const Status& cause) {
  try {
    kept.serve(name);
  } catch (const std::bad_alloc&) {  // then it goes by its old name
  }
  (void)kept.refuse(cause);
}

// The latest team that any rank has offered to use again.
TeamId latest_kept(const std::vector<Hello>& hellos) {
  TeamId latest;
  for (const Hello& hello : hellos) latest = std::max(latest, hello.occasion.kept);
  return latest;
}

// After everybody's hello, where no team could be used again.
Result<std::unique_ptr<Team>> form_anew(Process& process, Bootstrap& bootstrap, Prospect& prospect,
                                        const std::string& name, Hints* hints,
                                        std::span<std::byte> verdicts) {
  // Another version may know nothing of verdicts.
  if (prospect.same_version) {
    if (Status status = settle(bootstrap, verdicts); !status.ok()) {
      return give_up(process, bootstrap, prospect, status, Next::texts);
    }
  }
  try {
    if (prospect.team) return equip(process, bootstrap, &prospect, name, hints);
  } catch (const std::bad_alloc&) {
    if (prospect.team) return prospect.team->refuse(no_memory());
    throw;
  }
  if (!prospect.wanted) return std::unique_ptr<Team>();
  if (Status status = differ(process, prospect.hellos, bootstrap, name); !status.ok()) {
    return status;
  }
  return std::unique_ptr<Team>();
}

// One exchange where all have kept the same team; else that was the first of several. The ranks of
// a team are distinct processes, each with one rank: where as many ranks as it has all have kept
// it, each with the rank it has there, they are its ranks in its order.
Result<std::unique_ptr<Team>> form_team(Process& process, Bootstrap& bootstrap,
                                        const std::string& name, Hints* hints) {
  std::vector<std::byte> packed(bootstrap.size() * Hello::packed_size), verdicts(bootstrap.size());
  std::unique_ptr<NewTeam> kept;
  if (hints->empty())
    kept = process.shelf.take(bootstrap.mark(), bootstrap.rank(), bootstrap.size());
  const auto mine = introduce(process, to_text(*hints), kept ? kept->id() : TeamId{});
  Prospect prospect;
  try {
    prospect.trouble = bootstrap.allgather(mine, packed);
  } catch (const std::bad_alloc&) {
    prospect.trouble = no_memory();
  }
  if (prospect.trouble.ok()) {
    if (have_kept_the_same(packed)) return serve_again(std::move(kept), name);
    kept.reset();
    prospect = consider(process, bootstrap, packed, name);
    process.shelf.drop(bootstrap.mark(), bootstrap.rank(), bootstrap.size(),
                       latest_kept(prospect.hellos));
  }
  if (const Code why = prospect.trouble.code(); why == Code::timeout || why == Code::memory) {
    leave_with(verdict_of(prospect.trouble), bootstrap);
  }
  if (kept) turn_down(*kept, name, prospect.trouble);
  if (!prospect.trouble.ok()) return prospect.trouble;
  return form_anew(process, bootstrap, prospect, name, hints, verdicts);
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
  if (!process.unable.empty()) {
    log(Level::warning, "no %s transport here: %s", process.knobs.transport.c_str(),
        process.unable.c_str());
  }
  try {
    auto formed = form_team(process, bootstrap, name, hints);
    return formed.ok() ? std::move(formed) : formed.status().with("setting up " + name);
  } catch (const std::bad_alloc&) {
    return Status{Code::memory, "no memory to set up a communicator"};
  }
}

void Team::stay_away(Process& process, Bootstrap& bootstrap) try {
  bootstrap.leave(introduce(process, {}, {}));
  leave_with(Verdict::failed, bootstrap);
} catch (const std::bad_alloc&) {
  log(Level::warning, "no memory to tell others that a communicator's calls fail here");
}

}  // namespace sluice
