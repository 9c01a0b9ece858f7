/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the two halves of libsluice-tls.so know of each other: sessions (openssl.c) and certificates
 * (identity.c).
 */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>

#include "transports/tls/module.h"

struct SluiceTlsIdentity {
  SSL_CTX *connecting, *accepting;
};

/* openssl.c. The library context; apart from OpenSSL's default, which belongs to the program. */
OSSL_LIB_CTX* sluice_tls_library(void);
/* Settings that every session has, and no trust in anybody. NULL if there is no memory. */
SSL_CTX* sluice_tls_context(const SSL_METHOD* method);
/* OpenSSL's SSL_verify_cb: notes why a peer's certificate is refused. */
int sluice_tls_judged(int is_good, X509_STORE_CTX* trial);

/* identity.c. As struct SluiceTls has them. */
struct SluiceTlsIdentity* sluice_tls_identify(const struct SluiceTlsFiles* files, char* text,
                                              size_t size);
void sluice_tls_forget(struct SluiceTlsIdentity* identity);
/* The peer's certificate has to have this name, as subjectAltName. 0: no memory, or no name. */
int sluice_tls_expect(SSL* ssl, const char* host);
/* The names that a certificate has as subjectAltName, as far as there is room: "n1, n1.cluster". */
void sluice_tls_names(X509* certificate, char* text, size_t size);
