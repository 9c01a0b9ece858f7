/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interface between the library and the module that encrypts: a table of C functions, found by
 * symbol name. The module (openssl.c) is linked with OpenSSL, loaded on demand and optional.
 *
 * A session is one side of a TLS 1.3 connection. Its bytes move through the caller's functions
 * (struct SluiceTlsBelow), straight from and to OpenSSL's record buffers. Nothing here does I/O of
 * its own, blocks or raises a signal. A session takes one thread at a time; different sessions are
 * independent.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SLUICE_TLS_VERSION 7
#define SLUICE_TLS_SYMBOL "sluice_tls"

/* Bytes: of a proof, a process's id, a public key, the key of two processes. */
enum { SLUICE_TLS_KEY = 16, SLUICE_TLS_ID = 16, SLUICE_TLS_PUBLIC = 32, SLUICE_TLS_PAIR = 32 };

/* Results besides a number of bytes. */
enum { SLUICE_TLS_WAITS = 0, SLUICE_TLS_FAILED = -1, SLUICE_TLS_NO_KEY = -2 };

#ifdef __cplusplus
extern "C" {
#endif

struct SluiceTlsSession;
struct SluiceTlsIdentity;
struct SluiceTlsKeys; /* a process's key pair */

/* What a file in PEM holds. name: as messages have it, the setting and the path. */
struct SluiceTlsFile {
  const char *name, *text;
  size_t size;
};

struct SluiceTlsFiles {
  struct SluiceTlsFile certificate; /* this host's, and those between it and the authority's */
  struct SluiceTlsFile key;
  struct SluiceTlsFile authority;
  struct SluiceTlsFile revocation; /* a list for each authority; no name: nothing is looked up */
  const char* host; /* this host, whose name the certificate must have; NULL: is not looked at */
};

/* Both processes of a connection. "First" is the connecting side. */
struct SluiceTlsEnds {
  unsigned char key[SLUICE_TLS_PAIR]; /* by agree */
  unsigned char first[SLUICE_TLS_ID], second[SLUICE_TLS_ID];
  const struct SluiceTlsIdentity* identity; /* NULL: the key alone authenticates */
  const char* peer_host; /* with an identity: the name that the peer's certificate must have */
  int connects;          /* whether this side is the first */
  uint64_t key_bytes;    /* bytes that are sent with one key; then this side's key is updated */
};

/* How a session's bytes move, while it shakes hands, seals, unseals or flushes. Neither blocks.
 * Both return a number of bytes; 0: none now, or never again, which the caller has to note for
 * itself. */
struct SluiceTlsBelow {
  void* context;
  /* Takes the first bytes. more: others follow at once, so these need not leave yet. */
  size_t (*send)(void* context, const void* bytes, size_t size, int more);
  /* Fills the runs in order with the peer's next bytes. */
  size_t (*receive)(void* context, const struct iovec* runs, size_t count);
};

/* Who agrees on a key with whom. */
struct SluiceTlsPair {
  unsigned char own[SLUICE_TLS_ID], peer[SLUICE_TLS_ID], peer_key[SLUICE_TLS_PUBLIC];
};

struct SluiceTls {
  int version; /* SLUICE_TLS_VERSION */

  /* Why OpenSSL cannot be used, in words; NULL if it can. To be asked before anything else.
   * Thread-safe. Once OPENSSL_cleanup has run, which OpenSSL also calls when the program ends,
   * functions below that would make keys, proofs, identities or sessions fail, and so do
   * handshakes; sessions whose handshake is done go on. */
  const char* (*lacks)(void);

  /* Finds out which ciphers are fast here. To be called before what follows mac; thread-safe. 0, or
   * -1 with the reason why there is no TLS. Else `text`: OpenSSL's version and the cipher that this
   * process prefers. */
  int (*start)(char* text, size_t size);

  /* Makes a key pair, and tells its public key. The private one is in memory that core dumps leave
   * out and children of fork() do not get; drop_keys erases it. NULL if there is no memory, or no
   * OpenSSL 3. Thread-safe. */
  struct SluiceTlsKeys* (*make_keys)(unsigned char* public_key);
  void (*drop_keys)(struct SluiceTlsKeys*);
  /* The key of two processes, SLUICE_TLS_PAIR bytes, the same on both sides (keys.c says how). 0;
   * SLUICE_TLS_NO_KEY if the peer's is no public key; or SLUICE_TLS_FAILED if there is no memory,
   * or in a child of fork(). Thread-safe. */
  int (*agree)(const struct SluiceTlsKeys*, const struct SluiceTlsPair* pair, unsigned char* key);

  /* The first SLUICE_TLS_KEY bytes of HMAC-SHA256(key, text); key: by agree. 0, or -1 if there is
   * no memory, or no OpenSSL 3. Thread-safe. */
  int (*mac)(const unsigned char* key, const void* text, size_t size, unsigned char* mac);

  /* What this process shows with certificates, and whom it trusts: nobody but the authority. NULL,
   * with the reason in `text`, if the files cannot be used, or if peers with the same authority and
   * list would refuse this certificate. Else `text`: "certificate for n1 until Nov 24 20:00:00 2027
   * GMT by /CN=us". Outlives its sessions. */
  struct SluiceTlsIdentity* (*identify)(const struct SluiceTlsFiles* files, char* text,
                                        size_t size);
  void (*forget)(struct SluiceTlsIdentity*);

  /* NULL if there is no memory. The session has copied, or derived from, what it needs of both. */
  struct SluiceTlsSession* (*open)(const struct SluiceTlsEnds* ends,
                                   const struct SluiceTlsBelow* below);
  void (*close)(struct SluiceTlsSession*);

  /* Goes on with the handshake: 1 once it is done, SLUICE_TLS_WAITS for the peer's bytes or for
   * room to send, or SLUICE_TLS_FAILED. Also sends bytes, an alert if it failed. */
  int (*shake)(struct SluiceTlsSession*);
  /* Encrypts one record of at most 16 KiB, and sends it; the handshake is done. more: another seal
   * follows at once. Returns the bytes taken, or SLUICE_TLS_WAITS if some are unsent, or
   * SLUICE_TLS_FAILED. */
  int (*seal)(struct SluiceTlsSession*, const void* plain, size_t size, int more);
  /* Decrypts at most one record. Returns the bytes written to `plain`, or SLUICE_TLS_WAITS for the
   * peer's bytes, or SLUICE_TLS_FAILED. */
  int (*unseal)(struct SluiceTlsSession*, void* plain, size_t size);
  /* Whether unseal has something to do or to say without further bytes of the peer. */
  int (*holds)(const struct SluiceTlsSession*);
  /* Why the session failed, in words; owned by the session. */
  const char* (*why)(const struct SluiceTlsSession*);
  const char* (*cipher)(const struct SluiceTlsSession*); /* once the handshake is done */

  /* Bytes that are encrypted, and have found no room below: less than 17 KiB. flush sends some. */
  size_t (*unsent)(const struct SluiceTlsSession*);
  void (*flush)(struct SluiceTlsSession*);
};

/* The module's entry, SLUICE_TLS_SYMBOL. */
typedef const struct SluiceTls* SluiceTlsEntry(void);

#ifdef __cplusplus
}
#endif
