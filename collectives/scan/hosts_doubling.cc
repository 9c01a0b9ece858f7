// SPDX-License-Identifier: BSD-3-Clause
//
// Scan and exscan on two levels: by recursive doubling on each host, then of the hosts' sums, among
// the last ranks of the hosts; these pass what comes before their host down a binomial tree there
// (the two-level scheme of Karonis et al., IPDPS 2000). A host sends one vector at a time to
// others, in place of one for each of its ranks.
//
// Cost, for h hosts of n ranks at most: 2 ceil(log2 n) + ceil(log2 h) steps, as many times S that a
// rank sends, and at most ceil(log2 h) x S that a host sends to others.
// Order: kept; each host's ranks must be consecutive.
// Scratch: at most 7 S.
#include <utility>

#include "collectives/patterns/chunk.h"
#include "collectives/patterns/hosts.h"
#include "collectives/patterns/log2.h"
#include "collectives/scan/recursion.h"

namespace sluice {

namespace {

class TwoLevelScan {
 public:
  TwoLevelScan(Collective collective, const Shape& shape)
      : collective_(collective), hosts_(shape), plan_(alias_of(collective, shape.rank)) {}

  Plan build() && {
    const Rank here = hosts_.size_of(hosts_.own), last = here - 1;
    plan_.talk_among(hosts_.here());
    if (here > 1) place_ = plan_.scratch(all_input);
    own_ = ScanDoubling(plan_, collective_, all_input, place_).run(hosts_.place, here);
    if (hosts_.place == last) scan_hosts();
    if (hosts_.own > 0) hand_down(binomial_tree(hosts_.place, here, last));
    finish();
    return std::move(plan_).build();
  }

 private:
  // Of the hosts' sums, by their last ranks. (Nobody needs that of the last host.)
  void scan_hosts() {
    const bool is_needed_here = hosts_.own + 1 < hosts_.count();
    Piece sum = all_input;
    if (own_ && collective_ == Collective::scan) sum = *own_;
    if (is_needed_here && own_ && collective_ == Collective::exscan) {
      sum = plan_.scratch(all_input);
      plan_.reduce(*own_, all_input, sum);
    }
    std::vector<Rank> leaders;
    for (const auto& there : hosts_.ranks) leaders.push_back(there.back());
    const Piece place = hosts_.own > 0 ? plan_.scratch(all_input) : all_input;
    plan_.talk_among(leaders);
    before_ = ScanDoubling(plan_, Collective::exscan, sum, place).run(hosts_.own, hosts_.count());
    plan_.talk_among(hosts_.here());
  }
  void hand_down(const TreeNode& node) {
    if (node.parent != no_rank) {
      before_ = plan_.scratch(all_input);
      plan_.recv(node.parent, *before_);
    }
    for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
      plan_.send(child->root, *before_);
    }
  }
  void finish() {
    if (before_ && own_) {
      plan_.reduce(*before_, *own_, all_output);
    } else if (before_ || own_) {
      plan_.copy(before_ ? *before_ : *own_, all_output);
    }
  }

  const Collective collective_;
  const Hosts hosts_;
  PlanBuilder plan_;
  Piece place_ = all_input;
  std::optional<Piece> own_;     // the result of this host's ranks alone
  std::optional<Piece> before_;  // that of the hosts before
};

template <Collective collective>
Plan plan_hosts_doubling(const Shape& shape) {
  return TwoLevelScan(collective, shape).build();
}

Cost hosts_doubling_cost(const Shape& shape) {
  const Hosts hosts(shape);
  const double inside = ceil_log2(hosts.most), across = ceil_log2(hosts.count());
  return {.steps = 2 * inside + across,
          .bytes = 2 * inside + across,
          .scratch = 7,
          .between = across,
          .at_most = true};
}

constexpr const char hosts_doubling_help[] =
    "at doubling distances on each host and among the hosts: small messages";

}  // namespace

constexpr Algorithm scan_hosts_doubling = {
    .collective = Collective::scan,
    .name = "hosts_doubling",
    .help = hosts_doubling_help,
    .needs = {.hosts = true},
    .plan = plan_hosts_doubling<Collective::scan>,
    .cost = hosts_doubling_cost,
};

constexpr Algorithm exscan_hosts_doubling = {
    .collective = Collective::exscan,
    .name = "hosts_doubling",
    .help = hosts_doubling_help,
    .needs = {.hosts = true},
    .plan = plan_hosts_doubling<Collective::exscan>,
    .cost = hosts_doubling_cost,
};

}  // namespace sluice
