/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interface between the library and the CUDA module (libsluice-cuda.so): a table of C
 * functions, found by symbol name (src/base/module.h). The module is opened when a CUDA driver
 * (libcuda.so.1) is loaded in the process, by whomever. It calls that driver and is linked with
 * nothing of CUDA. All functions may be called by several threads at once; none changes the calling
 * thread's current context. A `why` of sluice_cuda_why bytes receives the reason of a failure:
 * "cuStreamCreate: CUDA_ERROR_OUT_OF_MEMORY 2 (out of memory)".
 */
#pragma once

#include <stddef.h>

#define SLUICE_CUDA_VERSION 6
#define SLUICE_CUDA_SYMBOL "sluice_cuda"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  sluice_cuda_why = 256,
  sluice_cuda_devices = 16,
  sluice_cuda_marks = 8,
  sluice_cuda_operands = 16
};

/* Element types and operations, by the names and in the order of src/reduce/kernel.h (a test
 * compares). */
enum SluiceCudaType {
  sluice_cuda_int8,
  sluice_cuda_int16,
  sluice_cuda_int32,
  sluice_cuda_int64,
  sluice_cuda_uint8,
  sluice_cuda_uint16,
  sluice_cuda_uint32,
  sluice_cuda_uint64,
  sluice_cuda_float16,
  sluice_cuda_bfloat16,
  sluice_cuda_float32,
  sluice_cuda_float64,
  sluice_cuda_float80,
  sluice_cuda_float128,
  sluice_cuda_complex64,
  sluice_cuda_complex128,
  sluice_cuda_complex160,
  sluice_cuda_complex256,
  sluice_cuda_logical8,
  sluice_cuda_logical16,
  sluice_cuda_logical32,
  sluice_cuda_logical64,
  sluice_cuda_float32_int32,
  sluice_cuda_float64_int32,
  sluice_cuda_int64_int32,
  sluice_cuda_int32_int32,
  sluice_cuda_int16_int32,
  sluice_cuda_float80_int32,
  sluice_cuda_float32_float32,
  sluice_cuda_float64_float64,
  sluice_cuda_types
};
enum SluiceCudaOperation {
  sluice_cuda_sum,
  sluice_cuda_prod,
  sluice_cuda_min,
  sluice_cuda_max,
  sluice_cuda_logical_and,
  sluice_cuda_logical_or,
  sluice_cuda_logical_xor,
  sluice_cuda_bit_and,
  sluice_cuda_bit_or,
  sluice_cuda_bit_xor,
  sluice_cuda_minloc,
  sluice_cuda_maxloc,
  sluice_cuda_operations
};

/* Where memory of a device is. */
struct SluiceCudaPlace {
  void* context; /* in which it was allocated; NULL: in none (pools, virtual memory management) */
  int device;    /* one that may use it; -1: host memory, which the processor may touch */
};

/* A stream of Sluice's own, which copies between memory of a device and host memory, in order. */
struct SluiceCudaStream;

/* Runs of equal length, at equal distances on a device and in host memory. */
struct SluiceCudaRuns {
  void* device;
  void* host;
  ptrdiff_t device_stride; /* bytes from one run to the next; may be negative, or less than a run */
  size_t host_stride;
  size_t count;
  size_t bytes; /* of each */
};

struct SluiceCudaDevices {
  int driver; /* the CUDA version that the driver supports: 12040 is 12.4 */
  int count;
  char names[sluice_cuda_devices][128]; /* of the first devices */
};

struct SluiceCudaSettings {
  size_t pinned;        /* bytes of host memory that may be pinned at a time */
  size_t scratch;       /* bytes of device memory that `allocate` and `copy` may hold at a time */
  int blocking_streams; /* Sluice's streams wait for the default stream, and it for them */
  int sync_contexts;    /* contexts get CU_CTX_SYNC_MEMOPS */
};

struct SluiceCuda {
  int version; /* SLUICE_CUDA_VERSION */

  /* Uses this driver: a handle of dlopen. 0, or -1 if the driver is too old. To be called before
   * all others. */
  int (*begin)(void* driver, const struct SluiceCudaSettings* settings, char* why);
  /* Gives back all that no call uses: pinned memory, device memory, streams, kernels, retained
   * primary contexts. Contexts
   * that the program has destroyed, and a driver that has shut down, are no error. */
  void (*end)(void);

  /* Where an address is. Pinned memory counts as host memory, as does managed memory, if the
   * processor may touch it while its device works. -1 if the driver can't tell, unless the
   * processor can read the address; and if nobody may use the memory. */
  int (*find)(const void* address, struct SluiceCudaPlace* place, char* why);

  /* Pinned host memory for copies from and to this place, aligned to pages, with at least so many
   * bytes: new, or given back earlier. NULL if the bound does not allow it, or the driver refuses.
   * The contents are undefined. */
  void* (*reserve)(const struct SluiceCudaPlace* place, size_t bytes);
  void (*give_back)(void* memory);

  /* A stream for copies from and to this place, used by one thread at a time. NULL: failed. */
  struct SluiceCudaStream* (*open)(const struct SluiceCudaPlace* place, char* why);
  /* Gives the stream back. done: all its copies are done, and none has failed, so that others may
   * use it. If not, copies may still run, and the memory that they use must stay. */
  void (*close)(struct SluiceCudaStream* stream, int done);
  /* Begins copies of `count` kinds of runs, in order; returns before they are done. -1: failed.
   * to_device: or from it. Touches no byte between the runs. */
  int (*copy)(struct SluiceCudaStream* stream, const struct SluiceCudaRuns* runs, size_t count,
              int to_device, char* why);
  /* Sets a mark, by a number below sluice_cuda_marks, behind all copies begun so far. */
  int (*mark)(struct SluiceCudaStream* stream, unsigned number, char* why);
  /* 1: the stream has passed the mark; 0: not yet; -1: a copy before it failed. */
  int (*reached)(struct SluiceCudaStream* stream, unsigned number, char* why);

  /* Whether `reduce` does this operation on elements of this type: 1 or 0. Not where a device has
   * no such arithmetic (float80, float128 and what is made of them), and no operation any more once
   * the driver has refused kernels as such, because it is too old for them or cannot compile. */
  int (*can_reduce)(int type, int operation);
  /* Begins out[i] = ((operands[0][i] op operands[1][i]) op operands[2][i]) ... in the stream,
   * behind what it holds; returns before that is done, but the first time for a type in a context
   * waits until the driver has compiled a kernel. With 0 elements it does this alone. There are 2
   * to sluice_cuda_operands operands, of so many elements, at any addresses that the stream's
   * device may use; `out` may be an operand, and else overlaps none. The bits are those of the
   * host's kernels on x86-64 (cuda/kernels/operations.h). -1: failed. */
  int (*reduce)(struct SluiceCudaStream* stream, int type, int operation,
                const void* const* operands, size_t operand_count, void* out, size_t elements,
                char* why);

  /* Begins a copy from device memory to device memory, of the same device or of others that the
   * stream's context can reach, in the stream. -1: failed. */
  int (*copy_within)(struct SluiceCudaStream* stream, void* to, const void* from, size_t bytes,
                     char* why);

  /* Device memory of at least so many bytes, for kernels and copies of this place, aligned to 256:
   * new, or released earlier. NULL, with the reason, if the bound does not allow it (the reason
   * names SLUICE_CUDA_SCRATCH) or the driver refuses. The contents are undefined. */
  void* (*allocate)(const struct SluiceCudaPlace* place, size_t bytes, char* why);
  /* Keeps it for later. All that uses it must be done. */
  void (*release)(void* memory);

  /* For `sluice info`: initialises the driver. 0, or -1. */
  int (*list)(struct SluiceCudaDevices* devices, char* why);
};

/* The module's only symbol, SLUICE_CUDA_SYMBOL. */
typedef const struct SluiceCuda* SluiceCudaEntry(void);

#ifdef __cplusplus
}
#endif
