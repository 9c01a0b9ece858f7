// SPDX-License-Identifier: BSD-3-Clause
//
// Encryption with certificates, which the program "openssl" makes for each test.
#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "tests/unit/transports/tls_rig.h"

namespace sluice {
namespace {

using Moved = Conduit::Moved;

class CertificatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sluice-tls-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    authority("ca");
    certificate("ca", "a", "DNS:a.test", 2);
    certificate("ca", "b", "DNS:b.test", 2);
  }
  void TearDown() override { (void)std::system(("rm -rf " + folder_).c_str()); }

  void sh(const std::string& command) {
    const std::string in = "cd " + folder_ + " && { " + command + "; } >log 2>&1";
    if (std::system(in.c_str()) == 0) return;
    std::ifstream log(folder_ + "/log");
    ADD_FAILURE() << command << "\n" << std::string(std::istreambuf_iterator<char>(log), {});
  }
  void authority(const std::string& name) {
    sh("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" +
       name + " -keyout " + name + ".key -out " + name + ".pem");
  }
  void certificate(const std::string& by, const std::string& name, const std::string& alternative,
                   int days) {
    sh("openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name +
       ".test -keyout " + name + ".key -out " + name + ".csr && echo subjectAltName=" +
       alternative + " >" + name + ".ext && openssl x509 -req -in " + name + ".csr -CA " + by +
       ".pem -CAkey " + by + ".key -CAcreateserial -days " + std::to_string(days) + " -extfile " +
       name + ".ext -out " + name + ".pem");
  }
  void revoke(const std::string& name) {
    sh("touch index && echo 01 >number && printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index\\n"
       "crlnumber=number\\ndefault_md=sha256\\ndefault_crl_days=2\\n' >ca.conf && "
       "openssl ca -config ca.conf -cert ca.pem -keyfile ca.key -revoke " +
       name + ".pem && openssl ca -config ca.conf -cert ca.pem -keyfile ca.key -gencrl -out crl");
  }
  TlsOptions options(const std::string& name, const std::string& peer) {
    TlsOptions made = tls_options();
    made.certificates =
        TlsCertificates{folder_ + "/" + name + ".pem", folder_ + "/" + name + ".key",
                        folder_ + "/ca.pem", "", [peer](const ProcessId&) { return peer; }};
    return made;
  }

  // What each side says is wrong, after it sent a byte and waited for the peer's; empty: it came.
  // The first connects.
  std::array<std::string, 2> meet(const TlsOptions& first, const TlsOptions& second) {
    bool ended = false;
    Wire wires[2];
    std::unique_ptr<WireEnd> below[2];
    std::unique_ptr<Conduit> tls[2];
    const ProcessId ids[2] = {{5, 1}, {5, 2}};
    const TlsOptions* const of[2] = {&first, &second};
    std::shared_ptr<FilterMaker> makers[2];
    for (const int i : {0, 1}) {
      wires[i].ended = &ended;
      below[i] = std::make_unique<WireEnd>(wires[i], wires[1 - i], false, 1);
      makers[i] = tls_filters(*of[i]);
      auto made = makers[i]->make(*below[i], {ids[i], ids[1 - i], Key{}, Key{}, i == 0, true});
      if (!made.ok()) return {made.status().message(), made.status().message()};
      tls[i] = std::move(*made);
    }
    bool sent[2] = {}, got[2] = {};
    for (int turn = 0; turn < 100; ++turn) {
      const int i = turn % 2;
      char byte = 'x';
      const iovec run{&byte, 1};
      if (!sent[i]) sent[i] = tls[i]->write({&run, 1}).bytes == 1;
      (void)tls[i]->flush();
      if (!got[i]) got[i] = tls[i]->read({&run, 1}).bytes == 1 && byte == 'x';
    }
    std::array<std::string, 2> why;
    for (const int i : {0, 1}) {
      if (!got[i]) why[i] = tls[i]->problem().empty() ? "nothing came" : tls[i]->problem();
    }
    return why;
  }
  static void expect(const std::string& why, const std::string& part) {
    EXPECT_NE(why.find(part), std::string::npos) << "\"" << why << "\"";
  }

  std::string folder_;
};

TEST_F(CertificatesTest, AuthenticateBothSides) {
  const auto why = meet(options("a", "b.test"), options("b", "a.test"));
  EXPECT_EQ(why[0], "");
  EXPECT_EQ(why[1], "");
}

TEST_F(CertificatesTest, MayNameAddresses) {
  certificate("ca", "c", "IP:192.0.2.7", 2);
  EXPECT_EQ(meet(options("a", "192.0.2.7"), options("c", "a.test"))[0], "");
  expect(meet(options("a", "192.0.2.8"), options("c", "a.test"))[0], "IP address mismatch");
}

TEST_F(CertificatesTest, OfAnotherHostAreRefused) {
  expect(meet(options("a", "c.test"), options("b", "a.test"))[0], "hostname mismatch");
  expect(meet(options("a", "b.test"), options("b", "c.test"))[1], "hostname mismatch");
}

TEST_F(CertificatesTest, NeedTheHostsName) {
  expect(meet(options("a", ""), options("b", "a.test"))[0], "host is not known");
}

TEST_F(CertificatesTest, NameTheHostAsAlternativeOnly) {
  certificate("ca", "c", "email:c@c.test", 2);
  expect(meet(options("a", "c.test"), options("c", "a.test"))[0], "hostname mismatch");
}

TEST_F(CertificatesTest, OfAnotherAuthorityAreRefused) {
  authority("other");
  certificate("other", "c", "DNS:c.test", 2);
  expect(meet(options("a", "c.test"), options("c", "a.test"))[0], "issuer");
  expect(meet(options("c", "a.test"), options("a", "c.test"))[1], "issuer");
}

TEST_F(CertificatesTest, ThatHaveExpiredAreRefused) {
  certificate("ca", "c", "DNS:c.test", -1);
  expect(meet(options("a", "c.test"), options("c", "a.test"))[0], "expired");
  expect(meet(options("c", "a.test"), options("a", "c.test"))[1], "expired");
}

TEST_F(CertificatesTest, ThatAreRevokedAreRefused) {
  revoke("b");
  TlsOptions checks = options("a", "b.test");
  checks.certificates->revocation = folder_ + "/crl";
  expect(meet(checks, options("b", "a.test"))[0], "revoked");
  expect(meet(options("b", "a.test"), checks)[1], "revoked");
  certificate("ca", "c", "DNS:b.test", 2);
  EXPECT_EQ(meet(checks, options("c", "a.test"))[0], "");
}

// A side that uses the key alone has no certificate to show.
TEST_F(CertificatesTest, AreNeededOnBothSides) {
  EXPECT_NE(meet(tls_options(), options("b", "a.test"))[1], "");
  EXPECT_NE(meet(options("a", "b.test"), tls_options())[0], "");
}

TEST_F(CertificatesTest, FilesThatCannotBeUsedAreNamed) {
  TlsOptions bad = options("a", "b.test");
  bad.certificates->key = folder_ + "/b.key";
  auto made = make_tls_filters(bad);
  ASSERT_FALSE(made.ok());
  expect(made.status().message(), "b.key");
  bad = options("a", "b.test");
  bad.certificates->authority = folder_ + "/none.pem";
  made = make_tls_filters(bad);
  ASSERT_FALSE(made.ok());
  expect(made.status().message(), "none.pem");
}

}  // namespace
}  // namespace sluice
