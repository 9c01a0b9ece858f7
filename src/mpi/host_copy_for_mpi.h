// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that MPI does on buffers on a device, if this MPI can't: MPI works on copies in host
// memory, which have the layout of the buffers. Buffers that are the same memory, or overlap, have
// one copy, so MPI sees that and has the same error as for host memory. Which ranks do that is
// nobody else's business. (Intercommunicators, and reductions that Sluice does not know, get their
// buffers as they are.)
#pragma once

#include <memory>

#include "src/engine/team.h"
#include "src/memory/staged_side.h"
#include "src/mpi/describe.h"

namespace sluice {

// Whether this MPI takes buffers on CUDA devices itself.
bool is_mpi_cuda_aware();

class HostCopyForMpi {
 public:
  explicit HostCopyForMpi(const Process& process)
      : wait_(process.progress_mpi, process.knobs, process.oversubscription) {}
  // Copies to host memory what MPI reads. May throw std::bad_alloc.
  Status begin(const Exchange& exchange);
  // Replaces the buffers of a call.
  void put_buffers(Arguments* arguments) const {
    if (send_) arguments->sendbuf = send_;
    if (receive_) arguments->recvbuf = arguments->buffer = receive_;
  }
  // Copies to the device what MPI has written.
  Status end();

 private:
  // The addresses that a side's data lies between; equal: it has none on a device.
  struct Range {
    uintptr_t low = 0, high = 0;
    bool is_empty() const { return low == high; }
    bool overlaps(const Range& other) const { return low < other.high && other.low < high; }
    Range with(const Range& other) const;
  };
  // A copy in host memory, with the same layout, of a range. (Data may lie in allocations that are
  // far apart: what is between them is address space alone.)
  struct Image {
    struct Unmap {
      size_t bytes;
      void operator()(std::byte* memory) const;
    };
    std::unique_ptr<std::byte, Unmap> memory;
    uintptr_t low = 0;

    Status make(const Range& range);
    // Where an address of the range, or a buffer that has its data there, lies in the copy.
    std::byte* at(const void* address) const;
  };
  static Status find(const Side& side, Range* range);
  bool is_one_image(const Range& input, const Range& output) const;
  Status make_images(const Range& input, const Range& output);
  Status move(const Side& side, std::byte* image, StagedSide::Way way);

  Exchange exchange_;
  Image images_[2];
  std::byte *input_ = nullptr, *output_ = nullptr;  // the buffers of sides on a device, copied
  std::byte *send_ = nullptr, *receive_ = nullptr;  // what MPI gets
  Staging staging_;
  LoneWait wait_;
};

}  // namespace sluice
