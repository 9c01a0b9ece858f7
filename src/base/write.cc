// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/write.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "src/base/system_call.h"

namespace sluice {
namespace {

// While it lives, this thread gets no SIGXFSZ and no SIGPIPE. What the program itself has pending
// stays so.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigemptyset(&own_);
    sigset_t pending;
    sigpending(&pending);
    for (const int each : {SIGXFSZ, SIGPIPE}) {
      if (sigismember(&pending, each) == 0) sigaddset(&own_, each);
    }
    pthread_sigmask(SIG_BLOCK, &own_, &before_);
  }
  ~WithoutSignals() {
    constexpr timespec at_once{};
    while (sigtimedwait(&own_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t own_, before_;
};

}  // namespace

int write_all(int fd, std::string_view text) {
  const WithoutSignals quiet;
  while (!text.empty()) {
    const ssize_t written = system_call([&] { return write(fd, text.data(), text.size()); });
    if (written <= 0) return written < 0 ? static_cast<int>(-written) : EIO;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace sluice
