// SPDX-License-Identifier: BSD-3-Clause
//
// The topology module on synthetic machines, and cgroup quotas from made-up files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "src/host/locality.h"

namespace sluice {
namespace {

// The folder of this build's libraries, two levels above this program's folder.
std::string library_folder() {
  char file[4096] = "";
  if (readlink("/proc/self/exe", file, sizeof file - 1) < 0) return {};
  std::string path = file;
  for (int i = 0; i < 3; ++i) path.resize(path.rfind('/'));
  return path + "/.libs";
}

Locality on(std::initializer_list<uint32_t> processors) {
  Locality locality;
  for (const uint32_t each : processors) {
    locality.processors[each / 64] |= uint64_t{1} << (each % 64);
  }
  find_domains(open_topology(library_folder()), &locality);
  return locality;
}

struct Expected {
  std::initializer_list<uint32_t> processors;
  uint64_t cache, node;
};

class Topology : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto opened = open_topology(library_folder()); !opened.ok()) {
      GTEST_SKIP() << "built without hwloc? " << opened.status().message();
    }
  }
  // Runs in a child process, because a module reads its machine only once.
  static int apart(const std::function<int()>& look) {
    const pid_t child = fork();
    if (child == 0) _exit(look());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // The number, from 1, of the first wrong result; 0 if all are as expected.
  static int first_wrong(const char* synthetic, std::initializer_list<Expected> expected) {
    return apart([&] {
      setenv("HWLOC_SYNTHETIC", synthetic, 1);
      int number = 0;
      for (const Expected& each : expected) {
        ++number;
        const Locality found = on(each.processors);
        if (found.cache != each.cache || found.node != each.node) return number;
      }
      return 0;
    });
  }
};

TEST_F(Topology, CachesAndNodesOfProcessors) {
  EXPECT_EQ(first_wrong("node:2 l3:2 core:2 pu:1", {{{0}, 1, 1},
                                                    {{1}, 1, 1},
                                                    {{0, 1}, 1, 1},
                                                    {{2}, 3, 1},
                                                    {{1, 2}, 0, 1},
                                                    {{4}, 5, 2},
                                                    {{6, 7}, 7, 2},
                                                    {{4, 5, 6, 7}, 0, 2},
                                                    {{3, 4}, 0, 0},
                                                    {{0, 1, 2, 3, 4, 5, 6, 7}, 0, 0}}),
            0);
}

TEST_F(Topology, TheLastCacheCounts) {
  EXPECT_EQ(first_wrong("node:2 l3:1 l2:2 core:2 pu:2",
                        {{{0}, 1, 1}, {{3, 4}, 1, 1}, {{8, 15}, 9, 2}, {{7, 8}, 0, 0}}),
            0);
  EXPECT_EQ(first_wrong("node:2 core:4 pu:1", {{{1}, 0, 1}, {{1, 3}, 0, 1}, {{5}, 0, 2}}), 0)
      << "no caches";
  EXPECT_EQ(first_wrong("l2:2 core:2 pu:1", {{{1}, 1, 1}, {{3}, 3, 1}, {{1, 2}, 0, 1}}), 0)
      << "one node";
}

TEST_F(Topology, ManyProcessors) {
  EXPECT_EQ(first_wrong("node:4 l3:8 core:8 pu:1", {{{100}, 97, 2}, {{255}, 249, 4}}), 0);
}

TEST_F(Topology, WhatItDoesNotKnowIsNowhere) {
  EXPECT_EQ(first_wrong("node:2 core:2 pu:1", {{{900}, 0, 0}, {{}, 0, 0}}), 0);
}

TEST_F(Topology, CountsDomains) {
  EXPECT_GE(apart([] {
              unsigned caches = 0, nodes = 0;
              const auto opened = open_topology(library_folder());
              return (*opened)->count(&caches, &nodes) == 0 ? static_cast<int>(nodes) : 0;
            }),
            1)
      << "this machine has one";
}

TEST(NoTopology, IsNoFault) {
  const auto opened = open_topology("/nowhere");
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("libsluice-hwloc"), std::string::npos);
  Locality locality;
  locality.processors[0] = 1;
  find_domains(opened, &locality);
  EXPECT_EQ(locality.cache, 0U);
}

TEST(Locating, ThisThread) {
  Locator locator;
  const Locality first = locator.find(false), second = locator.find(true);
  EXPECT_NE(first.processors, decltype(first.processors){});
  EXPECT_EQ(first.processors, second.processors);
  EXPECT_EQ(first.budget, second.budget);
}

// Files in the formats of the kernel.
class ControlGroups : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/sluice-groups-XXXXXX";
    ASSERT_TRUE(mkdtemp(pattern));
    top_ = pattern;
  }
  void TearDown() override { EXPECT_EQ(system(("rm -r " + top_).c_str()), 0); }
  void write(const std::string& path, const std::string& text) {
    for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
      mkdir((top_ + path.substr(0, at)).c_str(), 0700);
    }
    FILE* const file = fopen((top_ + path).c_str(), "we");
    ASSERT_TRUE(file);
    fputs(text.c_str(), file);
    fclose(file);
  }
  Budget find() const { return find_budget(top_ + "/membership", top_ + "/mounts"); }

  std::string top_;
};

TEST_F(ControlGroups, TheTightestBoundCounts) {
  write("/membership", "0::/jobs/mine\n");
  write("/mounts/jobs/mine/cpu.max", "max 100000\n");
  EXPECT_EQ(find().size, 0U);
  EXPECT_EQ(find().holder, 0U);
  write("/mounts/jobs/cpu.max", "250000 100000\n");
  EXPECT_EQ(find().size, 2500U);
  const uint64_t outer = find().holder;
  EXPECT_NE(outer, 0U);
  write("/mounts/jobs/mine/cpu.max", "50000 100000\n");
  EXPECT_EQ(find().size, 500U);
  EXPECT_NE(find().holder, outer);
}

TEST_F(ControlGroups, TheFirstVersion) {
  write("/membership", "9:cpuset:/a\n8:cpu,cpuacct:/a/b\n1:name=systemd:/\n0::/\n");
  write("/mounts/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
  write("/mounts/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(find().size, 0U);
  write("/mounts/cpu,cpuacct/a/b/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(find().size, 4000U);
}

// The path is the host's, but only the container's part of the tree is mounted.
TEST_F(ControlGroups, InAContainer) {
  write("/membership", "0::/docker/0123\n");
  write("/mounts/cpu.max", "150000 100000\n");
  EXPECT_EQ(find().size, 1500U);
}

TEST_F(ControlGroups, NoneAreNone) {
  EXPECT_EQ(find().size, 0U);
  write("/membership", "nonsense\n0:\n::\n0::relative\n");
  EXPECT_EQ(find().size, 0U);
}

}  // namespace
}  // namespace sluice
