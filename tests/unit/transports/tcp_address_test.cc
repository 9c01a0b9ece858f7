// SPDX-License-Identifier: BSD-3-Clause
//
// Which addresses are listened on, published and tried; the byte format of frames and greetings.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "transports/link/frame.h"
#include "transports/tcp/address.h"
#include "transports/tcp/greeting.h"

namespace sluice {
namespace {

IpAddress ip(const std::string& text) {
  IpAddress address;
  EXPECT_TRUE(parse_ip(text, &address)) << text;
  return address;
}

Interface on(const std::string& name, const std::string& text, uint8_t prefix) {
  return {name, ip(text), prefix};
}

const std::vector<Interface> host = {
    on("lo", "127.0.0.1", 8),        on("eth0", "10.1.2.3", 16), on("eth1", "192.168.7.1", 24),
    on("docker0", "172.17.0.1", 16), on("lo", "::1", 128),       on("eth0", "fd00::3", 64),
};

std::string chosen(const std::string& list, int family = 0) {
  const auto result = choose_interfaces(host, list, family);
  if (!result.ok()) return to_string(result.status().code());
  std::string text;
  for (const Interface& each : *result) text += each.name + "=" + each.address.text() + " ";
  return text;
}

TEST(TcpInterfaces, EmptyListTakesAllWithOneLoopback) {
  EXPECT_EQ(chosen(""),
            "lo=127.0.0.1 eth0=10.1.2.3 eth1=192.168.7.1 docker0=172.17.0.1 eth0=fd00::3 ");
}

TEST(TcpInterfaces, NamesAndNetworks) {
  EXPECT_EQ(chosen("eth0"), "eth0=10.1.2.3 eth0=fd00::3 ");
  EXPECT_EQ(chosen("10.0.0.0/8"), "eth0=10.1.2.3 ");
  EXPECT_EQ(chosen("10.1.2.3"), "eth0=10.1.2.3 ");
  EXPECT_EQ(chosen("fd00::/16,eth1"), "eth1=192.168.7.1 eth0=fd00::3 ");
  EXPECT_EQ(chosen("0.0.0.0/0", 4), chosen("", 4));
  EXPECT_EQ(chosen("eth0,no-such-thing"), "eth0=10.1.2.3 eth0=fd00::3 ");
}

TEST(TcpInterfaces, Exclusion) {
  EXPECT_EQ(chosen("^lo,docker0"), "eth0=10.1.2.3 eth1=192.168.7.1 eth0=fd00::3 ");
  EXPECT_EQ(chosen("^172.16.0.0/12,eth1"), "lo=127.0.0.1 eth0=10.1.2.3 eth0=fd00::3 ");
  EXPECT_EQ(chosen("^0.0.0.0/0"), "lo=::1 eth0=fd00::3 ");
}

TEST(TcpInterfaces, SpacesAroundItems) {
  EXPECT_EQ(chosen(" eth1"), chosen("eth1"));
  EXPECT_EQ(chosen("eth1 ,\t10.0.0.0/8 "), chosen("eth1,10.0.0.0/8"));
  EXPECT_EQ(chosen(" ^ lo , eth0"), chosen("^lo,eth0"));
  EXPECT_EQ(chosen("eth1"), "eth1=192.168.7.1 ");
}

TEST(TcpInterfaces, Family) {
  EXPECT_EQ(chosen("", 6), "lo=::1 eth0=fd00::3 ");
  EXPECT_EQ(chosen("eth1", 6), "unavailable");
  const auto none = choose_interfaces({host[1]}, "", 6);
  EXPECT_EQ(none.status().message(),
            "no address of IPv6 can be used; this host has: eth0 10.1.2.3/16");
}

// 14 bridges before the network that leads to other hosts.
TEST(TcpInterfaces, TheBestComeFirst) {
  using Rank = Interface::Rank;
  std::vector<Interface> all;
  for (int i = 0; i < 14; ++i) {
    all.push_back(on("br" + std::to_string(i), "172.17." + std::to_string(i) + ".1", 24));
    all.back().rank = Rank::bridge;
  }
  for (const auto& [name, address, rank] : {std::tuple{"lo", "127.0.0.1", Rank::loopback},
                                            {"tun0", "10.8.0.1", Rank::virtual_device},
                                            {"ib0", "10.7.0.1", Rank::device},
                                            {"eth0", "10.1.2.3", Rank::default_route}}) {
    all.push_back(on(name, address, 24));
    all.back().rank = rank;
  }
  const auto chosen = choose_interfaces(all, "", 0);
  ASSERT_TRUE(chosen.ok());
  std::string first;
  for (size_t i = 0; i < 6; ++i) first += (*chosen)[i].name + " ";
  EXPECT_EQ(first, "eth0 lo ib0 tun0 br0 br1 ");
}

TEST(TcpInterfaces, RanksOfThisHost) {
  const auto all = local_interfaces();
  ASSERT_TRUE(all.ok());
  for (const Interface& each : *all) {
    EXPECT_EQ(each.address.is_loopback(), each.rank == Interface::Rank::loopback) << each.name;
  }
}

TEST(TcpInterfaces, ListsThatMakeNoSense) {
  for (const char* list :
       {"10.0.0.0/33", "10.0.0/8", "eth0,", "^", ",", "fd00::/129", "10.0.0.0/", "10.0.0.0/x",
        "10.0.0.0/-1", "eth0/8", "*eth0", "e*0", "eth**", " ", "eth0, ,lo", "^ "}) {
    EXPECT_EQ(chosen(list), "invalid") << list;
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"10.0.0.0/33", "'10.0.0.0/33' has an impossible prefix length"},
      {"eth0,", "'' is no name or network"},
      {"^^lo", "'^lo' has a ^ that is not the first character of the list"},
      {"^lo, ^eth0", "'^eth0' has a ^ that is not the first character of the list"},
      {"lo,^eth0*", "'^eth0*' has a ^ that is not the first character of the list"},
      {"eth0 lo", "'eth0 lo' has a space in it: commas separate items"}};
  for (const auto& [list, why] : wrong) {
    EXPECT_EQ(choose_interfaces(host, list, 0).status().message(),
              "SLUICE_TCP_INTERFACES: list '" + std::string(list) + "': " + why);
  }
  const auto none = choose_interfaces(host, "ib0", 0);
  EXPECT_EQ(none.status().code(), Code::unavailable);
  EXPECT_NE(none.status().message().find("'ib0'"), std::string::npos);
  EXPECT_NE(none.status().message().find("eth1 192.168.7.1/24"), std::string::npos);
}

// The kernel may not have noticed it yet.
TEST(TcpInterfaces, OnesWithoutCarrierComeLast) {
  std::vector<Interface> all = host;
  all[1].state = Interface::State::no_carrier;
  all[1].rank = Interface::Rank::default_route;
  all[3].rank = Interface::Rank::bridge;
  const auto rest = choose_interfaces(all, "^lo", 4);
  ASSERT_TRUE(rest.ok());
  ASSERT_EQ(rest->size(), 3U);
  EXPECT_EQ(rest->back().name, "eth0");
  const auto only = choose_interfaces(all, "10.0.0.0/8", 0);
  ASSERT_TRUE(only.ok());
  EXPECT_EQ(only->front().name, "eth0");
  EXPECT_NE(
      choose_interfaces(all, "ib0", 0).status().message().find("eth0 10.1.2.3/16 (no carrier)"),
      std::string::npos);
}

// Those that can't be used are listed, too.
TEST(TcpInterfaces, WhatThisHostHasIsListed) {
  using State = Interface::State;
  std::vector<Interface> all{on("ib0", "fe80::7", 64),
                             {"ib1", {}, 0, State::no_address},
                             on("eth2", "10.7.0.1", 16),
                             on("eth0", "10.1.2.3", 16)};
  all[0].state = State::link_local;
  all[2].state = State::down;
  const auto chosen_of = [&](const char* list) { return choose_interfaces(all, list, 0); };
  for (const char* list : {"ib0", "ib1", "fe80::/10", "eth2"}) {
    EXPECT_EQ(chosen_of(list).status().message(),
              "SLUICE_TCP_INTERFACES: no address matches '" + std::string(list) +
                  "'; this host has: eth0 10.1.2.3/16, ib0 fe80::7/64 (link-local), ib1 (no "
                  "address), eth2 10.7.0.1/16 (down)");
  }
  ASSERT_TRUE(chosen_of("").ok());
  EXPECT_EQ(chosen_of("")->size(), 1U);
}

TEST(TcpInterfaces, ThisHostHasUsableLoopbackAndNoUsableLinkLocalAddress) {
  const auto all = local_interfaces();
  ASSERT_TRUE(all.ok()) << all.status().message();
  bool loopback = false;
  for (const Interface& each : *all) {
    loopback |= each.is_usable() && each.address.is_loopback();
    EXPECT_FALSE(each.is_usable() && each.address.is_link_local_v6()) << each.name;
  }
  EXPECT_TRUE(loopback);
}

TEST(TcpInterfaces, BeginningsOfNames) {
  EXPECT_EQ(chosen("eth*", 4), "eth0=10.1.2.3 eth1=192.168.7.1 ");
  EXPECT_EQ(chosen("^docker*,lo*", 4), chosen("eth*", 4));
  EXPECT_EQ(chosen("eth0*,10.0.0.0/8", 4), "eth0=10.1.2.3 ");
  EXPECT_EQ(chosen("*"), chosen(""));
  EXPECT_EQ(chosen("th*"), "unavailable");
}

TEST(TcpInterfaces, ItemsThatMatchNothingAreNamed) {
  using State = Interface::State;
  std::vector<Interface> all = host;
  all.push_back({"ib0", {}, 0, State::no_address});
  const struct {
    const char *list, *items;
    int family = 0;
  } cases[] = {{"", ""},
               {"eth*,docker0,10.0.0.0/8,fd00::3", ""},
               {"^docker*,lo,ib*", ""},
               {"eth0,etc*,10.9.0.0/16", "'etc*', '10.9.0.0/16' matches no interface that can"},
               {"eth0,ib*", "'ib*' matches no interface that can"},
               {"eth0,eth1", "'eth1' matches no interface that can", 6},
               {"^dcoker*,veth*,lo", "'dcoker*', 'veth*' matches no interface; "}};
  for (const auto& [list, items, family] : cases) {
    const std::string told = unmatched_items(all, list, family);
    EXPECT_EQ(told.empty(), *items == 0) << told;
    EXPECT_NE(told.find(items), std::string::npos) << told;
    EXPECT_EQ(told.find("docker0 172.17.0.1/16") == std::string::npos, *items == 0) << told;
  }
}

AddressBlob blob_of(const std::vector<Interface>& interfaces, uint64_t host_id = 77) {
  AddressBlob blob;
  blob.host = host_id;
  blob.key.fill(std::byte{0x5A});
  uint16_t port = 40000;
  for (const Interface& each : interfaces) {
    blob.entries.push_back({each.address, each.prefix, ++port});
  }
  return blob;
}

TEST(TcpAddress, SurvivesTheWay) {
  const AddressBlob blob = blob_of(host);
  const auto back = AddressBlob::decode(blob.encode());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->host, blob.host);
  EXPECT_EQ(back->key, blob.key);
  EXPECT_FALSE(back->proves || AddressBlob::public_key_of(blob.encode()));
  ASSERT_EQ(back->entries.size(), blob.entries.size());
  for (size_t i = 0; i < blob.entries.size(); ++i) {
    EXPECT_EQ(back->entries[i].address, blob.entries[i].address);
    EXPECT_EQ(back->entries[i].prefix, blob.entries[i].prefix);
    EXPECT_EQ(back->entries[i].port, blob.entries[i].port);
  }
}

TEST(TcpAddress, HasAPublicKey) {
  AddressBlob blob = blob_of(host);
  blob.proves = true;
  blob.public_key.fill(std::byte{0xA5});
  const std::vector<std::byte> bytes = blob.encode();
  const auto back = AddressBlob::decode(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(back->proves);
  EXPECT_EQ(back->public_key, blob.public_key);
  EXPECT_EQ(back->key, blob.key);
  EXPECT_EQ(back->entries.size(), blob.entries.size());
  EXPECT_EQ(AddressBlob::public_key_of(bytes), blob.public_key);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(AddressBlob::decode({bytes.begin(), bytes.begin() + length}).ok()) << length;
  }
}

TEST(TcpAddress, StaysWithinItsRoom) {
  std::vector<Interface> many;
  for (int i = 0; i < 40; ++i) {
    many.push_back(on("e", (i % 2 ? "fd00::" : "10.0.0.") + std::to_string(i), 24));
  }
  AddressBlob blob = blob_of(many);
  blob.proves = true;
  const std::vector<std::byte> bytes = blob.encode();
  EXPECT_LE(bytes.size(), 186U);
  const auto back = AddressBlob::decode(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_GE(back->entries.size(), 8U);
}

TEST(TcpAddress, WhatIsNoAddressIsRefused) {
  const std::vector<std::byte> good = blob_of(host).encode();
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(AddressBlob::decode({good.begin(), good.begin() + length}).ok()) << length;
  }
  const int seed = testing::UnitTest::GetInstance()->random_seed();
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes(random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (!bytes.empty()) bytes[0] = good[0];
    const auto decoded = AddressBlob::decode(bytes);
    if (!decoded.ok()) continue;
    EXPECT_EQ(decoded->encode(), bytes) << "seed " << seed;
  }
}

std::string order(const AddressBlob& peer, uint64_t here, const std::vector<Interface>& all,
                  const std::vector<Interface>& ours) {
  std::string text;
  for (const Candidate& each : candidates(peer, here, all, ours)) {
    text += each.address.text() + "(" + each.interface + ")" + (each.certain ? " " : "? ");
  }
  return text;
}

TEST(TcpCandidates, LoopbackOnTheSameHost) {
  EXPECT_EQ(order(blob_of(host), 77, host, host),
            "127.0.0.1(lo) ::1(lo) 10.1.2.3(eth0) 192.168.7.1(eth1) 172.17.0.1(docker0) "
            "fd00::3(eth0) ");
}

TEST(TcpCandidates, LoopbackIsNotTriedBetweenHosts) {
  const std::vector<Interface> here = {on("lo", "127.0.0.1", 8), on("lo", "::1", 128),
                                       on("ens3", "10.9.0.9", 16)};
  EXPECT_EQ(order(blob_of(host), 78, here, here),
            "10.1.2.3() 192.168.7.1() 172.17.0.1() fd00::3() ");
}

TEST(TcpCandidates, TwoHostsThatAreNotKnownAreNotTheSame) {
  EXPECT_EQ(order(blob_of({on("lo", "127.0.0.1", 8)}, 0), 0, host, host), "127.0.0.1(lo)? ");
}

TEST(TcpCandidates, ASharedSubnetComesFirst) {
  const std::vector<Interface> here = {on("ens3", "172.30.0.1", 24), on("ib0", "192.168.7.9", 24)};
  EXPECT_EQ(order(blob_of(host), 78, here, here).substr(0, 17), "192.168.7.1(ib0) ");
  // Not by an interface that this process must not use.
  EXPECT_EQ(order(blob_of(host), 78, here, {here[0]}).substr(0, 11), "10.1.2.3() ");
}

// Whether it carries anything is not known.
TEST(TcpCandidates, ASubnetWithoutCarrierDoesNotComeFirst) {
  std::vector<Interface> here = {on("ib0", "192.168.7.9", 24), on("ib1", "192.168.7.10", 24)};
  here[0].state = Interface::State::no_carrier;
  EXPECT_EQ(order(blob_of(host), 78, here, here).substr(0, 17), "192.168.7.1(ib1) ");
  EXPECT_EQ(order(blob_of(host), 78, here, {here[0]}).substr(0, 28),
            "10.1.2.3() 192.168.7.1(ib0) ");
}

// Each host has its own docker0, all with the same address.
TEST(TcpCandidates, AnAddressOfOursIsNoWayToAnotherHost) {
  const std::vector<Interface> here = {on("docker0", "172.17.0.1", 16), on("eth0", "10.1.9.9", 16)};
  EXPECT_EQ(order(blob_of(host), 78, here, here), "10.1.2.3(eth0) 192.168.7.1() fd00::3() ");
}

// As on one host whose /proc is hidden from one of the two.
TEST(TcpCandidates, IfAllAreOursTheyAreTried) {
  const std::vector<Interface> here = {on("lo", "127.0.0.1", 8), on("eth0", "10.1.2.3", 16)};
  EXPECT_EQ(order(blob_of(here), 78, here, here), "10.1.2.3(eth0)? 127.0.0.1(lo)? ");
  for (const Candidate& each : candidates(blob_of(here), 78, here, here)) {
    EXPECT_FALSE(each.leads_away());
  }
}

TEST(TcpCandidates, AreConnectedFromTheInterfaceOnTheirSubnet) {
  const std::vector<Interface> here = {on("ens3", "172.30.0.1", 24), on("ib0", "192.168.7.9", 24)};
  for (const Candidate& each : candidates(blob_of(host), 78, here, here)) {
    EXPECT_TRUE(each.leads_away());
    EXPECT_EQ(each.source.has_value(), each.interface == "ib0");
    EXPECT_TRUE(!each.source || *each.source == here[1].address);
  }
}

// As a route would be: eth0's subnet has that of ib0 in it.
TEST(TcpCandidates, AreConnectedFromTheNarrowestSubnet) {
  const std::vector<Interface> here = {on("eth0", "192.168.0.1", 16), on("ib0", "192.168.7.9", 24)};
  const auto found = candidates(blob_of({on("ib0", "192.168.7.1", 24)}), 78, here, here);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].interface, "ib0");
  EXPECT_EQ(found[0].source, here[1].address);
  // Not a narrow one that does not lead there, whatever the peer says of its subnet.
  const std::vector<Interface> wide = {on("eth1", "192.168.8.1", 24),
                                       on("eth0", "192.168.0.1", 16)};
  const auto said = candidates(blob_of({on("ib0", "192.168.7.1", 12)}), 78, wide, wide);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].interface, "eth0");
}

TEST(TcpAddress, RoutesTellFromWhereItIsReached) {
  IpAddress there;
  ASSERT_TRUE(parse_ip("127.0.0.7", &there));
  const auto source = source_to(there);
  ASSERT_TRUE(source);
  EXPECT_TRUE(source->is_loopback());
}

TEST(TcpHost, IdentityIsStable) {
  EXPECT_EQ(host_identity(), host_identity());
  EXPECT_NE(host_identity(), 0U);
}

TEST(TcpWire, FramesSurviveTheWay) {
  Frame frame{FrameType::data, true, 4711, {{1, 2}, 3}, {4, 5, 6, 7}, 8};
  std::byte bytes[Frame::bytes];
  frame.encode(bytes);
  Frame back;
  ASSERT_TRUE(back.decode(bytes));
  EXPECT_EQ(back.type, frame.type);
  EXPECT_EQ(back.charged, frame.charged);
  EXPECT_EQ(back.length, frame.length);
  EXPECT_EQ(back.team, frame.team);
  EXPECT_EQ(back.tag.call, 4U);
  EXPECT_EQ(back.tag.ordinal, 5U);
  EXPECT_EQ(back.tag.segment, 6U);
  EXPECT_EQ(back.tag.signature, 7U);
  EXPECT_EQ(back.credit(), 8U);
  // The layout must not change: other builds and machines rely on it.
  EXPECT_EQ(std::to_integer<int>(bytes[0]), 1);
  EXPECT_EQ(std::to_integer<int>(bytes[1]), 1);
  EXPECT_EQ(std::to_integer<int>(bytes[4]), 4711 & 0xFF);
  EXPECT_EQ(std::to_integer<int>(bytes[8]), 1);
  EXPECT_EQ(std::to_integer<int>(bytes[16]), 2);
  EXPECT_EQ(std::to_integer<int>(bytes[24]), 3);
  EXPECT_EQ(std::to_integer<int>(bytes[28]), 4);
  EXPECT_EQ(std::to_integer<int>(bytes[44]), 8);
}

TEST(TcpWire, WhatIsNoFrameIsRefused) {
  std::byte bytes[Frame::bytes] = {};
  Frame frame;
  EXPECT_FALSE(frame.decode(bytes));
  bytes[0] = std::byte{16};
  EXPECT_FALSE(frame.decode(bytes));
  bytes[0] = std::byte{4};
  EXPECT_TRUE(frame.decode(bytes));
  bytes[1] = std::byte{2};
  EXPECT_FALSE(frame.decode(bytes)) << "an unknown flag";
  bytes[1] = std::byte{0};
  bytes[4] = std::byte{1};
  EXPECT_FALSE(frame.decode(bytes)) << "a credit has no payload";
}

}  // namespace
}  // namespace sluice
