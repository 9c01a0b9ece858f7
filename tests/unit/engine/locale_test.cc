// SPDX-License-Identifier: BSD-3-Clause
//
// In a program whose locale is Turkish, where the small I has no dot and numbers have commas.
#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "src/base/knobs.h"
#include "src/base/plain_text.h"
#include "src/engine/hints.h"
#include "src/engine/rules.h"
#include "src/engine/statistics.h"
#include "src/tool/tuning.h"

namespace sluice {
namespace {

// Makes the locale: hosts of computations have few.
class TurkishLocale : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/sluice-locale-XXXXXX";
    ASSERT_TRUE(mkdtemp(pattern));
    folder_ = pattern;
    const std::string make = "localedef -i tr_TR -f ISO-8859-9 " + folder_ + "/tr_TR";
    ASSERT_EQ(std::system(make.c_str()), 0) << "Debian's package locales is needed";
    setenv("LOCPATH", folder_.c_str(), 1);
    ASSERT_NE(std::setlocale(LC_ALL, "tr_TR"), nullptr);
    ASSERT_STREQ(std::localeconv()->decimal_point, ",");
  }
  void TearDown() override {
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    std::filesystem::remove_all(folder_);
  }

  std::string folder_;
};

// (One test, because to make a locale takes a moment.)
TEST_F(TurkishLocale, ChangesNothing) {
  EXPECT_EQ(lower("SLUICE_I\xdd"), "sluice_i\xdd");
  EXPECT_EQ(decimal(0.125, 2) + " " + significant(1234.5, 3), "0.12 1.23e+03");

  Hints hints{{"sluice_reduce_scatter", "ring"}};
  EXPECT_TRUE(drop_nonsense(&hints).empty());

  const auto rules = parse_rules("allreduce tcp bytes:64K-1M -> ring\n");
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  EXPECT_EQ(rules->front().bytes.high, size_t{1} << 20);

  const Environment variables = [](const char* name) {
    return std::string("SLUICE_TIMEOUT") == name ? "1.5" : nullptr;
  };
  Knobs knobs;
  ASSERT_TRUE(read_knobs(variables, &knobs).ok());
  EXPECT_EQ(knobs.timeout, 1.5);
  for (const KnobValue& each : knob_values(variables)) {
    if (std::string("SLUICE_TIMEOUT") != each.knob->name) continue;
    EXPECT_EQ(each.value, "1.5");
  }

  Statistics statistics;
  statistics.add("world", Collective::barrier, "flat", "shm", {2, 0, 1'000'000});
  const std::string table = statistics.table(std::chrono::seconds(2));
  EXPECT_NE(table.find("in all 1.000 ms, 0.1 % of the 2.000 s"), std::string::npos) << table;
  EXPECT_NE(table.find(" 1.000      500.00\n"), std::string::npos) << table;

  const TuningLog log{
      "a test", {{Collective::allreduce, 2, 4, "shm", 1, "flat", {{"flat", 1.5}, {"mpi", 3}}}}};
  const std::string made = to_text(log, make_tuning(log, 0.05), "");
  EXPECT_NE(made.find("# 1.00 at 1 point\n"), std::string::npos) << made;
}

}  // namespace
}  // namespace sluice
