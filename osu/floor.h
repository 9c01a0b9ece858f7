// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs share that show what a machine's sockets and memory alone take: processes of
// their own, without MPI, each on a processor.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace sluice::osu {

struct ByteRange {
  size_t min = 4, max = size_t{4} << 20;
};

// "MIN:MAX"; throws CLI::ValidationError.
ByteRange parse_byte_range(const std::string& text, size_t least);

// Says what failed, by errno, and exits.
[[noreturn]] void give_up(const char* what);

// The n-th of the processors this process may use, in turns; false if it must share it with others.
bool take_processor(int n, int of);

// Runs `body` with numbers from 0 up, each but 0 in a child; true if all ended well.
bool run_processes(int count, const std::function<void(int number)>& body);

}  // namespace sluice::osu
