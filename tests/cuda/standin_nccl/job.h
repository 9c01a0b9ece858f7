// SPDX-License-Identifier: BSD-3-Clause
//
// A kernel of NCCL: the operations of one call, or of one group.
#pragma once

#include <memory>
#include <vector>

#include "tests/cuda/standin_nccl/communicator.h"

namespace standin_nccl {

class Job {
 public:
  // Puts a job into a stream of the current context. False if there is no such stream. number:
  // counts the communicator's jobs, from 1.
  static bool launch(std::shared_ptr<Communicator> owner, std::vector<Task> tasks, int number,
                     CUstream stream);

 private:
  Job(std::shared_ptr<Communicator> owner, std::vector<Task> tasks, int number)
      : owner_(std::move(owner)), tasks_(std::move(tasks)), number_(number) {}

  // These return false once this rank has called abort.
  bool run(CUresult error);
  bool hang(ncclResult_t error);
  bool collect(const Task& task);
  bool gather_inputs(const Task& task, std::vector<std::vector<std::byte>>* inputs);
  bool exchange();
  bool offer(const Task& task);
  bool accept(const Task& task);

  std::vector<std::byte> load(const void* from, size_t bytes) const;
  void store(void* to, const std::vector<std::byte>& data) const;
  bool post(int to, const Descriptor& what, const std::vector<std::byte>& data);
  bool is_mismatch(int from, const Descriptor& what, bool is_to_all);
  bool take(int from, bool is_to_all, std::vector<std::byte>* data);

  const std::shared_ptr<Communicator> owner_;
  const std::vector<Task> tasks_;
  const int number_;
};

}  // namespace standin_nccl
