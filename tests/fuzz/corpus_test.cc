// SPDX-License-Identifier: BSD-3-Clause
//
// The corpus: inputs that libFuzzer found to reach different code, and those that once did harm.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/targets.h"

namespace sluice::fuzz {
namespace {

// The source tree, as `make check` says; by hand, three folders above this program's.
std::filesystem::path corpus_folder() {
  const char* const tree = std::getenv("top_srcdir");
  const auto own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (tree ? std::filesystem::path(tree) : own / "../../..") / "tests/fuzz/corpus";
}

// The corpus is a file for each target, an input a line, in base64.
std::vector<std::byte> decoded(std::string_view line) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::byte> bytes;
  uint32_t bits = 0, count = 0;
  for (const char digit : line) {
    const size_t value = digits.find(digit);
    if (value == std::string_view::npos) break;  // padding
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> count));
  }
  return bytes;
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, HoldsWhateverComes) {
  std::ifstream file(corpus_folder() / GetParam().name);
  size_t inputs = 0;
  for (std::string line; std::getline(file, line); ++inputs) GetParam().run(decoded(line));
  EXPECT_GE(inputs, 5U) << corpus_folder();
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice::fuzz
