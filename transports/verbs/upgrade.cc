// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/upgrade.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/log.h"
#include "src/base/module.h"
#include "transports/interface_list.h"
#include "transports/verbs/lanes.h"
#include "transports/verbs/pair.h"
#include "transports/verbs/program_memory.h"

namespace sluice {
namespace {

using End = VerbsPair::End;
constexpr const char* no_device = "no RDMA device";
static_assert(sizeof(End) <= UpgradeMaker::max_offer);

bool decode(std::span<const std::byte> words, End* end) {
  if (words.size() != sizeof(*end)) return false;
  std::memcpy(end, words.data(), sizeof(*end));
  return true;
}

// Of each link's base: the local ports that accepted an offer, and are not known to work. (The base
// is a name only. Of one that is gone, another link may get the name: it tries these ports last.)
using Doubtful = std::map<const Conduit*, std::set<size_t>>;

class VerbsUpgrade final : public Upgrade {
 public:
  // connects: this side sends its probe first, and the other answers.
  VerbsUpgrade(std::unique_ptr<VerbsPair> pair, VerbsLanes lanes, Conduit& base, bool connects,
               std::shared_ptr<Doubtful> doubtful)
      : pair_(std::move(pair)),
        lanes_(std::move(lanes)),
        base_(base),
        connects_(connects),
        doubtful_(std::move(doubtful)) {}

  const char* name() const override { return "verbs"; }

  Status accepted(std::span<const std::byte> answer) override {
    End end;
    if (!decode(answer, &end)) return {Code::invalid, "an answer of another kind"};
    Status connected = pair_->connect(end, &base_);
    if (connected.ok()) lanes_.connect(end);
    return connected;
  }
  void take_base() override { doubtful_->erase(&base_); }

  // The device sends again for half a minute or longer what does not arrive, and then gives up.
  Result<bool> tried() override {
    const bool answers = !connects_ && pair_->has_probe();
    if ((connects_ || answers) && !pair_->sent_probe()) pair_->send_probe();
    const bool tried = pair_->tried();
    if (pair_->error() == 0) return tried;
    return Status(Code::unavailable, "bytes do not cross: " + pair_->failure());
  }

  Moved write(std::span<const iovec> runs) override {
    if (base_is_ != Base::open) {
      return {Moved::Result::failed, 0, base_error_ != 0 ? base_error_ : EPIPE};
    }
    const size_t bytes = pair_->write(runs);
    if (bytes > 0) return {Moved::Result::some, bytes};
    if (pair_->error() == 0) return {Moved::Result::nothing};
    // What the peer sent before explains more. It may still come over the base.
    return {Moved::Result::failed, 0, ECONNRESET};
  }

  // If the pair breaks because the peer has ended, the socket tells that. The socket's end may come
  // before the device has reported what the peer wrote last.
  Moved read(std::span<const iovec> runs) override {
    const size_t bytes = pair_->read(runs);
    if (bytes > 0) return {Moved::Result::some, bytes};
    if (pair_->error() != 0 && base_is_ == Base::open) hear();
    if (base_is_ == Base::ended && !pair_->stopped()) return {Moved::Result::nothing};
    if (base_error_ != 0) return {Moved::Result::failed, 0, base_error_};
    if (base_is_ == Base::ended) return {Moved::Result::closed};
    if (pair_->error() == 0) return {Moved::Result::nothing};
    read_failed_ = true;
    return {Moved::Result::failed, 0, pair_->error()};
  }

  bool delivered() override { return pair_->delivered(); }
  bool buffered() const override { return pair_->readable() > 0; }
  std::string problem() const override {
    return read_failed_ && base_is_ == Base::open ? pair_->failure() : std::string();
  }

  bool may_sleep(bool reads, bool writes) override {
    return pair_->sleeps(reads, writes) && lanes_.may_sleep();
  }
  PeerMemory* memory() override { return lanes_.empty() ? nullptr : &lanes_; }
  // (What the poll of another thread found stays for the next one.)
  void awake(bool any) override {
    if (any) pair_->awake();
  }
  bool has_arrived() override { return base_is_ != Base::open || pair_->has_arrived(); }
  int descriptor() const override { return pair_->descriptor(); }

  bool hear() override {
    pair_->check_events();
    bool any = false;
    while (base_is_ == Base::open) {
      char wake_ups[64];
      const iovec run{wake_ups, sizeof(wake_ups)};
      const Moved got = base_.read({&run, 1});
      if (got.result == Moved::Result::nothing) break;
      any = true;
      base_error_ = got.error;
      if (got.result == Moved::Result::failed) base_is_ = Base::broken;
      if (got.result == Moved::Result::closed) (void)end();
    }
    return any;
  }

  Output output() override {
    pair_->check_events();
    pair_->poll();
    if (!pair_->works()) return Output::lost;
    if (pair_->has_completed()) return Output::kept;
    (void)pair_->delivered();  // has the device report it
    return Output::on_its_way;
  }

  bool end() override {
    base_is_ = Base::ended;
    pair_->stop();
    return pair_->stopped();
  }

 private:
  std::unique_ptr<VerbsPair> pair_;
  VerbsLanes lanes_;
  Conduit& base_;
  const bool connects_;
  const std::shared_ptr<Doubtful> doubtful_;
  enum class Base : uint8_t {
    open,
    broken,  // it failed, and the pair goes on
    ended    // by the peer
  };
  Base base_is_ = Base::open;
  int base_error_ = 0;  // errno if it failed
  bool read_failed_ = false;
};

class VerbsUpgrades final : public UpgradeMaker {
 public:
  explicit VerbsUpgrades(VerbsOptions options) : options_(std::move(options)) {}

  uint8_t id() const override { return 2; }
  bool serves(bool same_host) const override { return !same_host || options_.local; }
  bool exposes() const override { return true; }

  // An address of a port each, the nearest port's first.
  size_t choices() override {
    const bool any = opened().ok();
    const auto usable = [](const VerbsPort& each) { return each.problem.empty(); };
    return any ? static_cast<size_t>(std::ranges::count_if(ports_, usable)) : 1;
  }

  Result<Made> make(Conduit& base, size_t choice) override {
    if (Status can = opened(); !can.ok()) return can;
    auto device = this->device(choice);
    if (!device.ok()) return device.status();
    auto pair = VerbsPair::make(*device, options_.ring);
    if (!pair.ok()) return warn(pair.status());
    return made(std::move(*pair), make_lanes(choice), base, true);
  }

  // The error is that of the nearest port, or of the nearest that another of the peer's may reach.
  Result<Made> attach(std::span<const std::byte> offer, Conduit& base) override {
    End peer;
    if (!decode(offer, &peer)) return Status(Code::invalid, "an offer of another kind");
    Status why = opened();
    if (!why.ok()) return why;
    for (const size_t at : order_for(base)) {
      auto made = attach(at, peer, base);
      if (made.ok()) return made;
      const bool better = made.status().code() == Code::mismatch && why.code() != Code::mismatch;
      if (why.ok() || better) why = made.status();
    }
    return why;
  }

 private:
  VerbsLanes::Lane make_lane(size_t port) {
    if (options_.get_least >= VerbsOptions::never) return nullptr;
    auto device = this->device(port);
    return device.ok() ? VerbsReads::make(*device, memory_, options_.get_least) : nullptr;
  }

  // Those of the connecting side, over all ports in turns, this one's first.
  VerbsLanes make_lanes(size_t port) {
    const std::vector<size_t> ports = each_port_from(port);
    VerbsLanes lanes;
    for (size_t i = 0; i < options_.pairs; ++i) lanes.set(i, make_lane(ports[i % ports.size()]));
    return lanes;
  }

  // Those of the accepting side, each over a port that the offered one's reaches; if several do, in
  // turns.
  VerbsLanes make_lanes(size_t port, const End& peer) {
    const std::vector<size_t> ports = each_port_from(port);
    VerbsLanes lanes;
    for (size_t i = 0; i < options_.pairs; ++i) {
      for (size_t k = 0; k < ports.size(); ++k) {
        const size_t at = ports[(i + k) % ports.size()];
        if (peer.lanes[i].reads == 0 || !reaches(ports_[at], peer.lanes[i]).ok()) continue;
        lanes.set(i, make_lane(at));
        break;
      }
    }
    lanes.connect(peer);
    return lanes;
  }

  // This one, and one address of each other port that may be used.
  std::vector<size_t> each_port_from(size_t port) const {
    std::vector<size_t> ports{port};
    std::set<std::string> seen{ports_[port].label()};
    for (size_t i = 0; i < ports_.size() && ports_[i].problem.empty(); ++i) {
      if (seen.insert(ports_[i].label()).second) ports.push_back(i);
    }
    return ports;
  }

  Made made(std::unique_ptr<VerbsPair> pair, VerbsLanes lanes, Conduit& base, bool connects) const {
    End end = pair->end();
    lanes.describe(&end);
    Made made;
    made.offer.resize(sizeof(end));
    std::memcpy(made.offer.data(), &end, sizeof(end));
    made.upgrade = std::make_unique<VerbsUpgrade>(std::move(pair), std::move(lanes), base, connects,
                                                  doubtful_);
    return made;
  }

  // The ports that may be used: the nearest first, and last those that came to nothing with this
  // peer.
  std::vector<size_t> order_for(const Conduit& base) const {
    const auto found = doubtful_->find(&base);
    const auto fresh = [&](size_t at) {
      return found == doubtful_->end() || !found->second.contains(at);
    };
    std::vector<size_t> order;
    for (size_t i = 0; i < ports_.size() && ports_[i].problem.empty(); ++i) order.push_back(i);
    std::stable_partition(order.begin(), order.end(), fresh);
    return order;
  }

  Result<Made> attach(size_t at, const End& peer, Conduit& base) {
    if (Status can = reaches(ports_[at], options_.ring, peer); !can.ok()) return can;
    auto device = this->device(at);
    if (!device.ok()) return device.status();
    auto pair = VerbsPair::make(*device, options_.ring);
    if (!pair.ok()) return warn(pair.status());
    (*doubtful_)[&base].insert(at);
    if (Status connected = (*pair)->connect(peer, &base); !connected.ok()) return connected;
    return made(std::move(*pair), make_lanes(at, peer), base, false);
  }

  // The same reason is told once. (A host without any device is nothing to warn of; the link tells
  // its reason.)
  Status warn(const Status& status) {
    const auto [told, is_new] = warned_.insert(status.message());
    if (is_new) log(Level::warning, "RDMA is not used: %s", told->c_str());
    return status;
  }

  Status open() {
    const Status none = find_ports();
    if (ports_.empty() && !none.ok() && none.message() != no_device) return none;
    const Status absent = check_named(options_.devices, ports_);
    if (absent.ok()) return none;
    const auto list = InterfaceList::parse(options_.devices);
    const bool excludes = list.ok() && list->excludes();
    if (options_.demanded && !excludes) return absent;
    log(excludes ? Level::info : Level::warning, "%s", absent.message().c_str());
    return none;
  }

  // An error if none may be used.
  Status find_ports() {
    if (!options_.table) {
      if (!has_verbs_devices(options_.system)) return {Code::unavailable, no_device};
      auto module = open_verbs_module(library_folder());
      if (!module.ok()) return module.status();
      options_.table = *module;
    }
    auto ports = survey_verbs(*options_.table, options_.devices, options_.system);
    if (!ports.ok()) return ports.status();
    ports_ = by_address(*ports);
    devices_.resize(ports_.size());
    const Status none = why_none(ports_, options_.system);
    if (none.ok()) warn_of_broken();
    return none;
  }

  // A port that has several addresses stands for each of them.
  static std::vector<VerbsPort> by_address(const std::vector<VerbsPort>& ports) {
    std::vector<VerbsPort> all;
    for (const VerbsPort& each : ports) {
      all.push_back(each);
      if (!each.problem.empty()) continue;
      for (const size_t other : each.other_gids) {
        all.push_back(each);
        all.back().gid = other;
      }
    }
    return all;
  }

  // Others are used in place of these.
  void warn_of_broken() const {
    for (const VerbsPort& each : ports_) {
      if (!each.broken) continue;
      log(Level::warning, "RDMA %s: %s", each.label().c_str(), each.problem.c_str());
    }
  }

  Status opened() {
    if (poll_changes()) survey_again();
    if (!std::exchange(opened_, true)) failure_ = open();
    return failure_.ok() || failure_.message() == no_device ? failure_ : warn(failure_);
  }

  // Whether ports or addresses have changed, as far as the devices that are open tell.
  bool poll_changes() {
    bool any = false;
    for (const auto& each : watched_) {
      each->take_events();
      any |= each->take_change();
    }
    return any;
  }

  // Links that are there keep their devices, and new ones share those that are as they were.
  void survey_again() {
    ports_.clear();
    devices_.clear();
    doubtful_->clear();
    failure_ = open();
    for (size_t i = 0; i < ports_.size(); ++i) {
      const auto serves = [&](const auto& each) {
        return each->problem(0).empty() && is_same(each->about(), ports_[i]);
      };
      const auto found = std::ranges::find_if(watched_, serves);
      if (found != watched_.end()) devices_[i] = *found;
    }
  }

  static bool is_same(const VerbsPort& a, const VerbsPort& b) {
    const auto identity = [](const VerbsPort& each) {
      return std::tuple(std::string_view(each.port.device), each.port.number, each.port.lid,
                        each.port.mtu, each.address().index, text_of_gid(each.address()));
    };
    return !b.gids.empty() && b.problem.empty() && identity(a) == identity(b);
  }

  // Opens a port that may be used, when it is first needed.
  Result<std::shared_ptr<VerbsDevice>> device(size_t at) {
    if (!devices_[at]) {
      auto device = VerbsDevice::open(*options_.table, ports_[at]);
      if (!device.ok()) return warn(device.status());
      devices_[at] = std::move(*device);
      watched_.push_back(devices_[at]);
    }
    const std::string problem = devices_[at]->problem(0);
    if (!problem.empty()) {
      return Status(Code::unavailable, devices_[at]->label() + ": " + problem);
    }
    if (const std::string why = devices_[at]->given_up(); !why.empty()) {
      return warn({Code::unavailable, devices_[at]->label() + ": " + why});
    }
    return devices_[at];
  }

  VerbsOptions options_;
  bool opened_ = false;
  Status failure_;
  std::vector<VerbsPort> ports_;                       // of one address each, nearest first
  std::vector<std::shared_ptr<VerbsDevice>> devices_;  // of ports_, as far as they are open
  std::vector<std::shared_ptr<VerbsDevice>> watched_;  // all that were opened
  const std::shared_ptr<ProgramMemory> memory_ = std::make_shared<ProgramMemory>(options_.pinned);
  const std::shared_ptr<Doubtful> doubtful_ = std::make_shared<Doubtful>();
  std::set<std::string> warned_;
};

}  // namespace

std::shared_ptr<UpgradeMaker> make_verbs_upgrades(const VerbsOptions& options) {
  return std::make_shared<VerbsUpgrades>(options);
}

}  // namespace sluice
