// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shm/upgrade.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/shm/ring.h"
#include "transports/shm/segment.h"

namespace sluice {
namespace {

// The mapped memory. The process that made it writes to the first ring.
struct Rings {
  Ring rings[2];
};

using Offer = Segment::Handle;
static_assert(sizeof(Offer) <= UpgradeMaker::max_offer);

class ShmUpgrade final : public Upgrade {
 public:
  // side: 0 made the segment, 1 opened it.
  ShmUpgrade(Segment segment, int side, Conduit& base)
      : segment_(std::move(segment)), base_(base), out_(rings()[side]), in_(rings()[1 - side]) {
    if (side == 1) segment_.close_file();
  }

  const char* name() const override { return "shm"; }
  Status accepted(std::span<const std::byte> answer) override {
    if (!answer.empty()) return {Code::invalid, "an answer of another kind"};
    return {};
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
  bool has_base_ = false;
  bool ended_ = false;  // the peer has closed the base, or it failed
  int error_ = 0;       // errno if it failed
};

class ShmUpgrades final : public UpgradeMaker {
 public:
  uint8_t id() const override { return 1; }
  bool serves(bool same_host) const override { return same_host; }
  bool exposes() const override { return false; }

  Result<Made> make(Conduit& base, size_t) override {
    auto segment = Segment::create(sizeof(Rings), Segment::Way::unnamed);
    if (!segment.ok()) return segment.status();
    const Offer offer = segment->handle();
    Made made;
    made.offer.resize(sizeof(offer));
    std::memcpy(made.offer.data(), &offer, sizeof(offer));
    made.upgrade = std::make_unique<ShmUpgrade>(std::move(*segment), 0, base);
    return made;
  }

  Result<Made> attach(std::span<const std::byte> words, Conduit& base) override {
    Offer offer;
    if (words.size() != sizeof(offer)) return Status(Code::invalid, "an offer of another kind");
    std::memcpy(&offer, words.data(), sizeof(offer));
    if (offer.has_name()) return Status(Code::invalid, "an offer of memory that has a name");
    auto segment = Segment::open(offer, sizeof(Rings));
    if (!segment.ok()) return segment.status();
    return Made{std::make_unique<ShmUpgrade>(std::move(*segment), 1, base), {}};
  }
};

}  // namespace

std::shared_ptr<UpgradeMaker> make_shm_upgrades() { return std::make_shared<ShmUpgrades>(); }

}  // namespace sluice
