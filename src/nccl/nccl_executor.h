// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "src/engine/executor.h"
#include "src/nccl/device_group.h"

namespace sluice {

// Runs a call as a job of a group's.
class NcclExecutor final : public Executor {
 public:
  // Both must outlive the call.
  NcclExecutor(DeviceGroup& group, const SluiceNcclJob& job) : group_(group), job_(job) {}

  Status start(const Algorithm&, const Call&, uint32_t) override { return group_.start(job_); }
  State advance() override;
  Failure failure() const override { return {group_.failure(), {}}; }
  void cancel() override { group_.abort(); }
  bool is_quiet() override { return group_.advance() == DeviceGroup::State::ended; }
  std::string awaited() const override { return "NCCL, which waits for ranks or for its devices"; }
  // (NCCL may spin for ever.)
  bool notices_death() const override { return false; }
  void trim() override {}

 private:
  DeviceGroup& group_;
  const SluiceNcclJob& job_;
};

}  // namespace sluice
