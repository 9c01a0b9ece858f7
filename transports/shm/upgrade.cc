// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/upgrade.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "transports/shm/ring.h"
#include "transports/shm/segment.h"
#include "transports/shm/single_copy.h"

namespace sluice {
namespace {

// The mapped memory. The process that made it writes to the first ring.
struct Rings {
  Ring rings[2];
};

// introduction: by which the accepting side finds out whether it can read the offering one's
// memory. It answers with its own.
struct Offer {
  Segment::Handle segment;
  Cma::Introduction introduction;
};
static_assert(sizeof(Offer) <= UpgradeMaker::max_offer);

template <typename T>
std::vector<std::byte> to_words(const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

// False if the words are of another kind.
template <typename T>
bool from_words(std::span<const std::byte> words, T* value) {
  if (words.size() != sizeof(T)) return false;
  std::memcpy(value, words.data(), sizeof(T));
  return true;
}

class ShmPeerMemory final : public AddressedMemory {
 public:
  explicit ShmPeerMemory(size_t least) : least_(least) {}
  size_t least() const override { return least_; }
  Cma::Introduction introduction() const { return cma_.introduction(); }
  // Whether it can be read.
  bool probe(const Cma::Introduction& theirs) { return cma_.probe_reading(0, theirs); }
  bool read(const Region& from, std::byte* to) override {
    return cma_.cma_get(0, from.address, to, from.bytes) == 0;
  }

 private:
  const size_t least_;
  SingleCopy cma_{1};
};

class ShmUpgrade final : public Upgrade {
 public:
  // side: 0 made the segment, 1 opened it.
  ShmUpgrade(Segment segment, int side, Conduit& base, size_t get_least)
      : segment_(std::move(segment)),
        base_(base),
        out_(rings()[side]),
        in_(rings()[1 - side]),
        memory_(get_least) {
    if (side == 1) segment_.close_file();
  }

  const char* name() const override { return "shm"; }
  Status accepted(std::span<const std::byte> answer) override {
    Cma::Introduction theirs;
    if (!from_words(answer, &theirs)) return {Code::invalid, "an answer of another kind"};
    learn(theirs);
    return {};
  }

  Cma::Introduction introduction() const { return memory_.introduction(); }
  void learn(const Cma::Introduction& theirs) {
    if (memory_.least() <= longest_lent) theirs_ = theirs;
  }
  // (Probed when it is first wanted: most programs never do.)
  PeerMemory* memory() override {
    if (theirs_) reads_ = memory_.probe(*std::exchange(theirs_, std::nullopt));
    return reads_ ? &memory_ : nullptr;
  }

  Moved write(std::span<const iovec> runs) override {
    if (ended_) return {Moved::Result::failed, 0, error_ != 0 ? error_ : EPIPE};
    const size_t bytes = out_.write(runs);
    if (out_.corrupt()) return {Moved::Result::failed, 0, EPROTO};
    if (bytes == 0) return {Moved::Result::nothing};
    if (out_.wakes()) wake_peer();
    return {Moved::Result::some, bytes};
  }

  Output output() override { return Output::kept; }

  Moved read(std::span<const iovec> runs) override {
    const size_t bytes = in_.read(runs);
    if (in_.corrupt()) return {Moved::Result::failed, 0, EPROTO};
    if (bytes > 0) {
      if (has_base_ && in_.wakes()) wake_peer();
      return {Moved::Result::some, bytes};
    }
    // The peer's end was noted before this look at the ring, so no more bytes can come.
    if (!ended_) return {Moved::Result::nothing};
    if (error_ != 0) return {Moved::Result::failed, 0, error_};
    return {Moved::Result::closed};
  }

  // The peer has opened the segment by now.
  void take_base() override {
    has_base_ = true;
    segment_.close_file();
  }

  bool may_sleep(bool reads, bool writes) override {
    const bool waits = (!reads || in_.sleeps()) && (!writes || out_.sleeps());
    if (!waits) awake(false);
    return waits;
  }

  void awake(bool) override {
    in_.awake();
    out_.awake();
  }

  bool has_arrived() override { return ended_ || in_.has_any(); }
  std::string problem() const override { return base_.problem(); }

  bool hear() override {
    bool any = false;
    while (!ended_) {
      char wake_ups[64];
      const iovec run{wake_ups, sizeof(wake_ups)};
      const Moved got = base_.read({&run, 1});
      if (got.result == Moved::Result::nothing) break;
      any = true;
      ended_ = got.result != Moved::Result::some;
      error_ = got.error;
    }
    return any;
  }

 private:
  Ring* rings() const { return reinterpret_cast<Rings*>(segment_.data())->rings; }

  // If the base has no room, it holds wake-up bytes that the peer has not read yet.
  void wake_peer() {
    char wake_up = 0;
    const iovec run{&wake_up, 1};
    (void)base_.write({&run, 1});
  }

  Segment segment_;
  Conduit& base_;
  RingWriter out_;
  RingReader in_;
  ShmPeerMemory memory_;
  std::optional<Cma::Introduction> theirs_;  // until it is probed
  bool reads_ = false;
  bool has_base_ = false;
  bool ended_ = false;  // the peer has closed the base, or it failed
  int error_ = 0;       // errno if it failed
};

class ShmUpgrades final : public UpgradeMaker {
 public:
  explicit ShmUpgrades(size_t get_least) : get_least_(get_least) {}

  uint8_t id() const override { return 1; }
  bool serves(bool same_host) const override { return same_host; }
  bool exposes() const override { return false; }

  Result<Made> make(Conduit& base, size_t) override {
    auto segment = Segment::create(sizeof(Rings), Segment::Way::unnamed);
    if (!segment.ok()) return segment.status();
    const Segment::Handle handle = segment->handle();
    auto upgrade = std::make_unique<ShmUpgrade>(std::move(*segment), 0, base, get_least_);
    const Offer offer{handle, upgrade->introduction()};
    return Made{std::move(upgrade), to_words(offer)};
  }

  Result<Made> attach(std::span<const std::byte> words, Conduit& base) override {
    Offer offer;
    if (!from_words(words, &offer)) return Status(Code::invalid, "an offer of another kind");
    if (offer.segment.has_name()) return Status(Code::invalid, "an offer of memory with a name");
    auto segment = Segment::open(offer.segment, sizeof(Rings));
    if (!segment.ok()) return segment.status();
    auto upgrade = std::make_unique<ShmUpgrade>(std::move(*segment), 1, base, get_least_);
    // (The segment was opened through that process.)
    if (offer.introduction.process == static_cast<uint64_t>(offer.segment.process)) {
      upgrade->learn(offer.introduction);
    }
    const Cma::Introduction answer = upgrade->introduction();
    return Made{std::move(upgrade), to_words(answer)};
  }

 private:
  const size_t get_least_;  // over longest_lent: never
};

}  // namespace

std::shared_ptr<UpgradeMaker> make_shm_upgrades(bool single_copy, size_t get_least) {
  return std::make_shared<ShmUpgrades>(single_copy ? get_least : SIZE_MAX);
}

}  // namespace sluice
