// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that MPI does on buffers on a device, if this MPI can't: MPI works on copies in host
// memory, which have the layout of the buffers. Which ranks do that is nobody else's business.
// (Intercommunicators, and reductions that Sluice does not know, get their buffers as they are.)
#pragma once

#include <memory>

#include "src/mpi/describe.h"
#include "src/mpi/placement.h"

namespace sluice {

// Whether this MPI takes buffers on CUDA devices itself.
bool is_mpi_cuda_aware();

class Detour {
 public:
  // Copies to host memory what MPI reads. May throw std::bad_alloc.
  Status begin(const Exchange& exchange);
  // Replaces the buffers of a call, by role.
  void put(const void*& sendbuf) const {
    if (send_.image) sendbuf = send_.image;
  }
  void put(void*& recvbuf) const {  // MPI_Bcast's buffer, too
    if (receive_.image) recvbuf = receive_.image;
  }
  template <typename T>
  void put(const T&) const {}
  // Copies to the device what MPI has written.
  Status end();

 private:
  // A copy in host memory, with the same layout, of what lies around a buffer.
  struct Image {
    std::unique_ptr<std::byte[]> memory;
    const void* buffer = nullptr;
    std::byte* image = nullptr;  // where the buffer would begin
    ptrdiff_t low = 0, high = 0;
  };
  static Status cover(const Side& side, Image* image);
  static Status make(Image* image);
  Status move(const Side& side, const Image& image, StagedSide::Way way);

  Exchange exchange_;
  Image send_, receive_;
  Staging staging_;
};

}  // namespace sluice
