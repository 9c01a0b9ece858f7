// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

namespace sluice {
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/sluice-files-XXXXXX";
    ASSERT_TRUE(mkdtemp(pattern));
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  static std::string content(const std::string& path) {
    const auto text = read_file(path);
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? *text : "";
  }
  // Why not, after "cannot read PATH: ".
  static std::string problem(const std::string& path) {
    const auto text = read_file(path);
    if (text.ok()) return "none";
    EXPECT_EQ(text.status().code(), Code::invalid);
    const std::string said = text.status().message(), begin = "cannot read " + path + ": ";
    EXPECT_TRUE(said.starts_with(begin)) << said;
    return said.substr(begin.size());
  }

  std::string folder_;
};

TEST_F(Files, AreReadWhole) {
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(content(write("none", "")), "");
  EXPECT_EQ(content(write("text", "two\nlines")), "two\nlines");
  EXPECT_EQ(content(write("large", large)), large);
  EXPECT_FALSE(content("/proc/self/status").empty());
}

TEST_F(Files, AreReadThroughLinks) {
  const std::string text = write("text", "a line\n");
  ASSERT_EQ(symlink("text", (folder_ + "/link").c_str()), 0);
  EXPECT_EQ(content(folder_ + "/link"), "a line\n");
  ASSERT_EQ(symlink("nothing", (folder_ + "/broken").c_str()), 0);
  EXPECT_EQ(problem(folder_ + "/broken"), "No such file or directory");
}

// This test would not end if it waited for somebody to write, or read to the end.
TEST_F(Files, ThatAreNoneDoNotHoldAnybodyUp) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(problem(pipe), "it is no regular file");
  const int writer = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(problem(pipe), "it is no regular file");
  close(writer);
  EXPECT_EQ(problem("/dev/zero"), "it is no regular file");
  EXPECT_EQ(problem(folder_), "Is a directory");
  EXPECT_EQ(problem(""), "No such file or directory");
}

TEST_F(Files, MayNotBeTooLarge) {
  const std::string path = write("large", "x");
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(most_file_bytes)), 0);
  EXPECT_EQ(content(path).size(), most_file_bytes);
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(most_file_bytes) + 1), 0);
  EXPECT_EQ(problem(path), "it is too large, or grows");
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(problem(path), "it is too large, or grows");
}

TEST_F(Files, AreReplacedInOneStep) {
  const std::string path = write("old", "old"), link = folder_ + "/link";
  std::filesystem::create_symlink(path, link);
  const int before = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(before, 0);
  const std::string large(3 << 20, 'y');
  ASSERT_TRUE(replace_file(path, large).ok());
  EXPECT_EQ(content(path), large);
  char text[4] = "";
  EXPECT_EQ(read(before, text, 3), 3);
  EXPECT_STREQ(text, "old");  // whoever has opened it reads on
  close(before);
  ASSERT_TRUE(replace_file(link, "new").ok());
  EXPECT_EQ(content(link), "new");
  EXPECT_EQ(content(path), large);  // the link was replaced
  ASSERT_TRUE(replace_file(folder_ + "/other", "").ok());
  EXPECT_TRUE(file_exists(folder_ + "/other"));
  EXPECT_FALSE(file_exists(folder_ + "/another"));
  std::set<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder_)) {
    names.insert(each.path().filename());
  }
  EXPECT_EQ(names, (std::set<std::string>{"old", "link", "other"}));
}

TEST_F(Files, ThatCannotBeReplacedStay) {
  EXPECT_EQ(replace_file(folder_ + "/none/file", "x").message(),
            "cannot write " + folder_ + "/none/file: No such file or directory");
  EXPECT_EQ(replace_file(folder_, "x").message(), "cannot write " + folder_ + ": Is a directory");
  EXPECT_FALSE(std::filesystem::exists(folder_ + ".new-" + std::to_string(getpid())));
}

}  // namespace
}  // namespace sluice
