// SPDX-License-Identifier: BSD-3-Clause
//
// Where the engine finds a call's data: in the program's own memory where elements are dense there,
// else in staging memory, packed before and unpacked after.
#pragma once

#include <memory>
#include <vector>

#include "src/base/status.h"
#include "src/mpi/exchange.h"

namespace sluice {

// Memory of one side of a communicator's calls, kept from call to call.
class Staging {
 public:
  // nullptr if there is not so much memory.
  std::byte* reserve(size_t bytes);
  // Gives large memory back.
  void trim();

  std::vector<size_t> counts, offsets;  // of View

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_ = 0;
};

// One call's. Everything that can fail fails in `begin`, before anything is sent.
class Placement {
 public:
  Placement(Exchange& exchange, Staging& input, Staging& output, MPI_Comm comm)
      : exchange_(exchange), input_(input), output_(output), comm_(comm) {}

  // Sets the call's views; packs what is to be sent.
  Status begin();
  // Unpacks what was received.
  Status end();

 private:
  Status place(const Side& side, bool stage, bool fill, Staging& staging, View* view);
  void place_directly(const Side& side, Staging& staging, View* view) const;
  Status place_apart(const Side& side, Staging& staging, View* view) const;
  Status copy(const Side& side, const View& view, bool packing) const;
  // The engine's elements in one of a side's.
  size_t scale(const Side& side) const {
    return exchange_.call.reduction.kernel ? 1 : side.type->size;
  }

  Exchange& exchange_;
  Staging& input_;
  Staging& output_;
  MPI_Comm comm_;
  bool output_is_apart_ = false;
};

}  // namespace sluice
