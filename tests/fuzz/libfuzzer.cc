// SPDX-License-Identifier: BSD-3-Clause
//
// For libFuzzer: the target that SLUICE_FUZZ_TARGET names. (tests/fuzz/fuzz builds and runs this.)
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/targets.h"

namespace {

const sluice::fuzz::Target& chosen() {
  static const sluice::fuzz::Target& target = []() -> const sluice::fuzz::Target& {
    const char* const name = std::getenv("SLUICE_FUZZ_TARGET");
    const auto* const found = sluice::fuzz::find_target(name ? name : "");
    if (found) return *found;
    std::fprintf(stderr, "SLUICE_FUZZ_TARGET is none of:\n");
    for (const auto& one : sluice::fuzz::targets()) {
      std::fprintf(stderr, "  %-12s %s\n", std::string(one.name).c_str(),
                   std::string(one.help).c_str());
    }
    std::exit(2);
  }();
  return target;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  chosen().run(std::as_bytes(std::span(bytes, size)));
  return 0;
}
