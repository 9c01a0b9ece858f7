/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interface between the library and the module that knows libibverbs: a table of C functions,
 * found by symbol name, each a thin layer over the library. Nothing here decides anything, so that
 * tests can replace the whole table. One lock guards all calls for one device. "Returns 0 or an
 * errno" holds unless a function says otherwise.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SLUICE_VERBS_VERSION 7
#define SLUICE_VERBS_SYMBOL "sluice_verbs"

#ifdef __cplusplus
extern "C" {
#endif

struct SluiceVerbsPort {
  char device[64]; /* "mlx5_0" */
  uint8_t number;  /* of the port, from 1 on; 0: of the device, which cannot be asked */
  uint8_t active;
  uint8_t ethernet; /* the link layer; else InfiniBand */
  uint8_t foreign;  /* the transport is neither InfiniBand's nor RoCE's (iWARP) */
  uint8_t mtu;      /* as the library writes it: 1 is 256 bytes, 5 is 4096 */
  uint16_t lid;     /* InfiniBand */
  uint32_t max_message;
  int error; /* errno: the device or port cannot be asked, and the rest is unknown */
};

enum SluiceVerbsGidKind { SLUICE_GID_INFINIBAND, SLUICE_GID_ROCE_1, SLUICE_GID_ROCE_2 };

struct SluiceVerbsGid {
  uint8_t raw[16];
  uint8_t index;
  uint8_t kind;       /* SluiceVerbsGidKind */
  uint32_t interface; /* the network interface's index; 0: none */
};

/* What memory is registered for. */
enum SluiceVerbsUse {
  SLUICE_VERBS_OWN,     /* this process's writes come from it */
  SLUICE_VERBS_WRITTEN, /* and the peer writes it */
  SLUICE_VERBS_LENT,    /* the program's: the peer reads it */
  SLUICE_VERBS_FILLED   /* the program's: this process's reads fill it, and the peer reads it */
};

struct SluiceVerbsRegion {
  void* handle;
  uint32_t local_key, remote_key;
};

/* A reliable connected queue pair with one completion queue, in the state INIT. In: the depths, the
 * bytes to send inline, and how many reads are to be under way in each direction (0: the peer
 * writes, and nobody reads). Out: the rest; `inlined` and `reads` are what the device gave. */
struct SluiceVerbsQueue {
  uint8_t port, reads;
  uint32_t sends, receives, inlined;
  void* handle;
  uint32_t number; /* of the queue pair */
};

struct SluiceVerbsWay {
  uint8_t port, gid_index, mtu, global; /* global: by GID; else by LID alone */
  uint16_t peer_lid;
  uint8_t peer_gid[16];
  uint32_t peer_number, peer_sequence, own_sequence;
  uint8_t reads; /* under way in each direction, at least 1 */
};

struct SluiceVerbsWrite {
  const void* from;
  uint32_t local_key, bytes;
  uint64_t to;
  uint32_t remote_key;
  uint32_t immediate;
  uint64_t id;
  uint8_t has_immediate, signalled, inlined;
};

struct SluiceVerbsRead {
  void* to;
  uint32_t local_key, bytes;
  uint64_t from;
  uint32_t remote_key;
  uint64_t id;
  uint8_t fenced; /* begins when all before it are complete */
  uint8_t signalled;
};

struct SluiceVerbsDone {
  uint64_t id;        /* of a write or read */
  int status;         /* 0: done; else a number for status_text */
  uint8_t received;   /* of a receive request: an immediate has come, or status says why not */
  uint32_t immediate; /* if received */
};

enum SluiceVerbsEventKind {
  SLUICE_VERBS_OTHER,
  SLUICE_VERBS_QUEUE_FAILED, /* its completions may never come */
  SLUICE_VERBS_PORT_DOWN,
  SLUICE_VERBS_PORT_UP,
  SLUICE_VERBS_DEVICE_LOST,
  SLUICE_VERBS_PORT_CHANGED, /* its addresses */
};

struct SluiceVerbsEvent {
  uint8_t kind;     /* SluiceVerbsEventKind */
  uint8_t port;     /* of a port */
  uint32_t number;  /* of a queue pair */
  const char* text; /* lives for ever */
};

struct SluiceVerbs {
  int version; /* SLUICE_VERBS_VERSION */
  /* The ports of all devices, at most `room`; a device that cannot be opened counts as one. Returns
   * how many there are, or an errno, negated. No device: 0. */
  int (*list)(struct SluiceVerbsPort* ports, int room);
  /* descriptor: readable if a queue has an event. */
  int (*open)(const char* name, void** device, int* descriptor);
  void (*close)(void* device);
  /* The valid entries of a port's GID table. Returns as list does. */
  int (*gids)(void* device, uint8_t port, struct SluiceVerbsGid* gids, int room);
  /* Registers memory. EOPNOTSUPP: a fork of this process could take the program's pages away from
   * the device (Linux before 5.12). */
  int (*add_region)(void* device, void* memory, size_t bytes, enum SluiceVerbsUse use,
                    struct SluiceVerbsRegion* region);
  /* Needs no lock. */
  void (*drop_region)(void* handle);
  int (*make_queue)(void* device, struct SluiceVerbsQueue* queue);
  /* Afterwards the device accesses no memory for it. */
  void (*drop_queue)(void* handle);
  /* To the states RTR and RTS. */
  int (*connect)(void* queue, const struct SluiceVerbsWay* way);
  /* Posts up to 16 writes as one list. */
  int (*write)(void* queue, const struct SluiceVerbsWrite* writes, int count);
  /* Posts up to 16 reads as one list. */
  int (*read)(void* queue, const struct SluiceVerbsRead* reads, int count);
  /* Posts receive requests without memory, for immediates. */
  int (*receive)(void* queue, int count);
  /* Returns the number of completions found, at most 16; if fewer than `room`, there were no more.
   * Negative: the queue is broken. */
  int (*poll)(void* queue, struct SluiceVerbsDone* done, int room);
  /* To the state ERR: all receive requests complete, those that a message had met before first. */
  int (*stop)(void* queue);
  /* The next completion makes an event. */
  int (*arm)(void* queue);
  /* Takes events from the descriptor, one for each queue at most: each is a system call, and so is
   * it to find none. Others may stay. */
  void (*take_events)(void* device);
  const char* (*status_text)(int status);
  /* Takes the device's next asynchronous event. Returns 1; 0: there is none now; or an errno,
   * negated: the device is lost. */
  int (*next_event)(void* device, struct SluiceVerbsEvent* event);
};

/* The module's entry, SLUICE_VERBS_SYMBOL. */
typedef const struct SluiceVerbs* SluiceVerbsEntry(void);

#ifdef __cplusplus
}
#endif
