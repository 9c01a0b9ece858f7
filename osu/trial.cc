// SPDX-License-Identifier: BSD-3-Clause
#include "osu/trial.h"

#include <chrono>
#include <thread>

#include "osu/memory.h"

namespace sluice::osu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t guard = 64;  // bytes after a buffer that no call may write

int rank_in(MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  return size;
}

// Memory that is paged in and poisoned, with a guard after it.
Memory make_memory(size_t bytes, size_t offset, Place place) {
  Memory memory(bytes + guard, offset, place);
  poison(memory.mirror(), memory.room());
  memory.push();
  return memory;
}

Place place_of_result(const Function& function, const Buffers& buffers) {
  const bool is_source = function.flow.one_buffer && function.flow.sends(rank_in(MPI_COMM_WORLD));
  return is_source ? buffers.send : buffers.recv;
}

// Functions that move data.
class Transfer : public Trial {
 public:
  Transfer(const Function& function, const ElementType& type, size_t count, const Buffers& buffers)
      : function_(function),
        type_(type),
        layout_(function, count, rank_in(MPI_COMM_WORLD), size_of(MPI_COMM_WORLD),
                buffers.in_place),
        send_(make_memory(layout_.send_elements * type.bytes, buffers.send_offset, buffers.send)),
        recv_(make_memory(layout_.recv_elements * type.bytes, buffers.recv_offset,
                          place_of_result(function, buffers))) {
    lie_right_ = send_.lies_at(buffers.send_offset) && recv_.lies_at(buffers.recv_offset);
    prepare(0);
  }

  void prepare(uint32_t round) override {
    round_ = {size_of(MPI_COMM_WORLD), round};
    poison(recv_.mirror(), layout_.recv_elements * type_.bytes);
    for (const Piece& piece : layout_.send) type_.fill(send_.mirror(), piece, round_);
    for (const Piece& piece : layout_.recv_before) type_.fill(recv_.mirror(), piece, round_);
    send_.push();
    recv_.push();
  }

  double call() override {
    Arguments arguments{layout_.send_in_place ? MPI_IN_PLACE : send_.get(),
                        layout_.recv_in_place ? MPI_IN_PLACE : recv_.get(),
                        static_cast<int>(layout_.call_count),
                        layout_.counts.data(),
                        layout_.displs.data(),
                        type_.handle,
                        MPI_COMM_WORLD};
    double begin = MPI_Wtime();
    function_.call(arguments);
    return MPI_Wtime() - begin;
  }

  std::string verify() override {
    if (!lie_right_) return "buffers do not begin where --offset says";
    send_.pull();
    recv_.pull();
    std::string wrong = first_wrong("receive buffer: ", recv_.mirror(), layout_.recv_after);
    if (wrong.empty()) wrong = first_wrong("send buffer: ", send_.mirror(), layout_.send);
    return wrong.empty() ? stray_write() : wrong;
  }

 private:
  std::string first_wrong(const char* where, const void* buffer, std::span<const Piece> pieces) {
    for (const Piece& piece : pieces) {
      std::string wrong = type_.check(buffer, piece, round_);
      if (!wrong.empty()) return where + wrong;
    }
    return {};
  }

  // What the call wrote of the receive buffer though it is no part of the result.
  std::string stray_write() const {
    const std::byte* begin = static_cast<const std::byte*>(recv_.mirror());
    const size_t written = layout_.recv_written * type_.bytes;
    const size_t whole = layout_.recv_elements * type_.bytes + guard;
    if (is_poisoned(begin + written, whole - written)) return {};
    return written > 0 ? "something wrote behind the result in the receive buffer"
                       : "the call wrote to the receive buffer, though it has no result here";
  }

  const Function& function_;
  const ElementType& type_;
  Layout layout_;
  Memory send_, recv_;
  bool lie_right_ = false;
  Round round_{1, 0};
};

// MPI_Barrier: no rank may leave before the last one has entered. Checked among ranks of one host,
// which share a clock.
class Meeting : public Trial {
 public:
  explicit Meeting(const Function& function) : function_(function) {
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host_);
  }
  ~Meeting() override { MPI_Comm_free(&host_); }

  // In each round another rank is late.
  void prepare(uint32_t round) override {
    late_ = round % static_cast<uint32_t>(size_of(host_)) == static_cast<uint32_t>(rank_in(host_));
    if (late_) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  double call() override {
    Arguments arguments{};
    arguments.comm = MPI_COMM_WORLD;
    entered_ = seconds();
    double begin = MPI_Wtime();
    function_.call(arguments);
    double took = MPI_Wtime() - begin;
    left_ = seconds();
    return took;
  }

  std::string verify() override {
    double last = 0;
    MPI_Allreduce(&entered_, &last, 1, MPI_DOUBLE, MPI_MAX, host_);
    if (left_ >= last) return {};
    return "left the barrier " + std::to_string(1e6 * (last - left_)) +
           " us before the last rank of its host came";
  }

 private:
  static double seconds() {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }

  const Function& function_;
  MPI_Comm host_ = MPI_COMM_NULL;
  bool late_ = false;
  double entered_ = 0, left_ = 0;
};

}  // namespace

size_t memory_of(const Function& function, const ElementType& type, size_t count, int ranks) {
  return function.flow.most_elements(count, ranks) * type.bytes;
}

std::unique_ptr<Trial> make_trial(const Function& function, const ElementType& type, size_t count,
                                  const Buffers& buffers) {
  if (!function.flow.moves_data()) return std::make_unique<Meeting>(function);
  return std::make_unique<Transfer>(function, type, count, buffers);
}

}  // namespace sluice::osu
