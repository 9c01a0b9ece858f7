// SPDX-License-Identifier: BSD-3-Clause
//
// Copies to and from the memory of a message: its pieces, taken in order as one run of bytes.
#pragma once

#include <cstddef>
#include <span>

#include "transports/transport.h"

namespace sluice {

using ConstPieces = std::span<const Bytes>;

// Copies `size` bytes into the pieces, starting at the message's byte `offset`.
void scatter(ConstPieces to, size_t offset, const std::byte* from, size_t size);

// Copies `size` bytes out of the pieces, starting at the message's byte `offset`.
void gather(std::byte* to, ConstPieces from, size_t offset, size_t size);

}  // namespace sluice
