// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/outcomes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "src/base/file.h"
#include "src/engine/rules.h"

namespace sluice {
namespace {

using File = Outcomes::File;

const Outcomes::Machine here{"1.2", 4, 0x1234, "Some MPI 5"};
constexpr Outcomes::Class sums{
    .collective = Collective::allreduce, .ranks = 4, .hosts = 2, .per_host = 3, .octave = 13};
constexpr TeamId one{{1, 2}, 3}, other{{1, 2}, 4};

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

File read(const ChoicePath& path, Outcomes* outcomes, std::string* why = nullptr,
          const Outcomes::Machine& machine = here) {
  Status status;
  const File file = outcomes->read(path.get(), machine, &status);
  EXPECT_EQ(status.ok(), file == File::none || file == File::used) << status.message();
  if (why) *why = status.message();
  return file;
}

void note(Outcomes* outcomes, const Outcomes::Class& of, bool by_mpi, const TeamId& team = one) {
  outcomes->note("a communicator", team, of, {.by_mpi = by_mpi, .algorithm = "flat"});
}

// Writes a file of that one class.
void write_one(const ChoicePath& path, bool by_mpi = true) {
  Outcomes outcomes;
  (void)read(path, &outcomes);
  note(&outcomes, sums, by_mpi);
  ASSERT_TRUE(outcomes.write().ok());
}

TEST(Outcomes, AreWrittenAsRules) {
  const ChoicePath path;
  Outcomes outcomes;
  EXPECT_EQ(read(path, &outcomes), File::none);
  EXPECT_EQ(outcomes.digest(), 0U);
  note(&outcomes, sums, true);
  note(&outcomes, {.collective = Collective::barrier, .ranks = 2, .per_host = 2}, false);
  ASSERT_TRUE(outcomes.write().ok());
  EXPECT_EQ(path.content(),
            "# Choices of Sluice, found by trials (SLUICE_CHOICE_FILE); rewritten when a job ends\n"
            "# Sluice 1.2, 4 ranks, settings 0000000000001234, Some MPI 5\n"
            "allreduce * ranks:4 hosts:2 per_host:3 bytes:4k-8191 ordered:0 ragged:0 -> mpi\n"
            "barrier * ranks:2 hosts:1 per_host:2 bytes:0 ordered:0 ragged:0 -> rules\n");
}

TEST(Outcomes, ComeBackAsTheyWereWritten) {
  const ChoicePath path;
  Outcomes written;
  (void)read(path, &written);
  std::map<Outcomes::Class, bool> expected;
  for (uint32_t i = 0; i < 65; ++i) {
    Outcomes::Class of{.collective = static_cast<Collective>(i % collective_count),
                       .ranks = i % 2 == 0 ? 2 : ~Rank{0},
                       .hosts = 1 + i % 3,
                       .per_host = 1 + i,
                       .octave = i,
                       .ordered = i % 5 == 0,
                       .ragged = i % 7 == 0};
    note(&written, of, i % 4 == 0);
    expected[of] = i % 4 == 0;
  }
  ASSERT_TRUE(written.write().ok());
  Outcomes back;
  ASSERT_EQ(read(path, &back), File::used);
  EXPECT_NE(back.digest(), 0U);
  for (const auto& [of, by_mpi] : expected) EXPECT_EQ(back.find(of), by_mpi) << of.octave;
  for (Outcomes::Class of : {sums, sums}) {
    of.octave = 12;
    EXPECT_FALSE(back.find(of));
  }
  EXPECT_TRUE(parse_rules(path.content()).ok());
}

TEST(Outcomes, AreKeptBesideThoseOfEarlierJobs) {
  const ChoicePath path;
  write_one(path);
  Outcomes next;
  ASSERT_EQ(read(path, &next), File::used);
  const std::string before = path.content();
  ASSERT_TRUE(next.write().ok());
  EXPECT_EQ(path.content(), before);  // there was nothing new
  next.note("", one, sums, {.by_mpi = true, .from_file = true});
  EXPECT_EQ(next.text(), "");
  Outcomes::Class larger = sums;
  larger.octave = 14;
  note(&next, larger, false);
  ASSERT_TRUE(next.write().ok());
  EXPECT_EQ(path.content(),
            before +
                "allreduce * ranks:4 hosts:2 per_host:3 bytes:8k-16383 ordered:0 ragged:0 -> "
                "rules\n");
}

TEST(Outcomes, OfTeamsThatDifferAreLeftOut) {
  const ChoicePath path;
  write_one(path);
  Outcomes outcomes;
  (void)read(path, &outcomes);
  note(&outcomes, sums, false, one);
  note(&outcomes, sums, true, one);  // the same team, later
  EXPECT_NE(outcomes.text().find("-> mpi"), std::string::npos);
  note(&outcomes, sums, true, other);
  EXPECT_NE(outcomes.text().find("-> mpi"), std::string::npos);
  note(&outcomes, sums, false, one);
  EXPECT_EQ(outcomes.text().find("->"), std::string::npos) << outcomes.text();
  note(&outcomes, sums, true, one);
  EXPECT_EQ(outcomes.text().find("->"), std::string::npos) << outcomes.text();
}

TEST(Outcomes, HoldForOneMachine) {
  const ChoicePath path;
  write_one(path);
  std::set<uint64_t> digests;
  for (const Outcomes::Machine& machine : {Outcomes::Machine{"1.3", 4, 0x1234, "Some MPI 5"},
                                           {"1.2", 5, 0x1234, "Some MPI 5"},
                                           {"1.2", 4, 0x1235, "Some MPI 5"},
                                           {"1.2", 4, 0x1234, "Some MPI 6"}}) {
    Outcomes outcomes;
    std::string why;
    EXPECT_EQ(read(path, &outcomes, &why, machine), File::other);
    EXPECT_EQ(why, path.get() +
                       " holds for another job: # Sluice 1.2, 4 ranks, settings "
                       "0000000000001234, Some MPI 5");
    EXPECT_EQ(outcomes.digest(), 0U);
    EXPECT_FALSE(outcomes.find(sums));
    note(&outcomes, sums, true);
    digests.insert(std::hash<std::string>()(outcomes.text()));
  }
  EXPECT_EQ(digests.size(), 4U);  // the file is replaced by one of this machine
}

TEST(Outcomes, AreToldApartByTheirDigests) {
  const ChoicePath path;
  uint64_t digests[2];
  for (const bool by_mpi : {false, true}) {
    write_one(path, by_mpi);
    Outcomes outcomes;
    (void)read(path, &outcomes);
    digests[by_mpi] = outcomes.digest();
    unlink(path.get().c_str());
  }
  EXPECT_NE(digests[0], digests[1]);
}

TEST(Outcomes, OfADamagedFileAreNotUsed) {
  const ChoicePath path;
  write_one(path);
  const std::string good = path.content();
  const std::string line = "allreduce * ranks:4 hosts:2 per_host:3 bytes:";
  for (const std::string& bad :
       {line + "4k-8191 ordered:0 ragged:0 -> ring", line + "4k-8191 ordered:0 ragged:0 -> what",
        line + "4k-8192 ordered:0 ragged:0 -> mpi", line + "4k- ordered:0 ragged:0 -> mpi",
        line + "4k-8191 ordered:0-1 ragged:0 -> mpi", line + "4k-8191 ordered:0 ragged:2 -> mpi",
        line + "4k-8191 ordered:0 -> mpi", line + "4k-8191 -> mpi", line + "0-1",
        std::string("* * ranks:4 hosts:2 per_host:3 bytes:0 ordered:0 ragged:0 -> mpi"),
        std::string("barrier * ranks:1g hosts:2 per_host:99g bytes:0 ordered:0 ragged:0 -> mpi")}) {
    path.fill(good + bad + "\n");
    Outcomes outcomes;
    std::string why;
    EXPECT_EQ(read(path, &outcomes, &why), File::damaged) << bad;
    EXPECT_TRUE(why.starts_with(path.get() + ": ")) << why;
    EXPECT_FALSE(outcomes.find(sums));
    EXPECT_EQ(outcomes.digest(), 0U);
    note(&outcomes, sums, true);
    EXPECT_EQ(outcomes.text(), good);
  }
}

// A random change of a byte, or a cut.
TEST(Outcomes, OfAnyTextAreThoseThatItSaysOrNone) {
  const ChoicePath path;
  write_one(path);
  const std::string good = path.content();
  for (size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    for (const std::string& text : {changed, good.substr(0, at)}) {
      path.fill(text);
      Outcomes outcomes;
      const File file = read(path, &outcomes);
      EXPECT_EQ(file == File::used, outcomes.digest() != 0);
      if (at == 0) continue;
      EXPECT_NE(file, File::none);
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
    EXPECT_EQ(read(path, &outcomes, &why), File::foreign);
    EXPECT_FALSE(why.empty());
    note(&outcomes, sums, true);
    EXPECT_TRUE(outcomes.write().ok());
    EXPECT_TRUE(path.content() == text || text.size() > most_file_bytes);
  }
  for (const char* each : {"/dev/null", "/tmp", "/dev/zero"}) {
    Outcomes outcomes;
    Status status;
    EXPECT_EQ(outcomes.read(each, here, &status), File::foreign);
    note(&outcomes, sums, true);
    EXPECT_TRUE(outcomes.write().ok());
  }
}

TEST(Outcomes, ReplaceAnEmptyFile) {
  const ChoicePath path;
  path.fill("");
  Outcomes outcomes;
  EXPECT_EQ(read(path, &outcomes), File::none);
  note(&outcomes, sums, true);
  EXPECT_TRUE(outcomes.write().ok());
  EXPECT_EQ(path.content(), outcomes.text());
}

TEST(Outcomes, SayWhyTheyCannotBeWritten) {
  Outcomes outcomes;
  Status status;
  EXPECT_EQ(outcomes.read("/nonexistent/choices", here, &status), File::none);
  EXPECT_TRUE(outcomes.write().ok());  // nothing to write
  note(&outcomes, sums, true);
  EXPECT_EQ(outcomes.write().message(),
            "cannot write /nonexistent/choices: No such file or directory");
}

}  // namespace
}  // namespace sluice
