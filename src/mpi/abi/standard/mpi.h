// SPDX-License-Identifier: BSD-3-Clause
//
// What src/mpi uses of the application binary interface that MPI 5.0 defines (its chapter
// "Application Binary Interface"): handles are pointers, the predefined ones small constants.
// MPICH 5 has it in libmpi_abi, and Open MPI 6. tests/mpi/test_abi compares these declarations of
// our own with the header of a library that is installed.
#pragma once

#include <cstdint>

#define SLUICE_STANDARD_ABI 1
#define MPI_VERSION 5

using MPI_Aint = intptr_t;
using MPI_Count = int64_t;
using MPI_Comm = struct MPI_ABI_Comm*;
using MPI_Datatype = struct MPI_ABI_Datatype*;
using MPI_Errhandler = struct MPI_ABI_Errhandler*;
using MPI_Group = struct MPI_ABI_Group*;
using MPI_Info = struct MPI_ABI_Info*;
using MPI_Op = struct MPI_ABI_Op*;
using MPI_Request = struct MPI_ABI_Request*;

struct MPI_Status {
  int MPI_SOURCE, MPI_TAG, MPI_ERROR;
  int internal[5];
};

#define MPI_SUCCESS 0
#define MPI_ERR_NO_MEM 39
#define MPI_ERR_REQUEST 7
#define MPI_ERR_OTHER 16
#define MPI_ERR_IN_STATUS 19
#define MPI_ERR_UNSUPPORTED_OPERATION 55

#define MPI_ANY_SOURCE (-1)
#define MPI_ANY_TAG (-2)
#define MPI_PROC_NULL (-3)
#define MPI_KEYVAL_INVALID 0

#define MPI_MAX_ERROR_STRING 512
#define MPI_MAX_INFO_KEY 256
#define MPI_MAX_INFO_VAL 1024
#define MPI_MAX_OBJECT_NAME 128

#define MPI_THREAD_SINGLE 0
#define MPI_THREAD_MULTIPLE 4096

#define MPI_ORDER_C 12
#define MPI_DISTRIBUTE_BLOCK 17
#define MPI_DISTRIBUTE_DFLT_DARG 19
#define MPI_DISTRIBUTE_NONE 16

#define MPI_COMBINER_NAMED 101
#define MPI_COMBINER_DUP 102
#define MPI_COMBINER_CONTIGUOUS 103
#define MPI_COMBINER_VECTOR 104
#define MPI_COMBINER_HVECTOR 105
#define MPI_COMBINER_INDEXED 106
#define MPI_COMBINER_HINDEXED 107
#define MPI_COMBINER_INDEXED_BLOCK 108
#define MPI_COMBINER_HINDEXED_BLOCK 109
#define MPI_COMBINER_STRUCT 110
#define MPI_COMBINER_SUBARRAY 111
#define MPI_COMBINER_DARRAY 112
#define MPI_COMBINER_F90_REAL 113
#define MPI_COMBINER_F90_COMPLEX 114
#define MPI_COMBINER_F90_INTEGER 115
#define MPI_COMBINER_RESIZED 116

#define MPI_BOTTOM (static_cast<void*>(nullptr))
#define MPI_IN_PLACE (reinterpret_cast<void*>(1))
#define MPI_STATUS_IGNORE (static_cast<MPI_Status*>(nullptr))

#define MPI_COMM_NULL (reinterpret_cast<MPI_Comm>(0x100))
#define MPI_COMM_SELF (reinterpret_cast<MPI_Comm>(0x102))
#define MPI_COMM_WORLD (reinterpret_cast<MPI_Comm>(0x101))

#define MPI_ERRORS_RETURN (reinterpret_cast<MPI_Errhandler>(0x143))

#define MPI_INFO_NULL (reinterpret_cast<MPI_Info>(0x130))

#define MPI_OP_NULL (reinterpret_cast<MPI_Op>(0x20))
#define MPI_BAND (reinterpret_cast<MPI_Op>(0x28))
#define MPI_BOR (reinterpret_cast<MPI_Op>(0x29))
#define MPI_BXOR (reinterpret_cast<MPI_Op>(0x2a))
#define MPI_LAND (reinterpret_cast<MPI_Op>(0x30))
#define MPI_LOR (reinterpret_cast<MPI_Op>(0x31))
#define MPI_LXOR (reinterpret_cast<MPI_Op>(0x32))
#define MPI_MAX (reinterpret_cast<MPI_Op>(0x23))
#define MPI_MAXLOC (reinterpret_cast<MPI_Op>(0x39))
#define MPI_MIN (reinterpret_cast<MPI_Op>(0x22))
#define MPI_MINLOC (reinterpret_cast<MPI_Op>(0x38))
#define MPI_NO_OP (reinterpret_cast<MPI_Op>(0x3d))
#define MPI_PROD (reinterpret_cast<MPI_Op>(0x24))
#define MPI_REPLACE (reinterpret_cast<MPI_Op>(0x3c))
#define MPI_SUM (reinterpret_cast<MPI_Op>(0x21))
#define MPIX_EQUAL (reinterpret_cast<MPI_Op>(0x3e))

#define MPI_DATATYPE_NULL (reinterpret_cast<MPI_Datatype>(0x200))

#define MPI_AINT (reinterpret_cast<MPI_Datatype>(0x201))
#define MPI_BYTE (reinterpret_cast<MPI_Datatype>(0x247))
#define MPI_CHAR (reinterpret_cast<MPI_Datatype>(0x243))
#define MPI_COUNT (reinterpret_cast<MPI_Datatype>(0x202))
#define MPI_C_BOOL (reinterpret_cast<MPI_Datatype>(0x238))
#define MPI_C_DOUBLE_COMPLEX (reinterpret_cast<MPI_Datatype>(0x216))
#define MPI_C_FLOAT_COMPLEX (reinterpret_cast<MPI_Datatype>(0x212))
#define MPI_C_LONG_DOUBLE_COMPLEX (reinterpret_cast<MPI_Datatype>(0x224))
#define MPI_CXX_BOOL (reinterpret_cast<MPI_Datatype>(0x239))
#define MPI_CXX_DOUBLE_COMPLEX (reinterpret_cast<MPI_Datatype>(0x217))
#define MPI_CXX_FLOAT_COMPLEX (reinterpret_cast<MPI_Datatype>(0x213))
#define MPI_CXX_LONG_DOUBLE_COMPLEX (reinterpret_cast<MPI_Datatype>(0x225))
#define MPI_DOUBLE (reinterpret_cast<MPI_Datatype>(0x214))
#define MPI_FLOAT (reinterpret_cast<MPI_Datatype>(0x210))
#define MPI_INT (reinterpret_cast<MPI_Datatype>(0x209))
#define MPI_INT8_T (reinterpret_cast<MPI_Datatype>(0x240))
#define MPI_INT16_T (reinterpret_cast<MPI_Datatype>(0x248))
#define MPI_INT32_T (reinterpret_cast<MPI_Datatype>(0x250))
#define MPI_INT64_T (reinterpret_cast<MPI_Datatype>(0x258))
#define MPI_LONG (reinterpret_cast<MPI_Datatype>(0x20a))
#define MPI_LONG_DOUBLE (reinterpret_cast<MPI_Datatype>(0x220))
#define MPI_LONG_LONG (reinterpret_cast<MPI_Datatype>(0x20b))
#define MPI_OFFSET (reinterpret_cast<MPI_Datatype>(0x203))
#define MPI_SHORT (reinterpret_cast<MPI_Datatype>(0x208))
#define MPI_SIGNED_CHAR (reinterpret_cast<MPI_Datatype>(0x244))
#define MPI_UINT8_T (reinterpret_cast<MPI_Datatype>(0x241))
#define MPI_UINT16_T (reinterpret_cast<MPI_Datatype>(0x249))
#define MPI_UINT32_T (reinterpret_cast<MPI_Datatype>(0x251))
#define MPI_UINT64_T (reinterpret_cast<MPI_Datatype>(0x259))
#define MPI_UNSIGNED (reinterpret_cast<MPI_Datatype>(0x20d))
#define MPI_UNSIGNED_CHAR (reinterpret_cast<MPI_Datatype>(0x245))
#define MPI_UNSIGNED_LONG (reinterpret_cast<MPI_Datatype>(0x20e))
#define MPI_UNSIGNED_LONG_LONG (reinterpret_cast<MPI_Datatype>(0x20f))
#define MPI_UNSIGNED_SHORT (reinterpret_cast<MPI_Datatype>(0x20c))

#define MPI_2INT (reinterpret_cast<MPI_Datatype>(0x22b))
#define MPI_DOUBLE_INT (reinterpret_cast<MPI_Datatype>(0x229))
#define MPI_FLOAT_INT (reinterpret_cast<MPI_Datatype>(0x228))
#define MPI_LONG_DOUBLE_INT (reinterpret_cast<MPI_Datatype>(0x22d))
#define MPI_LONG_INT (reinterpret_cast<MPI_Datatype>(0x22a))
#define MPI_SHORT_INT (reinterpret_cast<MPI_Datatype>(0x22c))

#define MPI_2DOUBLE_PRECISION (reinterpret_cast<MPI_Datatype>(0x231))
#define MPI_2INTEGER (reinterpret_cast<MPI_Datatype>(0x232))
#define MPI_2REAL (reinterpret_cast<MPI_Datatype>(0x230))
#define MPI_COMPLEX (reinterpret_cast<MPI_Datatype>(0x21b))
#define MPI_COMPLEX8 (reinterpret_cast<MPI_Datatype>(0x2db))
#define MPI_COMPLEX16 (reinterpret_cast<MPI_Datatype>(0x2e3))
#define MPI_COMPLEX32 (reinterpret_cast<MPI_Datatype>(0x2eb))
#define MPI_DOUBLE_COMPLEX (reinterpret_cast<MPI_Datatype>(0x21d))
#define MPI_DOUBLE_PRECISION (reinterpret_cast<MPI_Datatype>(0x21c))
#define MPI_INTEGER (reinterpret_cast<MPI_Datatype>(0x219))
#define MPI_INTEGER1 (reinterpret_cast<MPI_Datatype>(0x2c1))
#define MPI_INTEGER2 (reinterpret_cast<MPI_Datatype>(0x2c9))
#define MPI_INTEGER4 (reinterpret_cast<MPI_Datatype>(0x2d1))
#define MPI_INTEGER8 (reinterpret_cast<MPI_Datatype>(0x2d9))
#define MPI_LOGICAL (reinterpret_cast<MPI_Datatype>(0x218))
#define MPI_LOGICAL1 (reinterpret_cast<MPI_Datatype>(0x2c0))
#define MPI_LOGICAL2 (reinterpret_cast<MPI_Datatype>(0x2c8))
#define MPI_LOGICAL4 (reinterpret_cast<MPI_Datatype>(0x2d0))
#define MPI_LOGICAL8 (reinterpret_cast<MPI_Datatype>(0x2d8))
#define MPI_REAL (reinterpret_cast<MPI_Datatype>(0x21a))
#define MPI_REAL4 (reinterpret_cast<MPI_Datatype>(0x2d2))
#define MPI_REAL8 (reinterpret_cast<MPI_Datatype>(0x2da))
#define MPI_REAL16 (reinterpret_cast<MPI_Datatype>(0x2e2))

#include "src/mpi/abi/prototypes.h"
