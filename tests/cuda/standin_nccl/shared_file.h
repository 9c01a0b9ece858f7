// SPDX-License-Identifier: BSD-3-Clause
//
// Where the ranks of a communicator meet: a sparse file in shared memory. Its beginning is mapped
// by all: a row for each rank and the mailboxes. The contents of messages are written to and read
// from the file, each mailbox's at a place of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/cuda/standin_nccl/standin_nccl.h"

namespace standin_nccl {

enum class Kind : uint32_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  send,
  receive
};

// What all ranks must agree on. Of kinds without an operation or a root these are 0.
struct Descriptor {
  Kind kind;
  uint32_t type, operation, root;
  uint64_t count;
  bool operator==(const Descriptor&) const = default;
};

// From one rank to another, or from one to all others. It holds one message at a time: the next is
// posted when each reader has taken the last.
struct Mailbox {
  std::atomic<uint64_t> posted, taken;  // messages; takes of all readers together
  Descriptor what;
};

// All are zero at first.
struct RankRow {
  std::atomic<int> has_called, has_come, has_aborted, has_finalized;
  int version, ranks;
  CUuuid device;
};

struct SharedHead {
  std::atomic<int> come;
  RankRow rows[most_ranks];
  Mailbox mailboxes[most_ranks][most_ranks + 1];  // by sender and receiver; the last: to all others
};

class SharedFile {
 public:
  static constexpr int to_all = most_ranks;

  // Makes a new file; false if the system refuses.
  static bool make(ncclUniqueId* id);

  explicit SharedFile(const ncclUniqueId& id);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  bool is_open() const { return head_; }

  RankRow& row(int rank) { return head_->rows[rank]; }
  Mailbox& mailbox(int from, int to) { return head_->mailboxes[from][to]; }
  // Says that this rank has come. The last removes the file's name.
  void come(int rank, int ranks);

  bool write(int from, int to, const std::vector<std::byte>& data);
  bool read(int from, int to, std::vector<std::byte>* data);
  void remove_name();

 private:
  const std::string path_;
  int file_ = -1;
  SharedHead* head_ = nullptr;
};

}  // namespace standin_nccl
