// SPDX-License-Identifier: BSD-3-Clause
//
// main() of the unit tests and of the proof: GoogleTest with a watchdog for each test
// (TEST_SECONDS, default 300). The last line of output is "N passed, N failed".
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

char running[256];  // the test that the watchdog reports

// Async-signal-safe calls only: the stuck thread may hold any lock.
void on_alarm(int) {
  const char* parts[] = {"\nwatchdog: still running after its time limit: ", running,
                         "\n0 passed, 1 failed\n"};
  for (const char* part : parts) {
    if (write(STDOUT_FILENO, part, strlen(part)) < 0) break;
  }
  abort();
}

class Watchdog : public testing::EmptyTestEventListener {
 public:
  explicit Watchdog(unsigned seconds) : seconds_(seconds) {}

 private:
  void OnTestStart(const testing::TestInfo& test) override {
    snprintf(running, sizeof(running), "%s.%s", test.test_suite_name(), test.name());
    alarm(seconds_);
  }
  void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
  void OnTestProgramEnd(const testing::UnitTest& all) override {
    printf("%d passed, %d failed\n", all.successful_test_count(), all.failed_test_count());
  }

  unsigned seconds_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* limit = getenv("TEST_SECONDS");
  unsigned seconds = limit ? static_cast<unsigned>(strtoul(limit, nullptr, 10)) : 300;
  signal(SIGALRM, on_alarm);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  listeners.Append(new Watchdog(seconds));
  int result = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    printf("no test ran\n");
    return 1;
  }
  return result;
}
