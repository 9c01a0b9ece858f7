// SPDX-License-Identifier: BSD-3-Clause
//
// The call cache: a communicator's last call of a function, ready to be made again, by Sluice or by
// MPI. In most programs the next call differs in its buffers alone, so its arguments need not be
// interpreted again.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "src/engine/trials.h"
#include "src/mpi/describe.h"
#include "src/mpi/plain_arguments.h"

namespace sluice {

// The buffers of a call; those that the function lacks stay null.
struct Buffers {
  const void* send = nullptr;
  void* receive = nullptr;

  void set(const void* sendbuf) { send = sendbuf; }
  void set(void* recvbuf) { receive = recvbuf; }  // MPI_Bcast's buffer, too
  template <typename T>
  void set(const T&) {}
};

// The rows of the table (functions.h), and their number.
#define SLUICE_ROW(function, ...) function,
enum class Function : uint8_t { SLUICE_COLLECTIVES(SLUICE_ROW) count };
#undef SLUICE_ROW
inline constexpr auto function_count = static_cast<size_t>(Function::count);

struct CallCache {
  const char* entry = nullptr;  // "MPI_Bcast", compared by address; null: nothing is cached
  Arguments arguments;          // arrays are copies
  Position position{};
  uint64_t types_freed = 0;              // if it has changed, a handle may mean another type
  const Algorithm* algorithm = nullptr;  // null: MPI does the call
  bool was_handed_over = false;          // to MPI, with plain arguments in place of the program's
  CallLease lease;
  Call call;
  ptrdiff_t input_start = 0, output_start = 0;  // from the program's buffer to the view's memory
  bool has_input = false, has_output = false;
  bool checks_receive = false;  // MPI objects to some receive buffers
  bool in_place = false;        // the input lies in the output's buffer
  ptrdiff_t alias_at = 0;       // see Exchange

  // Caches a call that Sluice has made, if its data was dense in the program's memory, or one that
  // MPI is about to make (its views are set if it was handed over); else caches nothing. Throws
  // nothing. with: the program's arguments.
  void keep(const char* name, const Arguments& with, const Exchange& exchange, const Way& way,
            Position where);
  // Whether an argument allows the cached call to be repeated: it is the same, or it is a buffer,
  // or an array.
  template <typename T>
  bool is_same(const T& now, const T& then) const {
    if constexpr (std::is_convertible_v<T, const void*> &&
                  std::is_void_v<std::remove_cv_t<std::remove_pointer_t<T>>>) {
      return (now == MPI_IN_PLACE) == (then == MPI_IN_PLACE);
    } else {
      return std::is_same_v<T, Numbers> || now == then;
    }
  }
  // Whether it is no array, or holds the same numbers, or does not count on this rank. To be asked
  // when all else is the same: with MPI_IN_PLACE or another root an array may be anything.
  template <typename T>
  bool is_same_array(const T& now, const T& then) const {
    if constexpr (std::is_same_v<T, Numbers>) {
      return !then || (now && now.begin_alike(then, position.size));
    } else {
      return true;
    }
  }
  // With which MPI does the call that was handed over to it, on the buffers that were set.
  const Arguments& for_mpi() {
    plain_.put_buffers(call);
    return plain_.get();
  }
  // Sets the buffers of the cached call; false if they need the full check. (MPI's call needs it
  // too: a call that MPI finds invalid is not counted.)
  bool rebind(const Buffers& buffers);

 private:
  void keep_starts(const Exchange& exchange);
  bool keep_arrays(const Exchange& exchange);
  [[gnu::cold]] bool any_on_device(const Buffers& buffers) const;

  bool keep_plain(const Exchange& exchange);

  PlainArguments plain_;
  std::vector<std::byte> arrays_;
  std::vector<size_t> extents_;  // counts and offsets of the call's views
};

}  // namespace sluice
