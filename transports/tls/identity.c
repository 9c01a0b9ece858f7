/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Certificates (X.509) that authenticate hosts. What a process will show is verified as its peers
 * will verify it, so that most mistakes are found where they were made, before anybody connects.
 */
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "transports/tls/internal.h"

/* Nobody is there to ask. */
static int no_password(char* buffer, int size, int writes, void* data) {
  (void)buffer, (void)size, (void)writes, (void)data;
  return -1;
}

static int load_revocation(SSL_CTX* context, const char* file) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  X509_LOOKUP* const lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
  return lookup && X509_load_crl_file(lookup, file, X509_FILETYPE_PEM) > 0 &&
         X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
}

/* The file that cannot be used; NULL: all can. */
static const char* load(SSL_CTX* context, const struct SluiceTlsFiles* files) {
  struct stat status;
  SSL_CTX_set_default_passwd_cb(context, no_password);
  if (!SSL_CTX_use_certificate_chain_file(context, files->certificate)) return files->certificate;
  if (!SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) ||
      !SSL_CTX_check_private_key(context)) {
    return files->key;
  }
  if (!(stat(files->authority, &status) == 0 && S_ISDIR(status.st_mode)
            ? SSL_CTX_load_verify_dir(context, files->authority)
            : SSL_CTX_load_verify_file(context, files->authority))) {
    return files->authority;
  }
  if (files->revocation && !load_revocation(context, files->revocation)) return files->revocation;
  return NULL;
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
  X509_STORE_CTX* const trial = X509_STORE_CTX_new_ex(sluice_tls_library(), NULL);
  STACK_OF(X509)* between = NULL;
  int verdict = X509_V_ERR_OUT_OF_MEM;
  SSL_CTX_get0_chain_certs(context, &between);
  if (trial &&
      X509_STORE_CTX_init(trial, SSL_CTX_get_cert_store(context), SSL_CTX_get0_certificate(context),
                          between) &&
      X509_STORE_CTX_set_default(trial, role)) {
    if (!host || ask_for(X509_STORE_CTX_get0_param(trial), host)) {
      (void)X509_verify_cert(trial);
      verdict = X509_STORE_CTX_get_error(trial);
    }
  }
  X509_STORE_CTX_free(trial);
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
  snprintf(text, size, "%s: %s%s%s (%s)", files->certificate,
           X509_verify_cert_error_string(verdict), files->host ? " for this host, " : "",
           files->host ? files->host : "", about);
  return 0;
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
  const char* bad = "no memory";
  const char* reason;
  made->connecting = sluice_tls_context(TLS_client_method());
  made->accepting = sluice_tls_context(TLS_server_method());
  if (made->connecting && made->accepting) {
    SSL_CTX_set_mode(made->connecting, SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_mode(made->accepting, SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_verify(made->connecting, SSL_VERIFY_PEER, sluice_tls_judged);
    SSL_CTX_set_verify(made->accepting, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       sluice_tls_judged);
    bad = load(made->connecting, files);
    if (!bad) bad = load(made->accepting, files);
  }
  if (!bad) return verify_own(made->connecting, files, text, size);
  reason = ERR_reason_error_string(ERR_peek_last_error());
  snprintf(text, size, "%s: %s", bad, reason ? reason : "it cannot be read");
  return 0;
}

struct SluiceTlsIdentity* sluice_tls_identify(const struct SluiceTlsFiles* files, char* text,
                                              size_t size) {
  struct SluiceTlsIdentity* made = OPENSSL_zalloc(sizeof *made);
  snprintf(text, size, "no memory");
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
