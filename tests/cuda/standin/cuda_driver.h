// SPDX-License-Identifier: BSD-3-Clause
//
// What the stand-in driver offers: functions of the CUDA driver API under the names that a real
// libcuda.so.1 exports, and functions of its own for tests (standin_...). The types have the layout
// of cuda.h's; if cuda.h was included before (with __CUDA_API_VERSION_INTERNAL), its types are
// used, and the compiler compares the declarations.
//
// Environment, read at the first call:
//   STANDIN_DEVICES=N   devices (2)
//   STANDIN_VERSION=N   what cuDriverGetVersion says (12040); cuGetProcAddress finds nothing newer,
//                       and before 9020 pointers have no device ordinal
//   STANDIN_SEED=N      of the order of copies and of their delays (1)
//   STANDIN_DELAY=US    the longest delay before an operation of a stream (50)
//   STANDIN_EARLY=1     synchronous copies of at most 64 KB from pageable memory return before they
//                       are done, unless the allocation or the context has SYNC_MEMOPS
//   STANDIN_CONCURRENT=0  devices do not share managed memory with the processor
//                       (CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS): while an operation waits
//                       or runs, the processor faults when it touches such memory
//   STANDIN_PEERS=0     no device has access to another one's memory
//   STANDIN_CONTAINER=NAME  memory that a process in another container exports can't be opened
//   STANDIN_FAIL=WHAT:N[,WHAT:N...]  as standin_fail
//   STANDIN_REPORT=1    every counter on standard error at exit
//
// A misuse is a call that no correct program makes: bytes outside an allocation, an old function
// ("cuMemAlloc" instead of "cuMemAlloc_v2"), a handle that is gone. Each is told on standard error,
// and a process with any that exits ends with status 97. Such is each use of a context that was
// destroyed, or reset and not retained since, and of what belonged to it.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef __cuda_cuda_h__
using CUdeviceptr = unsigned long long;
using CUdevice = int;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUarray = struct CUarray_st*;
using CUgraph = struct CUgraph_st*;
using CUmodule = struct CUmod_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUfunction = struct CUfunc_st*;
using CUmemGenericAllocationHandle = unsigned long long;
using cuuint64_t = uint64_t;

enum CUresult : unsigned {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_MAP_FAILED = 205,
  CUDA_ERROR_ALREADY_MAPPED = 208,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_UNKNOWN = 999
};

enum CUpointer_attribute : unsigned {
  CU_POINTER_ATTRIBUTE_CONTEXT = 1,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
  CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
  CU_POINTER_ATTRIBUTE_MAPPED = 13,
  CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17
};

enum CUmemorytype : unsigned {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_MEMORYTYPE_ARRAY = 3,
  CU_MEMORYTYPE_UNIFIED = 4
};

enum CUdevice_attribute : unsigned {
  CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11,
  CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89
};

enum CUctx_flags : unsigned { CU_CTX_SYNC_MEMOPS = 0x80 };
enum CUipcMem_flags : unsigned { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };

enum CUstreamCaptureMode : unsigned {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2
};

enum CUmemAllocationType : unsigned { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemAllocationHandleType : unsigned { CU_MEM_HANDLE_TYPE_NONE = 0 };
enum CUmemLocationType : unsigned {
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
  CU_MEM_LOCATION_TYPE_HOST = 2,
  CU_MEM_LOCATION_TYPE_HOST_NUMA = 3
};
enum CUmemAccess_flags : unsigned {
  CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
  CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
  CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3
};
enum CUmemAllocationGranularity_flags : unsigned { CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0 };
enum CUdriverProcAddressQueryResult : unsigned {
  CU_GET_PROC_ADDRESS_SUCCESS = 0,
  CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
};

struct CUuuid {
  char bytes[16];
};

struct CUipcMemHandle {
  char reserved[64];
};

struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
};

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};

struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType, gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};
#endif

#pragma GCC visibility push(default)
extern "C" {
CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuGetErrorName(CUresult error, const char** text);
CUresult cuGetErrorString(CUresult error, const char** text);
// (With four arguments: drivers from 11.3 on; _v2: from 12.0 on.)
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status);

CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetName(char* name, int length, CUdevice device);
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);  // (does what _v2 does)
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active);
CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext* context);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuCtxGetId(CUcontext context, unsigned long long* id);
CUresult cuCtxGetFlags(unsigned* flags);
CUresult cuCtxSetFlags(unsigned flags);
CUresult cuCtxSynchronize();

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer);
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer);
// (Of memory of cuMemAlloc, SYNC_MEMOPS.)
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr pointer);
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer);

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr pointer);
CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned flags);
CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags);
CUresult cuMemAllocHost_v2(void** pointer, size_t bytes);
CUresult cuMemFreeHost(void* pointer);
CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void* pointer);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* pointer, unsigned flags);
CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
// Each device has one pool.
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location);

// Memory of cuMemAlloc alone. Another process opens it, once in a context; its own never. What the
// two processes do with it is not ordered but by their own waiting. It is a misuse to free it while
// a process that lives has it open, to use it when it is freed, and to close it twice.
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr pointer);

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option);
CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc* access,
                        size_t count);
// (Of memory that was not mapped it says that nobody has access, and of the host what is true of
// device 0.)
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr pointer);

CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuEventCreate(CUevent* event, unsigned flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventDestroy_v2(CUevent event);

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes);

// Modules are PTX. Of the kernels there, those run that this stand-in has itself: Sluice's
// (host_kernels.h). They run as the host's code, one thread of the device after another, and the
// driver sees each access: one that is not aligned, or to memory that the device may not use, is a
// misuse and breaks the context.
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name);
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** parameters, void** extra);

// Of the stand-in alone.

// A counter, 0 if nothing has that name. "copies", "bytes_out" (device to host), "bytes_in",
// "bytes_within" (device to device), "pageable" (asynchronous copies that were staged), "pinned",
// "pinned_most" (bytes), "device_memory" (bytes), "streams", "events", "contexts" (alive),
// "retained" (primary contexts, each time), "modules" (loaded), "imports" (memory of other
// processes that is open), "launches" (of kernels of modules), "misuse", "waits" (for whole
// contexts or devices); and the calls of each function, by its name.
int64_t standin_counter(const char* name);
// The misuses so far; they are forgotten.
int64_t standin_forgive();
// From the return of hold to release no operation of any stream starts.
void standin_hold();
void standin_release();
// From now on this stream is busy with an operation that ends when standin_vacate is called. Other
// streams go on, unless they wait for it.
void standin_occupy(CUstream stream);
void standin_vacate();
// The Nth from now fails, the next is 1; N+: and all after it; 0: none. What: "host_alloc",
// "device_alloc" (out of memory), "copy" (CUDA_ERROR_ILLEGAL_ADDRESS when it runs; its context is
// broken from then on), "lose_device" (the copy after which every context of its device answers
// CUDA_ERROR_UNKNOWN), "stream", "retain" (out of memory, when a stream is made or a primary
// context retained), "pointer" (cuPointerGetAttributes does not know), "module" (its PTX is too new
// for cuModuleLoadData), "launch" (out of resources, at cuLaunchKernel), "kernel" (as "copy"),
// "import" (CUDA_ERROR_MAP_FAILED, when memory of another process is opened),
// "init" (cuInit returns error N). False if there is no such thing.
bool standin_fail(const char* what, const char* which);
// A green context of a device: it may be current to one thread at a time.
CUcontext standin_green_context(CUdevice device);
// What stand-ins of libraries with kernels need (standin_nccl).
//
// Puts a kernel into a stream of the current context and returns its number, 0 if there is no such
// stream. The driver's thread calls `start` when it is the kernel's turn in its stream and no other
// kernel runs on the device; `error` is what the context is broken by. From then on the kernel has
// the device's only slot for kernels, until standin_end_kernel. `start` must not block. Kernels of
// one device whose turn has come start in the order in which they were launched.
using standin_start = void(void* argument, uint64_t kernel, CUresult error);
uint64_t standin_launch(CUstream stream, standin_start* start, void* argument);
void standin_end_kernel(uint64_t kernel);
// The device of a stream, -1 if there is no such stream. (The current context's for 0.)
int standin_stream_device(CUstream stream);
// Whether a kernel on this device may use all these bytes: its own memory, or memory of the host
// that the driver knows.
bool standin_may_use(int device, CUdeviceptr pointer, size_t bytes);
// What a kernel reads and writes. A misuse, and false, if it may not.
bool standin_load(int device, void* to, CUdeviceptr from, size_t bytes);
bool standin_store(int device, CUdeviceptr to, const void* from, size_t bytes);
// Tells a misuse and counts it.
void standin_misuse(const char* text);
// Adds to a counter.
void standin_add(const char* name, int64_t number);
// From now on every function answers CUDA_ERROR_DEINITIALIZED, as after the driver's own exit
// handler.
void standin_shut_down();
}
#pragma GCC visibility pop
