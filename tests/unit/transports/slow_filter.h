// SPDX-License-Identifier: BSD-3-Clause
//
// A filter that makes every use of the conduit contract that encryption makes: it takes bytes that
// it has not sent yet, holds bytes that poll knows nothing of, changes every byte, and needs a
// handshake in which each side must read before it can write. How much moves at a time is random.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <vector>

#include "transports/conduit.h"

namespace sluice {

class SlowFilter final : public Conduit {
 public:
  SlowFilter(Conduit& below, const ConduitEnds& ends, uint64_t seed)
      : below_(below), random_(seed + ends.self.low), mask_(ends.key.bytes[0]) {
    // The connecting side says hello, and the accepting side answers.
    if (ends.connects) out_.assign(hello, hello_byte);
    greets_ = !ends.connects;
  }

  const char* name() const override { return "slow"; }

  Moved write(std::span<const iovec> runs) override {
    if (const Moved failed = shake_hands(); failed.result != Moved::Result::some) return failed;
    if (out_.size() >= most) (void)flush();
    size_t room = out_.size() < most ? 1 + random_() % (most - out_.size()) : 0, taken = 0;
    for (const iovec& run : runs) {
      const size_t size = std::min(room, run.iov_len);
      const auto* const from = static_cast<const std::byte*>(run.iov_base);
      std::transform(from, from + size, std::back_inserter(out_),
                     [&](std::byte byte) { return byte ^ mask_; });
      taken += size;
      room -= size;
    }
    return taken > 0 ? Moved{Moved::Result::some, taken} : Moved{Moved::Result::nothing};
  }

  Moved read(std::span<const iovec> runs) override {
    if (const Moved failed = shake_hands(); failed.result != Moved::Result::some) return failed;
    if (in_.empty()) {
      const Moved got = fill();
      if (got.result != Moved::Result::some) return got;
    }
    const size_t some = 1 + random_() % in_.size();
    size_t given = 0;
    for (const iovec& run : runs) {
      const size_t size = std::min(some - given, run.iov_len);
      std::transform(in_.begin() + static_cast<ptrdiff_t>(given),
                     in_.begin() + static_cast<ptrdiff_t>(given + size),
                     static_cast<std::byte*>(run.iov_base),
                     [&](std::byte byte) { return byte ^ mask_; });
      given += size;
    }
    in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(given));
    return {Moved::Result::some, given};
  }

  size_t unsent() const override { return out_.size(); }
  Moved flush() override {
    if (out_.empty()) return {Moved::Result::nothing};
    const iovec run{out_.data(), 1 + random_() % out_.size()};
    const Moved sent = below_.write({&run, 1});
    if (sent.result == Moved::Result::some) {
      out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(sent.bytes));
    }
    return sent;
  }
  bool buffered() const override { return !in_.empty() && shaken_; }
  short interest(bool reads, bool writes) const override {
    const bool sends = !out_.empty() || (writes && shaken_);
    return static_cast<short>((reads || !shaken_ ? POLLIN : 0) | (sends ? POLLOUT : 0));
  }

 private:
  static constexpr size_t most = 20000, hello = 300;
  static constexpr std::byte hello_byte{0x5A};

  Moved fill() {
    std::byte bytes[4096];
    const iovec run{bytes, 1 + random_() % sizeof(bytes)};
    const Moved got = below_.read({&run, 1});
    if (got.result == Moved::Result::some) in_.insert(in_.end(), bytes, bytes + got.bytes);
    return got;
  }

  // Result `some`: both sides have said hello.
  Moved shake_hands() {
    while (!shaken_) {
      if (!out_.empty()) {
        const Moved sent = flush();
        if (sent.result != Moved::Result::some) return sent;
        continue;
      }
      if (in_.size() < hello) {
        const Moved got = fill();
        if (got.result != Moved::Result::some) return got;
        continue;
      }
      const bool right = std::all_of(in_.begin(), in_.begin() + ptrdiff_t{hello},
                                     [](std::byte byte) { return byte == hello_byte; });
      if (!right) return {Moved::Result::failed, 0, EPROTO};
      in_.erase(in_.begin(), in_.begin() + ptrdiff_t{hello});
      if (greets_) out_.assign(hello, hello_byte);
      shaken_ = true;
    }
    return {Moved::Result::some};
  }

  Conduit& below_;
  std::mt19937_64 random_;
  const std::byte mask_;
  bool greets_ = false, shaken_ = false;
  std::vector<std::byte> out_, in_;
};

// Tells texts, keys and processes apart, and hides nothing.
class PlainProver final : public Prover {
 public:
  const PublicKey& public_key() const override { return public_key_; }
  Result<PairKey> agree(const ProcessId& self, const ProcessId& peer,
                        const PublicKey& peer_key) const override {
    if (peer_key == PublicKey{}) return Status(Code::invalid, "no public key");
    PairKey key;
    for (size_t i = 0; i < key.bytes.size(); ++i) {
      const auto sum =
          std::to_integer<unsigned>(public_key_[i]) + std::to_integer<unsigned>(peer_key[i]);
      key.bytes[i] = static_cast<std::byte>(sum + self.low * peer.low + i);
    }
    return key;
  }
  Result<Key> prove(const PairKey& key, std::span<const std::byte> text) const override {
    Key proof;
    std::copy_n(key.bytes.begin(), proof.size(), proof.begin());
    for (size_t i = 0; i < text.size(); ++i) {
      std::byte& at = proof[i % proof.size()];
      at = static_cast<std::byte>(31 * std::to_integer<unsigned>(at)) ^ text[i];
    }
    return proof;
  }

 private:
  const PublicKey public_key_{std::byte{17}};
};

// Lacks memory for the next keys; can be closed for good.
class PoorProver final : public Prover {
 public:
  const PublicKey& public_key() const override { return rich_.public_key(); }
  Result<PairKey> agree(const ProcessId& self, const ProcessId& peer,
                        const PublicKey& peer_key) const override {
    if (lacks == 0) return rich_.agree(self, peer, peer_key);
    --lacks;
    return Status(Code::memory, "no memory for a key");
  }
  Result<Key> prove(const PairKey& key, std::span<const std::byte> text) const override {
    return rich_.prove(key, text);
  }

  Status state() const override {
    return closed ? Status(Code::unavailable, "the prover is closed") : Status();
  }

  mutable int lacks = 0;
  mutable bool closed = false;

 private:
  const PlainProver rich_{};
};

class SlowFilters final : public FilterMaker {
 public:
  explicit SlowFilters(uint64_t seed) : seed_(seed) {}
  bool filters(bool) const override { return true; }
  Result<std::unique_ptr<Conduit>> make(Conduit& below, const ConduitEnds& ends) override {
    return std::unique_ptr<Conduit>(std::make_unique<SlowFilter>(below, ends, seed_++));
  }

 private:
  std::atomic<uint64_t> seed_;  // endpoints of several threads share the maker
};

}  // namespace sluice
