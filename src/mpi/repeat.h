// SPDX-License-Identifier: BSD-3-Clause
//
// A communicator's last call of a function, ready to be made again: most programs' next one differs
// from it in its buffers alone, and what its arguments mean need not be worked out anew.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "src/mpi/describe.h"

namespace sluice {

// A call's buffers, as far as its function has them.
struct Buffers {
  const void* send = nullptr;
  void* receive = nullptr;

  void take(const void* sendbuf) { send = sendbuf; }
  void take(void* recvbuf) { receive = recvbuf; }  // MPI_Bcast's, too
  template <typename T>
  void take(const T&) {}
};

// The rows of the table, and how many they are.
#define SLUICE_ROW(function, ...) function,
enum class Function : uint8_t { SLUICE_COLLECTIVES(SLUICE_ROW) count };
#undef SLUICE_ROW
inline constexpr auto function_count = static_cast<size_t>(Function::count);

struct Repeat {
  const char* entry = nullptr;  // "MPI_Bcast", the one such string of its entry; null: none
  Arguments arguments;          // arrays are copies
  Rank ranks = 0;
  uint64_t types_freed = 0;  // then: a handle may mean another type since
  const Algorithm* algorithm = nullptr;
  Call call;
  ptrdiff_t input_start = 0, output_start = 0;  // from the program's buffer to the view's memory
  bool has_input = false, has_output = false;
  bool in_place = false;   // the input lies in the output's buffer
  ptrdiff_t alias_at = 0;  // see Exchange

  // Keeps a call that was made, if its data was dense where the program has it. Throws nothing.
  void keep(const char* name, const Arguments& with, const Exchange& exchange, const Algorithm* by,
            Rank size);
  // Whether an argument does not keep a call from being the same as this one: buffers may differ.
  // (In place, a function's arrays for its input may be anything: ask of the buffers first.)
  template <typename T>
  bool is_same(const T& now, const T& then) const {
    if constexpr (std::is_convertible_v<T, const void*> &&
                  std::is_void_v<std::remove_cv_t<std::remove_pointer_t<T>>>) {
      return (now == MPI_IN_PLACE) == (then == MPI_IN_PLACE);
    } else if constexpr (std::is_same_v<T, Numbers>) {
      return now && now.begin_alike(then, ranks);
    } else {
      return now == then;
    }
  }
  // Puts the call on these buffers; false where that takes a closer look.
  bool put_on(const Buffers& buffers);

 private:
  bool keep_arrays();

  std::vector<std::byte> arrays_;
  std::vector<size_t> extents_;  // of the call's views
};

}  // namespace sluice
