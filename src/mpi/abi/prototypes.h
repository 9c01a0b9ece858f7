// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI functions that src/mpi looks up (src/mpi/real.h), for any representation of handles: each
// of the three <mpi.h> beside this header includes it after the types. Nothing is linked with them:
// src/mpi uses the types of the functions alone.
#pragma once

using MPI_Comm_copy_attr_function = int(MPI_Comm, int, void*, void*, void*, int*);
using MPI_Comm_delete_attr_function = int(MPI_Comm, int, void*, void*);
using MPI_Comm_errhandler_function = void(MPI_Comm*, int*, ...);
using MPI_Grequest_cancel_function = int(void*, int);
using MPI_Grequest_free_function = int(void*);
using MPI_Grequest_query_function = int(void*, MPI_Status*);
using MPI_Type_copy_attr_function = int(MPI_Datatype, int, void*, void*, void*, int*);
using MPI_Type_delete_attr_function = int(MPI_Datatype, int, void*, void*);
using MPI_User_function = void(void*, void*, int*, MPI_Datatype*);

extern "C" {

int PMPI_Init(int*, char***);
int PMPI_Init_thread(int*, char***, int, int*);
int PMPI_Initialized(int*);
int PMPI_Finalize();
int PMPI_Finalized(int*);
int PMPI_Query_thread(int*);

// The collectives, with counts of int and, since MPI 4, of MPI_Count.
int PMPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
int PMPI_Allgatherv(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                    MPI_Comm);
int PMPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Alltoall(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
int PMPI_Alltoallv(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                   MPI_Datatype, MPI_Comm);
int PMPI_Barrier(MPI_Comm);
int PMPI_Bcast(void*, int, MPI_Datatype, int, MPI_Comm);
int PMPI_Exscan(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Gather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm);
int PMPI_Gatherv(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, int,
                 MPI_Comm);
int PMPI_Reduce(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
int PMPI_Reduce_scatter(const void*, void*, const int*, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Reduce_scatter_block(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Scan(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Scatter(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm);
int PMPI_Scatterv(const void*, const int*, const int*, MPI_Datatype, void*, int, MPI_Datatype, int,
                  MPI_Comm);
int PMPI_Allgather_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype,
                     MPI_Comm);
int PMPI_Allgatherv_c(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*,
                      const MPI_Aint*, MPI_Datatype, MPI_Comm);
int PMPI_Allreduce_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Alltoall_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
int PMPI_Alltoallv_c(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*,
                     const MPI_Count*, const MPI_Aint*, MPI_Datatype, MPI_Comm);
int PMPI_Bcast_c(void*, MPI_Count, MPI_Datatype, int, MPI_Comm);
int PMPI_Exscan_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Gather_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int,
                  MPI_Comm);
int PMPI_Gatherv_c(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                   MPI_Datatype, int, MPI_Comm);
int PMPI_Reduce_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm);
int PMPI_Reduce_scatter_c(const void*, void*, const MPI_Count*, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Reduce_scatter_block_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Scan_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Scatter_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int,
                   MPI_Comm);
int PMPI_Scatterv_c(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*, MPI_Count,
                    MPI_Datatype, int, MPI_Comm);

// The non-blocking ones.
int PMPI_Iallgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm,
                    MPI_Request*);
int PMPI_Iallgatherv(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                     MPI_Comm, MPI_Request*);
int PMPI_Iallreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
int PMPI_Ialltoall(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm,
                   MPI_Request*);
int PMPI_Ialltoallv(const void*, const int*, const int*, MPI_Datatype, void*, const int*,
                    const int*, MPI_Datatype, MPI_Comm, MPI_Request*);
int PMPI_Ibarrier(MPI_Comm, MPI_Request*);
int PMPI_Ibcast(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*);
int PMPI_Iexscan(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
int PMPI_Igather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm,
                 MPI_Request*);
int PMPI_Igatherv(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, int,
                  MPI_Comm, MPI_Request*);
int PMPI_Ireduce(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm, MPI_Request*);
int PMPI_Ireduce_scatter(const void*, void*, const int*, MPI_Datatype, MPI_Op, MPI_Comm,
                         MPI_Request*);
int PMPI_Ireduce_scatter_block(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm,
                               MPI_Request*);
int PMPI_Iscan(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
int PMPI_Iscatter(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm,
                  MPI_Request*);
int PMPI_Iscatterv(const void*, const int*, const int*, MPI_Datatype, void*, int, MPI_Datatype, int,
                   MPI_Comm, MPI_Request*);
int PMPI_Iallgather_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype,
                      MPI_Comm, MPI_Request*);
int PMPI_Iallgatherv_c(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*,
                       const MPI_Aint*, MPI_Datatype, MPI_Comm, MPI_Request*);
int PMPI_Iallreduce_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
int PMPI_Ialltoall_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm,
                     MPI_Request*);
int PMPI_Ialltoallv_c(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*,
                      const MPI_Count*, const MPI_Aint*, MPI_Datatype, MPI_Comm, MPI_Request*);
int PMPI_Ibcast_c(void*, MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Request*);
int PMPI_Iexscan_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
int PMPI_Igather_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int,
                   MPI_Comm, MPI_Request*);
int PMPI_Igatherv_c(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                    MPI_Datatype, int, MPI_Comm, MPI_Request*);
int PMPI_Ireduce_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm,
                   MPI_Request*);
int PMPI_Ireduce_scatter_c(const void*, void*, const MPI_Count*, MPI_Datatype, MPI_Op, MPI_Comm,
                           MPI_Request*);
int PMPI_Ireduce_scatter_block_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                                 MPI_Request*);
int PMPI_Iscan_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
int PMPI_Iscatter_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int,
                    MPI_Comm, MPI_Request*);
int PMPI_Iscatterv_c(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*, MPI_Count,
                     MPI_Datatype, int, MPI_Comm, MPI_Request*);

// The persistent ones, since MPI 4.
int PMPI_Allgather_init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm,
                        MPI_Info, MPI_Request*);
int PMPI_Allgatherv_init(const void*, int, MPI_Datatype, void*, const int*, const int*,
                         MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Allreduce_init(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                        MPI_Request*);
int PMPI_Alltoall_init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Info,
                       MPI_Request*);
int PMPI_Alltoallv_init(const void*, const int*, const int*, MPI_Datatype, void*, const int*,
                        const int*, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Barrier_init(MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Bcast_init(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Exscan_init(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                     MPI_Request*);
int PMPI_Gather_init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm,
                     MPI_Info, MPI_Request*);
int PMPI_Gatherv_init(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                      int, MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Reduce_init(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm, MPI_Info,
                     MPI_Request*);
int PMPI_Reduce_scatter_init(const void*, void*, const int*, MPI_Datatype, MPI_Op, MPI_Comm,
                             MPI_Info, MPI_Request*);
int PMPI_Reduce_scatter_block_init(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm,
                                   MPI_Info, MPI_Request*);
int PMPI_Scan_init(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Scatter_init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm,
                      MPI_Info, MPI_Request*);
int PMPI_Scatterv_init(const void*, const int*, const int*, MPI_Datatype, void*, int, MPI_Datatype,
                       int, MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Allgather_init_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype,
                          MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Allgatherv_init_c(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*,
                           const MPI_Aint*, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Allreduce_init_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                          MPI_Request*);
int PMPI_Alltoall_init_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype,
                         MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Alltoallv_init_c(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*,
                          const MPI_Count*, const MPI_Aint*, MPI_Datatype, MPI_Comm, MPI_Info,
                          MPI_Request*);
int PMPI_Bcast_init_c(void*, MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Exscan_init_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                       MPI_Request*);
int PMPI_Gather_init_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int,
                       MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Gatherv_init_c(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*,
                        const MPI_Aint*, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Reduce_init_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm, MPI_Info,
                       MPI_Request*);
int PMPI_Reduce_scatter_init_c(const void*, void*, const MPI_Count*, MPI_Datatype, MPI_Op, MPI_Comm,
                               MPI_Info, MPI_Request*);
int PMPI_Reduce_scatter_block_init_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                                     MPI_Info, MPI_Request*);
int PMPI_Scan_init_c(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                     MPI_Request*);
int PMPI_Scatter_init_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int,
                        MPI_Comm, MPI_Info, MPI_Request*);
int PMPI_Scatterv_init_c(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*,
                         MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*);

int PMPI_Comm_compare(MPI_Comm, MPI_Comm, int*);
int PMPI_Comm_create_from_group(MPI_Group, const char*, MPI_Info, MPI_Errhandler, MPI_Comm*);
int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*, int*,
                            void*);
int PMPI_Comm_delete_attr(MPI_Comm, int);
int PMPI_Comm_disconnect(MPI_Comm*);
int PMPI_Comm_dup_with_info(MPI_Comm, MPI_Info, MPI_Comm*);
int PMPI_Comm_free(MPI_Comm*);
int PMPI_Comm_get_info(MPI_Comm, MPI_Info*);
int PMPI_Comm_get_name(MPI_Comm, char*, int*);
int PMPI_Comm_get_parent(MPI_Comm*);
int PMPI_Comm_group(MPI_Comm, MPI_Group*);
int PMPI_Comm_rank(MPI_Comm, int*);
int PMPI_Comm_set_attr(MPI_Comm, int, void*);
int PMPI_Comm_set_info(MPI_Comm, MPI_Info);
int PMPI_Comm_size(MPI_Comm, int*);
int PMPI_Comm_split(MPI_Comm, int, int, MPI_Comm*);
int PMPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm*);
int PMPI_Comm_test_inter(MPI_Comm, int*);
int PMPI_Group_free(MPI_Group*);
int PMPI_Group_translate_ranks(MPI_Group, int, const int*, MPI_Group, int*);

int PMPI_Add_error_class(int*);
int PMPI_Add_error_code(int, int*);
int PMPI_Add_error_string(int, const char*);
int PMPI_Comm_call_errhandler(MPI_Comm, int);
int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function*, MPI_Errhandler*);
int PMPI_Comm_get_errhandler(MPI_Comm, MPI_Errhandler*);
int PMPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler);
int PMPI_Errhandler_free(MPI_Errhandler*);

int PMPI_Info_delete(MPI_Info, const char*);
int PMPI_Info_get(MPI_Info, const char*, int, char*, int*);
int PMPI_Info_get_nkeys(MPI_Info, int*);
int PMPI_Info_get_nthkey(MPI_Info, int, char*);
int PMPI_Info_get_string(MPI_Info, const char*, int*, char*, int*);
int PMPI_Info_set(MPI_Info, const char*, const char*);

int PMPI_Grequest_complete(MPI_Request);
int PMPI_Grequest_start(MPI_Grequest_query_function*, MPI_Grequest_free_function*,
                        MPI_Grequest_cancel_function*, void*, MPI_Request*);
int PMPI_Isend(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int PMPI_Recv_init(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int PMPI_Send(const void*, int, MPI_Datatype, int, int, MPI_Comm);
int PMPI_Start(MPI_Request*);
int PMPI_Startall(int, MPI_Request*);
int PMPI_Request_free(MPI_Request*);
int PMPI_Request_get_status(MPI_Request, int*, MPI_Status*);
int PMPI_Test(MPI_Request*, int*, MPI_Status*);
int PMPI_Testall(int, MPI_Request*, int*, MPI_Status*);
int PMPI_Testany(int, MPI_Request*, int*, int*, MPI_Status*);
int PMPI_Testsome(int, MPI_Request*, int*, int*, MPI_Status*);
int PMPI_Wait(MPI_Request*, MPI_Status*);
int PMPI_Waitall(int, MPI_Request*, MPI_Status*);
int PMPI_Waitany(int, MPI_Request*, int*, MPI_Status*);
int PMPI_Waitsome(int, MPI_Request*, int*, int*, MPI_Status*);

int PMPI_Op_commutative(MPI_Op, int*);
int PMPI_Op_create(MPI_User_function*, int, MPI_Op*);
int PMPI_Op_free(MPI_Op*);
int PMPI_Reduce_local(const void*, void*, int, MPI_Datatype, MPI_Op);

int PMPI_Pack(const void*, int, MPI_Datatype, void*, int, int*, MPI_Comm);
int PMPI_Type_commit(MPI_Datatype*);
int PMPI_Type_contiguous(int, MPI_Datatype, MPI_Datatype*);
int PMPI_Type_create_keyval(MPI_Type_copy_attr_function*, MPI_Type_delete_attr_function*, int*,
                            void*);
int PMPI_Type_delete_attr(MPI_Datatype, int);
int PMPI_Type_free(MPI_Datatype*);
int PMPI_Type_get_attr(MPI_Datatype, int, void*, int*);
int PMPI_Type_get_contents(MPI_Datatype, int, int, int, int*, MPI_Aint*, MPI_Datatype*);
int PMPI_Type_get_contents_c(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int*,
                             MPI_Aint*, MPI_Count*, MPI_Datatype*);
int PMPI_Type_get_envelope(MPI_Datatype, int*, int*, int*, int*);
int PMPI_Type_get_envelope_c(MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*, int*);
int PMPI_Type_get_extent_x(MPI_Datatype, MPI_Count*, MPI_Count*);
int PMPI_Type_get_true_extent_x(MPI_Datatype, MPI_Count*, MPI_Count*);
int PMPI_Type_set_attr(MPI_Datatype, int, void*);
int PMPI_Type_set_name(MPI_Datatype, const char*);
int PMPI_Type_size_x(MPI_Datatype, MPI_Count*);

}  // extern "C"
