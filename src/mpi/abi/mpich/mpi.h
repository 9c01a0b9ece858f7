// SPDX-License-Identifier: BSD-3-Clause
//
// What src/mpi uses of MPICH 3.1 and later, and of the MPI libraries that have its handles (Intel
// MPI, MVAPICH, Cray MPICH): declarations of our own, so that every build serves them.
// tests/mpi/test_abi compares them with the header of an MPICH that is installed. Handles are
// integers. Libraries before MPI 4 lack some of the functions: pointers to them may be null
// (src/mpi/real.h).
#pragma once

#define SLUICE_MPICH 1
#define MPI_VERSION 4

using MPI_Aint = long;
using MPI_Count = long;
using MPI_Comm = int;
using MPI_Datatype = int;
using MPI_Errhandler = int;
using MPI_Group = int;
using MPI_Info = int;
using MPI_Op = int;
using MPI_Request = int;

struct MPI_Status {
  int bytes_low, bytes_high_and_cancelled;
  int MPI_SOURCE, MPI_TAG, MPI_ERROR;
};

#define MPI_SUCCESS 0
#define MPI_ERR_NO_MEM 34
#define MPI_ERR_REQUEST 19
#define MPI_ERR_OTHER 15
#define MPI_ERR_IN_STATUS 17
#define MPI_ERR_UNSUPPORTED_OPERATION 44

#define MPI_ANY_SOURCE (-2)
#define MPI_ANY_TAG (-1)
#define MPI_PROC_NULL (-1)
#define MPI_KEYVAL_INVALID 603979776

#define MPI_MAX_ERROR_STRING 512
#define MPI_MAX_INFO_KEY 255
#define MPI_MAX_INFO_VAL 1024
#define MPI_MAX_OBJECT_NAME 128

#define MPI_THREAD_SINGLE 0
#define MPI_THREAD_MULTIPLE 3

#define MPI_ORDER_C 56
#define MPI_DISTRIBUTE_BLOCK 121
#define MPI_DISTRIBUTE_DFLT_DARG (-49767)
#define MPI_DISTRIBUTE_NONE 123

#define MPI_COMBINER_NAMED 1
#define MPI_COMBINER_DUP 2
#define MPI_COMBINER_CONTIGUOUS 3
#define MPI_COMBINER_VECTOR 4
#define MPI_COMBINER_HVECTOR 6
#define MPI_COMBINER_INDEXED 7
#define MPI_COMBINER_HINDEXED 9
#define MPI_COMBINER_INDEXED_BLOCK 10
#define MPI_COMBINER_HINDEXED_BLOCK 19
#define MPI_COMBINER_STRUCT 12
#define MPI_COMBINER_SUBARRAY 13
#define MPI_COMBINER_DARRAY 14
#define MPI_COMBINER_F90_REAL 15
#define MPI_COMBINER_F90_COMPLEX 16
#define MPI_COMBINER_F90_INTEGER 17
#define MPI_COMBINER_RESIZED 18

#define MPI_BOTTOM (static_cast<void*>(nullptr))
#define MPI_IN_PLACE (reinterpret_cast<void*>(-1))
#define MPI_STATUS_IGNORE (reinterpret_cast<MPI_Status*>(1))

#define MPI_COMM_NULL (static_cast<MPI_Comm>(0x04000000))
#define MPI_COMM_SELF (static_cast<MPI_Comm>(0x44000001))
#define MPI_COMM_WORLD (static_cast<MPI_Comm>(0x44000000))

#define MPI_ERRORS_RETURN (static_cast<MPI_Errhandler>(0x54000001))

#define MPI_INFO_NULL (static_cast<MPI_Info>(0x1c000000))

#define MPI_OP_NULL (static_cast<MPI_Op>(0x18000000))
#define MPI_BAND (static_cast<MPI_Op>(0x58000006))
#define MPI_BOR (static_cast<MPI_Op>(0x58000008))
#define MPI_BXOR (static_cast<MPI_Op>(0x5800000a))
#define MPI_LAND (static_cast<MPI_Op>(0x58000005))
#define MPI_LOR (static_cast<MPI_Op>(0x58000007))
#define MPI_LXOR (static_cast<MPI_Op>(0x58000009))
#define MPI_MAX (static_cast<MPI_Op>(0x58000001))
#define MPI_MAXLOC (static_cast<MPI_Op>(0x5800000c))
#define MPI_MIN (static_cast<MPI_Op>(0x58000002))
#define MPI_MINLOC (static_cast<MPI_Op>(0x5800000b))
#define MPI_NO_OP (static_cast<MPI_Op>(0x5800000e))
#define MPI_PROD (static_cast<MPI_Op>(0x58000004))
#define MPI_REPLACE (static_cast<MPI_Op>(0x5800000d))
#define MPI_SUM (static_cast<MPI_Op>(0x58000003))
#define MPIX_EQUAL (static_cast<MPI_Op>(0x5800000f))

#define MPI_DATATYPE_NULL (static_cast<MPI_Datatype>(0x0c000000))

#define MPI_AINT (static_cast<MPI_Datatype>(0x4c000843))
#define MPI_BYTE (static_cast<MPI_Datatype>(0x4c00010d))
#define MPI_CHAR (static_cast<MPI_Datatype>(0x4c000101))
#define MPI_COUNT (static_cast<MPI_Datatype>(0x4c000845))
#define MPI_C_BOOL (static_cast<MPI_Datatype>(0x4c00013f))
#define MPI_C_DOUBLE_COMPLEX (static_cast<MPI_Datatype>(0x4c001041))
#define MPI_C_FLOAT_COMPLEX (static_cast<MPI_Datatype>(0x4c000840))
#define MPI_C_LONG_DOUBLE_COMPLEX (static_cast<MPI_Datatype>(0x4c002042))
#define MPI_CXX_BOOL (static_cast<MPI_Datatype>(0x4c000133))
#define MPI_CXX_DOUBLE_COMPLEX (static_cast<MPI_Datatype>(0x4c001035))
#define MPI_CXX_FLOAT_COMPLEX (static_cast<MPI_Datatype>(0x4c000834))
#define MPI_CXX_LONG_DOUBLE_COMPLEX (static_cast<MPI_Datatype>(0x4c002036))
#define MPI_DOUBLE (static_cast<MPI_Datatype>(0x4c00080b))
#define MPI_FLOAT (static_cast<MPI_Datatype>(0x4c00040a))
#define MPI_INT (static_cast<MPI_Datatype>(0x4c000405))
#define MPI_INT8_T (static_cast<MPI_Datatype>(0x4c000137))
#define MPI_INT16_T (static_cast<MPI_Datatype>(0x4c000238))
#define MPI_INT32_T (static_cast<MPI_Datatype>(0x4c000439))
#define MPI_INT64_T (static_cast<MPI_Datatype>(0x4c00083a))
#define MPI_LONG (static_cast<MPI_Datatype>(0x4c000807))
#define MPI_LONG_DOUBLE (static_cast<MPI_Datatype>(0x4c00100c))
#define MPI_LONG_LONG (static_cast<MPI_Datatype>(0x4c000809))
#define MPI_OFFSET (static_cast<MPI_Datatype>(0x4c000844))
#define MPI_SHORT (static_cast<MPI_Datatype>(0x4c000203))
#define MPI_SIGNED_CHAR (static_cast<MPI_Datatype>(0x4c000118))
#define MPI_UINT8_T (static_cast<MPI_Datatype>(0x4c00013b))
#define MPI_UINT16_T (static_cast<MPI_Datatype>(0x4c00023c))
#define MPI_UINT32_T (static_cast<MPI_Datatype>(0x4c00043d))
#define MPI_UINT64_T (static_cast<MPI_Datatype>(0x4c00083e))
#define MPI_UNSIGNED (static_cast<MPI_Datatype>(0x4c000406))
#define MPI_UNSIGNED_CHAR (static_cast<MPI_Datatype>(0x4c000102))
#define MPI_UNSIGNED_LONG (static_cast<MPI_Datatype>(0x4c000808))
#define MPI_UNSIGNED_LONG_LONG (static_cast<MPI_Datatype>(0x4c000819))
#define MPI_UNSIGNED_SHORT (static_cast<MPI_Datatype>(0x4c000204))

#define MPI_2INT (static_cast<MPI_Datatype>(0x4c000816))
#define MPI_DOUBLE_INT (static_cast<MPI_Datatype>(0x8c000001))
#define MPI_FLOAT_INT (static_cast<MPI_Datatype>(0x8c000000))
#define MPI_LONG_DOUBLE_INT (static_cast<MPI_Datatype>(0x8c000004))
#define MPI_LONG_INT (static_cast<MPI_Datatype>(0x8c000002))
#define MPI_SHORT_INT (static_cast<MPI_Datatype>(0x8c000003))

#define MPI_2DOUBLE_PRECISION (static_cast<MPI_Datatype>(0x4c001023))
#define MPI_2INTEGER (static_cast<MPI_Datatype>(0x4c000820))
#define MPI_2REAL (static_cast<MPI_Datatype>(0x4c000821))
#define MPI_COMPLEX (static_cast<MPI_Datatype>(0x4c00081e))
#define MPI_COMPLEX8 (static_cast<MPI_Datatype>(0x4c000828))
#define MPI_COMPLEX16 (static_cast<MPI_Datatype>(0x4c00102a))
#define MPI_COMPLEX32 (static_cast<MPI_Datatype>(0x4c00202c))
#define MPI_DOUBLE_COMPLEX (static_cast<MPI_Datatype>(0x4c001022))
#define MPI_DOUBLE_PRECISION (static_cast<MPI_Datatype>(0x4c00081f))
#define MPI_INTEGER (static_cast<MPI_Datatype>(0x4c00041b))
#define MPI_INTEGER1 (static_cast<MPI_Datatype>(0x4c00012d))
#define MPI_INTEGER2 (static_cast<MPI_Datatype>(0x4c00022f))
#define MPI_INTEGER4 (static_cast<MPI_Datatype>(0x4c000430))
#define MPI_INTEGER8 (static_cast<MPI_Datatype>(0x4c000831))
#define MPI_LOGICAL (static_cast<MPI_Datatype>(0x4c00041d))
#define MPI_REAL (static_cast<MPI_Datatype>(0x4c00041c))
#define MPI_REAL4 (static_cast<MPI_Datatype>(0x4c000427))
#define MPI_REAL8 (static_cast<MPI_Datatype>(0x4c000829))
#define MPI_REAL16 (static_cast<MPI_Datatype>(0x4c00102b))

#include "src/mpi/abi/prototypes.h"
