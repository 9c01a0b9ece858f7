// SPDX-License-Identifier: BSD-3-Clause
//
// A call as a job of NCCL: which calls NCCL can carry, and how this rank's data is described to it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cuda/nccl_module.h"
#include "src/memory/side.h"
#include "src/memory/staging.h"

namespace sluice {

// What NCCL calls a collective and its elements. A complex number is two of its elements.
struct NcclTerms {
  SluiceNcclCollective collective;
  SluiceNcclType type;  // bytes, if nothing is reduced
  SluiceNcclOperation operation;
  size_t bytes;  // of an element
};

// Unset if NCCL has nothing for such a call. Equal on all ranks.
std::optional<NcclTerms> nccl_terms(const Call& call);

// The job of one call on this rank. Its memory is kept for the next.
class DeviceJob {
 public:
  explicit DeviceJob(Rank rank) : rank_(rank) {}

  // These describe data that is dense on the group's device, where it lies; and the sizes of data
  // that is not, for SluiceNccl::reserve. The stagings hold counts and offsets. May throw
  // std::bad_alloc.
  void describe(const UnplacedCall& unplaced, const NcclTerms& terms, StagingPair& staging);
  void describe_sizes(const UnplacedCall& unplaced, const NcclTerms& terms, StagingPair& staging);
  // The data of that second kind, once the call's views have it on the host.
  void describe_on_host(const Call& call, const NcclTerms& terms);

  // Valid until the next call here.
  const SluiceNcclJob& job() const { return job_; }

 private:
  struct Arrays {
    std::vector<size_t> counts, offsets;
  };
  void begin(const Call& call, const NcclTerms& terms, bool on_host);
  bool is_in_place(const Call& call) const;
  static void set(const View& view, size_t factor, SluiceNcclSide* side, Arrays& arrays);

  const Rank rank_;
  SluiceNcclJob job_{};
  Arrays input_, output_;
};

}  // namespace sluice
