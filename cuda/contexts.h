// SPDX-License-Identifier: BSD-3-Clause
//
// In which context to copy from and to a place: that of the memory. Memory that belongs to none
// (pools, virtual memory management) is copied in its device's primary context: the current one may
// be a green context, which no other thread may use at the same time.
#pragma once

#include "cuda/driver.h"
#include "cuda/module.h"

namespace sluice::cuda {

// Null, with the reason, if there is none.
CUcontext find_context(const SluiceCudaPlace& place, char* why);

// The primary context of a device, which is retained until release_primaries. If the program has
// reset it, it is made anew. Null, with the reason, if the driver refuses.
CUcontext primary_context(int device, char* why);
// Whether the primary context exists: a reset or the last release has not destroyed it.
bool is_active(int device);
void release_primaries();

// Whether memory there is in its device's primary context, or in none.
bool is_in_primary(const SluiceCudaPlace& place, char* why);
// The 16 bytes of its device's UUID. False, with the reason, also if it is not in the primary
// context.
bool find_uuid_in_primary(const SluiceCudaPlace& place, unsigned char* uuid, char* why);

// The same, retained for the caller alone, until it releases it.
CUcontext retain_primary(int device, char* why);
void release_primary(int device);

// A byte of device memory that goes with its context. The driver may be asked about any address at
// any time, but not about a context that the program has destroyed. So before what belongs to a
// context is used, the driver is asked whether this address still has its allocation's id. Ids are
// never used again, so a later context with the same handle, which may have memory at the same
// address, is told apart.
struct Canary {
  CUdeviceptr address = 0;  // 0: there was no memory
  unsigned long long id = 0;
};

// In the current context.
Canary make_canary();
// Of memory that is allocated in a context already. Its id is 0 if the driver does not tell.
Canary make_canary_of(CUdeviceptr memory);
// Whether the context that it was made in, this one, is still there. False if there was no memory.
bool is_alive(const Canary& canary, CUcontext context);
// Whether it is not there any more, or the driver has shut down. False if the driver can't tell.
bool is_gone(const Canary& canary, CUcontext context);

}  // namespace sluice::cuda
