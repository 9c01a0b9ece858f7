/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Certificates (X.509) that authenticate hosts. What a process will show is verified as its peers
 * will verify it, so that most mistakes are found where they were made, before anybody connects.
 */
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "transports/tls/internal.h"

/* Nobody is there to ask. */
static int no_password(char* buffer, int size, int writes, void* data) {
  (void)buffer, (void)size, (void)writes, (void)data;
  return -1;
}

/* ---- What files hold. */

static BIO* open_text(const struct SluiceTlsFile* file) {
  return BIO_new_mem_buf(file->text, (int)file->size);
}

/* All certificates and revocation lists of a file; NULL if it is broken, or there is no memory. */
static STACK_OF(X509_INFO) * parse(const struct SluiceTlsFile* file) {
  BIO* const from = open_text(file);
  STACK_OF(X509_INFO)* const found =
      from ? PEM_X509_INFO_read_bio_ex(from, NULL, no_password, NULL, sluice_tls_library(), NULL)
           : NULL;
  BIO_free(from);
  return found;
}

/* The first is the process's own. How many there are; -1: they cannot be used. */
static int use_certificates(SSL_CTX* context, const struct SluiceTlsFile* file) {
  STACK_OF(X509_INFO)* const found = parse(file);
  int used = found ? 0 : -1, i;
  for (i = 0; used >= 0 && i < sk_X509_INFO_num(found); ++i) {
    X509* const each = sk_X509_INFO_value(found, i)->x509;
    if (!each) continue;
    if (used == 0 ? SSL_CTX_use_certificate(context, each)
                  : SSL_CTX_add1_chain_cert(context, each)) {
      ++used;
    } else {
      used = -1;
    }
  }
  sk_X509_INFO_pop_free(found, X509_INFO_free);
  return used;
}

static int use_key(SSL_CTX* context, const struct SluiceTlsFile* file) {
  BIO* const from = open_text(file);
  EVP_PKEY* const key =
      from ? PEM_read_bio_PrivateKey_ex(from, NULL, no_password, NULL, sluice_tls_library(), NULL)
           : NULL;
  const int used =
      key && SSL_CTX_use_PrivateKey(context, key) && SSL_CTX_check_private_key(context);
  EVP_PKEY_free(key);
  BIO_free(from);
  return used ? 1 : -1;
}

/* Certificates are to be trusted, and revocation lists to be looked up. How many there are of what
 * is asked for; -1: they cannot be used. */
static int add(SSL_CTX* context, const struct SluiceTlsFile* file, int wants_lists) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  STACK_OF(X509_INFO)* const found = parse(file);
  int added = found ? 0 : -1, i;
  for (i = 0; added >= 0 && i < sk_X509_INFO_num(found); ++i) {
    X509_INFO* const each = sk_X509_INFO_value(found, i);
    const int good = (wants_lists || !each->x509 || X509_STORE_add_cert(store, each->x509)) &&
                     (!each->crl || X509_STORE_add_crl(store, each->crl));
    if (good && (wants_lists ? each->crl != NULL : each->x509 != NULL)) ++added;
    if (!good) added = -1;
  }
  sk_X509_INFO_pop_free(found, X509_INFO_free);
  return added;
}

/* OpenSSL's last error, if it says more than that it has found nothing in PEM. */
static const char* reason_or(const char* nothing) {
  const unsigned long error = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(error);
  const char* const text = ERR_reason_error_string(error);
  return !text || reason == PEM_R_NO_START_LINE || reason == ERR_R_UNSUPPORTED ? nothing : text;
}

/* 1; or 0, with the file that cannot be used and the reason in `text`. */
static int load(SSL_CTX* context, const struct SluiceTlsFiles* files, char* text, size_t size) {
  const struct SluiceTlsFile* bad = NULL;
  const char* lacks = "";
  if (use_certificates(context, &files->certificate) <= 0) {
    bad = &files->certificate;
    lacks = "no certificate in PEM";
  } else if (use_key(context, &files->key) <= 0) {
    bad = &files->key;
    lacks = "no private key in PEM";
  } else if (add(context, &files->authority, 0) <= 0) {
    bad = &files->authority;
    lacks = "no certificate in PEM";
  } else if (files->revocation.name) {
    X509_STORE_set_flags(SSL_CTX_get_cert_store(context),
                         X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    if (add(context, &files->revocation, 1) <= 0) {
      bad = &files->revocation;
      lacks = "no revocation list in PEM";
    }
  }
  if (bad) snprintf(text, size, "%s: %s", bad->name, reason_or(lacks));
  return bad == NULL;
}

/* ---- What a certificate says. */

static void append(char* text, size_t size, const char* more) {
  const size_t used = strlen(text);
  snprintf(text + used, size - used, "%s", more);
}

/* Only characters that a terminal takes as they are. */
static void append_name(char* text, size_t size, const unsigned char* name, int bytes) {
  char clean[256] = "";
  int i;
  for (i = 0; i < bytes && i < (int)sizeof clean - 1; ++i) {
    clean[i] = name[i] > ' ' && name[i] < 127 ? (char)name[i] : '?';
  }
  if (text[0]) append(text, size, ", ");
  append(text, size, clean);
}

void sluice_tls_names(X509* certificate, char* text, size_t size) {
  GENERAL_NAMES* const names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
  int i;
  text[0] = '\0';
  for (i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    const ASN1_STRING* const string = name->type == GEN_DNS ? name->d.dNSName : NULL;
    if (string) append_name(text, size, ASN1_STRING_get0_data(string), ASN1_STRING_length(string));
  }
  GENERAL_NAMES_free(names);
}

static void describe(X509* certificate, char* text, size_t size) {
  char names[256], issuer[256] = "", until[64] = "";
  BIO* const printed = BIO_new(BIO_s_mem());
  sluice_tls_names(certificate, names, sizeof names);
  X509_NAME_oneline(X509_get_issuer_name(certificate), issuer, sizeof issuer);
  if (printed && ASN1_TIME_print(printed, X509_get0_notAfter(certificate))) {
    const int got = BIO_read(printed, until, sizeof until - 1);
    until[got > 0 ? got : 0] = '\0';
  }
  BIO_free(printed);
  snprintf(text, size, "certificate for %s until %s by %s", names[0] ? names : "no host", until,
           issuer);
}

/* The certificate must have exactly this DNS name. (SSL_set1_host would also take an address.) */
static int ask_for(X509_VERIFY_PARAM* rules, const char* host) {
  X509_VERIFY_PARAM_set_hostflags(
      rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_WILDCARDS);
  return X509_VERIFY_PARAM_set1_host(rules, host, 0);
}

/* ---- Whether peers will take this process's certificate. */

/* X509_V_OK, or what is wrong. role: "ssl_client" or "ssl_server". host: NULL for any. */
static int judge(SSL_CTX* context, const char* role, const char* host) {
  X509_STORE_CTX* const check = X509_STORE_CTX_new_ex(sluice_tls_library(), NULL);
  STACK_OF(X509)* between = NULL;
  int verdict = X509_V_ERR_OUT_OF_MEM;
  SSL_CTX_get0_chain_certs(context, &between);
  if (check &&
      X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(context), SSL_CTX_get0_certificate(context),
                          between) &&
      X509_STORE_CTX_set_default(check, role)) {
    if (!host || ask_for(X509_STORE_CTX_get0_param(check), host)) {
      (void)X509_verify_cert(check);
      verdict = X509_STORE_CTX_get_error(check);
    }
  }
  X509_STORE_CTX_free(check);
  return verdict;
}

/* The process's own certificate is as good as its peers will want it. Else `text` says why not. */
static int verify_own(SSL_CTX* context, const struct SluiceTlsFiles* files, char* text,
                      size_t size) {
  int verdict = judge(context, "ssl_client", files->host);
  char about[400];
  if (verdict == X509_V_OK) verdict = judge(context, "ssl_server", files->host);
  if (verdict == X509_V_OK) return 1;
  describe(SSL_CTX_get0_certificate(context), about, sizeof about);
  snprintf(text, size, "%s: %s%s%s (%s)", files->certificate.name,
           X509_verify_cert_error_string(verdict), files->host ? " for this host, " : "",
           files->host ? files->host : "", about);
  return 0;
}

int sluice_tls_serves_both(const STACK_OF(X509) * chain) {
  int i, is_good = 1;
  for (i = 0; i < sk_X509_num(chain); ++i) {
    X509* const each = sk_X509_value(chain, i);
    is_good = is_good && X509_check_purpose(each, X509_PURPOSE_SSL_CLIENT, i > 0) > 0 &&
              X509_check_purpose(each, X509_PURPOSE_SSL_SERVER, i > 0) > 0;
  }
  return is_good;
}

/* ---- Identities. */

void sluice_tls_forget(struct SluiceTlsIdentity* identity) {
  if (!identity) return;
  SSL_CTX_free(identity->connecting);
  SSL_CTX_free(identity->accepting);
  OPENSSL_free(identity);
}

/* False, with the reason in `text`. */
static int prepare(struct SluiceTlsIdentity* made, const struct SluiceTlsFiles* files, char* text,
                   size_t size) {
  made->connecting = sluice_tls_context(TLS_client_method());
  made->accepting = sluice_tls_context(TLS_server_method());
  if (!made->connecting || !made->accepting) return 0;
  SSL_CTX_set_mode(made->connecting, SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_mode(made->accepting, SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_verify(made->connecting, SSL_VERIFY_PEER, sluice_tls_judged);
  SSL_CTX_set_verify(made->accepting, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     sluice_tls_judged);
  return load(made->connecting, files, text, size) && load(made->accepting, files, text, size) &&
         verify_own(made->connecting, files, text, size);
}

struct SluiceTlsIdentity* sluice_tls_identify(const struct SluiceTlsFiles* files, char* text,
                                              size_t size) {
  struct SluiceTlsIdentity* made = sluice_tls_library() ? OPENSSL_zalloc(sizeof *made) : NULL;
  snprintf(text, size, "%s", sluice_tls_lacks() ? sluice_tls_lacks() : "no memory");
  if (!made) return NULL;
  ERR_set_mark();
  if (prepare(made, files, text, size)) {
    describe(SSL_CTX_get0_certificate(made->connecting), text, size);
  } else {
    sluice_tls_forget(made);
    made = NULL;
  }
  ERR_pop_to_mark();
  return made;
}

int sluice_tls_expect(SSL* ssl, const char* host) {
  return host && host[0] && ask_for(SSL_get0_param(ssl), host);
}
