// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/setting_sources.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include "src/base/knobs.h"
#include "tests/unit/support/sweep.h"

namespace sluice {
namespace {

using Variables = std::map<std::string, std::string>;

Environment variables_of(const Variables& variables) {
  return [variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

// A home and a site's file.
class SettingFiles : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(folder_), nullptr);
    std::filesystem::create_directories(path("home/.config"));
    std::filesystem::create_directories(path("xdg"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return std::string(folder_) + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    chmod(path(name).c_str(), 0644);
    return path(name);
  }
  SettingSources find(Variables variables = {}, bool is_privileged = false) const {
    variables.emplace("HOME", path("home"));
    return find_settings(variables_of(variables), path("site.conf"), is_privileged);
  }
  static std::string value(const SettingSources& sources, const char* name) {
    const SettingSources::Found found = sources.find(name);
    return found.text ? found.text : "";
  }

 private:
  char folder_[32] = "/tmp/sluice-settings-XXXXXX";
};

std::string complaint_about(const std::string& text) {
  return parse_settings("/f", text).status().message();
}

TEST(SettingsFileTest, LinesCommentsAndBlanks) {
  const auto file = parse_settings("/f",
                                   "# a comment\n"
                                   "\n"
                                   "  SLUICE_STATS = on\t# another\r\n"
                                   "SLUICE_TCP_INTERFACES=ib0, eth#1,\xc3\xa9=2\n"
                                   "\t#SLUICE_SPIN=1\n"
                                   "SLUICE_RULES=\n"
                                   "SLUICE_SPIN=5");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->lines.size(), 4U);
  EXPECT_EQ(file->lines[0].name, "SLUICE_STATS");
  EXPECT_EQ(file->lines[0].value, "on");
  EXPECT_EQ(file->lines[0].number, 3U);
  EXPECT_EQ(file->lines[1].value, "ib0, eth#1,\xc3\xa9=2");
  EXPECT_EQ(file->lines[2].value, "");
  EXPECT_EQ(file->lines[3].value, "5");
  EXPECT_EQ(file->lines[3].number, 7U);
  EXPECT_TRUE(parse_settings("/f", "")->lines.empty());
}

// As editors of other systems write it: at the beginning, and once.
TEST(SettingsFileTest, ByteOrderMark) {
  const auto file = parse_settings("/f", "\xef\xbb\xbfSLUICE_STATS=on\r\n");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->lines.size(), 1U);
  EXPECT_EQ(file->lines[0].name, "SLUICE_STATS");
  EXPECT_EQ(file->lines[0].value, "on");
  EXPECT_TRUE(parse_settings("/f", "\xef\xbb\xbf# a comment\n")->lines.empty());
  EXPECT_TRUE(parse_settings("/f", "\xef\xbb\xbf")->lines.empty());
  EXPECT_NE(complaint_about("\xef\xbb\xbf\xef\xbb\xbfSLUICE_STATS=on\n"), "");
  EXPECT_NE(complaint_about("\n\xef\xbb\xbfSLUICE_STATS=on\n"), "");
}

TEST(SettingsFileTest, MistakesNameFileAndLine) {
  const std::string not_a_line = "not NAME=value, such as SLUICE_STATS=on";
  EXPECT_EQ(complaint_about("\nSLUICE_STATS\n"), "/f:2: " + not_a_line);
  EXPECT_EQ(complaint_about("=1"), "/f:1: " + not_a_line);
  EXPECT_EQ(complaint_about("export SLUICE_STATS=1"), "/f:1: " + not_a_line);
  EXPECT_EQ(complaint_about("sluice_stats=1"), "/f:1: " + not_a_line);
  EXPECT_EQ(complaint_about("SLUICE_STATS=\"on\""), "/f:1: values are written without quotes");
  EXPECT_EQ(complaint_about("A=1\nB=2\nA=3\n"), "/f:3: A is set in line 1 already");
  EXPECT_EQ(complaint_about("SLUICE_LOG=\x1b[2J"), "/f:1: a control character: this is no text");
  EXPECT_EQ(complaint_about(std::string("A=\0", 3)), "/f:1: a control character: this is no text");
  EXPECT_EQ(complaint_about("SLUICE_CONFIG=none"),
            "/f:1: SLUICE_CONFIG is for the environment alone");
}

// Bytes of which most are those that the parser looks at. What is accepted obeys the rules, and
// says the same when written out again.
TEST(SettingsFileTest, RandomBytes) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string likely = "AB_=# \t\r\n\n'\"\x01";
  const int rounds = sweep(1'000'000, 20'000, 5'000);
  int accepted = 0, refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string text(random() % 40, ' ');
    for (char& c : text) {
      const unsigned drawn = random() % (likely.size() + (round % 2));
      c = drawn < likely.size() ? likely[drawn] : static_cast<char>(random());
    }
    const auto file = parse_settings("/f", text);
    if (!file.ok()) {
      ++refused;
      EXPECT_EQ(file.status().message().find("/f:"), 0U);
      continue;
    }
    ++accepted;
    std::string again;
    size_t last = 0;
    for (const SettingsFile::Line& line : file->lines) {
      EXPECT_FALSE(line.name.empty());
      EXPECT_GT(line.number, last) << "seed " << seed;
      for (last = last + 1; last < line.number; ++last) again += "\n";
      again += line.name + "=" + line.value + "\n";
    }
    const auto same = parse_settings("/f", again);
    ASSERT_TRUE(same.ok()) << same.status().message() << ", seed " << seed;
    ASSERT_EQ(same->lines.size(), file->lines.size()) << "seed " << seed;
    for (size_t i = 0; i < same->lines.size(); ++i) {
      EXPECT_EQ(same->lines[i].name, file->lines[i].name) << "seed " << seed;
      EXPECT_EQ(same->lines[i].value, file->lines[i].value) << "seed " << seed;
      EXPECT_EQ(same->lines[i].number, file->lines[i].number) << "seed " << seed;
    }
  }
  EXPECT_GT(accepted, rounds / 100);
  EXPECT_GT(refused, rounds / 100);
}

TEST_F(SettingFiles, TheNearestSourceWins) {
  const std::string site = write("site.conf", "SLUICE_SPIN=1\nSLUICE_RADIX=3\nSLUICE_GROUPS=off\n");
  const std::string users = write("home/.config/sluice.conf", "SLUICE_RADIX=4\nSLUICE_GROUPS=2\n");
  const SettingSources sources = find({{"SLUICE_GROUPS", "8"}});
  ASSERT_TRUE(sources.problem.ok()) << sources.problem.message();
  EXPECT_EQ(sources.find("SLUICE_SPIN").origin, site + ":1");
  EXPECT_EQ(sources.find("SLUICE_RADIX").origin, users + ":1");
  EXPECT_EQ(sources.find("SLUICE_GROUPS").origin, "environment");
  EXPECT_EQ(sources.find("SLUICE_SEGMENT").text, nullptr);
  Knobs knobs;
  ASSERT_TRUE(read_knobs(sources, &knobs).ok());
  EXPECT_EQ(knobs.spin, 1);
  EXPECT_EQ(knobs.radix, 4);
  EXPECT_EQ(knobs.groups, "8");
}

TEST_F(SettingFiles, EmptyAsksTheNextAndDefaultDoesNot) {
  write("site.conf", "SLUICE_RADIX=3\nSLUICE_TCP_INTERFACES=ib0\nSLUICE_ENABLE=off\n");
  write("home/.config/sluice.conf", "SLUICE_RADIX=\nSLUICE_TCP_INTERFACES=default\n");
  Knobs knobs;
  ASSERT_TRUE(read_knobs(find({{"SLUICE_RADIX", ""}}), &knobs).ok());
  EXPECT_EQ(knobs.radix, 3);
  EXPECT_EQ(knobs.interfaces, "");
  EXPECT_TRUE(is_switched_off(find()));
  EXPECT_FALSE(is_switched_off(find({{"SLUICE_ENABLE", "default"}})));
  for (const KnobValue& each : knob_values(find())) {
    if (std::string_view(each.knob->name) != "SLUICE_TCP_INTERFACES") continue;
    EXPECT_EQ(each.value, "");
    EXPECT_FALSE(each.is_default()) << "it does not say who undid the site's";
  }
}

TEST_F(SettingFiles, ANamedFileStandsForBoth) {
  write("site.conf", "SLUICE_SPIN=1\n");
  write("home/.config/sluice.conf", "SLUICE_RADIX=4\n");
  const std::string named = write("named", "SLUICE_SPIN=2\n");
  const SettingSources sources = find({{"SLUICE_CONFIG", named}});
  EXPECT_EQ(value(sources, "SLUICE_SPIN"), "2");
  EXPECT_EQ(value(sources, "SLUICE_RADIX"), "");
  EXPECT_TRUE(find({{"SLUICE_CONFIG", "none"}}).files.empty());
  EXPECT_EQ(find({{"SLUICE_CONFIG", ""}}).files.size(), 2U);
}

TEST_F(SettingFiles, ANamedFileIsDemanded) {
  for (const std::string& name : {path("nowhere"), path("home"), std::string("/dev/zero")}) {
    const SettingSources sources = find({{"SLUICE_CONFIG", name}});
    Knobs knobs;
    EXPECT_EQ(read_knobs(sources, &knobs).message().find("SLUICE_CONFIG: cannot read " + name), 0U)
        << name;
  }
}

TEST_F(SettingFiles, TheUsersFolder) {
  write("home/.config/sluice.conf", "SLUICE_SPIN=1\n");
  write("xdg/sluice.conf", "SLUICE_SPIN=2\n");
  EXPECT_EQ(value(find({{"XDG_CONFIG_HOME", path("xdg")}}), "SLUICE_SPIN"), "2");
  EXPECT_EQ(value(find({{"XDG_CONFIG_HOME", "xdg"}}), "SLUICE_SPIN"), "1")
      << "not an absolute path";
  EXPECT_EQ(value(find({{"HOME", ""}}), "SLUICE_SPIN"), "");
}

// (It would read and write files of the user's choice with its own rights.)
TEST_F(SettingFiles, APrivilegedProcessTakesNoPathFromVariables) {
  write("site.conf", "SLUICE_RULES = /site.rules\nSLUICE_TLS_KEY = ~/key\n");
  const Variables variables{{"SLUICE_CHOICE_FILE", "/root/choices"},
                            {"SLUICE_RULES", "/etc/shadow"},
                            {"SLUICE_TLS_CA", "/tmp/ca"},
                            {"SLUICE_SEGMENT", "64k"}};
  Knobs knobs;
  ASSERT_TRUE(read_knobs(SettingSources(variables_of(variables)), &knobs).ok());
  EXPECT_EQ(knobs.rules, "/etc/shadow");
  const SettingSources sources = find(variables, true);
  EXPECT_EQ(value(sources, "SLUICE_CHOICE_FILE"), "");
  EXPECT_EQ(value(sources, "SLUICE_TLS_CA"), "");
  EXPECT_EQ(value(sources, "SLUICE_RULES"), "/site.rules");
  EXPECT_EQ(value(sources, "SLUICE_SEGMENT"), "64k");
  EXPECT_EQ(sources.variables("HOME"), nullptr);
}

TEST_F(SettingFiles, APrivilegedProcessReadsTheSitesFileAlone) {
  write("site.conf", "SLUICE_SPIN=1\n");
  write("home/.config/sluice.conf", "SLUICE_RADIX=4\n");
  const std::string named = write("named", "SLUICE_SPIN=2\n");
  const SettingSources sources = find({{"SLUICE_CONFIG", named}}, true);
  EXPECT_EQ(value(sources, "SLUICE_SPIN"), "1");
  EXPECT_EQ(value(sources, "SLUICE_RADIX"), "");
}

TEST_F(SettingFiles, FilesThatShouldNotBeUsedAreLeftOut) {
  const std::string users = path("home/.config/sluice.conf");
  const auto left_out = [&](const std::string& why) {
    write("site.conf", "SLUICE_SPIN=1\n");
    const SettingSources sources = find();
    EXPECT_TRUE(sources.problem.ok()) << sources.problem.message();
    EXPECT_EQ(value(sources, "SLUICE_RADIX"), "") << why;
    EXPECT_EQ(value(sources, "SLUICE_SPIN"), "1") << "the site's file goes with the user's";
    ASSERT_EQ(sources.unused.size(), 1U) << why;
    EXPECT_NE(sources.unused[0].find(users), std::string::npos) << sources.unused[0];
    EXPECT_NE(sources.unused[0].find(why), std::string::npos) << sources.unused[0];
  };
  EXPECT_TRUE(find().unused.empty()) << "a file that is not there";
  write("home/.config/sluice.conf", "SLUICE_RADIX=4\n");
  chmod(users.c_str(), 0646);
  left_out("all users may write it");
  write("home/.config/sluice.conf", "SLUICE_RADIX=4\n" + std::string(most_settings_bytes, '#'));
  left_out("it is too large");
  write("home/.config/sluice.conf", std::string("SLUICE_RADIX=4\n\0", 16));
  left_out("is no text");
  if (geteuid() == 0) {
    write("home/.config/sluice.conf", "SLUICE_RADIX=4\n");
    ASSERT_EQ(chown(users.c_str(), 12345, 12345), 0);
    left_out("it belongs to another user");
  } else {
    write("home/.config/sluice.conf", "SLUICE_RADIX=4\n");
    chmod(users.c_str(), 0);
    left_out("Permission denied");
  }
  std::filesystem::remove(users);
  ASSERT_EQ(mkfifo(users.c_str(), 0600), 0);
  left_out("it is no regular file");
  std::filesystem::remove(users);
  std::filesystem::create_directory(users);
  left_out("Is a directory");
}

TEST_F(SettingFiles, ErrorsSayWhichLine) {
  const std::string users = write("home/.config/sluice.conf", "#\nSLUICE_RADIX=lots\n");
  Knobs knobs;
  EXPECT_EQ(read_knobs(find(), &knobs).message().find(users + ":2: SLUICE_RADIX=lots is not "), 0U);
  EXPECT_EQ(read_knobs(find({{"SLUICE_RADIX", "few"}}), &knobs).message().find("SLUICE_RADIX=few"),
            0U);
  const std::string site = write("site.conf", "SLUICE_SPIN\n");
  EXPECT_EQ(read_knobs(find(), &knobs).message().find(site + ":1: not NAME=value"), 0U);
  EXPECT_TRUE(find().files.empty()) << "a half of what was meant";
  write("site.conf", "SLUICE_ALLREDUCE=rung\n");
  const Status later(Code::invalid, "SLUICE_ALLREDUCE: no algorithm 'rung'");
  EXPECT_EQ(located(later, find()).message(), site + ":1: " + later.message());
  EXPECT_EQ(located(later, SettingSources()).message(), later.message());
  EXPECT_EQ(located(located(later, find()), find()).message(), site + ":1: " + later.message());
  EXPECT_TRUE(located({}, find()).ok());
}

TEST_F(SettingFiles, UnknownNamesGetTheNearest) {
  const std::string site = write("site.conf", "SLUICE_RADIX=2\nSLUICE_SEGMNT=1k\nPATH=/bin\n");
  const std::vector<std::string> lines = unknown_knobs(find().files);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], site +
                          ":2: SLUICE_SEGMNT is not a setting of Sluice; did you mean "
                          "SLUICE_SEGMENT?");
  EXPECT_EQ(lines[1].find(site + ":3: PATH is not a setting of Sluice; `sluice info"), 0U);
}

// Files that differ between hosts show in what ranks compare, wherever the value is from.
TEST_F(SettingFiles, RanksCompareValuesNotPlaces) {
  write("site.conf", "SLUICE_SEGMENT=65536\n");
  EXPECT_EQ(agreed_settings(find()), agreed_settings(variables_of({{"SLUICE_SEGMENT", "64k"}})));
  EXPECT_NE(agreed_settings(find()), agreed_settings(variables_of({})));
}

}  // namespace
}  // namespace sluice
