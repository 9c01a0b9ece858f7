// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/outcomes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "src/base/file.h"
#include "src/engine/rules.h"

namespace sluice {
namespace {

using ChoiceFile = Outcomes::File;

const Outcomes::Machine this_machine{"1.2", 4, 0x1234, "Some MPI 5"};
constexpr Outcomes::Class sum_class{
    .collective = Collective::allreduce, .ranks = 4, .hosts = 2, .per_host = 3, .octave = 13};
constexpr Challengers on_devices[] = {{{true, false}, false}, {{false, true}, false},
                                      {{true, true}, false},  {{true, false}, true},
                                      {{false, true}, true},  {{true, true}, true}};
constexpr TeamId team_one{{1, 2}, 3}, team_other{{1, 2}, 4};

// A path at which there is nothing before and after.
class ChoicePath {
 public:
  ChoicePath() : path_(::testing::TempDir() + "sluice-choices-" + std::to_string(getpid())) {
    unlink(path_.c_str());
  }
  ~ChoicePath() { unlink(path_.c_str()); }
  ChoicePath(const ChoicePath&) = delete;
  const std::string& get() const { return path_; }
  std::string content() const {
    auto text = read_file(path_);
    return text.ok() ? *text : text.status().message();
  }
  void fill(const std::string& text) const { std::ofstream(path_) << text; }

 private:
  std::string path_;
};

ChoiceFile read_choices(const ChoicePath& path, Outcomes* outcomes, std::string* why = nullptr,
                        const Outcomes::Machine& machine = this_machine) {
  Status status;
  const ChoiceFile file = outcomes->read(path.get(), machine, &status);
  EXPECT_TRUE(file == ChoiceFile::used || status.ok() == (file == ChoiceFile::none));
  if (why) *why = status.message();
  return file;
}

void note_choice(Outcomes* outcomes, const Outcomes::Class& of, const char* choice,
                 const TeamId& team = team_one) {
  outcomes->note("a communicator", team, of,
                 {.choice = choice, .from_file = false, .ruled = "flat"});
}

// Writes a file of that one class.
void write_choice(const ChoicePath& path, const char* choice = "mpi") {
  Outcomes outcomes;
  (void)read_choices(path, &outcomes);
  note_choice(&outcomes, sum_class, choice);
  ASSERT_TRUE(outcomes.write().ok());
}

TEST(Outcomes, AreWrittenAsRules) {
  const ChoicePath path;
  Outcomes outcomes;
  EXPECT_EQ(read_choices(path, &outcomes), ChoiceFile::none);
  EXPECT_EQ(outcomes.digest(), 0U);
  note_choice(&outcomes, sum_class, "mpi");
  note_choice(&outcomes,
              {.collective = Collective::barrier, .ranks = 2, .per_host = 2, .exact = true},
              "rules");
  ASSERT_TRUE(outcomes.write().ok());
  EXPECT_EQ(path.content(),
            "# Choices of Sluice, found by trials (SLUICE_CHOICE_FILE); rewritten when a job ends\n"
            "# Sluice 1.2, format 2, 4 ranks, settings 0000000000001234, Some MPI 5\n"
            "allreduce * ranks:4 hosts:2 per_host:3 bytes:4k-8191 ordered:0 ragged:0 exact:0 -> "
            "mpi  # MPI (not "
            "known, Sluice's flat not known; 0 windows)\n"
            "barrier * ranks:2 hosts:1 per_host:2 bytes:0 ordered:0 ragged:0 exact:1 -> rules  # "
            "Sluice's flat (not known, MPI not known; 0 windows)\n");
}

TEST(Outcomes, ComeBackAsTheyWereWritten) {
  const ChoicePath path;
  Outcomes written;
  (void)read_choices(path, &written);
  std::map<Outcomes::Class, std::string> expected;
  for (uint32_t i = 0; i < 65; ++i) {
    Outcomes::Class of{.collective = static_cast<Collective>(i % collective_count),
                       .ranks = i % 2 == 0 ? 2 : ~Rank{0},
                       .hosts = 1 + i % 3,
                       .per_host = 1 + i,
                       .octave = i,
                       .ordered = i % 5 == 0,
                       .ragged = i % 7 == 0,
                       .exact = i % 3 == 0};
    const auto all = algorithms(of.collective);
    expected[of] = i % 4 == 0 ? "mpi" : i % 4 == 1 ? "rules" : all[i % all.size()].name;
    note_choice(&written, of, expected[of].c_str());
  }
  ASSERT_TRUE(written.write().ok());
  Outcomes back;
  ASSERT_EQ(read_choices(path, &back), ChoiceFile::used);
  EXPECT_NE(back.digest(), 0U);
  for (const auto& [of, choice] : expected) EXPECT_EQ(back.find(of), choice) << of.octave;
  for (Outcomes::Class of : {sum_class, sum_class}) {
    of.octave = 12;
    EXPECT_EQ(back.find(of), "");
  }
  EXPECT_TRUE(parse_rules(path.content()).ok());
}

// Lines about the same calls, on devices.
TEST(Outcomes, OnDevicesAreClassesOfTheirOwn) {
  const ChoicePath path;
  Outcomes written;
  (void)read_choices(path, &written);
  note_choice(&written, sum_class, "mpi");
  Outcomes::Class of = sum_class;
  for (const Challengers& each : on_devices) {
    of.challengers = each;
    note_choice(&written, of, each.carriers[0] ? "ipc" : "nccl");
  }
  ASSERT_TRUE(written.write().ok());
  for (const char* word : {"*", "ipc", "nccl", "ipc+nccl", "ipc+mpi", "nccl+mpi", "ipc+nccl+mpi"}) {
    EXPECT_NE(path.content().find("allreduce " + std::string(word) + " ranks:4 "),
              std::string::npos);
  }
  Outcomes back;
  std::string why;
  ASSERT_EQ(read_choices(path, &back, &why), ChoiceFile::used);
  EXPECT_EQ(why, "");
  EXPECT_EQ(back.find(sum_class), "mpi");
  for (const Challengers& each : on_devices) {
    of.challengers = each;
    EXPECT_EQ(back.find(of), each.carriers[0] ? "ipc" : "nccl");
  }
}

TEST(Outcomes, AreTold) {
  Outcomes outcomes;
  EXPECT_EQ(outcomes.report(), "");
  const auto say = [&](const std::string& communicator, const Outcomes::Class& of,
                       const char* choice, uint32_t windows) {
    outcomes.note(communicator, team_one, of,
                  {.choice = choice,
                   .ruled = "flat",
                   .by_rules = 6700,
                   .by_mpi = 3100.4,
                   .by_other = 2000,
                   .windows = windows});
  };
  say("b", sum_class, "mpi", 3);
  say("a", {.collective = Collective::barrier}, "rules", 1);
  say("c", {.collective = Collective::reduce_scatter, .octave = 1, .ordered = true, .ragged = true},
      "ring", 2);
  say("two\nlines", {.collective = Collective::reduce, .octave = 64}, "mpi", 2);
  outcomes.note("d", team_one, sum_class, {.choice = "mpi", .from_file = true, .ruled = ""});
  outcomes.note("e", team_one, sum_class, {.choice = "rules", .from_file = true, .ruled = ""});
  const std::string expected =
      "b: allreduce of 4k to 8k: MPI (3.1 us, Sluice's flat 6.7 us; 3 windows)\n"
      "d: allreduce of 4k to 8k: MPI (SLUICE_CHOICE_FILE says so)\n"
      "two lines: reduce of 8589934592g or more: MPI (3.1 us, Sluice's flat 6.7 us; 2 windows)\n"
      "a: barrier: Sluice's flat (6.7 us, MPI 3.1 us; 1 window)\n"
      "c: reduce_scatter of 1 in order with uneven blocks: Sluice's ring (2 us, flat 6.7 us, MPI "
      "3.1 us; 2 windows)\n"
      "e: allreduce of 4k to 8k: Sluice (SLUICE_CHOICE_FILE says so)\n";
  EXPECT_EQ(outcomes.report(), expected);
  for (uint32_t octave = 0; octave < 30; ++octave) {
    say("z", {.collective = Collective::alltoall, .octave = octave}, "rules", 2);
  }
  const std::string all = outcomes.report();
  EXPECT_EQ(std::ranges::count(all, '\n'), 21);
  EXPECT_TRUE(all.starts_with(expected)) << all;
  EXPECT_TRUE(all.ends_with("\nand 16 more\n")) << all;
}

TEST(Outcomes, AreKeptBesideThoseOfEarlierJobs) {
  const ChoicePath path;
  write_choice(path);
  Outcomes next;
  ASSERT_EQ(read_choices(path, &next), ChoiceFile::used);
  const std::string before = path.content();
  ASSERT_TRUE(next.write().ok());
  EXPECT_EQ(path.content(), before);  // there was nothing new
  next.note("", team_one, sum_class, {.choice = "mpi", .from_file = true, .ruled = ""});
  EXPECT_EQ(next.text(), "");
  Outcomes::Class larger = sum_class;
  larger.octave = 14;
  note_choice(&next, larger, "rules");
  ASSERT_TRUE(next.write().ok());
  EXPECT_EQ(path.content(),
            before +
                "allreduce * ranks:4 hosts:2 per_host:3 bytes:8k-16383 ordered:0 ragged:0 "
                "exact:0 -> rules  # Sluice's flat (not known, MPI not known; 0 windows)\n");
}

TEST(Outcomes, OfTeamsThatDifferAreLeftOut) {
  const ChoicePath path;
  write_choice(path);
  Outcomes outcomes;
  (void)read_choices(path, &outcomes);
  note_choice(&outcomes, sum_class, "rules", team_one);
  note_choice(&outcomes, sum_class, "mpi", team_one);  // the same team, later
  EXPECT_NE(outcomes.text().find("-> mpi"), std::string::npos);
  note_choice(&outcomes, sum_class, "mpi", team_other);
  EXPECT_NE(outcomes.text().find("-> mpi"), std::string::npos);
  note_choice(&outcomes, sum_class, "rules", team_one);
  EXPECT_EQ(outcomes.text().find("->"), std::string::npos) << outcomes.text();
  note_choice(&outcomes, sum_class, "mpi", team_one);
  EXPECT_EQ(outcomes.text().find("->"), std::string::npos) << outcomes.text();
}

TEST(Outcomes, HoldForOneMachine) {
  const ChoicePath path;
  write_choice(path);
  std::set<uint64_t> digests;
  for (const Outcomes::Machine& machine : {Outcomes::Machine{"1.3", 4, 0x1234, "Some MPI 5"},
                                           {"1.2", 5, 0x1234, "Some MPI 5"},
                                           {"1.2", 4, 0x1235, "Some MPI 5"},
                                           {"1.2", 4, 0x1234, "Some MPI 6"}}) {
    Outcomes outcomes;
    std::string why;
    EXPECT_EQ(read_choices(path, &outcomes, &why, machine), ChoiceFile::other);
    EXPECT_EQ(why, path.get() +
                       " holds for another job: # Sluice 1.2, format 2, 4 ranks, settings "
                       "0000000000001234, Some MPI 5");
    EXPECT_EQ(outcomes.digest(), 0U);
    EXPECT_EQ(outcomes.find(sum_class), "");
    note_choice(&outcomes, sum_class, "mpi");
    digests.insert(std::hash<std::string>()(outcomes.text()));
  }
  EXPECT_EQ(digests.size(), 4U);  // the file is replaced by one of this machine
  std::string former = path.content();
  former.erase(former.find("format 2, "), 10);
  path.fill(former);
  Outcomes outcomes;
  EXPECT_EQ(read_choices(path, &outcomes), ChoiceFile::other);
}

TEST(Outcomes, AreToldApartByTheirDigests) {
  const ChoicePath path;
  uint64_t digests[2];
  for (const bool by_mpi : {false, true}) {
    write_choice(path, by_mpi ? "mpi" : "rules");
    Outcomes outcomes;
    (void)read_choices(path, &outcomes);
    digests[by_mpi] = outcomes.digest();
    unlink(path.get().c_str());
  }
  EXPECT_NE(digests[0], digests[1]);
}

// The rest is used, and the file is rewritten without them.
TEST(Outcomes, AreUsedWithoutLinesThatAreNotUnderstood) {
  const ChoicePath path;
  write_choice(path);
  const std::string good = path.content();
  const std::string bits = " ordered:0 ragged:0 exact:0", shape = " ranks:4 hosts:2 per_host:3 ";
  const std::string calls = "barrier *" + shape, any = shape + "bytes:0" + bits + " -> ";
  const std::string all_bad[] = {
      calls + "bytes:4k-8191" + bits + " -> what",
      calls + "bytes:4k-8191" + bits + " -> pairwise",
      calls + "bytes:4k-8191" + bits + " -> ipc",
      calls + "bytes:4k-8191 ordered:0 ragged:0 exact:3 -> mpi",
      calls + "bytes:4k-8192" + bits + " -> mpi",
      calls + "bytes:4k-" + bits + " -> mpi",
      calls + "bytes:4k-8191 ordered:0-1 ragged:0 exact:0 -> mpi",
      calls + "bytes:4k-8191 ordered:0 ragged:2 exact:0 -> mpi",
      calls + "bytes:4k-8191 ordered:0 exact:0 -> mpi",
      calls + "bytes:4k-8191 ordered:0 ragged:0 -> mpi",
      calls + "bytes:4k-8191 -> mpi",
      calls + "bytes:0-1",
      "# a remark",
      "",
      "* *" + any + "mpi",
      "barrier * ranks:1g hosts:2 per_host:99g bytes:0" + bits + " -> mpi",
      "barrier shm" + any + "mpi",
      "barrier mpi" + any + "mpi",
      "barrier ipc" + any + "mpi",
      "barrier mpi+ipc" + any + "mpi",
      "allreduce ipc+mpi" + any + "nccl",
      "allreduce ipc+mpi" + any + "ring",
  };
  for (const std::string& bad : all_bad) {
    path.fill(good + bad + "\n");
    Outcomes outcomes;
    std::string why;
    EXPECT_EQ(read_choices(path, &outcomes, &why), ChoiceFile::used) << bad;
    EXPECT_TRUE(why.starts_with(path.get() + ": 1 line left out: line 4: ")) << bad << ": " << why;
    EXPECT_EQ(outcomes.find(sum_class), "mpi");
    EXPECT_NE(outcomes.digest(), 0U);
    note_choice(&outcomes, sum_class, "mpi");
    EXPECT_EQ(outcomes.text(), good);
  }
}

// A random change of a byte, or a cut.
TEST(Outcomes, OfAnyTextAreThoseThatItSaysOrNone) {
  const ChoicePath path;
  write_choice(path);
  const std::string good = path.content();
  for (size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    for (const std::string& text : {changed, good.substr(0, at)}) {
      path.fill(text);
      Outcomes outcomes;
      const ChoiceFile file = read_choices(path, &outcomes);
      EXPECT_EQ(file == ChoiceFile::used, outcomes.digest() != 0);
      if (at == 0) continue;
      EXPECT_NE(file, ChoiceFile::none);
    }
  }
}

TEST(Outcomes, AreNotWrittenToWhatIsNoFileOfTheirs) {
  const ChoicePath path;
  std::string why;
  for (const std::string& text : {std::string("a letter\n"), std::string(1, '\0'),
                                  std::string((size_t{16} << 20) + 1, '#')}) {
    path.fill(text);
    Outcomes outcomes;
    EXPECT_EQ(read_choices(path, &outcomes, &why), ChoiceFile::foreign);
    EXPECT_FALSE(why.empty());
    note_choice(&outcomes, sum_class, "mpi");
    EXPECT_TRUE(outcomes.write().ok());
    EXPECT_TRUE(path.content() == text || text.size() > most_file_bytes);
  }
  for (const char* each : {"/dev/null", "/tmp", "/dev/zero"}) {
    Outcomes outcomes;
    Status status;
    EXPECT_EQ(outcomes.read(each, this_machine, &status), ChoiceFile::foreign);
    note_choice(&outcomes, sum_class, "mpi");
    EXPECT_TRUE(outcomes.write().ok());
  }
}

TEST(Outcomes, ReplaceAnEmptyFile) {
  const ChoicePath path;
  path.fill("");
  Outcomes outcomes;
  EXPECT_EQ(read_choices(path, &outcomes), ChoiceFile::none);
  note_choice(&outcomes, sum_class, "mpi");
  EXPECT_TRUE(outcomes.write().ok());
  EXPECT_EQ(path.content(), outcomes.text());
}

TEST(Outcomes, SayWhyTheyCannotBeWritten) {
  Outcomes outcomes;
  Status status;
  EXPECT_EQ(outcomes.read("/nonexistent/choices", this_machine, &status), ChoiceFile::none);
  EXPECT_TRUE(outcomes.write().ok());  // nothing to write
  note_choice(&outcomes, sum_class, "mpi");
  EXPECT_EQ(outcomes.write().message(),
            "cannot write /nonexistent/choices: No such file or directory");
}

}  // namespace
}  // namespace sluice
