/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of libsluice-tls.so know of each other: sessions (openssl.c), certificates
 * (identity.c) and keys (keys.c).
 */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>

#include "transports/tls/module.h"

struct SluiceTlsIdentity {
  SSL_CTX *connecting, *accepting;
};

/* keys.c. The library context; apart from OpenSSL's default, which belongs to the program. NULL if
 * OpenSSL cannot be used (any more): then sluice_tls_lacks, as struct SluiceTls has it, says why.
 */
OSSL_LIB_CTX* sluice_tls_library(void);
const char* sluice_tls_lacks(void);
/* HKDF-SHA256 without salt; key and result have SLUICE_TLS_PAIR bytes. 0 if there is no memory. */
int sluice_tls_hkdf(const unsigned char* key, const unsigned char* info, size_t info_size,
                    unsigned char* made);
/* As struct SluiceTls has them. */
struct SluiceTlsKeys* sluice_tls_make_keys(unsigned char* public_key);
void sluice_tls_drop_keys(struct SluiceTlsKeys* keys);
int sluice_tls_agree(const struct SluiceTlsKeys* keys, const struct SluiceTlsPair* pair,
                     unsigned char* key);
int sluice_tls_mac(const unsigned char* key, const void* text, size_t size, unsigned char* made);

/* openssl.c. Settings that every session has, and no trust in anybody. NULL if there is no memory.
 */
SSL_CTX* sluice_tls_context(const SSL_METHOD* method);
/* OpenSSL's SSL_verify_cb: refuses a peer's certificate that serves one role only, and notes why
 * one is refused. */
int sluice_tls_judged(int is_good, X509_STORE_CTX* check);

/* identity.c. As struct SluiceTls has them. */
struct SluiceTlsIdentity* sluice_tls_identify(const struct SluiceTlsFiles* files, char* text,
                                              size_t size);
void sluice_tls_forget(struct SluiceTlsIdentity* identity);
/* The peer's certificate has to have this name, as subjectAltName. 0: no memory, or no name. */
int sluice_tls_expect(SSL* ssl, const char* host);
/* Whether a host may connect and also accept, by its certificate and those above it. (OpenSSL looks
 * at what it does now.) */
int sluice_tls_serves_both(const STACK_OF(X509) * chain);
/* The names that a certificate has as subjectAltName, as far as there is room: "n1, n1.cluster". */
void sluice_tls_names(X509* certificate, char* text, size_t size);
