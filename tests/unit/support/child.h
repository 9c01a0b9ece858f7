// SPDX-License-Identifier: BSD-3-Clause
//
// Runs parts of tests in a child process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice {

// Runs `body` in a forked child and returns its exit status, or -1 if a signal ended it.
template <typename Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace sluice
