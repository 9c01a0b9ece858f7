// SPDX-License-Identifier: BSD-3-Clause
//
// The NCCL part of the CUDA module by itself: the life of a group.
#include <cstdint>

#include "tests/cuda/nccl_module_rig.h"

namespace nccl_module {
namespace {

// An allreduce of one int32 for each rank, played by one thread.
class Sum {
 public:
  Sum(size_t ranks, Where where) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto operand = static_cast<int32_t>(rank + 1);
      Bytes contents(sizeof operand);
      std::memcpy(contents.data(), &operand, sizeof operand);
      memory_.push_back(std::make_unique<Memory>(where, static_cast<int>(rank), contents));
    }
  }
  SluiceNcclJob job(size_t rank) const {
    return {sluice_nccl_allreduce, sluice_nccl_int32, sluice_nccl_sum, 0, {},
            memory_[rank]->side(1)};
  }
  void start(const Groups& groups, size_t rank) const {
    char why[sluice_cuda_why] = "";
    const SluiceNcclJob own = job(rank);
    EXPECT_EQ(table()->reserve(groups[rank], &own, why), 0) << why;
    EXPECT_EQ(table()->start(groups[rank], &own, why), 0) << why;
  }
  void start(const Groups& groups) const {
    for (size_t rank = 0; rank < groups.size(); ++rank) start(groups, rank);
  }
  std::vector<int32_t> values() const {
    std::vector<int32_t> all;
    for (const auto& each : memory_) {
      int32_t value = 0;
      std::memcpy(&value, each->contents().data(), sizeof value);
      all.push_back(value);
    }
    return all;
  }

 private:
  std::vector<std::unique_ptr<Memory>> memory_;
};

using Values = std::vector<int32_t>;
using NcclGroup = NcclModule;

TEST_F(NcclGroup, RunsJobAfterJob) {
  const Groups groups = connect(2);
  const Sum sum(2, Where::device);
  for (const int32_t expected : {3, 6, 12}) {
    sum.start(groups);
    await_state(groups, sluice_nccl_ready);
    EXPECT_EQ(sum.values(), Values(2, expected));
  }
  end(groups);
}

}  // namespace
}  // namespace nccl_module
