// SPDX-License-Identifier: BSD-3-Clause
//
// Key pairs of processes, what two of them agree on, and where the private keys are.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/unit/transports/tls_rig.h"

namespace sluice {
namespace {

constexpr ProcessId keys_low{1, 900}, keys_high{2, 1}, keys_other{1, 901};

class TlsKeys : public testing::Test {
 protected:
  void SetUp() override {
    if (!make_tls_prover(tls_options().folder).ok()) GTEST_SKIP() << "built without OpenSSL?";
  }
  static std::string agreed(const Prover& own, const ProcessId& self, const ProcessId& peer,
                            const PublicKey& peer_key) {
    const auto key = own.agree(self, peer, peer_key);
    EXPECT_TRUE(key.ok()) << key.status().message();
    return key.ok() ? hex(key->bytes) : "";
  }
  static std::string hex(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte each : bytes) {
      constexpr const char* digits = "0123456789abcdef";
      text += digits[std::to_integer<int>(each) >> 4];
      text += digits[std::to_integer<int>(each) & 15];
    }
    return text;
  }
};

TEST_F(TlsKeys, BothSidesAgree) {
  const auto one = tls_prover(), two = tls_prover();
  const std::string key = agreed(*one, keys_low, keys_high, two->public_key());
  EXPECT_EQ(key.size(), 64U);
  EXPECT_EQ(key, agreed(*two, keys_high, keys_low, one->public_key()));
  EXPECT_EQ(key, agreed(*one, keys_low, keys_high, two->public_key())) << "again";
}

TEST_F(TlsKeys, OthersAgreeOnOthers) {
  const auto one = tls_prover(), two = tls_prover(), three = tls_prover();
  EXPECT_NE(one->public_key(), two->public_key());
  const std::string key = agreed(*one, keys_low, keys_high, two->public_key());
  EXPECT_NE(key, agreed(*one, keys_low, keys_high, three->public_key()));
  EXPECT_NE(key, agreed(*one, keys_low, keys_high, one->public_key()));
  EXPECT_NE(key, agreed(*three, keys_low, keys_high, two->public_key()));
  EXPECT_NE(key, agreed(*one, keys_low, keys_other, two->public_key()));
  EXPECT_NE(key, agreed(*one, keys_other, keys_high, two->public_key()));
  EXPECT_NE(key, agreed(*one, keys_high, keys_low, two->public_key())) << "in each other's place";
}

TEST_F(TlsKeys, NeedAnotherProcess) {
  const auto one = tls_prover(), two = tls_prover();
  EXPECT_FALSE(one->agree(keys_low, keys_low, two->public_key()).ok());
}

// Points of low order (RFC 7748, 6.1): the shared secret would be zeros whatever the private key
// is.
TEST_F(TlsKeys, OfLowOrderAreRefused) {
  const auto one = tls_prover();
  const auto point = [](std::vector<unsigned> bytes, unsigned fill, unsigned last) {
    PublicKey key;
    key.fill(static_cast<std::byte>(fill));
    for (size_t i = 0; i < bytes.size(); ++i) key[i] = static_cast<std::byte>(bytes[i]);
    key[31] = static_cast<std::byte>(last);
    return key;
  };
  std::vector<PublicKey> bad{
      point({}, 0, 0),
      point({1}, 0, 0),
      point({0xec}, 0xff, 0x7f),
      point({0xed}, 0xff, 0x7f),
      point({0xee}, 0xff, 0x7f),
      point({}, 0, 0x80),
      point({0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3,
             0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32,
             0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8},
            0, 0x00),
      point({0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1,
             0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c,
             0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11},
            0, 0x57)};
  for (const PublicKey& each : bad) {
    const auto key = one->agree(keys_low, keys_high, each);
    EXPECT_EQ(key.status().code(), Code::invalid) << hex(each);
  }
  EXPECT_TRUE(one->agree(keys_low, keys_high, point({9}, 0, 0)).ok()) << "the base point";
}

// By `openssl mac`.
TEST_F(TlsKeys, AProofIsHmac) {
  const auto prover = tls_prover();
  PairKey key;
  key.bytes.fill(std::byte{0x0b});
  const std::string text = "Hi There";
  EXPECT_EQ(hex(*prover->prove(key, std::as_bytes(std::span(text)))),
            "198a607eb44bfbc69903a0f1cf2bbdc5");
  key.bytes[31] ^= std::byte{1};
  EXPECT_NE(hex(*prover->prove(key, std::as_bytes(std::span(text)))),
            "198a607eb44bfbc69903a0f1cf2bbdc5");
}

// Bytes of memory that core dumps leave out.
size_t undumped_bytes() {
  std::ifstream maps("/proc/self/smaps");
  size_t kilobytes = 0, sum = 0;
  for (std::string line; std::getline(maps, line);) {
    std::sscanf(line.c_str(), "Size: %zu kB", &kilobytes);
    if (line.starts_with("VmFlags:") && line.find(" dd") != std::string::npos) sum += kilobytes;
  }
  return sum << 10;
}

TEST_F(TlsKeys, ArePagesThatNoDumpHolds) {
  (void)tls_prover();
  const size_t before = undumped_bytes();
  auto one = tls_prover(), two = tls_prover();
  EXPECT_EQ(undumped_bytes(), before + 2 * static_cast<size_t>(getpagesize()));
  one.reset();
  two.reset();
  EXPECT_EQ(undumped_bytes(), before);
}

TEST_F(TlsKeys, AreNotInherited) {
  const auto one = tls_prover(), two = tls_prover();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(one->agree(keys_low, keys_high, two->public_key()).ok() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(one->agree(keys_low, keys_high, two->public_key()).ok());
}

}  // namespace
}  // namespace sluice
