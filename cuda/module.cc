// SPDX-License-Identifier: BSD-3-Clause
//
// libsluice-cuda.so: the table of functions (module.h).
#include "cuda/module.h"

#include <cstdio>

#include "cuda/copies.h"
#include "cuda/driver.h"
#include "cuda/kernels/arguments.h"
#include "cuda/kind.h"
#include "cuda/loaded_kernels.h"
#include "cuda/pinned.h"
#include "cuda/reductions.h"
#include "cuda/scratch.h"
#include "cuda/streams.h"

namespace sluice::cuda {
namespace {

static_assert(sluice_cuda_operands == kernels::most_operands);

constinit PinnedPool pinned;
constinit StreamPool streams;

int begin(void* handle, const SluiceCudaSettings* settings, char* why) {
  if (!bind_driver(handle, why)) return -1;
  pinned.set_bound(settings->pinned);
  scratch().set_bound(settings->scratch);
  set_streams(*settings);
  return 0;
}

void end() {
  streams.clear();
  unload_kernels();
  scratch().clear();
  pinned.clear();
  release_primaries();
}

void* reserve(const SluiceCudaPlace* place, size_t bytes) {
  return pinned.reserve(place->device, bytes);
}

void give_back(void* memory) { pinned.give_back(memory); }

SluiceCudaStream* open(const SluiceCudaPlace* place, char* why) {
  return streams.open(*place, why);
}

void close(SluiceCudaStream* stream, int done) { streams.close(stream, done != 0); }

int copy(SluiceCudaStream* stream, const SluiceCudaRuns* runs, size_t count, int to_device,
         char* why) {
  return begin_copies(stream, runs, count, to_device != 0, why) ? 0 : -1;
}

int mark(SluiceCudaStream* stream, unsigned number, char* why) {
  const Current current(stream->context, why);
  if (!current) return -1;
  const CUresult result = driver().cuEventRecord(stream->marks[number], stream->stream);
  return is_success("cuEventRecord", result, why) ? 0 : -1;
}

// (Needs no current context: it is asked again and again.)
int reached(SluiceCudaStream* stream, unsigned number, char* why) {
  const Relaxed relaxed;
  const CUresult result = driver().cuEventQuery(stream->marks[number]);
  if (result == CUDA_ERROR_NOT_READY) return 0;
  return is_success("an asynchronous copy", result, why) ? 1 : -1;
}

int can_reduce_on_device(int type, int operation) { return can_reduce(type, operation) ? 1 : 0; }

int reduce(SluiceCudaStream* stream, int type, int operation, const void* const* operands,
           size_t operand_count, void* out, size_t elements, char* why) {
  return begin_reduce(stream, type, operation, operands, operand_count, out, elements, why) ? 0
                                                                                            : -1;
}

int copy_within(SluiceCudaStream* stream, void* to, const void* from, size_t bytes, char* why) {
  const Current current(stream->context, why);
  if (!current) return -1;
  const CUresult result =
      driver().cuMemcpyAsync(address_of(to), address_of(from), bytes, stream->stream);
  return is_success("cuMemcpyAsync", result, why) ? 0 : -1;
}

void* allocate(const SluiceCudaPlace* place, size_t bytes, char* why) {
  return scratch().allocate(*place, bytes, why);
}

void release(void* memory) { scratch().release(memory); }

int list(SluiceCudaDevices* devices, char* why) {
  const Driver& cuda = driver();
  *devices = {};
  if (!is_success("cuInit", cuda.cuInit(0), why) ||
      !is_success("cuDriverGetVersion", cuda.cuDriverGetVersion(&devices->driver), why) ||
      !is_success("cuDeviceGetCount", cuda.cuDeviceGetCount(&devices->count), why)) {
    return -1;
  }
  for (int i = 0; i < devices->count && i < sluice_cuda_devices; ++i) {
    CUdevice device = 0;
    char* const name = devices->names[i];
    if (cuda.cuDeviceGet(&device, i) != CUDA_SUCCESS ||
        cuda.cuDeviceGetName(name, sizeof devices->names[i], device) != CUDA_SUCCESS) {
      std::snprintf(name, sizeof devices->names[i], "device %d", i);
    }
  }
  return 0;
}

constexpr SluiceCuda table{SLUICE_CUDA_VERSION,
                           begin,
                           end,
                           find,
                           reserve,
                           give_back,
                           open,
                           close,
                           copy,
                           mark,
                           reached,
                           can_reduce_on_device,
                           reduce,
                           copy_within,
                           allocate,
                           release,
                           list};

}  // namespace
}  // namespace sluice::cuda

extern "C" __attribute__((visibility("default"))) const SluiceCuda* sluice_cuda() {
  return &sluice::cuda::table;
}
