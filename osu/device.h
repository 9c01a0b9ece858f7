// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of a CUDA device, by the driver's own functions. The driver (libcuda.so.1) is opened at
// run time, so that the benchmarks need it only where they use it.
#pragma once

#include <cstddef>
#include <string>

namespace sluice::osu {

// Where a buffer is. The processor can touch all but memory of the device.
enum class Place { host, device, managed, pinned };

// Opens the driver and makes device `number` (modulo the number of devices) the caller's. Returns
// what is wrong, or nothing. All functions below need it.
std::string open_device(int number);

// If one of these fails, it prints what the driver says and ends the process.
void* allocate_on(Place place, size_t bytes);
void free_on(Place place, void* memory);
void copy_to_device(void* device, const void* host, size_t bytes);
void copy_from_device(void* host, const void* device, size_t bytes);

}  // namespace sluice::osu
