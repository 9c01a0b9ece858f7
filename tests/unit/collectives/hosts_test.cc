// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/patterns/hosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collectives/model/model.h"

namespace sluice {
namespace {

using HostNumbers = std::vector<uint32_t>;

const HostNumbers uneven{0, 0, 0, 1, 2, 2};
const HostNumbers round_robin{0, 1, 2, 0, 1, 0};

Shape shape_of(const HostNumbers& hosts, Rank rank, Rank root = 0) {
  return {.rank = rank,
          .size = static_cast<Rank>(hosts.size()),
          .root = root,
          .radix = 2,
          .hosts = hosts};
}

TEST(Hosts, AreCounted) {
  EXPECT_EQ(count_hosts({}), 1u);
  EXPECT_EQ(most_per_host({}), 0u);
  EXPECT_EQ(count_hosts(uneven), 3u);
  EXPECT_EQ(most_per_host(uneven), 3u);
  EXPECT_EQ(most_per_host(round_robin), 3u);
  const Hosts hosts(shape_of(round_robin, 4));
  EXPECT_EQ(hosts.ranks, (std::vector<std::vector<Rank>>{{0, 3, 5}, {1, 4}, {2}}));
  EXPECT_EQ(hosts.own, 1u);
  EXPECT_EQ(hosts.place, 1u);
  EXPECT_FALSE(hosts.even());
}

// If one host has few ranks, the ranks of other hosts still all carry shares.
TEST(Hosts, CarrySharesInTurns) {
  const Hosts hosts(shape_of(round_robin, 4));
  EXPECT_EQ(hosts.shares(), 3u);
  EXPECT_EQ(hosts.own_shares(), (std::vector<Rank>{1}));
  EXPECT_EQ(hosts.leader_of(2), 0u);
  EXPECT_EQ(hosts.across(0), (std::vector<Rank>{0, 1, 2}));
  EXPECT_EQ(hosts.across(1), (std::vector<Rank>{3, 4, 2}));
  EXPECT_EQ(hosts.across(2), (std::vector<Rank>{5, 1, 2}));
  HostNumbers one_small(129, 0);
  std::fill(one_small.begin() + 64, one_small.end(), 1);
  one_small[128] = 2;
  EXPECT_EQ(Hosts(shape_of(one_small, 5)).own_shares(), (std::vector<Rank>{5}));
  EXPECT_EQ(Hosts(shape_of(one_small, 128)).own_shares().size(), 64u);
  // No rank carries more than the ranks of the smallest host must.
  const Hosts similar(shape_of(HostNumbers{0, 0, 0, 1, 1, 1, 1}, 6));
  EXPECT_EQ(similar.shares(), 3u);
  EXPECT_EQ(similar.own_shares(), std::vector<Rank>{});
}

TEST(Hosts, TheRootComesFirstOnItsHost) {
  for (const Rank root : {0u, 3u, 5u, 1u, 4u, 2u}) {
    for (Rank rank = 0; rank < 6; ++rank) {
      Hosts hosts(shape_of(round_robin, rank));
      hosts.put_first(root);
      EXPECT_EQ(hosts.ranks[hosts.host_of(root)][0], root);
      EXPECT_EQ(hosts.here()[hosts.place], rank) << "root " << root;
    }
  }
}

TEST(Hosts, OneHostOrOneRankOnEachHasNoLevels) {
  EXPECT_FALSE(has_levels({}));
  EXPECT_FALSE(has_levels(HostNumbers{0, 0, 0}));
  EXPECT_FALSE(has_levels(HostNumbers{0, 1, 2}));
  EXPECT_TRUE(has_levels(HostNumbers{0, 1, 1}));
  EXPECT_TRUE(has_consecutive_ranks(uneven));
  EXPECT_FALSE(has_consecutive_ranks(round_robin));
}

// These algorithms serve shapes with two levels; in-order reductions also need consecutive ranks.
TEST(Hosts, DecideWhatCanServe) {
  Algorithm algorithm{Collective::allreduce, "", "", {.hosts = true}, nullptr, nullptr};
  EXPECT_FALSE(can_serve(algorithm, 6, false, false));
  EXPECT_FALSE(can_serve(algorithm, 3, false, false, HostNumbers{0, 1, 2}));
  EXPECT_TRUE(can_serve(algorithm, 6, false, false, uneven));
  EXPECT_TRUE(can_serve(algorithm, 6, true, false, uneven));
  EXPECT_TRUE(can_serve(algorithm, 6, false, false, round_robin));
  EXPECT_FALSE(can_serve(algorithm, 6, true, false, round_robin));
}

// Every rank but the root has one parent, which lists it as a child. The parent of a host's leader
// is on another host, other parents are on the same host.
TEST(Hosts, MakeATreeOfTwoLevels) {
  for (const HostNumbers& hosts : {uneven, round_robin}) {
    for (Rank root = 0; root < 6; ++root) {
      std::vector<int> from_elsewhere(3, 0);
      for (Rank rank = 0; rank < 6; ++rank) {
        const TreeNode node = hosts_tree(shape_of(hosts, rank, root));
        EXPECT_EQ(node.parent == no_rank, rank == root);
        for (const Subtree& child : node.children) {
          EXPECT_EQ(hosts_tree(shape_of(hosts, child.root, root)).parent, rank);
          if (hosts[child.root] != hosts[rank]) ++from_elsewhere[hosts[child.root]];
        }
      }
      std::vector<int> expected(3, 1);
      expected[hosts[root]] = 0;
      EXPECT_EQ(from_elsewhere, expected) << "root " << root;
    }
  }
}

// The bytes between hosts are counted and compared with the published cost.
TEST(Hosts, BytesBetweenThemAreCounted) {
  const Algorithm& chain = *find_algorithm(Collective::broadcast, "hosts_chain");
  const HostNumbers hosts{0, 0, 1, 1};
  const Shape shape = shape_of(hosts, 0);
  const Model model(all_plans(chain, shape));
  EXPECT_EQ(model.timeline({100}).between, (std::vector<size_t>{100, 0}));
  Cost cost = chain.cost(shape);
  EXPECT_EQ(model.check_cost({100}, cost), Faults{});
  cost.between = 0.5;
  ASSERT_EQ(model.check_cost({100}, cost).size(), 1u);
  EXPECT_NE(model.check_cost({100}, cost)[0].find("host 0 sends"), std::string::npos);
  cost.between = 2;
  ASSERT_EQ(model.check_cost({100}, cost).size(), 1u);
  EXPECT_NE(model.check_cost({100}, cost)[0].find("no host sends"), std::string::npos);
  cost.at_most = true;
  EXPECT_EQ(model.check_cost({100}, cost), Faults{});
}

}  // namespace
}  // namespace sluice
