// SPDX-License-Identifier: BSD-3-Clause
//
// Another process that has the stand-in driver, for tests of CUDA IPC: the program ipc_peer. It has
// one allocation, its own or an opened one.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace test {

class IpcPeer {
 public:
  // environment: more of it, "STANDIN_PEERS=0".
  explicit IpcPeer(int device = 0, std::vector<std::string> environment = {}) {
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    EXPECT_EQ(pipe(to), 0);
    EXPECT_EQ(pipe(from), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    for (const int each : {to[0], to[1], from[0], from[1]}) {
      posix_spawn_file_actions_addclose(&actions, each);
    }
    std::vector<char*> all;
    for (char** each = environ; *each; ++each) all.push_back(*each);
    for (std::string& each : environment) all.push_back(each.data());
    all.push_back(nullptr);
    const char* const top = std::getenv("top_builddir");
    std::string path = std::string(top ? top : ".") + "/tests/cuda/ipc_peer";
    char* const words[] = {path.data(), nullptr};
    EXPECT_EQ(posix_spawn(&process_, path.c_str(), &actions, nullptr, words, all.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    to_ = fdopen(to[1], "w");
    from_ = fdopen(from[0], "r");
    EXPECT_EQ(ask("device " + std::to_string(device)), 0);
  }
  ~IpcPeer() { end(); }
  IpcPeer(const IpcPeer&) = delete;
  IpcPeer& operator=(const IpcPeer&) = delete;

  std::string tell(const std::string& line) {
    char text[256] = "";
    std::fprintf(to_, "%s\n", line.c_str());
    std::fflush(to_);
    EXPECT_TRUE(std::fgets(text, sizeof text, from_)) << line;
    text[std::strcspn(text, "\n")] = '\0';
    return text;
  }
  int ask(const std::string& line) { return std::atoi(tell(line).c_str()); }
  // handle: of 64 bytes.
  int open(const void* handle) {
    std::string text = "open ";
    char two[3];
    for (int i = 0; i < 64; ++i) {
      std::snprintf(two, sizeof two, "%02x", static_cast<const unsigned char*>(handle)[i]);
      text += two;
    }
    return ask(text);
  }
  // Allocates memory and exports it.
  void offer(size_t bytes, void* handle) {
    EXPECT_EQ(ask("allocate " + std::to_string(bytes)), 0);
    const std::string text = tell("export");
    EXPECT_EQ(text.size(), 128U);
    for (size_t i = 0; 2 * i + 1 < text.size(); ++i) {
      static_cast<unsigned char*>(handle)[i] =
          static_cast<unsigned char>(std::strtol(text.substr(2 * i, 2).c_str(), nullptr, 16));
    }
  }
  // Returns its status, as of waitpid.
  int end(int signal = 0) {
    int status = 0;
    if (process_ < 0) return 0;
    if (signal) kill(process_, signal);
    std::fclose(to_);
    std::fclose(from_);
    EXPECT_EQ(waitpid(process_, &status, 0), process_);
    process_ = -1;
    return status;
  }

 private:
  pid_t process_ = -1;
  FILE *to_ = nullptr, *from_ = nullptr;
};

}  // namespace test
