// SPDX-License-Identifier: BSD-3-Clause
//
// Which device is used: by list, state, address and nearness, and by what the peer reaches.
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "src/base/log.h"
#include "tests/unit/transports/fake_verbs.h"
#include "tests/unit/transports/tcp_rig.h"
#include "transports/verbs/pair.h"
#include "transports/verbs/upgrade.h"

namespace sluice {
namespace {

using fake_verbs::Device;
using fake_verbs::Settings;
using Devices = std::vector<Device>;

class NoConduit final : public Conduit {
 public:
  const char* name() const override { return "none"; }
  Moved write(std::span<const iovec>) override { return {Moved::Result::nothing}; }
  Moved read(std::span<const iovec>) override { return {Moved::Result::nothing}; }
};

// The kernel's files, of two NUMA nodes: this thread runs on the second alone.
class FakeSystem {
 public:
  FakeSystem() : folder_("/tmp/sluice-verbs-" + std::to_string(getpid())) {
    cpu_set_t own;
    sched_getaffinity(0, sizeof(own), &own);
    int first = 0;
    while (!CPU_ISSET(first, &own)) ++first;
    write("devices/system/node/node0/cpulist", "9000-9003,9008");
    write("devices/system/node/node1/cpulist", "8999," + std::to_string(first));
    write("devices/system/node/node2/cpulist", "");
    write("devices/system/node/node0/distance", "10 21 31");
    write("devices/system/node/node1/distance", "21 10 12");
    write("devices/system/node/node2/distance", "31 12 10");
  }
  ~FakeSystem() { std::filesystem::remove_all(folder_); }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  void place(const std::string& device, const std::string& node) const {
    write("class/infiniband/" + device + "/device/numa_node", node);
    write("class/infiniband/" + device + "/ports/1/rate", "100 Gb/sec (4X EDR)");
  }
  const std::string& path() const { return folder_; }

 private:
  void write(const std::string& path, const std::string& line) const {
    const std::filesystem::path whole = folder_ + "/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << line << "\n";
  }

  const std::string folder_;
};

class VerbsDevices : public testing::Test {
 protected:
  static void begin(const Devices& devices) {
    Settings settings;
    settings.devices = devices;
    fake_verbs::reset(settings);
  }
  std::vector<VerbsPort> survey(const std::string& list = "") const {
    auto ports = survey_verbs(fake_verbs::table(), list, system_.path());
    EXPECT_TRUE(ports.ok());
    return *ports;
  }
  std::string order() const {
    std::string names;
    for (const VerbsPort& each : survey()) names += std::string(each.port.device) + " ";
    return names;
  }

  const FakeSystem system_;
};

TEST_F(VerbsDevices, AreChosenByListAndState) {
  begin({Device{}});
  const auto problem = [&](const std::string& list) {
    return why_none(survey(list), system_.path()).message();
  };
  const std::string excluded = "device fake0, port 1: excluded by SLUICE_VERBS_DEVICES";
  EXPECT_EQ(problem(""), "");
  EXPECT_EQ(problem("other,fake0"), "");
  EXPECT_EQ(problem("fake0:1"), "");
  EXPECT_EQ(problem("^other"), "");
  EXPECT_EQ(problem("^fake0:2"), "");
  EXPECT_EQ(problem("fake"), excluded);
  EXPECT_EQ(problem("fake0:2"), excluded);
  EXPECT_EQ(problem("^other,fake0"), excluded);
  EXPECT_EQ(problem("^fake0:1"), excluded);
  begin({Device{.active = false}, Device{.name = "fake1", .gids = {}}});
  EXPECT_EQ(problem(""),
            "device fake0, port 1: not active; device fake1, port 1: no address (GID)");
  begin({});
  EXPECT_EQ(problem(""), "no RDMA device");
}

TEST_F(VerbsDevices, RoceOverIpv4ComesFirst) {
  begin({Device{}});
  const VerbsPort port = survey().at(0);
  EXPECT_EQ(port.gids.at(port.gid).index, 2);
  EXPECT_EQ(text_of_gid(port.gids.at(port.gid)), "203.0.0.0");
  auto gids = Device::roce(203);
  gids.erase(gids.begin() + 2);
  begin({Device{.gids = gids}});
  const VerbsPort second = survey().at(0);
  EXPECT_EQ(second.gids.at(second.gid).index, 1) << "v2 over IPv6";
}

// A network stands for addresses of RoCE v2: a port uses one that the list allows, if it has any.
TEST_F(VerbsDevices, NetworksChooseAmongAddresses) {
  auto gids = Device::roce(203);
  gids.push_back(gids[2]);  // of another network of the same port
  gids.back().index = 4;
  gids.back().raw[12] = 10;
  begin({Device{.gids = gids},
         Device{.name = "ib0", .ethernet = false, .gids = Device::infiniband(1)}});
  const auto used = [&](const std::string& list) {
    std::string text;
    for (const VerbsPort& each : survey(list)) {
      if (!each.problem.empty()) continue;
      text += std::string(each.port.device) + "=" + text_of_gid(each.gids[each.gid]) + " ";
    }
    return text;
  };
  EXPECT_EQ(used(""), "fake0=203.0.0.0 ib0=fe80:0:0:1:: ");
  EXPECT_EQ(used("10.0.0.0/8"), "fake0=10.0.0.0 ");
  EXPECT_EQ(used("10.0.0.0"), "fake0=10.0.0.0 ");
  EXPECT_EQ(used("10.0.0.0/8,ib0"), "fake0=10.0.0.0 ib0=fe80:0:0:1:: ");
  EXPECT_EQ(used("10.0.0.0/8,fake0:1"), "fake0=203.0.0.0 ") << "its name allows all of them";
  EXPECT_EQ(used("172.16.0.0/12,fe80::/16"), "");
  EXPECT_EQ(used("^203.0.0.0/8"), "fake0=10.0.0.0 ib0=fe80:0:0:1:: ");
  EXPECT_EQ(used("^0.0.0.0/0"), "ib0=fe80:0:0:1:: ") << "the address of the link is no way round";
}

TEST_F(VerbsDevices, AListThatMakesNoSenseIsAnError) {
  begin({Device{}});
  for (const std::string item : {"10.0.0.0/33", "rack7/24", "", " ", "^fake1", "a b"}) {
    const auto ports = survey_verbs(fake_verbs::table(), "fake0," + item, system_.path());
    EXPECT_EQ(ports.status().code(), Code::invalid);
    EXPECT_EQ(check_verbs_devices("fake0," + item).message(), ports.status().message());
    EXPECT_EQ(ports.status().message().find("SLUICE_VERBS_DEVICES: list 'fake0," + item), 0U)
        << ports.status().message();
  }
}

TEST_F(VerbsDevices, TheNearestComesFirst) {
  begin({Device{.name = "far"}, Device{.name = "unknown"}, Device{.name = "beside"},
         Device{.name = "near"}, Device{.name = "down", .active = false}});
  system_.place("far", "0");
  system_.place("unknown", "-1");
  system_.place("beside", "2");
  system_.place("near", "1");
  system_.place("down", "1");
  EXPECT_EQ(order(), "near beside unknown far down ");
  EXPECT_EQ(survey().at(0).rate, "100 Gb/sec (4X EDR)");
  EXPECT_EQ(survey().at(0).node, 1);
}

TEST_F(VerbsDevices, OfEquallyNearOnesTheFirstComesFirst) {
  begin({Device{.name = "a"}, Device{.name = "b"}, Device{.name = "c"}});
  EXPECT_EQ(order(), "a b c ");
}

// Connects a pair of the device to a peer with such an end; the error if it cannot.
Status connect(const VerbsPort& port, const std::function<void(VerbsPair::End&)>& change) {
  auto device = VerbsDevice::open(fake_verbs::table(), port);
  if (!device.ok()) return device.status();
  auto pair = VerbsPair::make(*device, 4096);
  if (!pair.ok()) return pair.status();
  VerbsPair::End peer = (*pair)->end();
  change(peer);
  return (*pair)->connect(peer, &port);
}

TEST_F(VerbsDevices, InfinibandGoesByLidAndElseByGid) {
  for (const uint16_t lid : {7, 0}) {
    begin({Device{.ethernet = false, .lid = lid, .gids = Device::infiniband(1)}});
    const auto ports = survey();
    const Status connected = connect(ports.at(0), [](VerbsPair::End& end) {
      end.lid = 9;
      end.gid[15] = 5;
    });
    EXPECT_TRUE(connected.ok()) << connected.message();
    EXPECT_EQ(fake_verbs::latest_way().global, lid == 0);
    EXPECT_EQ(fake_verbs::latest_way().peer_lid, 9);
    EXPECT_EQ(fake_verbs::latest_way().peer_gid[15], 5);
    const Status apart = connect(ports.at(0), [](VerbsPair::End& end) { end.gid[7] = 2; });
    EXPECT_NE(apart.message().find("another fabric (subnet prefix): fe80:0:0:2::"),
              std::string::npos)
        << apart.message();
  }
}

// (Of the networks that a GID names, this host surely is in that of loopback.)
TEST_F(VerbsDevices, AnotherSubnetIsNotReached) {
  auto gids = Device::roce(127);
  gids[2].raw[15] = 1;
  begin({Device{.gids = gids}});
  const auto ports = survey();
  EXPECT_TRUE(connect(ports.at(0), [](VerbsPair::End& end) { end.gid[14] = 3; }).ok());
  const Status apart = connect(ports.at(0), [](VerbsPair::End& end) { end.gid[12] = 10; });
  EXPECT_NE(apart.message().find("another subnet: 10.0.0.1, here 127.0.0.1"), std::string::npos)
      << apart.message();
}

// Which port of which network: the connecting side has both, and its nearest is in the other.
TEST_F(VerbsDevices, TheConnectingSideOffersItsPortsInOrder) {
  const auto infiniband = [](const char* name, uint8_t subnet) {
    return Device{.name = name, .ethernet = false, .lid = 3, .gids = Device::infiniband(subnet)};
  };
  begin({infiniband("ib0", 1), infiniband("ib1", 2), Device{.name = "roce0"}});
  const auto with = [](const std::string& first, const std::string& second) {
    return [=, rank = 0](const ProcessId& self) mutable {
      TcpOptions options;
      const std::string& devices = rank++ == 0 ? first : second;
      options.upgrades = {make_verbs_upgrades({16384, devices, true, &fake_verbs::table()})};
      return tcp(options)(self);
    };
  };
  for (const std::string one : {"ib0", "ib1", "roce0"}) {
    Ranks ranks(with("", one), 2);  // rank 0 connects
    EXPECT_TRUE(exchange_until(ranks, "verbs")) << one;
    Ranks turned(with(one, ""), 2);
    EXPECT_TRUE(exchange_until(turned, "verbs")) << one;
  }
  Ranks apart(with("ib0,roce0", "ib1"), 2);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(exchange(apart));
  EXPECT_STREQ(apart.channel(0, 1).carrier(), "tcp");
  EXPECT_STREQ(apart.channel(1, 0).carrier(), "tcp");
}

// The accepting side takes the nearest of its ports that reaches the one offered.
TEST_F(VerbsDevices, TheAcceptingSideTakesOneThatReachesTheOther) {
  const Device infiniband{
      .name = "ib0", .ethernet = false, .lid = 3, .gids = Device::infiniband(1)};
  begin({infiniband, Device{.name = "roce0"}});
  const auto maker = [](const std::string& devices) {
    TcpOptions options;
    options.upgrades = {make_verbs_upgrades({16384, devices, true, &fake_verbs::table()})};
    return options;
  };
  for (const std::string list : {"roce0", "ib0", ""}) {
    Ranks ranks(
        [&, rank = 0](const ProcessId& self) mutable {
          return tcp(maker(rank++ == 0 ? list : ""))(self);
        },
        2);
    EXPECT_TRUE(exchange_until(ranks, "verbs")) << list;
  }
  Ranks apart(
      [&, rank = 0](const ProcessId& self) mutable {
        return tcp(maker(rank++ == 0 ? "roce0" : "ib0"))(self);
      },
      2);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(exchange(apart));
  EXPECT_STREQ(apart.channel(0, 1).carrier(), "tcp");
}

TEST_F(VerbsDevices, OneWhoseAddressesCannotBeReadSaysWhy) {
  begin({Device{.gids_error = EINVAL}});
  EXPECT_EQ(why_none(survey()).message(), "device fake0, port 1: cannot be used: Invalid argument");
}

TEST_F(VerbsDevices, IwarpIsNotUsed) {
  begin({Device{.name = "iw0", .foreign = true}, Device{}});
  EXPECT_EQ(order(), "fake0 iw0 ");
  EXPECT_NE(survey().at(1).problem.find("iWARP"), std::string::npos) << survey().at(1).problem;
}

// What a process says at its first links, of the devices that it cannot use.
std::string said_of_devices(const std::string& list, const std::string& system) {
  testing::internal::CaptureStderr();
  const auto maker = make_verbs_upgrades({4096, list, true, &fake_verbs::table(), system});
  for (int i = 0; i < 2; ++i) (void)maker->choices();
  return testing::internal::GetCapturedStderr();
}

TEST_F(VerbsDevices, NamedOnesThatAreAbsentAreAnErrorWhereRdmaIsDemanded) {
  begin({Device{}, Device{.name = "fake1", .error = EACCES}});
  const std::string absent = "SLUICE_VERBS_DEVICES names what this host lacks: ";
  struct {
    const char *list, *lacks;
  } const cases[] = {{"", ""},
                     {"fake0,fake0:1,fake1:2,10.0.0.0/8", ""},
                     {"fake*,fake0:*", ""},
                     {" fake0 , fake1:2", ""},
                     {"mlx*,fake*", "mlx*"},
                     {"other,fake0,fake0:2", "other, fake0:2"}};
  for (const auto& each : cases) {
    const bool lacks = each.lacks[0] != 0;
    EXPECT_EQ(check_named(each.list, survey()).message(), lacks ? absent + each.lacks : "");
    const std::string said = said_of_devices(each.list, system_.path());
    EXPECT_EQ(said.find(absent + each.lacks) != std::string::npos, lacks) << said;
    NoConduit base;
    VerbsOptions options{4096, each.list, true, &fake_verbs::table(), system_.path()};
    EXPECT_TRUE(make_verbs_upgrades(options)->make(base, 0).ok()) << each.list;
    options.demanded = true;
    const Status status = make_verbs_upgrades(options)->make(base, 0).status();
    EXPECT_EQ(status.message(), lacks ? absent + each.lacks : "");
  }
}

TEST_F(VerbsDevices, ExcludedOnesThatAreAbsentAreNoError) {
  begin({Device{}});
  const std::string absent = "SLUICE_VERBS_DEVICES names what this host lacks: mlx*";
  EXPECT_EQ(check_named("^mlx*,fake1*", survey()).message(), absent + ", fake1*");
  for (const char* list : {"^mlx*", " ^mlx*"}) {
    const std::string said = said_of_devices(list, system_.path());
    EXPECT_EQ(said.find("names what this host lacks"), std::string::npos) << list << said;
  }
  set_log_level(Level::info);
  EXPECT_NE(said_of_devices("^mlx*", system_.path()).find(absent), std::string::npos);
  set_log_level(Level::warning);
  NoConduit base;
  VerbsOptions options{4096, "^mlx*", true, &fake_verbs::table(), system_.path()};
  options.demanded = true;
  EXPECT_TRUE(make_verbs_upgrades(options)->make(base, 0).ok());
}

// Each connect that times out stops the process for a second.
class VerbsLateConnects : public VerbsDevices {
 protected:
  void SetUp() override {
    begin({Device{}});
    fake_verbs::settings().refuse_connect = [&](const std::string&, const std::string&) {
      return calls_++ == good_ ? 0 : ETIMEDOUT;
    };
  }
  std::shared_ptr<UpgradeMaker> make() const {
    return make_verbs_upgrades({4096, "", true, &fake_verbs::table(), system_.path()});
  }
  // What connecting the link to a peer with that address ends with.
  std::string connect(UpgradeMaker& maker, Conduit& link, uint8_t address) const {
    NoConduit other;
    const auto made = make()->make(other, 0);
    if (!made.ok()) return made.status().message();
    VerbsPair::End end;
    std::memcpy(&end, made->offer.data(), sizeof(end));
    end.gid[14] = address;
    return maker.attach(std::as_bytes(std::span(&end, 1)), link).status().message();
  }

  int calls_ = 0, good_ = -1;  // the call that goes well
};

TEST_F(VerbsLateConnects, ThreeLinksInARowAreTheEndOfThePort) {
  NoConduit links[5];
  for (const int good : {-1, 2}) {
    calls_ = 0;
    good_ = good;
    const auto maker = make();
    std::string why;
    testing::internal::CaptureStderr();
    for (uint8_t i = 0; i < 8; ++i) why = connect(*maker, links[i % 5], i);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(why.find("fake0, port 1: given up"), std::string::npos) << why;
    EXPECT_NE(said.find("RDMA is not used: " + why), std::string::npos) << said;
    EXPECT_EQ(said.find(why), said.rfind(why)) << "told twice";
    EXPECT_EQ(calls_, good + 1 + 3);
  }
}

TEST_F(VerbsLateConnects, OnePeerThatIsSilentOnAllItsPortsLeavesThePort) {
  const auto maker = make();
  NoConduit silent, other;
  for (uint8_t i = 0; i < 4; ++i) {
    EXPECT_NE(connect(*maker, silent, i).find("Connection timed out"), std::string::npos);
  }
  good_ = calls_;
  EXPECT_EQ(connect(*maker, other, 9), "");
}

TEST_F(VerbsLateConnects, AnAddressIsTriedOnce) {
  const auto maker = make();
  NoConduit links[4];
  for (Conduit& each : links) {
    EXPECT_NE(connect(*maker, each, 1).find("timed out"), std::string::npos);
  }
  EXPECT_EQ(calls_, 1);
}

// Two ranks with these devices: rank 0 connects.
MakeEndpoint ranks_with(const std::string& connecting, const std::string& accepting) {
  return [=, rank = 0](const ProcessId& self) mutable {
    TcpOptions options;
    const std::string& devices = rank++ == 0 ? connecting : accepting;
    options.upgrades = {make_verbs_upgrades({16384, devices, true, &fake_verbs::table()})};
    return tcp(options)(self);
  };
}

Device with_addresses(const std::string& name, const std::vector<uint8_t>& networks) {
  Device device{.name = name, .gids = Device::roce(networks[0])};
  for (size_t i = 1; i < networks.size(); ++i) {
    device.gids.push_back(device.gids[2]);
    device.gids.back().index = static_cast<uint8_t>(3 + i);
    device.gids.back().raw[12] = networks[i];
  }
  return device;
}

// (Of the networks of IPv4, this host surely is in loopback's: from there the other is not
// reached.)
TEST_F(VerbsDevices, APortIsReachedByEachOfItsAddresses) {
  begin({with_addresses("a", {127, 203}), with_addresses("b", {127}), with_addresses("c", {203})});
  for (Device& each : fake_verbs::settings().devices) {
    for (SluiceVerbsGid& gid : each.gids) gid.raw[15] = gid.raw[12] == 127 ? 1 : gid.raw[15];
  }
  const auto carried = [](const std::string& first, const std::string& second) {
    Ranks ranks(ranks_with(first, second), 2);
    return exchange_until(ranks, "verbs");
  };
  for (const std::string single : {"b", "c"}) {
    EXPECT_TRUE(carried("a", single)) << single;
    EXPECT_TRUE(carried(single, "a")) << single;
  }
  EXPECT_TRUE(survey("^203.0.0.0/8").at(0).other_gids.empty());
  EXPECT_EQ(survey("a").at(0).other_gids, std::vector<size_t>{4});
}

TEST_F(VerbsDevices, APortThatComesUpAndANewAddressAreFound) {
  begin({Device{}, Device{.name = "fake1", .active = false}});
  const auto maker = make_verbs_upgrades({4096, "", true, &fake_verbs::table(), system_.path()});
  NoConduit base;
  const auto address_at = [&](size_t choice) {
    VerbsPair::End end;
    const auto made = maker->make(base, choice);
    if (made.ok()) std::memcpy(&end, made->offer.data(), sizeof(end));
    return made.ok() ? int{end.gid[12]} : -1;
  };
  EXPECT_EQ(maker->choices(), 1U);
  EXPECT_EQ(address_at(0), 203);
  fake_verbs::settings().devices[0].gids = Device::roce(10);
  EXPECT_EQ(address_at(0), 203) << "no event has told";
  fake_verbs::happen({SLUICE_VERBS_PORT_CHANGED, 1, 0, "GID change"});
  EXPECT_EQ(address_at(0), 10);
  fake_verbs::settings().devices[1].active = true;
  fake_verbs::happen({SLUICE_VERBS_PORT_UP, 1, 0, "port active"});
  EXPECT_EQ(maker->choices(), 2U);
  EXPECT_EQ(address_at(1), 203);
}

TEST_F(VerbsDevices, OneThatCannotBeOpenedIsListedAndWarnedOf) {
  const std::string reason =
      "device fake0: cannot be used: Permission denied; permit access to /dev/infiniband";
  begin({Device{.error = EACCES}});
  EXPECT_EQ(why_none(survey()).message(), reason);
  const std::string alone = said_of_devices("", system_.path());
  EXPECT_NE(alone.find("RDMA is not used: " + reason), std::string::npos) << alone;
  EXPECT_EQ(alone.find(reason), alone.rfind(reason)) << "told twice";
  begin({Device{.error = EACCES}, Device{.name = "fake1"}});
  EXPECT_EQ(order(), "fake1 fake0 ");
  const std::string beside = said_of_devices("", system_.path());
  EXPECT_NE(beside.find("RDMA " + reason), std::string::npos) << beside;
  EXPECT_EQ(beside.find(reason), beside.rfind(reason)) << "told twice";
  EXPECT_EQ(said_of_devices("^fake0", system_.path()), "") << "nobody wants it";
}

TEST_F(VerbsDevices, OneThatOnlyTheKernelKnowsIsWarnedOf) {
  begin({});
  EXPECT_EQ(said_of_devices("", system_.path()), "") << "a host without RDMA";
  system_.place("mlx5_0", "0");
  const std::string said = said_of_devices("", system_.path());
  for (const char* part : {"RDMA is not used", "ib_uverbs", "ibverbs-providers"}) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

const Devices four_ports{Device{.name = "a0"}, Device{.name = "a1"}, Device{.name = "b0"},
                         Device{.name = "b1"}};

// One combination of the ports works, and both sides know that only by trying.
TEST_F(VerbsDevices, AFailedConnectOnTheAcceptingSideLeavesTheOtherPorts) {
  for (const std::string works : {"b0a0", "b0a1", "b1a0", "b1a1"}) {
    begin(four_ports);
    fake_verbs::settings().refuse_connect = [=](const std::string& own, const std::string& peer) {
      return own[0] == 'a' || own + peer == works ? 0 : EHOSTUNREACH;
    };
    Ranks ranks(ranks_with("a0,a1", "b0,b1"), 2);
    EXPECT_TRUE(exchange_until(ranks, "verbs")) << works;
  }
}

TEST_F(VerbsDevices, WhoeverConnectsAPortWhoseBytesDoNotCrossIsNotTheLast) {
  for (const bool turned : {false, true}) {
    begin(four_ports);
    fake_verbs::settings().dead = {"a0", "b0"};
    fake_verbs::settings().gives_up = true;
    Ranks ranks(turned ? ranks_with("b0,b1", "a0,a1") : ranks_with("a0,a1", "b0,b1"), 2);
    EXPECT_TRUE(exchange_until(ranks, "verbs"));
  }
}

}  // namespace
}  // namespace sluice
