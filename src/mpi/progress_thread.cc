// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/progress_thread.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>

#include "src/engine/team.h"
#include "src/mpi/pending_calls.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::microseconds pause = 1ms;

struct Moving {
  PendingCalls* calls;
  Process* process;
  pthread_t thread;
  std::atomic<bool> ends{false};
};
constinit Moving moving{};

void* run(void*) {
  pthread_setname_np(pthread_self(), "sluice");
  uint32_t seen = 0;
  while (!moving.ends.load(std::memory_order_acquire)) {
    const uint32_t turns = moving.calls->await_calls();
    if (turns == seen) {
      if (!moving.calls->move()) moving.process->endpoint->wait(pause);
    } else {
      const timespec rest{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(pause).count()};
      nanosleep(&rest, nullptr);
    }
    seen = turns;
  }
  return nullptr;
}

}  // namespace

// (Signals are the program's.)
bool ProgressThread::begin(PendingCalls& calls, Process& process) {
  moving.calls = &calls;
  moving.process = &process;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool has_begun = pthread_create(&moving.thread, nullptr, run, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return has_begun;
}

void ProgressThread::end() {
  moving.ends.store(true, std::memory_order_release);
  moving.calls->wake();
  pthread_join(moving.thread, nullptr);
}

}  // namespace sluice
