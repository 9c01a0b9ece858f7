// SPDX-License-Identifier: BSD-3-Clause
//
// TLS for tests, and a wire in memory that cuts, flips and stalls.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "transports/tls/tls.h"

namespace sluice {

// With this build's module: in .libs, two levels above this program's folder.
inline TlsOptions tls_options() {
  TlsOptions options;
  options.local = true;
  char file[4096] = "";
  if (readlink("/proc/self/exe", file, sizeof file - 1) < 0) return options;
  options.folder = file;
  for (int i = 0; i < 3; ++i) options.folder.resize(options.folder.rfind('/'));
  options.folder += "/.libs";
  return options;
}

inline std::shared_ptr<FilterMaker> tls_filters(const TlsOptions& options = tls_options()) {
  auto made = make_tls_filters(options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : nullptr;
}

inline std::shared_ptr<Prover> tls_prover() {
  auto made = make_tls_prover(tls_options().folder);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : nullptr;
}

// One direction of a connection. What is written is recorded.
struct Wire {
  static constexpr size_t never = std::numeric_limits<size_t>::max();

  std::vector<std::byte> bytes;
  size_t read = 0;
  size_t cut = never;     // the connection ends when so many bytes have been written
  size_t flip = never;    // this bit is flipped
  bool* ended = nullptr;  // the connection, in both directions
};

// One end of a connection of two wires.
class WireEnd final : public Conduit {
 public:
  // slow: moves one byte at a time, and often nothing.
  WireEnd(Wire& out, Wire& in, bool slow, uint64_t seed)
      : out_(out), in_(in), slow_(slow), random_(seed) {}

  const char* name() const override { return "wire"; }
  Moved write_more(std::span<const iovec> runs) override {
    const Moved moved = write(runs);
    owes_more = moved.result == Moved::Result::some;
    return moved;
  }
  Moved write(std::span<const iovec> runs) override {
    ++writes;
    owes_more = false;
    if (*out_.ended) return {Moved::Result::failed, 0, EPIPE};
    size_t taken = 0, most = std::min(room(256 * 1024), takes - std::min(takes, out_.bytes.size()));
    for (const iovec& run : runs) {
      const auto* const from = static_cast<const std::byte*>(run.iov_base);
      for (size_t i = 0; i < run.iov_len && taken < most && !*out_.ended; ++i, ++taken)
        put(from[i]);
    }
    return taken > 0 ? Moved{Moved::Result::some, taken} : Moved{Moved::Result::nothing};
  }
  Moved read(std::span<const iovec> runs) override {
    ++reads;
    const size_t here = in_.bytes.size() - in_.read;
    if (here == 0) return {*in_.ended ? Moved::Result::closed : Moved::Result::nothing};
    size_t given = 0, most = std::min(room(256 * 1024), here);
    for (const iovec& run : runs) {
      const size_t some = std::min(run.iov_len, most - given);
      std::copy_n(in_.bytes.data() + in_.read, some, static_cast<std::byte*>(run.iov_base));
      in_.read += some;
      given += some;
    }
    return given > 0 ? Moved{Moved::Result::some, given} : Moved{Moved::Result::nothing};
  }

  size_t takes = Wire::never;    // bytes, until there is no room
  size_t writes = 0, reads = 0;  // calls
  bool owes_more = false;        // the latest bytes may stay until others follow

 private:
  size_t room(size_t most) {
    if (!slow_) return most;
    return random_() % 3 == 0 ? 0 : 1;
  }
  void put(std::byte byte) {
    const size_t at = out_.bytes.size();
    if (out_.flip / 8 == at) byte ^= std::byte{1} << (out_.flip % 8);
    out_.bytes.push_back(byte);
    if (out_.bytes.size() >= out_.cut) *out_.ended = true;
  }

  Wire &out_, &in_;
  const bool slow_;
  std::mt19937_64 random_;
};

}  // namespace sluice
