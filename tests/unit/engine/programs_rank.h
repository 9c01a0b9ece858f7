// SPDX-License-Identifier: BSD-3-Clause
//
// A rank of a program, for tests of trials: a thread, whose calls go the way that its team finds.
// Where a program's would call MPI, ranks meet in a barrier. How long calls take is made up.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <chrono>
#include <functional>
#include <utility>

#include "src/engine/team.h"
#include "src/engine/trials.h"
#include "tests/unit/support/ranks.h"

namespace sluice::testing {

using WayBy = Way::By;

inline bool is_by_both(const Way& way) {
  return way.by == WayBy::mpi_then_sluice || way.by == WayBy::sluice_then_mpi;
}

template <typename Number>
constexpr Type number_type = Type::float64;
template <>
constexpr Type number_type<int32_t> = Type::int32;

// An allreduce of eight numbers.
template <typename Number>
class SmallAllreduce {
 public:
  static constexpr size_t count = 8;

  explicit SmallAllreduce(Rank rank) {
    for (size_t i = 0; i < count; ++i) input_[i] = static_cast<Number>(rank * 10 + i);
    call.collective = Collective::allreduce;
    call.element = sizeof(Number);
    call.reduction = {find_kernel(Op::sum, number_type<Number>), nullptr, true,
                      Arithmetic{number_type<Number>, Op::sum}};
    call.input.base = reinterpret_cast<std::byte*>(input_.data());
    call.output.base = reinterpret_cast<std::byte*>(output_.data());
    call.input.count = call.output.count = count;
    call.bytes = count * sizeof(Number);
  }

  // And forgets it.
  bool has_result(Rank ranks) {
    bool right = true;
    for (size_t i = 0; i < count; ++i) {
      const auto expected = static_cast<Number>(ranks * i + 10 * (ranks * (ranks - 1) / 2));
      right = right && output_[i] == expected;
    }
    output_.fill(-1);
    return right;
  }

  Call call;

 private:
  std::array<Number, count> input_{}, output_{};
};

inline Call small_call(Collective collective, std::array<std::byte, 512>& memory) {
  Call call;
  call.collective = collective;
  if (collective == Collective::barrier) return call;
  call.bytes = 128;
  call.input.base = call.output.base = memory.data();
  call.input.count = call.output.count = call.bytes;
  return call;
}

// In nanoseconds. (Long against what the ranks really take to agree, which makes gaps longer.)
constexpr float short_time = 1e9F, long_time = 3e9F;

// Nanoseconds that the first part of a call, or all of it, takes on a rank.
using MadeUp = std::function<float(bool by_mpi)>;

// A rank of a program: calls go the way that its team finds.
class ProgramsRank {
 public:
  // mpi: where ranks meet in MPI.
  ProgramsRank(Member& member, std::barrier<>& mpi, MadeUp times)
      : member_(member), mpi_(mpi), times_(std::move(times)) {}

  // Makes a call. False: it has failed, and the rank must make no other.
  bool make(const Call& call) {
    Status status = member_.team->find_way(call, able, &way);
    if (status.ok()) status = go(call);
    if (status.ok()) return true;
    ADD_FAILURE() << status.message();
    mpi_.arrive_and_drop();
    return false;
  }

  Way way;                            // of the last call
  std::chrono::nanoseconds spent{0};  // in each of the first calls
  // Calls are decided about, and not done: ranks meet in agreements alone. (On a busy machine each
  // call would take milliseconds.)
  bool only_decides = false;
  CarrierSet able = {};  // as votes find

 private:
  Status go(const Call& call) {
    const WayBy by = way.by;
    CallClass* const of = way.of;
    const bool is_timed = way.is_timed;
    Status status;
    if (is_by_both(way)) status = part(call, way.begins_with_mpi());
    way.begin();
    if (status.ok()) status = part(call, way.begins_with_mpi());
    way.end();
    if (is_timed) {
      of->samples[way.place].duration = times_(way.begins_with_mpi());
      of->spent = spent.count();
    }
    if (status.ok() && is_by_both(way)) status = part(call, by == WayBy::sluice_then_mpi);
    return status;
  }
  Status part(const Call& call, bool by_mpi) {
    if (only_decides) return {};
    if (!by_mpi) return member_.team->run_by(*way.algorithm, call);
    mpi_.arrive_and_wait();
    return {};
  }

  Member& member_;
  std::barrier<>& mpi_;
  MadeUp times_;
};

}  // namespace sluice::testing
