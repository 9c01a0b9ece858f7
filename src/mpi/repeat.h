// SPDX-License-Identifier: BSD-3-Clause
//
// The last call of a communicator, ready to be made again: most programs' next call differs from it
// in its buffers alone, and what its arguments mean need not be worked out anew.
#pragma once

#include <cstdint>
#include <type_traits>

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

// Whether an argument does not keep a call from being the same as another: buffers may differ.
template <typename T>
bool is_same(const T& now, const T& then) {
  if constexpr (std::is_convertible_v<T, const void*> &&
                std::is_void_v<std::remove_cv_t<std::remove_pointer_t<T>>>) {
    return true;
  } else if constexpr (std::is_same_v<T, Numbers>) {
    return false;  // what is in arrays may have changed
  } else {
    return now == then;
  }
}

struct Repeat {
  const char* entry = nullptr;  // "MPI_Bcast", the one such string of its entry; null: none
  Arguments arguments;
  uint64_t types_freed = 0;  // then: a handle may mean another type since
  const Algorithm* algorithm = nullptr;
  Call call;
  ptrdiff_t input_start = 0, output_start = 0;  // from the program's buffer to the view's memory
  bool has_input = false, has_output = false;
  bool in_place = false;  // the input lies in the output's buffer

  // Keeps a call that was made, if its data was dense where the program has it.
  void keep(const char* name, const Arguments& with, const Exchange& exchange, const Algorithm* by);
  // Puts the call on these buffers; false where that takes a closer look.
  bool put_on(const Buffers& buffers);
};

}  // namespace sluice
