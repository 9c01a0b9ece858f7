// SPDX-License-Identifier: BSD-3-Clause
//
// A filter that encrypts and authenticates a connection by TLS 1.3 (RFC 8446). All cryptography is
// OpenSSL's, in the module libsluice-tls.so (transports/tls/module.h); this side moves the bytes.
//
// Both ends prove that they know the key of the two processes (Prover::agree). Each computes it
// from its own private key and the public key that the other published with its address, so there
// is nothing to configure; it is erased after use (PairKey). With certificates, they also show that
// they are on the hosts whose names were published. The greetings of a filtered connection have
// proofs, so a handshake that fails is the peer's, and an error to report.
//
// Whoever reads or writes drives the handshake, so the first message on a link waits until the peer
// takes part. There is no end of TLS's own: a link ends with a BYE frame, and one that ends without
// it is an error.
//
// A filter holds at most a record of 16 KiB in each direction, beside OpenSSL's own buffers of that
// size, and encrypts or decrypts at most 256 KiB in one call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/base/module.h"
#include "src/base/status.h"
#include "transports/conduit.h"

namespace sluice {

// Certificates that authenticate the hosts. Files in PEM.
struct TlsCertificates {
  std::string certificate, key;
  std::string authority;   // a file, or a directory as OpenSSL's rehash makes it
  std::string revocation;  // empty: no list
  std::string host{};      // this host: the certificate must have its name; empty: any
};

struct TlsOptions {
  bool local = false;                       // also between processes of the same host
  std::string folder = library_folder();    // where the module is
  uint64_t key_bytes = uint64_t{64} << 30;  // sent with one key; then the sender takes a new one
  std::optional<TlsCertificates> certificates{};  // none: the keys alone authenticate
};

// Code::unavailable, and why, if there is no module or no OpenSSL 3.
// Code::invalid, and why, if the certificate's files cannot be used, or peers would refuse it. With
// certificates, a peer's must have the name of its host (ConduitEnds) as a DNS name in
// subjectAltName, without wildcards. Warns of a private key that every user may read.
Result<std::shared_ptr<FilterMaker>> make_tls_filters(const TlsOptions& options);

// A new key pair (X25519), and what proves knowledge of keys, by HMAC-SHA256; the same module. The
// private key is in memory that core dumps leave out, and children of fork() do not get.
Result<std::shared_ptr<Prover>> make_tls_prover(const std::string& folder = library_folder());

// OpenSSL's version and the cipher that this process prefers: "OpenSSL 3.0.15 ..., TLS 1.3,
// TLS_AES_128_GCM_SHA256". The same errors.
Result<std::string> describe_tls(const std::string& folder);

// "certificate for n1 until Nov 24 20:00:00 2027 GMT by /CN=us". The errors of make_tls_filters.
Result<std::string> describe_certificate(const TlsOptions& options);

}  // namespace sluice
