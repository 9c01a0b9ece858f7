// SPDX-License-Identifier: BSD-3-Clause
//
// Random elements of a type, with what is rare among them: NaNs of both kinds, infinities, zeros of
// both signs, denormal and extreme numbers; pairs whose values and indices are often equal.
#pragma once

#include <cstddef>
#include <random>

#include "src/reduce/kernel.h"

namespace test {

void fill_at_random(sluice::Type type, void* elements, size_t count, std::mt19937_64* random);

}  // namespace test
