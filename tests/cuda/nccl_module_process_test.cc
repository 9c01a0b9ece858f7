// SPDX-License-Identifier: BSD-3-Clause
//
// The NCCL part of the CUDA module: the library, devices, and processes of their own.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "tests/cuda/nccl_module_rig.h"

namespace nccl_module {
namespace {

constexpr const char* alone = "NCCL_MODULE_ALONE";

// Runs one of this program's tests, that is skipped otherwise, in a process of its own.
void run_alone(const std::string& test, const std::string& environment) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      std::string(alone) + "=1 " + environment + " '" + self + "' --gtest_filter=" + test + " >&2";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

// What the process finds as NCCL's library.
class NcclAlone : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::getenv(alone)) GTEST_SKIP() << "runs in a process of its own";
    const SluiceCudaSettings settings{
        .pinned = 0, .scratch = 0, .blocking_streams = 0, .sync_contexts = 0};
    setenv("STANDIN_DEVICES", "2", 1);
    ASSERT_TRUE(standin_driver()) << dlerror();
    ASSERT_EQ(sluice_cuda()->begin(standin_driver(), &settings, why), 0) << why;
    ASSERT_EQ(STANDIN(cuInit)(0), CUDA_SUCCESS);
  }
  // Twice, as later calls give the same answer; other functions refuse too.
  std::string refusal() {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(table()->open(&library, why), -1);
    Id id{};
    char other[sluice_cuda_why] = "";
    EXPECT_EQ(table()->unique_id(id.data(), other), -1);
    EXPECT_STREQ(other, why);
    EXPECT_FALSE(table()->create(0, id.data(), 0, 1, other));
    EXPECT_STREQ(other, why);
    return why;
  }

  char why[sluice_cuda_why] = "";
  SluiceNcclLibrary library{};
};

TEST_F(NcclAlone, IsOpened) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(table()->open(&library, why), 0) << why;
    EXPECT_EQ(library.version, 22809);
    EXPECT_EQ(library.was_loaded_already, 0);
  }
  end_all(connect(2));
}

TEST_F(NcclAlone, IsTooOld) {
  EXPECT_EQ(refusal(), "NCCL is too old: version 2.18.5, not 2.19 or later");
}

TEST_F(NcclAlone, IsMuchTooOld) {
  EXPECT_EQ(refusal(), "NCCL is too old: version 2.7.8, not 2.19 or later");
}

TEST_F(NcclAlone, IsNoLibrary) {
  EXPECT_NE(refusal().find("libnccl.so.2: file too short"), std::string::npos) << why;
}

TEST_F(NcclAlone, LacksFunctions) {
  EXPECT_EQ(refusal().find("libnccl.so.2 has no function nccl"), 0) << why;
}

// The thread of ncclCommAbort works at it until the other rank aborts; nothing is freed then.
TEST_F(NcclAlone, IsLeftToItself) {
  ASSERT_EQ(table()->open(&library, why), 0) << why;
  const Groups groups = connect(2);
  table()->abort(groups[0]);
  table()->forget(groups[0]);
  abort_all({groups[1]});
  while (counter("nccl_communicators") > 0) std::this_thread::yield();
  EXPECT_EQ(counter("streams"), 1);
  EXPECT_EQ(counter("events"), 1);
  EXPECT_EQ(counter("retained"), 1);
  sluice_cuda()->end();
  EXPECT_EQ(counter("contexts"), 1);
  EXPECT_EQ(STANDIN(standin_forgive)(), 0);
}

class NcclLibrary : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "nccl-module-XXXXXX";
    ASSERT_TRUE(mkdtemp(pattern.data()));
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string path_with(const std::string& folder) {
    const char* const given = std::getenv("LD_LIBRARY_PATH");
    return "LD_LIBRARY_PATH='" + folder + (given ? ":" + std::string(given) : "") + "'";
  }

  std::filesystem::path folder_;
};

TEST_F(NcclLibrary, IsFoundByTheLoader) {
  const std::string path = path_with(std::filesystem::absolute(built("standin_nccl")));
  run_alone("NcclAlone.IsOpened", path);
  run_alone("NcclAlone.IsLeftToItself", path);
  run_alone("NcclAlone.IsTooOld", path + " NCCL_STANDIN_VERSION=21805");
  run_alone("NcclAlone.IsMuchTooOld", path + " NCCL_STANDIN_VERSION=2708");
}

TEST_F(NcclLibrary, MayBeMissing) {
  std::ofstream(folder_ / "libnccl.so.2") << "none";
  run_alone("NcclAlone.IsNoLibrary", path_with(folder_));
}

TEST_F(NcclLibrary, MayLackFunctions) {
  std::filesystem::create_symlink(std::filesystem::absolute(built("standin/old/libcuda.so.1")),
                                  folder_ / "libnccl.so.2");
  run_alone("NcclAlone.LacksFunctions", path_with(folder_));
}

using NcclOpen = NcclModule;

TEST_F(NcclOpen, TellsThatTheProgramHasLoadedIt) {
  for (int i = 0; i < 2; ++i) {
    char why[sluice_cuda_why] = "";
    SluiceNcclLibrary library{};
    EXPECT_EQ(table()->open(&library, why), 0) << why;
    EXPECT_EQ(library.version, 22809);
    EXPECT_EQ(library.was_loaded_already, 1);
  }
}

class NcclDevice : public NcclModule {
 protected:
  using Uuid = std::array<unsigned char, sluice_nccl_device>;
  static std::string refusal(const SluiceCudaPlace& place) {
    char why[sluice_cuda_why] = "";
    Uuid uuid{};
    EXPECT_EQ(table()->find_device(&place, uuid.data(), why), -1);
    EXPECT_EQ(uuid, Uuid{});
    return why;
  }
  static Uuid uuid_of(const SluiceCudaPlace& place) {
    char why[sluice_cuda_why] = "";
    Uuid uuid{};
    EXPECT_EQ(table()->find_device(&place, uuid.data(), why), 0) << why;
    return uuid;
  }
  static Uuid expected(int device) {
    CUuuid uuid{};
    Uuid all{};
    EXPECT_EQ(STANDIN(cuDeviceGetUuid)(&uuid, device), CUDA_SUCCESS);
    std::memcpy(all.data(), &uuid, sizeof uuid);
    return all;
  }
};

TEST_F(NcclDevice, IsThatOfMemoryInThePrimaryContextOrNone) {
  const Primary primary(1);
  EXPECT_EQ(uuid_of({primary.context(), 1}), expected(1));
  EXPECT_EQ(uuid_of({nullptr, 2}), expected(2));
  EXPECT_EQ(counter("contexts"), 1) << "to ask makes none";
  EXPECT_NE(expected(1), expected(2));
}

TEST_F(NcclDevice, IsNoneOfMemoryInAnotherContext) {
  constexpr const char* reason =
      "memory of device 1 is in a context that is not the device's primary one";
  CUcontext other = nullptr;
  EXPECT_EQ(STANDIN(cuCtxCreate_v2)(&other, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(refusal({other, 1}), reason);
  EXPECT_EQ(counter("contexts"), 1) << "to ask makes none";
  {
    const Primary primary(1);
    EXPECT_EQ(refusal({other, 1}), reason);
  }
  EXPECT_EQ(STANDIN(cuCtxDestroy_v2)(other), CUDA_SUCCESS);
  EXPECT_EQ(refusal({nullptr, -1}), "memory of the host is on no device");
}

// No function calls the driver or NCCL: neither works after fork.
TEST_F(NcclModule, DoesNothingInAForkedChild) {
  const Groups groups = connect(2);
  const Memory memory(Where::device, 0, Bytes(4));
  SluiceNcclJob job{};
  job.out = memory.side(1);
  const Id id = fresh_id();
  const int64_t aborts = counter("nccl_aborts");
  const pid_t child = fork();
  if (child == 0) {
    char why[sluice_cuda_why] = "";
    SluiceNcclLibrary library{};
    Id own{};
    const int64_t pushes = counter("cuCtxPushCurrent_v2"),
                  asked = counter("cuPointerGetAttributes");
    bool is_right = table()->open(&library, why) == -1 && table()->unique_id(own.data(), why) == -1;
    is_right = is_right && !table()->create(0, id.data(), 0, 1, why);
    is_right = is_right && std::string(why) == "NCCL was opened before this process was forked";
    for (SluiceNcclGroup* const each : groups) {
      is_right = is_right && state_of(each) == sluice_nccl_failed;
      is_right = is_right && reason_of(each) == "the group is of the process that forked this one";
      is_right = is_right && table()->reserve(each, &job, why) == -1;
      is_right = is_right && table()->start(each, &job, why) == -1;
      each == groups[0] ? table()->abort(each) : table()->end(each);
      is_right = is_right && state_of(each) == sluice_nccl_failed;
      table()->forget(each);
    }
    is_right = is_right && counter("cuCtxPushCurrent_v2") == pushes &&
               counter("cuPointerGetAttributes") == asked && counter("nccl_aborts") == aborts;
    _exit(is_right && STANDIN(standin_forgive)() == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  end_all(groups);
  ASSERT_EQ(unlink(id.data()), 0);  // (the stand-in's file)
}

}  // namespace
}  // namespace nccl_module
