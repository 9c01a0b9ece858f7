// SPDX-License-Identifier: BSD-3-Clause
//
// What MPI refuses, and how to ask it without the program noticing. Arguments that make no sense
// are MPI's to judge; those here make sense to Sluice, and MPI libraries differ in what they say.
#pragma once

#include "src/mpi/exchange.h"
#include "src/mpi/real.h"

namespace sluice {

// While it lives, what MPI has to say about handles and about calls on MPI_COMM_SELF is returned,
// and no error handler called. Takes some 40 ns. Of all threads, while any has one: where several
// may be in MPI, it is for what only programs in error come to.
class QuietErrors {
 public:
  QuietErrors();
  ~QuietErrors();
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;
};

// MPI runs from now on. What is asked gets a communicator of Sluice's own, of this process alone:
// the error handlers of MPI_COMM_WORLD and MPI_COMM_SELF, which is asked otherwise, can't be put
// aside where several threads may be in MPI, and take longer. (Later would be too late: while the
// program makes a communicator, Open MPI lets nobody else make another.)
void begin_probes();
// Before MPI ends.
void end_probes();

// Whether a handle is that of a communicator, of a type, or of an operation, and whether the
// program has committed a type. Some 50 ns.
bool is_communicator(MPI_Comm handle);
bool is_datatype(MPI_Datatype type, bool* committed);
bool is_committed(MPI_Datatype type);
bool is_operation(MPI_Op op);

// Arguments of a call on a communicator of this process that is like another in what MPI may object
// to, by role.
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

// Input and output in the same memory, or a type that is not committed, as far as is known: MPI may
// have an error for that.
inline bool is_doubtful(const Exchange& exchange) {
  const auto committed = [](const Datatype* type) { return !type || type->committed; };
  return exchange.aliased || !committed(exchange.input.type) || !committed(exchange.output.type);
}

// Whether this MPI has an error for such a call. It is tried out; `attempt` makes a probe's call by
// MPI's own function.
bool is_refused(const Exchange& exchange, int (*attempt)(const Probe& probe));

}  // namespace sluice
