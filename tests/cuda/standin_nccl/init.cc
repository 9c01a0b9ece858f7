// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a communicator find together.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/cuda/standin_nccl/communicator.h"

namespace standin_nccl {

void Communicator::read_environment() {
  (void)ncclGetVersion(&version_);
  if (const char* polls = std::getenv("NCCL_STANDIN_POLLS")) polls_ = std::atoi(polls);
  if (const char* init = std::getenv("NCCL_STANDIN_INIT")) read_init(init);
  if (const char* job = std::getenv("NCCL_STANDIN_JOB")) read_job(job);
  if (const char* failing = std::getenv("NCCL_STANDIN_FINALIZE")) {
    fails_finalize_ = std::atoi(failing) == rank_;
  }
  if (const char* error = std::getenv("NCCL_STANDIN_ERROR")) {
    int job = 0, rank = rank_;
    if (std::sscanf(error, "%d:%d", &job, &rank) < 1) {
      (void)misuse(ncclInvalidUsage, "NCCL_STANDIN_ERROR='%s' is not N or N:R", error);
    }
    if (rank == rank_) error_job_ = job;
  }
}

void Communicator::read_init(const char* text) {
  std::string rest = text;
  while (!rest.empty()) {
    const std::string item = rest.substr(0, rest.find(','));
    rest.erase(0, item.size() + 1);
    char what[8] = "";
    int rank = -1, ms = 0;
    (void)std::sscanf(item.c_str(), "%7[a-z]:%d:%d", what, &rank, &ms);
    const bool is_known = std::strcmp(what, "fail") == 0 || std::strcmp(what, "hang") == 0 ||
                          std::strcmp(what, "delay") == 0;
    if (!is_known || rank < 0) {
      (void)misuse(ncclInvalidUsage, "NCCL_STANDIN_INIT='%s' is not known", text);
    }
    if (rank != rank_) continue;
    if (what[0] == 'f') fate_ = Fate::fails;
    if (what[0] == 'h') fate_ = Fate::hangs;
    delay_ms_ = ms;
  }
}

void Communicator::read_job(const char* text) {
  char what[8] = "";
  int job = 0, rank = -1;
  const int read = std::sscanf(text, "%7[a-z]:%d:%d", what, &job, &rank);
  const bool is_stuck = std::strcmp(what, "stuck") == 0;
  if (read != 3 || (!is_stuck && std::strcmp(what, "kill") != 0)) {
    (void)misuse(ncclInvalidUsage, "NCCL_STANDIN_JOB='%s' is not known", text);
  }
  if (rank == rank_) (is_stuck ? stuck_job_ : deadly_job_) = job;
}

// In a thread of its own.
void Communicator::initialize() {
  const auto ready = std::chrono::steady_clock::now() + std::chrono::milliseconds(delay_ms_);
  if (!await([&] { return std::chrono::steady_clock::now() >= ready; })) return;
  if (fate_ == Fate::fails) return fail(ncclSystemError);
  if (fate_ == Fate::hangs && !await([] { return false; })) return;
  RankRow& own = file_.row(rank_);
  own.version = version_;
  own.ranks = ranks_;
  (void)cuDeviceGetUuid(&own.device, device_);
  file_.come(rank_, ranks_);
  if (!await([&] { return have_all(&RankRow::has_come); })) return;
  if (const ncclResult_t wrong = compare_ranks(); wrong) return fail(wrong);
  has_started_ = true;
}

ncclResult_t Communicator::compare_ranks() {
  for (int i = 0; i < ranks_; ++i) {
    const RankRow& one = file_.row(i);
    if (one.version != version_ || one.ranks != ranks_) {
      std::fprintf(stderr,
                   "standin: nccl: Mismatched NCCL version detected: rank %d %d rank %d %d\n",
                   rank_, version_, i, one.version);
      return ncclInvalidUsage;
    }
    for (int j = 0; j < i; ++j) {
      const RankRow& other = file_.row(j);
      if (std::memcmp(&one.device, &other.device, sizeof one.device) != 0) continue;
      std::fprintf(stderr, "standin: nccl: Duplicate GPU detected : rank %d and rank %d\n", j, i);
      return ncclInvalidUsage;
    }
  }
  return ncclSuccess;
}

}  // namespace standin_nccl
