/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libsluice-tls.so: TLS 1.3 by OpenSSL 3, authenticated by an external pre-shared key (RFC 8446,
 * psk_dhe_ke: the key authenticates, a Diffie-Hellman exchange gives forward secrecy). No tickets,
 * resumption, compression, renegotiation or early data, and no certificates: a handshake without
 * the key fails. With an identity (identity.c), certificates of both sides authenticate the hosts.
 *
 * The pre-shared key is HKDF-SHA256 (RFC 5869) of the two processes' pair key (keys.c), with both
 * ids as info, so that it serves this direction of connecting only. With certificates,
 * both sides prove after the handshake that they have a secret derived alike: by its HMAC of what
 * the connection exports (RFC 8446, 7.5). So the ends of the encrypted connection are these two
 * processes, and nobody who has a host's certificate and key but not their keys.
 */
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transports/tls/internal.h"

enum {
  secret_bytes = SLUICE_TLS_PAIR,
  record_bytes = 16 * 1024,
  header_bytes = 5,
  /* 16 KiB in records of 512 bytes, the least that a peer may ask for, and a change of keys. */
  sealed_bytes = record_bytes + 32 * 22 + 512,
  measured_times = 6,
  measured_ns = 1000000 /* at most, in all */
};

static const unsigned char identity[] = "sluice";
static const char groups[] = "X25519:P-256";
static const char aes[] = "TLS_AES_128_GCM_SHA256";
static const char chacha[] = "TLS_CHACHA20_POLY1305_SHA256";
static const char aes_first[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
static const char chacha_first[] = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";

struct Buffer {
  size_t begin, end;
  unsigned char bytes[sealed_bytes];
};

struct SluiceTlsSession {
  SSL* ssl;
  struct SluiceTlsBelow below;
  struct Buffer in;                   /* what came together with what OpenSSL had asked for */
  struct Buffer out;                  /* what found no room below */
  int more;                           /* bytes follow those that are sent now */
  unsigned char secret[secret_bytes]; /* the pre-shared key, or the key of proofs */
  uint64_t key_bytes, sealed;         /* with the key in use */
  int certified;                      /* by certificates and the secret, not by the secret alone */
  int connects, bound;                /* bound: this side's proof has been sent */
  unsigned char proof[secret_bytes];  /* the peer's, of which so much has come: */
  size_t proof_bytes;
  int done;
  char why[160];
};

/* Of the process. */
static struct {
  pthread_once_t once;
  BIO_METHOD* method;
  SSL_CTX *connecting, *accepting;
  const char* ciphers; /* NULL: AES only */
  char text[160];      /* what was started, or why nothing was */
  int started;
} all = {.once = PTHREAD_ONCE_INIT};

/* ---- Errors. The program's own entries in OpenSSL's error queue stay, but for those that OpenSSL
 * itself clears in a handshake and in a change of keys. */

static void explain(struct SluiceTlsSession* session, const char* what) {
  const unsigned long error = ERR_peek_last_error();
  const int is_alert =
      ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) > SSL_AD_REASON_OFFSET;
  const char* const reason = error ? ERR_reason_error_string(error) : sluice_tls_lacks();
  if (session->why[0]) return;
  snprintf(session->why, sizeof session->why, "%s: %s",
           is_alert ? "the peer refuses this process" : what,
           reason ? reason : "no reason was given");
}

/* ---- What OpenSSL reads and writes: its BIO. */

static size_t size_of(const struct Buffer* buffer) { return buffer->end - buffer->begin; }

static void consume(struct Buffer* buffer, size_t bytes) {
  buffer->begin += bytes;
  if (buffer->begin == buffer->end) buffer->begin = buffer->end = 0;
}

static size_t append(struct Buffer* buffer, const void* bytes, size_t size) {
  const size_t room = sizeof buffer->bytes - buffer->end;
  if (size > room) size = room;
  memcpy(buffer->bytes + buffer->end, bytes, size);
  buffer->end += size;
  return size;
}

static size_t send_below(struct SluiceTlsSession* session, const void* bytes, size_t size) {
  return session->below.send(session->below.context, bytes, size, session->more);
}

static void flush(struct SluiceTlsSession* session) {
  struct Buffer* const out = &session->out;
  if (size_of(out) > 0) consume(out, send_below(session, out->bytes + out->begin, size_of(out)));
}

static int bio_write(BIO* bio, const char* data, size_t size, size_t* taken) {
  struct SluiceTlsSession* const session = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  *taken = size_of(&session->out) > 0 ? 0 : send_below(session, data, size);
  *taken += append(&session->out, data + *taken, size - *taken);
  if (*taken > 0) return 1;
  BIO_set_retry_write(bio);
  return 0;
}

/* The bytes that OpenSSL asks for go straight to its buffer. It asks for a record's header, then
 * for the rest. With a header comes what there is, often the whole record; with the rest, only the
 * next header. So a small record takes one call below, and of a stream of large ones nothing is
 * copied. */
static size_t receive_below(struct SluiceTlsSession* session, char* data, size_t size) {
  struct Buffer* const in = &session->in;
  const struct iovec runs[] = {{data, size},
                               {in->bytes, size > header_bytes ? header_bytes : sizeof in->bytes}};
  const size_t got = session->below.receive(session->below.context, runs, 2);
  if (got <= size) return got;
  in->begin = 0;
  in->end = got - size;
  return size;
}

static int bio_read(BIO* bio, char* data, size_t size, size_t* given) {
  struct SluiceTlsSession* const session = BIO_get_data(bio);
  struct Buffer* const in = &session->in;
  BIO_clear_retry_flags(bio);
  if (size_of(in) > 0) {
    *given = size < size_of(in) ? size : size_of(in);
    memcpy(data, in->bytes + in->begin, *given);
    consume(in, *given);
    return 1;
  }
  *given = receive_below(session, data, size);
  if (*given > 0) return 1;
  BIO_set_retry_read(bio);
  return 0;
}

static long bio_control(BIO* bio, int command, long number, void* pointer) {
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP;
}

/* ---- The keys. */

static int derive(const struct SluiceTlsEnds* ends, unsigned char* secret) {
  static const char psk_label[] = "sluice tls psk 2", name_label[] = "sluice tls ends2";
  enum { label_bytes = sizeof psk_label };
  const char* const label = ends->identity ? name_label : psk_label;
  unsigned char info[label_bytes + 2 * SLUICE_TLS_ID];
  memcpy(info, label, label_bytes);
  memcpy(info + label_bytes, ends->first, SLUICE_TLS_ID);
  memcpy(info + label_bytes + SLUICE_TLS_ID, ends->second, SLUICE_TLS_ID);
  return sluice_tls_hkdf(ends->key, info, sizeof info, secret);
}

/* The pre-shared key as OpenSSL wants it. (A cipher is named for its hash, which both have.) */
static SSL_SESSION* psk_of(SSL* ssl) {
  static const unsigned char aes_number[] = {0x13, 0x01};
  const struct SluiceTlsSession* const session = SSL_get_app_data(ssl);
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, aes_number);
  SSL_SESSION* const made = SSL_SESSION_new();
  if (made && cipher && SSL_SESSION_set1_master_key(made, session->secret, secret_bytes) &&
      SSL_SESSION_set1_id_context(made, identity, sizeof identity - 1) &&
      SSL_SESSION_set_cipher(made, cipher) &&
      SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION)) {
    return made;
  }
  SSL_SESSION_free(made);
  return NULL;
}

static int use_psk(SSL* ssl, const EVP_MD* digest, const unsigned char** id, size_t* size,
                   SSL_SESSION** psk) {
  (void)digest;
  *id = identity;
  *size = sizeof identity - 1;
  *psk = psk_of(ssl);
  return *psk != NULL;
}

static int find_psk(SSL* ssl, const unsigned char* id, size_t size, SSL_SESSION** psk) {
  *psk = NULL; /* unknown: the handshake fails, because there is no certificate */
  if (size != sizeof identity - 1 || memcmp(id, identity, size) != 0) return 1;
  *psk = psk_of(ssl);
  return *psk != NULL;
}

/* ---- What is done once in a process. */

static long long own_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Nanoseconds to encrypt a record; -1 if OpenSSL lacks the cipher. */
static long long time_of(const char* name, unsigned char* record) {
  static const unsigned char key[32], nonce[12];
  EVP_CIPHER* const cipher = EVP_CIPHER_fetch(sluice_tls_library(), name, NULL);
  EVP_CIPHER_CTX* const context = cipher ? EVP_CIPHER_CTX_new() : NULL;
  const long long first = own_time();
  long long least = -1;
  int size, i;
  for (i = 0; context && i < measured_times && own_time() - first < measured_ns / 2; ++i) {
    const long long begin = own_time();
    long long time;
    if (!EVP_EncryptInit_ex2(context, cipher, key, nonce, NULL) ||
        !EVP_EncryptUpdate(context, record, &size, record, record_bytes)) {
      least = -1;
      break;
    }
    time = own_time() - begin;
    if (least < 0 || time < least) least = time;
  }
  EVP_CIPHER_CTX_free(context);
  EVP_CIPHER_free(cipher);
  return least;
}

static const char* faster_first(void) {
  unsigned char* const record = calloc(1, record_bytes);
  long long by_aes, by_chacha;
  if (!record) return aes_first;
  by_aes = time_of("AES-128-GCM", record);
  by_chacha = time_of("ChaCha20-Poly1305", record);
  free(record);
  if (by_chacha < 0) return aes;
  return by_chacha < by_aes ? chacha_first : aes_first;
}

SSL_CTX* sluice_tls_context(const SSL_METHOD* method) {
  SSL_CTX* const made = SSL_CTX_new_ex(sluice_tls_library(), NULL, method);
  if (!made) return NULL;
  SSL_CTX_set_options(made, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_clear_options(made, SSL_OP_ENABLE_MIDDLEBOX_COMPAT | SSL_OP_ALLOW_NO_DHE_KEX);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  SSL_CTX_set_session_id_context(made, identity, sizeof identity - 1);
  if (SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) &&
      SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) && SSL_CTX_set_num_tickets(made, 0) &&
      SSL_CTX_set_ciphersuites(made, all.ciphers) && SSL_CTX_set1_groups_list(made, groups)) {
    return made;
  }
  SSL_CTX_free(made);
  return NULL;
}

/* Trusts no certificate. */
static SSL_CTX* make_psk_context(const SSL_METHOD* method) {
  SSL_CTX* const made = sluice_tls_context(method);
  if (!made) return NULL;
  SSL_CTX_set_psk_use_session_callback(made, use_psk);
  SSL_CTX_set_psk_find_session_callback(made, find_psk);
  return made;
}

static int make_all(void) {
  all.method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sluice");
  if (!all.method || !BIO_meth_set_write_ex(all.method, bio_write) ||
      !BIO_meth_set_read_ex(all.method, bio_read) || !BIO_meth_set_ctrl(all.method, bio_control)) {
    return 0;
  }
  all.ciphers = faster_first();
  all.connecting = make_psk_context(TLS_client_method());
  all.accepting = make_psk_context(TLS_server_method());
  return all.connecting && all.accepting;
}

static void start_once(void) {
  ERR_set_mark();
  all.started = make_all();
  if (all.started) {
    snprintf(all.text, sizeof all.text, "%s, TLS 1.3, %s", OpenSSL_version(OPENSSL_VERSION),
             all.ciphers == chacha_first ? chacha : aes);
  } else {
    const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(all.text, sizeof all.text, "%s cannot be used: %s", OpenSSL_version(OPENSSL_VERSION),
             reason ? reason : "no reason was given");
  }
  ERR_pop_to_mark();
}

static int start(char* text, size_t size) {
  const char* const lacks = sluice_tls_lacks();
  if (!lacks) pthread_once(&all.once, start_once);
  snprintf(text, size, "%s", lacks ? lacks : all.text);
  if (lacks) return -1;
  return all.started ? 0 : -1;
}

/* ---- Sessions. */

static void close_session(struct SluiceTlsSession* session) {
  if (!session) return;
  SSL_free(session->ssl);
  OPENSSL_clear_free(session, sizeof *session);
}

int sluice_tls_judged(int is_good, X509_STORE_CTX* check) {
  SSL* const ssl = X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx());
  struct SluiceTlsSession* const session = SSL_get_app_data(ssl);
  char names[80] = "";
  if (is_good && !sluice_tls_serves_both(X509_STORE_CTX_get0_chain(check))) {
    X509_STORE_CTX_set_error(check, X509_V_ERR_INVALID_PURPOSE);
    is_good = 0;
  }
  if (is_good || session->why[0]) return is_good;
  sluice_tls_names(X509_STORE_CTX_get0_cert(check), names, sizeof names);
  snprintf(session->why, sizeof session->why, "the peer's certificate for %s: %s",
           names[0] ? names : "no host",
           X509_verify_cert_error_string(X509_STORE_CTX_get_error(check)));
  return 0;
}

static int prepare(struct SluiceTlsSession* session, const struct SluiceTlsEnds* ends) {
  BIO* bio;
  session->key_bytes = ends->key_bytes;
  session->connects = ends->connects;
  session->certified = ends->identity != NULL;
  if (session->certified) {
    session->ssl = SSL_new(ends->connects ? ends->identity->connecting : ends->identity->accepting);
  } else {
    session->ssl = SSL_new(ends->connects ? all.connecting : all.accepting);
  }
  if (!session->ssl) return 0;
  if (!SSL_set_app_data(session->ssl, session) || !derive(ends, session->secret)) return 0;
  if (session->certified && !sluice_tls_expect(session->ssl, ends->peer_host)) return 0;
  bio = BIO_new(all.method);
  if (!bio) return 0;
  BIO_set_data(bio, session);
  BIO_set_init(bio, 1);
  SSL_set_bio(session->ssl, bio, bio);
  SSL_set_mode(session->ssl, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ends->connects ? SSL_set_connect_state(session->ssl) : SSL_set_accept_state(session->ssl);
  return 1;
}

static struct SluiceTlsSession* open_session(const struct SluiceTlsEnds* ends,
                                             const struct SluiceTlsBelow* below) {
  struct SluiceTlsSession* const session =
      sluice_tls_library() ? OPENSSL_zalloc(sizeof *session) : NULL;
  int prepared;
  if (!session) return NULL;
  session->below = *below;
  ERR_set_mark();
  prepared = prepare(session, ends);
  ERR_pop_to_mark();
  if (prepared) return session;
  close_session(session);
  return NULL;
}

/* Whether OpenSSL, which did nothing since begin(), waits only for bytes or room. (What SSL_want
 * says may be of an earlier call, and SSL_get_error asks the program's error queue.) */
static void begin(struct SluiceTlsSession* session) {
  ERR_set_mark();
  BIO_clear_retry_flags(SSL_get_rbio(session->ssl));
}
static int waits(const struct SluiceTlsSession* session) {
  return BIO_should_retry(SSL_get_rbio(session->ssl));
}

/* Whether the handshake, which is done, has proved who the peer is. */
static int proved(const struct SluiceTlsSession* session) {
  if (SSL_version(session->ssl) != TLS1_3_VERSION) return 0;
  if (!session->certified) return SSL_session_reused(session->ssl);
  return SSL_get0_peer_certificate(session->ssl) != NULL &&
         SSL_get_verify_result(session->ssl) == X509_V_OK;
}

/* OpenSSL keeps the pre-shared key as that of the session, which is never resumed. */
static void forget_secret(struct SluiceTlsSession* session) {
  static const unsigned char zeros[secret_bytes];
  SSL_SESSION* const kept = SSL_get_session(session->ssl);
  OPENSSL_cleanse(session->secret, secret_bytes);
  if (kept && session->done) (void)SSL_SESSION_set1_master_key(kept, zeros, secret_bytes);
}

/* What only a process that has the secret can send over this connection; another for each side. */
static int bind_side(const struct SluiceTlsSession* session, int connects, unsigned char* proof) {
  static const char label[] = "EXPORTER-sluice-ends";
  unsigned char text[1 + secret_bytes] = {(unsigned char)connects};
  size_t size = 0;
  return SSL_export_keying_material(session->ssl, text + 1, secret_bytes, label, sizeof label - 1,
                                    NULL, 0, 0) == 1 &&
         EVP_Q_mac(sluice_tls_library(), "HMAC", NULL, "SHA256", NULL, session->secret,
                   secret_bytes, text, sizeof text, proof, secret_bytes, &size) &&
         size == secret_bytes;
}

/* After the handshake with certificates: both sides send their proof. 1 once the peer's is right.
 */
static int bind_ends(struct SluiceTlsSession* session) {
  unsigned char made[secret_bytes];
  size_t moved = 0;
  if (!bind_side(session, session->connects, made)) {
    explain(session, "proof of the keys");
    return 0;
  }
  if (!session->bound) session->bound = SSL_write_ex(session->ssl, made, secret_bytes, &moved);
  while (session->bound && session->proof_bytes < secret_bytes &&
         SSL_read_ex(session->ssl, session->proof + session->proof_bytes,
                     secret_bytes - session->proof_bytes, &moved)) {
    session->proof_bytes += moved;
  }
  if (session->proof_bytes < secret_bytes) {
    if (!waits(session)) explain(session, "proof of the keys");
    return 0;
  }
  if (bind_side(session, !session->connects, made) &&
      CRYPTO_memcmp(made, session->proof, secret_bytes) == 0) {
    return 1;
  }
  snprintf(session->why, sizeof session->why, "the peer has a certificate, but not its keys");
  return 0;
}

static int shake(struct SluiceTlsSession* session) {
  int result = SLUICE_TLS_WAITS;
  if (session->done) return 1;
  if (!session->why[0] && !sluice_tls_library()) explain(session, "handshake");
  if (session->why[0]) return SLUICE_TLS_FAILED;
  begin(session);
  if (SSL_do_handshake(session->ssl) == 1) {
    if (!proved(session)) {
      explain(session, "handshake without proof of who the peer is");
    } else {
      session->done = !session->certified || bind_ends(session);
    }
    if (session->done || session->why[0]) forget_secret(session);
  } else if (!waits(session)) {
    explain(session, "handshake");
  }
  ERR_pop_to_mark();
  if (session->why[0]) result = SLUICE_TLS_FAILED;
  return session->done ? 1 : result;
}

/* (All that OpenSSL makes of a record is taken below, or finds room in `out`.) */
static int seal(struct SluiceTlsSession* session, const void* plain, size_t size, int more) {
  size_t taken = 0;
  if (session->why[0]) return SLUICE_TLS_FAILED;
  if (size > record_bytes) size = record_bytes;
  if (size_of(&session->out) > 0) return SLUICE_TLS_WAITS;
  session->more = more;
  begin(session);
  if (session->sealed >= session->key_bytes) {
    session->sealed = 0;
    if (!SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED)) explain(session, "new key");
  }
  if (!session->why[0] && !SSL_write_ex(session->ssl, plain, size, &taken)) {
    explain(session, "encryption");
  }
  ERR_pop_to_mark();
  session->more = 0;
  session->sealed += taken;
  return session->why[0] ? SLUICE_TLS_FAILED : (int)taken;
}

static int unseal(struct SluiceTlsSession* session, void* plain, size_t size) {
  size_t given = 0;
  if (session->why[0]) return SLUICE_TLS_FAILED;
  begin(session);
  if (!SSL_read_ex(session->ssl, plain, size, &given) && !waits(session)) {
    explain(session, SSL_get_shutdown(session->ssl) ? "the peer ended the session" : "decryption");
  }
  ERR_pop_to_mark();
  return session->why[0] ? SLUICE_TLS_FAILED : (int)given;
}

/* (A record's header ends with its length.) */
static int holds(const struct SluiceTlsSession* session) {
  const struct Buffer* const in = &session->in;
  const unsigned char* const head = in->bytes + in->begin;
  if (session->why[0] || SSL_pending(session->ssl) > 0) return 1;
  if (size_of(in) < header_bytes) return 0;
  return size_of(in) >= header_bytes + ((size_t)head[3] << 8 | head[4]);
}

static const char* why(const struct SluiceTlsSession* session) { return session->why; }

static const char* cipher(const struct SluiceTlsSession* session) {
  return SSL_get_cipher_name(session->ssl);
}

static size_t unsent(const struct SluiceTlsSession* session) { return size_of(&session->out); }

static const struct SluiceTls tls = {SLUICE_TLS_VERSION,
                                     sluice_tls_lacks,
                                     start,
                                     sluice_tls_make_keys,
                                     sluice_tls_drop_keys,
                                     sluice_tls_agree,
                                     sluice_tls_mac,
                                     sluice_tls_identify,
                                     sluice_tls_forget,
                                     open_session,
                                     close_session,
                                     shake,
                                     seal,
                                     unseal,
                                     holds,
                                     why,
                                     cipher,
                                     unsent,
                                     flush};

__attribute__((visibility("default"))) const struct SluiceTls* sluice_tls(void) { return &tls; }
