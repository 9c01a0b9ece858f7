// SPDX-License-Identifier: BSD-3-Clause
//
// Everything that reads bytes which somebody else wrote, as functions of those bytes: what comes
// over connections, and text in files and settings. `make check` runs them on the corpus,
// `make check-ci` with the sanitizers (corpus_test.cc); libFuzzer looks for inputs that reach more
// (tests/fuzz/fuzz).
//
// A target checks what must hold for any bytes, and aborts where it does not (must()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::fuzz {

struct Target {
  std::string_view name;  // of the file of its corpus, too
  std::string_view help;
  void (*run)(std::span<const std::byte> input);
};

std::span<const Target> targets();
// nullptr: there is none.
const Target* find_target(std::string_view name);

// Ends the program unless it holds.
void must(bool holds, const char* what);

// Reads an input from its begin. Past the end there are zeros.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  uint8_t byte();
  // One of the values, which are few: a byte's value chooses.
  template <typename T, size_t n>
  const T& one_of(const T (&values)[n]) {
    return values[byte() % n];
  }
  // At most so many bytes.
  std::span<const std::byte> take(size_t most);
  std::span<const std::byte> rest() { return take(bytes_.size()); }

 private:
  std::span<const std::byte> bytes_;
};

// In the files where they are.
void fuzz_rules(std::span<const std::byte> input);
void fuzz_tuning_log(std::span<const std::byte> input);
void fuzz_settings(std::span<const std::byte> input);
void fuzz_values(std::span<const std::byte> input);
void fuzz_address(std::span<const std::byte> input);
void fuzz_greeting(std::span<const std::byte> input);
void fuzz_spread(std::span<const std::byte> input);
void fuzz_strangers(std::span<const std::byte> input);
void fuzz_frames(std::span<const std::byte> input);
void fuzz_offers(std::span<const std::byte> input);
void fuzz_tls(std::span<const std::byte> input);

}  // namespace sluice::fuzz
