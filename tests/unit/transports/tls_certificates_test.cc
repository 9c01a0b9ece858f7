// SPDX-License-Identifier: BSD-3-Clause
//
// Encryption with certificates, which the program "openssl" makes for each test.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>

#include "tests/unit/transports/tls_rig.h"
#include "transports/tcp/socket.h"

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
  // (OpenSSL 3.4 and later take no negative number of days, earlier ones no dates.)
  void certificate(const std::string& by, const std::string& name, const std::string& alternative,
                   int days) {
    const std::string sign = "openssl x509 -req -in " + name + ".csr -CA " + by + ".pem -CAkey " +
                             by + ".key -CAcreateserial -extfile " + name + ".ext -out " + name +
                             ".pem ";
    sh("openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name +
       ".test -keyout " + name + ".key -out " + name + ".csr && echo subjectAltName=" +
       alternative + " >" + name + ".ext && { " + sign + "-days " + std::to_string(days) + " || " +
       sign + "-not_before 20200101000000Z -not_after 20200102000000Z; }");
  }
  void revoke(const std::string& name) {
    sh("touch index && echo 01 >number && printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index\\n"
       "crlnumber=number\\ndefault_md=sha256\\ndefault_crl_days=2\\n' >ca.conf && "
       "openssl ca -config ca.conf -cert ca.pem -keyfile ca.key -revoke " +
       name + ".pem && openssl ca -config ca.conf -cert ca.pem -keyfile ca.key -gencrl -out crl");
  }
  // One side of a connection: its files, and the host that it expects at the other end.
  struct Side {
    TlsOptions tls = tls_options();
    std::string peer_host{};
    PairKey key{};
  };
  Side side(const std::string& name, const std::string& peer_host,
            const std::string& authority = "ca") {
    Side made;
    made.peer_host = peer_host;
    made.tls.certificates =
        TlsCertificates{folder_ + "/" + name + ".pem", folder_ + "/" + name + ".key",
                        folder_ + "/" + authority + ".pem", ""};
    return made;
  }
  // Why no connection can be made with these files.
  std::string why_not(const Side& side) {
    const auto made = make_tls_filters(side.tls);
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.status().message();
  }

  using Makers = std::array<std::shared_ptr<FilterMaker>, 2>;

  // A connection of two sides. The first connects.
  class Meeting {
   public:
    Meeting(const Makers& makers, const Side& first, const Side& second) {
      const ProcessId ids[2] = {{5, 1}, {5, 2}};
      const Side* const of[2] = {&first, &second};
      for (const int i : {0, 1}) {
        wires_[i].ended = &ended_;
        below_[i] = std::make_unique<WireEnd>(wires_[i], wires_[1 - i], false, 1);
        auto made =
            makers[i]->make(*below_[i], {ids[i], ids[1 - i], of[i]->key, i == 0, of[i]->peer_host});
        if (made.ok()) tls_[i] = std::move(*made);
        if (!made.ok()) failure_ = made.status().message();
      }
    }
    // What each side says is wrong, after it sent a byte and waited for the peer's; empty: it came.
    std::array<std::string, 2> exchange() {
      if (!failure_.empty()) return {failure_, failure_};
      bool sent[2] = {}, got[2] = {};
      for (int turn = 0; turn < 100; ++turn) {
        const int i = turn % 2;
        char byte = 'x';
        const iovec run{&byte, 1};
        if (!sent[i]) sent[i] = tls_[i]->write({&run, 1}).bytes == 1;
        (void)tls_[i]->flush();
        if (!got[i]) got[i] = tls_[i]->read({&run, 1}).bytes == 1 && byte == 'x';
      }
      std::array<std::string, 2> why;
      for (const int i : {0, 1}) {
        if (!got[i]) why[i] = tls_[i]->problem().empty() ? "nothing came" : tls_[i]->problem();
      }
      return why;
    }

    Conduit& tls(int side) { return *tls_[side]; }
    WireEnd& below(int side) { return *below_[side]; }
    size_t wrote(int side) const { return wires_[side].bytes.size(); }

   private:
    bool ended_ = false;
    Wire wires_[2];
    std::unique_ptr<WireEnd> below_[2];
    std::unique_ptr<Conduit> tls_[2];
    std::string failure_;
  };

  std::array<std::string, 2> meet(const Side& first, const Side& second) {
    return Meeting({tls_filters(first.tls), tls_filters(second.tls)}, first, second).exchange();
  }
  // Such a certificate again, for these uses.
  void limit_use(const std::string& name, const std::string& uses) {
    sh("echo extendedKeyUsage=" + uses + " >>" + name + ".ext && openssl x509 -req -in " + name +
       ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile " + name + ".ext -out " +
       name + ".pem && sed -i /Usage/d " + name + ".ext");
  }
  // Why this side, which accepts, refuses the program "openssl" with a certificate: that does not
  // verify its own, and sends no proof of keys.
  std::string why_openssl_is_refused(const Side& side, const std::string& name) {
    sockaddr_un address{AF_UNIX, {}};
    const std::string path = folder_ + "/socket";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    unlink(path.c_str());
    const Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener.fd(), 1), 0);
    sh("(printf %032d 0 | openssl s_client -quiet -tls1_3 -unix socket -cert " + name +
       ".pem -key " + name + ".key &)");
    const Socket peer(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    SocketConduit below(peer);
    auto tls =
        tls_filters(side.tls)->make(below, {{5, 2}, {5, 1}, side.key, false, side.peer_host});
    if (!tls.ok()) return tls.status().message();
    Moved moved;
    do {
      pollfd ready{peer.fd(), POLLIN, 0};
      poll(&ready, 1, -1);
      char byte = 0;
      const iovec run{&byte, 1};
      moved = (*tls)->read({&run, 1});
    } while (moved.result == Moved::Result::some || moved.result == Moved::Result::nothing);
    return (*tls)->problem();
  }
  // Certificate c of c.test, until that time.
  void certificate_until(time_t end) {
    char text[32];
    tm parts{};
    std::strftime(text, sizeof text, "%y%m%d%H%M%SZ", gmtime_r(&end, &parts));
    certificate("ca", "c", "DNS:c.test", 2);
    sh("rm -f index && touch index && echo 01 >serial && printf "
       "'[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index\\n"
       "new_certs_dir=.\\nserial=serial\\ndefault_md=sha256\\npolicy=p\\n[p]\\ncommonName="
       "supplied\\n' >end.conf "
       "&& "
       "openssl ca -batch -config end.conf -cert ca.pem -keyfile ca.key -notext "
       "-in c.csr -extfile c.ext -out c.pem -enddate " +
       std::string(text));
  }
  static void expect(const std::string& why, const std::string& part) {
    EXPECT_NE(why.find(part), std::string::npos) << "\"" << why << "\"";
  }

  std::string folder_;
};

TEST_F(CertificatesTest, AuthenticateBothSides) {
  const auto why = meet(side("a", "b.test"), side("b", "a.test"));
  EXPECT_EQ(why[0], "");
  EXPECT_EQ(why[1], "");
}

// Longer than what the filter holds: OpenSSL keeps the rest, and whoever flushes has it sent.
TEST_F(CertificatesTest, OfManyHostsAreSentWhereThereIsRoomAgain) {
  std::string hosts = "DNS:b.test";
  for (int i = 0; i < 1000; ++i) hosts += ",DNS:node-" + std::to_string(i) + ".large-cluster.test";
  certificate("ca", "many", hosts, 2);
  const Side first = side("a", "b.test"), second = side("many", "a.test");
  Meeting meeting({tls_filters(first.tls), tls_filters(second.tls)}, first, second);
  char byte = 'x';
  const iovec run{&byte, 1};
  (void)meeting.tls(0).write({&run, 1});
  const size_t greeting = meeting.wrote(0);
  meeting.below(1).takes = 5000;
  (void)meeting.tls(1).read({&run, 1});
  ASSERT_EQ(meeting.wrote(1), 5000U);
  meeting.below(1).takes = Wire::never;
  while (meeting.tls(1).unsent() > 0) (void)meeting.tls(1).flush();
  (void)meeting.tls(0).read({&run, 1});
  EXPECT_GT(meeting.wrote(0), greeting) << "no answer to what came";
  const auto why = meeting.exchange();
  EXPECT_EQ(why[0] + why[1], "");
}

TEST_F(CertificatesTest, DoNotNameAddresses) {
  certificate("ca", "c", "IP:192.0.2.7", 2);
  expect(meet(side("a", "192.0.2.7"), side("c", "a.test"))[0], "ostname mismatch");
}

TEST_F(CertificatesTest, OfAnotherHostAreRefused) {
  expect(meet(side("a", "c.test"), side("b", "a.test"))[0], "hostname mismatch");
  expect(meet(side("a", "b.test"), side("b", "c.test"))[1], "hostname mismatch");
}

TEST_F(CertificatesTest, NeedTheHostsName) {
  expect(meet(side("a", ""), side("b", "a.test"))[0], "host is not known");
}

TEST_F(CertificatesTest, NameTheHostAsAlternativeOnly) {
  certificate("ca", "c", "email:c@c.test", 2);
  expect(meet(side("a", "c.test"), side("c", "a.test"))[0], "hostname mismatch");
}

TEST_F(CertificatesTest, HaveNoWildcards) {
  certificate("ca", "c", "DNS:*.test", 2);
  expect(meet(side("a", "c.test"), side("c", "a.test"))[0], "ostname mismatch");
}

TEST_F(CertificatesTest, OfAnotherAuthorityAreRefused) {
  authority("other");
  certificate("other", "c", "DNS:c.test", 2);
  const auto why = meet(side("a", "c.test"), side("c", "a.test", "other"));
  expect(why[0], "the peer's certificate for c.test: unable to get local issuer");
  expect(meet(side("c", "a.test", "other"), side("a", "c.test"))[0], "issuer");
}

TEST_F(CertificatesTest, ThatAreRevokedAreRefused) {
  revoke("b");
  Side checks = side("a", "b.test");
  checks.tls.certificates->revocation = folder_ + "/crl";
  expect(meet(checks, side("b", "a.test"))[0], "revoked");
  const auto why = meet(side("b", "a.test"), checks);
  expect(why[1], "revoked");
  expect(why[0], "the peer refuses");
  certificate("ca", "c", "DNS:b.test", 2);
  EXPECT_EQ(meet(checks, side("c", "a.test"))[0], "");
}

// What peers would refuse is refused before anybody connects.
TEST_F(CertificatesTest, OfThisProcessAreVerifiedFirst) {
  certificate("ca", "c", "DNS:c.test", -1);
  expect(why_not(side("c", "a.test")), "/c.pem: certificate has expired (certificate for c.test");
  authority("other");
  certificate("other", "d", "DNS:d.test", 2);
  expect(why_not(side("d", "a.test")), "/d.pem: unable to get local issuer certificate");
  Side named = side("a", "b.test");
  named.tls.certificates->host = "n7";
  expect(why_not(named), "/a.pem: hostname mismatch for this host, n7");
  named.tls.certificates->host = "A.test";
  EXPECT_TRUE(make_tls_filters(named.tls).ok());
  revoke("b");
  Side revoked = side("b", "a.test");
  revoked.tls.certificates->revocation = folder_ + "/crl";
  expect(why_not(revoked), "/b.pem: certificate revoked");
}

// Each side looks for both roles, not for the one that its peer has in this connection.
TEST_F(CertificatesTest, ForOneRoleAreRefused) {
  certificate("ca", "c", "DNS:c.test", 2);
  const Side picky = side("a", "c.test");
  expect(why_openssl_is_refused(picky, "c"), "the peer has a certificate, but not its keys");
  limit_use("c", "clientAuth,serverAuth");
  expect(why_openssl_is_refused(picky, "c"), "the peer has a certificate, but not its keys");
  limit_use("c", "clientAuth");
  expect(why_openssl_is_refused(picky, "c"),
         "the peer's certificate for c.test: unsuitable certificate purpose");
  expect(why_not(side("c", "a.test")), "/c.pem: unsuitable certificate purpose");
}

// Each authority's certificate too, because what it signs may do no more than it.
TEST_F(CertificatesTest, OfAnAuthorityForOneRoleAreRefusedInBothRoles) {
  authority("other");
  certificate("other", "c", "DNS:c.test", 2);
  for (const std::string role : {"serverAuth", "clientAuth"}) {
    sh("openssl req -x509 -key other.key -days 2 -subj /CN=other -addext extendedKeyUsage=" + role +
       " -out one.pem && cat ca.pem one.pem >some.pem && cat ca.pem other.pem >all.pem");
    const Side picky = side("a", "c.test", "some"), of_c = side("c", "a.test", "all");
    const std::string why = "the peer's certificate for c.test: unsuitable certificate purpose";
    expect(meet(picky, of_c)[0], why);
    expect(meet(of_c, picky)[1], why);
  }
}

// The hosts are the right ones; the processes are not those that the two sides mean. So is whoever
// relays greetings and has a host's certificate and key, but not the keys of its processes.
TEST_F(CertificatesTest, ServeTheTwoProcessesOnly) {
  Side other = side("a", "b.test");
  other.key.bytes[3] = std::byte{1};
  const auto why = meet(other, side("b", "a.test"));
  expect(why[0], "the peer has a certificate, but not its keys");
  expect(why[1], "the peer has a certificate, but not its keys");
}

// Live connections go on, new ones are refused. (On a slow machine it may expire too early.)
TEST_F(CertificatesTest, MayExpireWhileTheyAreUsed) {
  const Side of_a = side("a", "c.test"), of_c = side("c", "a.test");
  for (int seconds = 2;; seconds *= 2) {
    const time_t end = time(nullptr) + seconds;
    certificate_until(end);
    const auto made = make_tls_filters(of_c.tls);
    if (!made.ok() && seconds < 60) continue;
    ASSERT_TRUE(made.ok()) << made.status().message();
    const Makers makers{tls_filters(of_a.tls), *made};
    Meeting early(makers, of_a, of_c);
    if (early.exchange()[0].find("expired") != std::string::npos && seconds < 60) continue;
    while (time(nullptr) <= end) usleep(100000);
    EXPECT_EQ(early.exchange()[0], "");
    EXPECT_EQ(early.exchange()[1], "");
    const auto why = Meeting(makers, of_a, of_c).exchange();
    expect(why[0], "the peer's certificate for c.test: certificate has expired");
    expect(why[1], "the peer refuses this process: ");
    expect(Meeting({makers[1], makers[0]}, of_c, of_a).exchange()[1], "certificate has expired");
    expect(why_not(of_c), "/c.pem: certificate has expired");
    return;
  }
}

TEST_F(CertificatesTest, ComeFromAFolderOfAuthorities) {
  sh("mkdir all && cp ca.pem all && openssl rehash all");
  Side folder = side("a", "b.test");
  folder.tls.certificates->authority = folder_ + "/all";
  EXPECT_EQ(meet(folder, side("b", "a.test"))[0], "");
}

// A file that OpenSSL would look for in a folder, but that cannot be read, stops nobody.
TEST_F(CertificatesTest, ComeFromThoseFilesOfAFolderThatAreFiles) {
  sh("mkdir all && cp ca.pem all && openssl rehash all && mkfifo all/12345678.0 && "
     "ln -s nothing all/12345679.0");
  Side folder = side("a", "b.test");
  folder.tls.certificates->authority = folder_ + "/all";
  EXPECT_EQ(meet(folder, side("b", "a.test"))[0], "");
  sh("rm all/????????.0");
  expect(why_not(folder), "TLS: SLUICE_TLS_CA: " + folder_ + "/all: no certificate in PEM");
}

// Nothing waits for a writer, or reads without end.
TEST_F(CertificatesTest, ComeFromRegularFiles) {
  sh("mkfifo pipe && mkdir folder && echo nothing >text && ln -s a.pem link && touch crl");
  const auto with = [&](std::string TlsCertificates::*file, const std::string& path) {
    Side made = side("a", "b.test");
    (*made.tls.certificates).*file = path;
    return made;
  };
  using Certificates = TlsCertificates;
  EXPECT_TRUE(make_tls_filters(with(&Certificates::certificate, folder_ + "/link").tls).ok());
  const struct {
    std::string TlsCertificates::*file;
    const char *setting, *lacks;
  } files[] = {{&Certificates::certificate, "SLUICE_TLS_CERT", "certificate"},
               {&Certificates::key, "SLUICE_TLS_KEY", "private key"},
               {&Certificates::authority, "SLUICE_TLS_CA", "certificate"},
               {&Certificates::revocation, "SLUICE_TLS_CRL", "revocation list"}};
  for (const auto& [file, setting, lacks] : files) {
    const std::string named = std::string("TLS: ") + setting + ": ", fails = named + "cannot read ";
    expect(why_not(with(file, folder_ + "/pipe")),
           fails + folder_ + "/pipe: it is no regular file");
    expect(why_not(with(file, "/dev/zero")), fails + "/dev/zero: it is no regular file");
    expect(why_not(with(file, folder_ + "/none")),
           fails + folder_ + "/none: No such file or directory");
    if (file != &Certificates::authority) {
      expect(why_not(with(file, folder_ + "/folder")), fails + folder_ + "/folder: Is a directory");
    }
    expect(why_not(with(file, folder_ + "/text")),
           named + folder_ + "/text: no " + lacks + " in PEM");
  }
  sh("openssl pkcs8 -topk8 -in a.key -out locked -passout pass:secret");
  expect(why_not(with(&Certificates::key, folder_ + "/locked")), "/locked: bad password read");
}

TEST_F(CertificatesTest, AreDescribed) {
  const auto about = describe_certificate(side("a", "b.test").tls);
  ASSERT_TRUE(about.ok()) << about.status().message();
  expect(*about, "certificate for a.test until ");
  expect(*about, " GMT by /CN=ca");
}

// A side that uses the key alone has no certificate to show.
TEST_F(CertificatesTest, AreNeededOnBothSides) {
  EXPECT_NE(meet(Side{}, side("b", "a.test"))[1], "");
  EXPECT_NE(meet(side("a", "b.test"), Side{})[0], "");
}

TEST_F(CertificatesTest, FilesThatCannotBeUsedAreNamed) {
  Side bad = side("a", "b.test");
  bad.tls.certificates->key = folder_ + "/b.key";
  expect(why_not(bad), "b.key");
  expect(why_not(side("a", "b.test", "none")), "none.pem");
  expect(why_not(side("none", "b.test")), "none.pem");
  bad.tls.certificates->key = "";
  expect(why_not(bad), "SLUICE_TLS_KEY is not set");
}

}  // namespace
}  // namespace sluice
