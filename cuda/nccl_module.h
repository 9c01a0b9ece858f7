/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interface between the library and NCCL: a second table of C functions in the CUDA module
 * (module.h), which opens libnccl.so.2 when it is first asked to. SluiceCuda::begin must have
 * succeeded before. No function here waits for another rank. Different groups may be used by
 * several threads at once, one group by one thread at a time, and `unique_id` and `find_device` by
 * any. None changes the calling thread's current context. `why`: as in module.h.
 *
 * A group is an NCCL communicator with a stream of its own. It runs one job at a time:
 *
 *            create            start             (test)
 *   starting -------> ready --------> running --------> ready
 *       |                               |
 *       +------------> failed <---------+      abort (from any state) -> ending -> ended
 *                                              end (from ready) -> ending -> ended
 *
 * Where the program has reset the group's device, reserve and start fail, and the group has failed;
 * abort ends it at once: the driver has ended all that was there.
 */
#pragma once

#include <stddef.h>

#include "cuda/module.h"

#define SLUICE_NCCL_VERSION 1
#define SLUICE_NCCL_SYMBOL "sluice_nccl"

#ifdef __cplusplus
extern "C" {
#endif

enum { sluice_nccl_id = 128, sluice_nccl_device = 16 };

struct SluiceNcclGroup;

enum SluiceNcclState {
  sluice_nccl_starting, /* until all ranks have called create, and NCCL is ready on this one */
  sluice_nccl_ready,    /* for the next job */
  sluice_nccl_running,
  sluice_nccl_failed, /* to be aborted */
  sluice_nccl_ending, /* `abort` or `end` was called, and NCCL still works at it */
  sluice_nccl_ended   /* nothing of it touches memory any more */
};

/* Values are those of NCCL's ncclRedOp_t and ncclDataType_t. */
enum SluiceNcclOperation { sluice_nccl_sum, sluice_nccl_prod, sluice_nccl_max, sluice_nccl_min };
enum SluiceNcclType {
  sluice_nccl_int8,
  sluice_nccl_uint8,
  sluice_nccl_int32,
  sluice_nccl_uint32,
  sluice_nccl_int64,
  sluice_nccl_uint64,
  sluice_nccl_float16,
  sluice_nccl_float32,
  sluice_nccl_float64,
  sluice_nccl_bfloat16
};

enum SluiceNcclCollective {
  sluice_nccl_allreduce,
  sluice_nccl_reduce,
  sluice_nccl_broadcast,      /* out alone: the root sends it, the others receive it */
  sluice_nccl_allgather,      /* blocks of the output */
  sluice_nccl_alltoall,       /* blocks of both; in place the input's are the output's */
  sluice_nccl_reduce_scatter, /* blocks of the input */
};

/* Memory of a job on this rank. */
struct SluiceNcclSide {
  void* memory; /* NULL: this rank has no such side, or its input is in the output's memory, where
                   MPI_IN_PLACE has it (reduce_scatter: the whole input, at the output) */
  int on_host;  /* in host memory: the job takes it through scratch on the group's device */
  /* The blocks, one for each rank, in elements from `memory`; offsets NULL: consecutive, of `count`
   * elements each. The numbers of elements are equal on all ranks, as MPI has them; where they lie
   * is each rank's own choice. Both arrays must stay until the job is done. Blocks of allgather and
   * reduce_scatter that are equal but not consecutive go through scratch too. */
  size_t count;
  const size_t* counts;
  const size_t* offsets;
};

struct SluiceNcclJob {
  enum SluiceNcclCollective collective;
  enum SluiceNcclType type;
  enum SluiceNcclOperation operation; /* of reductions */
  int root;
  struct SluiceNcclSide in, out; /* allreduce, reduce, broadcast: one block of `count` elements */
};

struct SluiceNcclLibrary {
  int version;            /* 22809: 2.28.9 */
  int was_loaded_already; /* by the program */
};

struct SluiceNccl {
  int version; /* SLUICE_NCCL_VERSION */

  /* Opens the library, once; later calls give the same answer. Takes 0.1 s. -1: there is none, it
   * is too old, or lacks a function. */
  int (*open)(struct SluiceNcclLibrary* library, char* why);
  /* The UUID of a place's device. -1: NCCL can't use memory there: the place's context is not the
   * device's primary one. */
  int (*find_device)(const struct SluiceCudaPlace* place, unsigned char uuid[sluice_nccl_device],
                     char* why);
  /* An id for a new group, which all its ranks need. Takes 20 ms. */
  int (*unique_id)(char id[sluice_nccl_id], char* why);

  /* Begins to make a group on a device, and returns at once. NULL: failed. */
  struct SluiceNcclGroup* (*create)(int device, const char id[sluice_nccl_id], int rank, int ranks,
                                    char* why);
  /* The state, after what could be done without waiting. failed: `why` says why. In a forked child,
   * where groups of the parent can't be used: failed. */
  enum SluiceNcclState (*advance)(struct SluiceNcclGroup* group, char* why);
  /* Makes sure that there is scratch on the device for a job's sides that need it: those on the
   * host, and what MPI_IN_PLACE needs in reduce_scatter and alltoall. Kept for later jobs, up to
   * 64 MB. -1: no memory, or the group is neither starting nor ready; it stays as it is, but for a
   * reset of its device. To be called before `start`, for the same job, or one that needs no more.
   */
  int (*reserve)(struct SluiceNcclGroup* group, const struct SluiceNcclJob* job, char* why);
  /* Begins a job of a ready group. All ranks of the group begin the same jobs in one order, and one
   * group of a process runs at a time. The sides' memory must stay until the job is done, or the
   * group has ended. -1: failed; to be aborted then, as other ranks may be in the job. */
  int (*start)(struct SluiceNcclGroup* group, const struct SluiceNcclJob* job, char* why);

  /* Ends the group: begins to give it up, in whatever state; NCCL does not end that before all
   * ranks of this host have begun to. A thread waits for that. */
  void (*abort)(struct SluiceNcclGroup* group);
  /* Begins to end a ready group in order, as all its ranks do. One in another state, or that NCCL
   * does not end, is aborted. */
  void (*end)(struct SluiceNcclGroup* group);
  /* Frees a group: ended, or in a forked child; else it is left to itself, for good. */
  void (*forget)(struct SluiceNcclGroup* group);
};

/* SLUICE_NCCL_SYMBOL. */
typedef const struct SluiceNccl* SluiceNcclEntry(void);

#ifdef __cplusplus
}
#endif
