// SPDX-License-Identifier: BSD-3-Clause
//
// What src/mpi uses of Open MPI 3 to 5: declarations of our own, so that every build serves Open
// MPI. tests/mpi/test_abi compares them with the header of an Open MPI that is installed. Its
// predefined handles are addresses of its data, which are looked up; null if the library has no
// such symbol. The functions of MPI 4 are declared, too, which Open MPI 5 lacks: pointers to them
// may be null (src/mpi/real.h).
#pragma once

#include <cstddef>

#define SLUICE_OPEN_MPI 1
#define MPI_VERSION 4

// (src/mpi/real.h declares find_data.)
#define SLUICE_HANDLE(type, symbol) (static_cast<type>(::sluice::find_data(#symbol)))

using MPI_Aint = ptrdiff_t;
using MPI_Count = long long;
using MPI_Comm = struct ompi_communicator_t*;
using MPI_Datatype = struct ompi_datatype_t*;
using MPI_Errhandler = struct ompi_errhandler_t*;
using MPI_Group = struct ompi_group_t*;
using MPI_Info = struct ompi_info_t*;
using MPI_Op = struct ompi_op_t*;
using MPI_Request = struct ompi_request_t*;

// (The names of structs are Open MPI's so that the test can compare the types of functions.)
struct ompi_status_public_t {
  int MPI_SOURCE, MPI_TAG, MPI_ERROR;
  int cancelled;
  size_t bytes;
};
using MPI_Status = ompi_status_public_t;

#define MPI_SUCCESS 0
#define MPI_ERR_NO_MEM 39
#define MPI_ERR_REQUEST 7
#define MPI_ERR_OTHER 16
#define MPI_ERR_IN_STATUS 18
#define MPI_ERR_UNSUPPORTED_OPERATION 52

#define MPI_ANY_SOURCE (-1)
#define MPI_ANY_TAG (-1)
#define MPI_PROC_NULL (-2)
#define MPI_KEYVAL_INVALID (-1)

#define MPI_MAX_ERROR_STRING 256
#define MPI_MAX_INFO_KEY 36
#define MPI_MAX_INFO_VAL 256
#define MPI_MAX_OBJECT_NAME 64

#define MPI_THREAD_SINGLE 0
#define MPI_THREAD_MULTIPLE 3

#define MPI_ORDER_C 0
#define MPI_DISTRIBUTE_BLOCK 0
#define MPI_DISTRIBUTE_DFLT_DARG (-1)
#define MPI_DISTRIBUTE_NONE 2

#define MPI_COMBINER_NAMED 0
#define MPI_COMBINER_DUP 1
#define MPI_COMBINER_CONTIGUOUS 2
#define MPI_COMBINER_VECTOR 3
#define MPI_COMBINER_HVECTOR 5
#define MPI_COMBINER_INDEXED 6
#define MPI_COMBINER_HINDEXED 8
#define MPI_COMBINER_INDEXED_BLOCK 9
#define MPI_COMBINER_HINDEXED_BLOCK 18
#define MPI_COMBINER_STRUCT 11
#define MPI_COMBINER_SUBARRAY 12
#define MPI_COMBINER_DARRAY 13
#define MPI_COMBINER_F90_REAL 14
#define MPI_COMBINER_F90_COMPLEX 15
#define MPI_COMBINER_F90_INTEGER 16
#define MPI_COMBINER_RESIZED 17

#define MPI_BOTTOM (static_cast<void*>(nullptr))
#define MPI_IN_PLACE (reinterpret_cast<void*>(1))
#define MPI_STATUS_IGNORE (static_cast<MPI_Status*>(nullptr))

#define MPI_COMM_NULL SLUICE_HANDLE(MPI_Comm, ompi_mpi_comm_null)
#define MPI_COMM_SELF SLUICE_HANDLE(MPI_Comm, ompi_mpi_comm_self)
#define MPI_COMM_WORLD SLUICE_HANDLE(MPI_Comm, ompi_mpi_comm_world)

#define MPI_ERRORS_RETURN SLUICE_HANDLE(MPI_Errhandler, ompi_mpi_errors_return)

#define MPI_INFO_NULL SLUICE_HANDLE(MPI_Info, ompi_mpi_info_null)

#define MPI_OP_NULL SLUICE_HANDLE(MPI_Op, ompi_mpi_op_null)
#define MPI_BAND SLUICE_HANDLE(MPI_Op, ompi_mpi_op_band)
#define MPI_BOR SLUICE_HANDLE(MPI_Op, ompi_mpi_op_bor)
#define MPI_BXOR SLUICE_HANDLE(MPI_Op, ompi_mpi_op_bxor)
#define MPI_LAND SLUICE_HANDLE(MPI_Op, ompi_mpi_op_land)
#define MPI_LOR SLUICE_HANDLE(MPI_Op, ompi_mpi_op_lor)
#define MPI_LXOR SLUICE_HANDLE(MPI_Op, ompi_mpi_op_lxor)
#define MPI_MAX SLUICE_HANDLE(MPI_Op, ompi_mpi_op_max)
#define MPI_MAXLOC SLUICE_HANDLE(MPI_Op, ompi_mpi_op_maxloc)
#define MPI_MIN SLUICE_HANDLE(MPI_Op, ompi_mpi_op_min)
#define MPI_MINLOC SLUICE_HANDLE(MPI_Op, ompi_mpi_op_minloc)
#define MPI_NO_OP SLUICE_HANDLE(MPI_Op, ompi_mpi_op_no_op)
#define MPI_PROD SLUICE_HANDLE(MPI_Op, ompi_mpi_op_prod)
#define MPI_REPLACE SLUICE_HANDLE(MPI_Op, ompi_mpi_op_replace)
#define MPI_SUM SLUICE_HANDLE(MPI_Op, ompi_mpi_op_sum)

#define MPI_DATATYPE_NULL SLUICE_HANDLE(MPI_Datatype, ompi_mpi_datatype_null)

#define MPI_AINT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_aint)
#define MPI_BYTE SLUICE_HANDLE(MPI_Datatype, ompi_mpi_byte)
#define MPI_CHAR SLUICE_HANDLE(MPI_Datatype, ompi_mpi_char)
#define MPI_COUNT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_count)
#define MPI_C_BOOL SLUICE_HANDLE(MPI_Datatype, ompi_mpi_c_bool)
#define MPI_C_DOUBLE_COMPLEX SLUICE_HANDLE(MPI_Datatype, ompi_mpi_c_double_complex)
#define MPI_C_FLOAT_COMPLEX SLUICE_HANDLE(MPI_Datatype, ompi_mpi_c_float_complex)
#define MPI_C_LONG_DOUBLE_COMPLEX SLUICE_HANDLE(MPI_Datatype, ompi_mpi_c_long_double_complex)
#define MPI_CXX_BOOL SLUICE_HANDLE(MPI_Datatype, ompi_mpi_cxx_bool)
#define MPI_CXX_DOUBLE_COMPLEX SLUICE_HANDLE(MPI_Datatype, ompi_mpi_cxx_dblcplex)
#define MPI_CXX_FLOAT_COMPLEX SLUICE_HANDLE(MPI_Datatype, ompi_mpi_cxx_cplex)
#define MPI_CXX_LONG_DOUBLE_COMPLEX SLUICE_HANDLE(MPI_Datatype, ompi_mpi_cxx_ldblcplex)
#define MPI_DOUBLE SLUICE_HANDLE(MPI_Datatype, ompi_mpi_double)
#define MPI_FLOAT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_float)
#define MPI_INT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_int)
#define MPI_INT8_T SLUICE_HANDLE(MPI_Datatype, ompi_mpi_int8_t)
#define MPI_INT16_T SLUICE_HANDLE(MPI_Datatype, ompi_mpi_int16_t)
#define MPI_INT32_T SLUICE_HANDLE(MPI_Datatype, ompi_mpi_int32_t)
#define MPI_INT64_T SLUICE_HANDLE(MPI_Datatype, ompi_mpi_int64_t)
#define MPI_LONG SLUICE_HANDLE(MPI_Datatype, ompi_mpi_long)
#define MPI_LONG_DOUBLE SLUICE_HANDLE(MPI_Datatype, ompi_mpi_long_double)
#define MPI_LONG_LONG SLUICE_HANDLE(MPI_Datatype, ompi_mpi_long_long_int)
#define MPI_OFFSET SLUICE_HANDLE(MPI_Datatype, ompi_mpi_offset)
#define MPI_SHORT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_short)
#define MPI_SIGNED_CHAR SLUICE_HANDLE(MPI_Datatype, ompi_mpi_signed_char)
#define MPI_UINT8_T SLUICE_HANDLE(MPI_Datatype, ompi_mpi_uint8_t)
#define MPI_UINT16_T SLUICE_HANDLE(MPI_Datatype, ompi_mpi_uint16_t)
#define MPI_UINT32_T SLUICE_HANDLE(MPI_Datatype, ompi_mpi_uint32_t)
#define MPI_UINT64_T SLUICE_HANDLE(MPI_Datatype, ompi_mpi_uint64_t)
#define MPI_UNSIGNED SLUICE_HANDLE(MPI_Datatype, ompi_mpi_unsigned)
#define MPI_UNSIGNED_CHAR SLUICE_HANDLE(MPI_Datatype, ompi_mpi_unsigned_char)
#define MPI_UNSIGNED_LONG SLUICE_HANDLE(MPI_Datatype, ompi_mpi_unsigned_long)
#define MPI_UNSIGNED_LONG_LONG SLUICE_HANDLE(MPI_Datatype, ompi_mpi_unsigned_long_long)
#define MPI_UNSIGNED_SHORT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_unsigned_short)

#define MPI_2INT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_2int)
#define MPI_DOUBLE_INT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_double_int)
#define MPI_FLOAT_INT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_float_int)
#define MPI_LONG_DOUBLE_INT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_longdbl_int)
#define MPI_LONG_INT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_long_int)
#define MPI_SHORT_INT SLUICE_HANDLE(MPI_Datatype, ompi_mpi_short_int)

#define MPI_2DOUBLE_PRECISION SLUICE_HANDLE(MPI_Datatype, ompi_mpi_2dblprec)
#define MPI_2INTEGER SLUICE_HANDLE(MPI_Datatype, ompi_mpi_2integer)
#define MPI_2REAL SLUICE_HANDLE(MPI_Datatype, ompi_mpi_2real)
#define MPI_COMPLEX SLUICE_HANDLE(MPI_Datatype, ompi_mpi_cplex)
#define MPI_COMPLEX8 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_complex8)
#define MPI_COMPLEX16 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_complex16)
#define MPI_COMPLEX32 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_complex32)
#define MPI_DOUBLE_COMPLEX SLUICE_HANDLE(MPI_Datatype, ompi_mpi_dblcplex)
#define MPI_DOUBLE_PRECISION SLUICE_HANDLE(MPI_Datatype, ompi_mpi_dblprec)
#define MPI_INTEGER SLUICE_HANDLE(MPI_Datatype, ompi_mpi_integer)
#define MPI_INTEGER1 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_integer1)
#define MPI_INTEGER2 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_integer2)
#define MPI_INTEGER4 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_integer4)
#define MPI_INTEGER8 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_integer8)
#define MPI_LOGICAL SLUICE_HANDLE(MPI_Datatype, ompi_mpi_logical)
#define MPI_LOGICAL1 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_logical1)
#define MPI_LOGICAL2 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_logical2)
#define MPI_LOGICAL4 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_logical4)
#define MPI_LOGICAL8 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_logical8)
#define MPI_REAL SLUICE_HANDLE(MPI_Datatype, ompi_mpi_real)
#define MPI_REAL4 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_real4)
#define MPI_REAL8 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_real8)
#define MPI_REAL16 SLUICE_HANDLE(MPI_Datatype, ompi_mpi_real16)

#include "src/mpi/abi/prototypes.h"

extern "C" int PMPI_Comm_c2f(MPI_Comm);  // (returns MPI_Fint; in MPICH it is a macro)
