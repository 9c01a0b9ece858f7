// SPDX-License-Identifier: BSD-3-Clause
//
// libsluice-cuda.so: the table of functions of NCCL (nccl_module.h).
#include "cuda/nccl_module.h"

#include <cstdio>
#include <cstring>
#include <new>

#include "cuda/contexts.h"
#include "cuda/driver.h"
#include "cuda/nccl_group.h"
#include "cuda/nccl_library.h"

namespace sluice::cuda {
namespace {

int open(SluiceNcclLibrary* library, char* why) { return open_nccl(library, why) ? 0 : -1; }

int find_device(const SluiceCudaPlace* place, unsigned char uuid[sluice_nccl_device], char* why) {
  static_assert(sluice_nccl_device == sizeof(CUuuid));
  return find_uuid_in_primary(*place, uuid, why) ? 0 : -1;
}

int unique_id(char id[sluice_nccl_id], char* why) {
  SluiceNcclLibrary library;
  ncclUniqueId made;
  if (!open_nccl(&library, why)) return -1;
  if (!is_accepted("ncclGetUniqueId", nccl().ncclGetUniqueId(&made), why)) return -1;
  std::memcpy(id, &made, sizeof made);
  return 0;
}

SluiceNcclGroup* create(int device, const char id[sluice_nccl_id], int rank, int ranks, char* why) {
  SluiceNcclLibrary library;
  if (!open_nccl(&library, why)) return nullptr;
  auto* const group = new (std::nothrow) SluiceNcclGroup(rank, ranks);
  if (!group) {
    std::snprintf(why, sluice_cuda_why, "no memory for a group");
    return nullptr;
  }
  if (group->begin(device, id, why)) return group;
  delete group;
  return nullptr;
}

SluiceNcclState advance(SluiceNcclGroup* group, char* why) { return group->advance(why); }

int reserve(SluiceNcclGroup* group, const SluiceNcclJob* job, char* why) {
  return group->reserve(*job, why) ? 0 : -1;
}

int start(SluiceNcclGroup* group, const SluiceNcclJob* job, char* why) {
  return group->start(*job, why) ? 0 : -1;
}

void abort(SluiceNcclGroup* group) { group->abort(); }

void end(SluiceNcclGroup* group) { group->end(); }

void forget(SluiceNcclGroup* group) { group->forget(); }

constexpr SluiceNccl table{SLUICE_NCCL_VERSION,
                           open,
                           find_device,
                           unique_id,
                           create,
                           advance,
                           reserve,
                           start,
                           abort,
                           end,
                           forget};

}  // namespace
}  // namespace sluice::cuda

extern "C" __attribute__((visibility("default"))) const SluiceNccl* sluice_nccl() {
  return &sluice::cuda::table;
}
