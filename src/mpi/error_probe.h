// SPDX-License-Identifier: BSD-3-Clause
//
// Error probes: ask MPI whether it has an error for a call, without the program's error handlers
// being called. Calls with invalid arguments are left to MPI anyway. The calls probed here make
// sense to Sluice, but MPI libraries differ on them.
#pragma once

#include <optional>

#include "src/mpi/exchange.h"
#include "src/mpi/real.h"

namespace sluice {

// While it exists, MPI returns errors about handles and about calls on MPI_COMM_SELF, and calls
// none of the program's error handlers. Takes some 40 ns. It affects all threads. So if several may
// be in MPI, it is used only for what erroneous programs do.
class QuietErrors {
 public:
  QuietErrors();
  ~QuietErrors();
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;
};

// Called when MPI_Init is done. Makes a communicator of this process alone for the probes. Without
// it, probes use MPI_COMM_SELF and replace the error handlers of MPI_COMM_WORLD and MPI_COMM_SELF.
// That takes longer, and must not be done if several threads may be in MPI. (Making it later could
// block: while the program makes a communicator, Open MPI makes no other.)
void begin_probes();
// Called before MPI_Finalize.
void end_probes();
// That communicator; nothing if there is none. Probes make no messages on it.
std::optional<MPI_Comm> probing_communicator();

// Whether a handle is valid as a communicator (MPI_COMM_NULL is not), a type or an operation, and
// whether the program has committed a type. Some 50 ns.
bool is_communicator(MPI_Comm handle);
bool is_datatype(MPI_Datatype type, bool* committed);
bool is_committed(MPI_Datatype type);
bool is_operation(MPI_Op op);

// The arguments of a probe, by role: a call on a communicator of this process that resembles
// another call in everything that MPI may object to.
struct Probe {
  const void* sendbuf;
  void *recvbuf, *buffer;
  int count, sendcount, recvcount;
  const int *sendcounts, *recvcounts, *sdispls, *rdispls;
  MPI_Datatype datatype, sendtype, recvtype;
  MPI_Op op;
  int root;
  MPI_Comm comm;
};

// Whether MPI may report an error for the call: input and output are the same memory, a buffer is
// invalid, or a type is not known to be committed.
inline bool is_doubtful(const Exchange& exchange) {
  const auto committed = [](const Side& side) {
    return !side.type || datatype_of(side)->committed;
  };
  return exchange.aliased || exchange.fault != Exchange::Fault::none ||
         !committed(exchange.input) || !committed(exchange.output);
}

// Whether this MPI has an error for the call. Makes a probe: `attempt` calls MPI's own function
// with the probe's arguments.
bool is_error_of_mpi(const Exchange& exchange, int (*attempt)(const Probe& probe));

}  // namespace sluice
