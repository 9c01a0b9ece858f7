// SPDX-License-Identifier: BSD-3-Clause
#include "osu/floor.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace sluice::osu {

void fail(const char* what) {
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, std::strerror(errno));
  std::exit(1);
}

bool take_processor(int n, int of) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return false;
  const int there = CPU_COUNT(&allowed);
  n %= there;
  int cpu = 0;
  for (; !CPU_ISSET(cpu, &allowed) || n-- > 0; ++cpu) {
  }
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof(one), &one);
  return of <= there;
}

bool run_processes(int count, const std::function<void(int number)>& body) {
  std::vector<pid_t> children;
  for (int number = count - 1; number >= 0; --number) {
    const pid_t child = number > 0 ? fork() : 0;
    if (child < 0) fail("fork");
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    body(number);
    if (number > 0) std::exit(0);
  }
  bool good = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    good = good && status == 0;
  }
  return good;
}

}  // namespace sluice::osu
