// SPDX-License-Identifier: BSD-3-Clause
//
// A filter that encrypts and authenticates a connection by TLS 1.3 (RFC 8446). All cryptography is
// OpenSSL's, in the module libsluice-tls.so (transports/tls/module.h); this side moves the bytes.
//
// Both ends prove that they know the keys that the two processes published with their addresses, or
// show certificates that name their hosts.
// Whoever reads or writes drives the handshake, so the first message on a link waits until the peer
// takes part. There is no end of TLS's own: a link ends with a BYE frame, and one that ends without
// it is an error.
//
// A filter holds at most 64 KiB in each direction, and encrypts or decrypts no more in one call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/base/module.h"
#include "src/base/status.h"
#include "transports/conduit.h"

namespace sluice {

// Certificates authenticate the hosts, in place of the processes' keys. Files in PEM.
struct TlsCertificates {
  std::string certificate, key;
  std::string authority;   // a file, or a directory as OpenSSL's rehash makes it
  std::string revocation;  // empty: no list
  // The host name or address that the peer's certificate must have as subjectAltName. Not from the
  // peer's own connection. Empty: the connection fails.
  std::function<std::string(const ProcessId&)> host_of;
};

struct TlsOptions {
  bool local = false;                       // also between processes of the same host
  std::string folder = library_folder();    // where the module is
  uint64_t key_bytes = uint64_t{64} << 30;  // sent with one key; then the sender takes a new one
  std::optional<TlsCertificates> certificates{};  // none: the keys authenticate
};

// Code::unavailable, and why, if there is no module or no OpenSSL 3.
// Code::invalid, and why, if the certificate's files cannot be used.
Result<std::shared_ptr<FilterMaker>> make_tls_filters(const TlsOptions& options);

// OpenSSL's version and the cipher that this process prefers: "OpenSSL 3.0.15 ..., TLS 1.3,
// TLS_AES_128_GCM_SHA256". The same errors.
Result<std::string> describe_tls(const std::string& folder);

}  // namespace sluice
