/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The key pair of a process (X25519, RFC 7748), and the secrets of two processes:
 *
 *   pair key = HKDF-SHA256(X25519(own private key, peer's public key),
 *                          info: label, lower id, higher id, their public keys in the same order)
 *
 * So both compute the same, and other ids or keys give another. The private key lies in a page of
 * its own, which core dumps leave out and children of fork() find empty. OpenSSL has it only while
 * a pair key is computed, and cleanses its copy.
 */
#define _DEFAULT_SOURCE
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transports/tls/internal.h"

enum { private_bytes = 32, shared_bytes = 32 };

/* A page. */
struct SluiceTlsKeys {
  unsigned char secret[private_bytes], known[SLUICE_TLS_PUBLIC];
  int here; /* 1; 0 in a child of fork() */
};

static OSSL_LIB_CTX* library;

/* Whether OpenSSL can be used: not after it has cleaned up. (MPI_Finalize may come from an exit
 * handler, after OpenSSL's own would have cleaned up. So it gets none if this is its first user.)
 */
static int is_up(void) { return OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }

static void make_library(void) {
  if (OPENSSL_version_major() >= 3 && is_up()) library = OSSL_LIB_CTX_new();
}

OSSL_LIB_CTX* sluice_tls_library(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_library);
  return library && is_up() ? library : NULL;
}

const char* sluice_tls_lacks(void) {
  if (sluice_tls_library()) return NULL;
  if (OPENSSL_version_major() < 3) return "OpenSSL is too old: version 3 or later is needed";
  if (is_up()) return "OpenSSL has no memory";
  return "OpenSSL cannot be used any more: OPENSSL_cleanup was called, or the program is ending";
}

int sluice_tls_mac(const unsigned char* key, const void* text, size_t size, unsigned char* made) {
  unsigned char whole[EVP_MAX_MD_SIZE];
  size_t whole_size = 0;
  const void* done;
  if (!sluice_tls_library()) return -1;
  ERR_set_mark();
  done = EVP_Q_mac(library, "HMAC", NULL, "SHA256", NULL, key, SLUICE_TLS_PAIR, text, size, whole,
                   sizeof whole, &whole_size);
  ERR_pop_to_mark();
  if (!done || whole_size < SLUICE_TLS_KEY) return -1;
  memcpy(made, whole, SLUICE_TLS_KEY);
  OPENSSL_cleanse(whole, sizeof whole);
  return 0;
}

int sluice_tls_hkdf(const unsigned char* key, const unsigned char* info, size_t info_size,
                    unsigned char* made) {
  char digest[] = "SHA256";
  EVP_KDF* const hkdf = EVP_KDF_fetch(library, "HKDF", NULL);
  EVP_KDF_CTX* const context = hkdf ? EVP_KDF_CTX_new(hkdf) : NULL;
  OSSL_PARAM with[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void*)key, SLUICE_TLS_PAIR),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void*)info, info_size),
      OSSL_PARAM_END};
  const int derived = context && EVP_KDF_derive(context, made, SLUICE_TLS_PAIR, with) == 1;
  EVP_KDF_CTX_free(context);
  EVP_KDF_free(hkdf);
  return derived;
}

/* ---- The key pair. */

static EVP_PKEY* load(const struct SluiceTlsKeys* keys) {
  return EVP_PKEY_new_raw_private_key_ex(library, "X25519", NULL, keys->secret, private_bytes);
}

static int draw(struct SluiceTlsKeys* keys) {
  size_t size = SLUICE_TLS_PUBLIC;
  EVP_PKEY* key;
  int made;
  if (RAND_priv_bytes_ex(library, keys->secret, private_bytes, 8 * private_bytes) != 1) return 0;
  key = load(keys);
  made = key && EVP_PKEY_get_raw_public_key(key, keys->known, &size) && size == SLUICE_TLS_PUBLIC;
  EVP_PKEY_free(key);
  keys->here = made;
  return made;
}

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void sluice_tls_drop_keys(struct SluiceTlsKeys* keys) {
  if (!keys) return;
  OPENSSL_cleanse(keys, sizeof *keys);
  munmap(keys, page_bytes());
}

struct SluiceTlsKeys* sluice_tls_make_keys(unsigned char* public_key) {
  struct SluiceTlsKeys* keys;
  int made;
  if (!sluice_tls_library()) return NULL;
  keys = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (keys == MAP_FAILED) return NULL;
  /* (A kernel that lacks one of these dumps the page, or copies it.) */
  (void)madvise(keys, page_bytes(), MADV_DONTDUMP);
  (void)madvise(keys, page_bytes(), MADV_WIPEONFORK);
  ERR_set_mark();
  made = draw(keys);
  ERR_pop_to_mark();
  if (made) {
    memcpy(public_key, keys->known, SLUICE_TLS_PUBLIC);
    return keys;
  }
  sluice_tls_drop_keys(keys);
  return NULL;
}

/* ---- What two processes share. */

/* 0, or what SluiceTls::agree returns. */
static int exchange(const struct SluiceTlsKeys* keys, const unsigned char* peer_key,
                    unsigned char* shared) {
  static const unsigned char zeros[shared_bytes];
  EVP_PKEY* const own = load(keys);
  EVP_PKEY* const peer =
      EVP_PKEY_new_raw_public_key_ex(library, "X25519", NULL, peer_key, SLUICE_TLS_PUBLIC);
  EVP_PKEY_CTX* const context = own ? EVP_PKEY_CTX_new_from_pkey(library, own, NULL) : NULL;
  size_t size = shared_bytes;
  int result = SLUICE_TLS_FAILED;
  if (peer && context && EVP_PKEY_derive_init(context) == 1 &&
      EVP_PKEY_derive_set_peer(context, peer) == 1) {
    /* OpenSSL refuses a shared secret of zeros, which a public key of low order gives, too. */
    const int derived = EVP_PKEY_derive(context, shared, &size) == 1 && size == shared_bytes;
    result = derived && CRYPTO_memcmp(shared, zeros, shared_bytes) != 0 ? 0 : SLUICE_TLS_NO_KEY;
  }
  EVP_PKEY_CTX_free(context);
  EVP_PKEY_free(own);
  EVP_PKEY_free(peer);
  return result;
}

static unsigned char* append(unsigned char* at, const unsigned char* what, size_t size) {
  memcpy(at, what, size);
  return at + size;
}

int sluice_tls_agree(const struct SluiceTlsKeys* keys, const struct SluiceTlsPair* pair,
                     unsigned char* key) {
  static const unsigned char label[16] = "sluice 4 pair  ";
  unsigned char shared[shared_bytes];
  unsigned char info[sizeof label + 2 * SLUICE_TLS_ID + 2 * SLUICE_TLS_PUBLIC];
  unsigned char* at = append(info, label, sizeof label);
  const int order = memcmp(pair->own, pair->peer, SLUICE_TLS_ID);
  int result;
  if (!keys->here || !sluice_tls_library()) return SLUICE_TLS_FAILED;
  if (order == 0) return SLUICE_TLS_NO_KEY;
  at = append(at, order < 0 ? pair->own : pair->peer, SLUICE_TLS_ID);
  at = append(at, order < 0 ? pair->peer : pair->own, SLUICE_TLS_ID);
  at = append(at, order < 0 ? keys->known : pair->peer_key, SLUICE_TLS_PUBLIC);
  append(at, order < 0 ? pair->peer_key : keys->known, SLUICE_TLS_PUBLIC);
  ERR_set_mark();
  result = exchange(keys, pair->peer_key, shared);
  if (result == 0 && !sluice_tls_hkdf(shared, info, sizeof info, key)) result = SLUICE_TLS_FAILED;
  ERR_pop_to_mark();
  OPENSSL_cleanse(shared, sizeof shared);
  return result;
}
