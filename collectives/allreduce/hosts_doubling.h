// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on two levels for short vectors: up a binomial tree to one leader a host, recursive
// doubling among the leaders, and down again (the two-level scheme of MVAPICH2 and others: Karonis
// et al., IPDPS 2000; Mamidala, Vishnu and Panda, Efficient shared memory and RDMA based design for
// MPI_Allgather over InfiniBand, EuroPVM/MPI 2006).
//
// Cost, for h hosts of n ranks each: ceil(log2 n) + log2 h + floor(log2 n) steps, and two more
// where h is no power of two. A leader sends (ceil(log2 n) + log2 h) x S, and a host log2 h x S to
// the others, or one S more of both. Hosts with fewer ranks than n need less.
// Order: kept where each host's ranks are consecutive.
// Scratch: S.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_hosts_doubling(const Shape& shape);
Cost allreduce_hosts_doubling_cost(const Shape& shape);

}  // namespace sluice
