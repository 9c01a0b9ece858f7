// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/errors.h"

#include <mutex>
#include <new>
#include <string>

namespace sluice {
namespace {

constexpr size_t kinds = static_cast<size_t>(Code::internal) + 1;

// The MPI error code for one of Sluice's, in an error class of Sluice's own, made when first
// needed. (In MPICH, codes added to MPI's own classes get the strings of other codes.)
// MPI_ERR_OTHER if MPI makes none.
int code_of(Code code) {
  static constinit std::mutex mutex;
  static constinit int error_class = 0;
  static constinit int codes[kinds] = {};
  const std::lock_guard lock(mutex);
  if (error_class == 0) {
    char name[] = "Sluice could not carry a collective";
    if (real().Add_error_class(&error_class)) return MPI_ERR_OTHER;
    real().Add_error_string(error_class, name);
  }
  int& mpi_code = codes[static_cast<size_t>(code)];
  if (mpi_code == 0 && real().Add_error_code(error_class, &mpi_code)) mpi_code = MPI_ERR_OTHER;
  return mpi_code;
}

// Sets the string of a code. Without memory the code keeps the string it has, if any.
void word(int code, const Status& status) try {
  const std::string text = ("Sluice: " + status.message()).substr(0, MPI_MAX_ERROR_STRING - 1);
  real().Add_error_string(code, const_cast<char*>(text.c_str()));
} catch (const std::bad_alloc&) {
}

}  // namespace

int raise_error(MPI_Comm comm, const Status& status) {
  const int code = code_of(status.code());
  if (code != MPI_ERR_OTHER) word(code, status);
  real().Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace sluice
