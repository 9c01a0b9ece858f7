/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that libsluice.so exports and the modules implement (module.h), in the order of
 * their tables: MPI's, each exported as MPI_X and as PMPI_X, and those of sluice.h. C and C++.
 */
#pragma once

/* clang-format off */
#define SLUICE_MPI_FUNCTIONS(ROW) \
  ROW(Allgather) \
  ROW(Allgather_c) \
  ROW(Allgatherv) \
  ROW(Allgatherv_c) \
  ROW(Allreduce) \
  ROW(Allreduce_c) \
  ROW(Alltoall) \
  ROW(Alltoall_c) \
  ROW(Alltoallv) \
  ROW(Alltoallv_c) \
  ROW(Barrier) \
  ROW(Bcast) \
  ROW(Bcast_c) \
  ROW(Comm_create_from_group) \
  ROW(Comm_disconnect) \
  ROW(Comm_dup_with_info) \
  ROW(Comm_free) \
  ROW(Comm_get_info) \
  ROW(Comm_set_info) \
  ROW(Comm_split_type) \
  ROW(Exscan) \
  ROW(Exscan_c) \
  ROW(Finalize) \
  ROW(Gather) \
  ROW(Gather_c) \
  ROW(Gatherv) \
  ROW(Gatherv_c) \
  ROW(Iallgather) \
  ROW(Iallgather_c) \
  ROW(Iallgatherv) \
  ROW(Iallgatherv_c) \
  ROW(Iallreduce) \
  ROW(Iallreduce_c) \
  ROW(Ialltoall) \
  ROW(Ialltoall_c) \
  ROW(Ialltoallv) \
  ROW(Ialltoallv_c) \
  ROW(Ibarrier) \
  ROW(Ibcast) \
  ROW(Ibcast_c) \
  ROW(Iexscan) \
  ROW(Iexscan_c) \
  ROW(Igather) \
  ROW(Igather_c) \
  ROW(Igatherv) \
  ROW(Igatherv_c) \
  ROW(Init) \
  ROW(Init_thread) \
  ROW(Ireduce) \
  ROW(Ireduce_c) \
  ROW(Ireduce_scatter) \
  ROW(Ireduce_scatter_block) \
  ROW(Ireduce_scatter_block_c) \
  ROW(Ireduce_scatter_c) \
  ROW(Iscan) \
  ROW(Iscan_c) \
  ROW(Iscatter) \
  ROW(Iscatter_c) \
  ROW(Iscatterv) \
  ROW(Iscatterv_c) \
  ROW(Op_free) \
  ROW(Reduce) \
  ROW(Reduce_c) \
  ROW(Reduce_scatter) \
  ROW(Reduce_scatter_block) \
  ROW(Reduce_scatter_block_c) \
  ROW(Reduce_scatter_c) \
  ROW(Request_get_status) \
  ROW(Scan) \
  ROW(Scan_c) \
  ROW(Scatter) \
  ROW(Scatter_c) \
  ROW(Scatterv) \
  ROW(Scatterv_c) \
  ROW(Test) \
  ROW(Testall) \
  ROW(Testany) \
  ROW(Testsome) \
  ROW(Type_free) \
  ROW(Wait) \
  ROW(Waitall) \
  ROW(Waitany) \
  ROW(Waitsome)
#define SLUICE_OWN_FUNCTIONS(ROW) \
  ROW(sluice_allreduce_multi) \
  ROW(sluice_bcast_multi) \
  ROW(sluice_last_algorithm) \
  ROW(sluice_type_bfloat16) \
  ROW(sluice_type_float16)
/* clang-format on */
