/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interface between the library and CUDA IPC: a third table of C functions in the CUDA module
 * (module.h). With it the processes of a host use each other's device memory. SluiceCuda::begin
 * must have succeeded before. No function here waits for another process, and none changes the
 * calling thread's current context. `why`: as in module.h.
 *
 * A slab is device memory of Sluice's own: memory of the program may be of kinds that no other
 * process can open (pools, virtual memory, managed memory), and the program may free it at any
 * time. It is in its device's primary context, and so is what is opened for it. One thread at a
 * time may use a slab. Where the program has reset the device, the slab is gone, with all that was
 * opened for it. In a forked child a slab of the parent is gone, too.
 */
#pragma once

#include <stddef.h>

#include "cuda/module.h"

#define SLUICE_IPC_VERSION 1
#define SLUICE_IPC_SYMBOL "sluice_ipc"

#ifdef __cplusplus
extern "C" {
#endif

enum { sluice_ipc_uuid = 16, sluice_ipc_handle = 64 };

struct SluiceIpcSlab;

struct SluiceIpc {
  int version; /* SLUICE_IPC_VERSION */

  /* The UUID of a place's device. -1: a slab's copies can't use memory there: the place's context
   * is not the device's primary one. */
  int (*find_device)(const struct SluiceCudaPlace* place, unsigned char uuid[sluice_ipc_uuid],
                     char* why);
  /* A slab of at least so many bytes on a device (a multiple of 2 MiB), whose contents are
   * undefined, and what another process opens it by. NULL: there is no memory, or the driver is
   * older than CUDA 11.0. */
  struct SluiceIpcSlab* (*create)(int device, size_t bytes, char handle[sluice_ipc_handle],
                                  char* why);
  /* Whether it is not gone. */
  int (*is_alive)(const struct SluiceIpcSlab* slab);
  void* (*memory)(const struct SluiceIpcSlab* slab);
  /* Opens another process's slab for the device of this one. To be opened once at a time. NULL:
   * the driver refuses (no access between the devices, a process in another container). */
  void* (*open)(struct SluiceIpcSlab* slab, const char handle[sluice_ipc_handle], char* why);
  /* Closes what `open` returned, also if the other process has ended. All copies from it must be
   * done. Nothing happens where the slab is gone. */
  void (*close)(struct SluiceIpcSlab* slab, void* opened);
  /* Frees a slab. All that was opened for it must be closed, and other processes must have closed
   * it. */
  void (*destroy)(struct SluiceIpcSlab* slab);
};

/* SLUICE_IPC_SYMBOL. */
typedef const struct SluiceIpc* SluiceIpcEntry(void);

#ifdef __cplusplus
}
#endif
