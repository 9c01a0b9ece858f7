// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/module.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cuda/module.h"

namespace sluice {
namespace {

// As all tables of modules.
struct AnyTable {
  int version;
};

// A folder that looks like one of libraries.
class Modules : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/sluice-modules-XXXXXX";
    ASSERT_TRUE(mkdtemp(pattern));
    folder_ = pattern;
    mkdir((folder_ + "/sluice").c_str(), 0700);
  }
  void TearDown() override { EXPECT_EQ(system(("rm -r " + folder_).c_str()), 0); }
  void put_text_at(const std::string& path) {
    FILE* const file = fopen((folder_ + path).c_str(), "we");
    ASSERT_TRUE(file);
    fputs("no library\n", file);
    fclose(file);
  }
  static std::string problem(const Module& module, const std::string& folder) {
    const auto opened = open_module<AnyTable>(module, folder);
    if (opened.ok()) return "none";
    EXPECT_EQ(opened.status().code(), Code::unavailable);
    return opened.status().message();
  }

  std::string folder_;
};

TEST_F(Modules, OneThatIsMissingIsNamedWithItsPlaces) {
  EXPECT_EQ(problem({"libsluice-none.so", "sluice_none", 1}, folder_),
            "libsluice-none.so is neither in " + folder_ + "/sluice nor in " + folder_);
}

TEST_F(Modules, AreNotLookedForInARelativeFolder) {
  for (const char* folder : {"", ".", "lib"}) {
    EXPECT_EQ(problem({"libsluice-none.so", "sluice_none", 1}, folder),
              "libsluice-none.so is not looked for, because the library's folder is not known: "
              "preload the library by its absolute path");
  }
  EXPECT_TRUE(library_folder().starts_with('/')) << library_folder();
}

TEST_F(Modules, OneThatCannotBeLoadedIsNotMissing) {
  put_text_at("/libsluice-none.so");
  const std::string said = problem({"libsluice-none.so", "sluice_none", 1}, folder_);
  EXPECT_EQ(said.find("libsluice-none.so cannot be loaded: " + folder_ + "/libsluice-none.so"), 0U)
      << said;
}

TEST_F(Modules, TheInstalledPlaceComesFirst) {
  put_text_at("/libsluice-none.so");
  put_text_at("/sluice/libsluice-none.so");
  const std::string said = problem({"libsluice-none.so", "sluice_none", 1}, folder_);
  EXPECT_NE(said.find(folder_ + "/sluice/libsluice-none.so"), std::string::npos) << said;
}

// The folder of this build's libraries, two levels above this program's folder.
std::string built_libraries() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  return program.parent_path().parent_path().parent_path() / ".libs";
}

TEST_F(Modules, ItsVersionMustBeTheOneAskedFor) {
  const std::string folder = built_libraries(), path = folder + "/libsluice-cuda.so";
  const auto opened =
      open_module<AnyTable>({"libsluice-cuda.so", "sluice_cuda", SLUICE_CUDA_VERSION}, folder);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->version, SLUICE_CUDA_VERSION);
  EXPECT_EQ(problem({"libsluice-cuda.so", "sluice_cuda", 77}, folder),
            path + " has version " + std::to_string(SLUICE_CUDA_VERSION) +
                " of sluice_cuda, this library needs version 77");
  EXPECT_EQ(problem({"libsluice-cuda.so", "sluice_other", 1}, folder),
            path + " has no version of sluice_other, this library needs version 1");
}

}  // namespace
}  // namespace sluice
