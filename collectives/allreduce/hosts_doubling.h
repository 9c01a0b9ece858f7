// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce on two levels for short vectors: reduces up a binomial tree to one leader a host, runs
// recursive doubling among the leaders, and broadcasts down the tree (the two-level scheme of
// MVAPICH2 and others: Karonis et al., IPDPS 2000; Mamidala, Vishnu and Panda, Efficient shared
// memory and RDMA based design for MPI_Allgather over InfiniBand, EuroPVM/MPI 2006).
//
// Cost, for h hosts of n ranks each: ceil(log2 n) + log2 h + floor(log2 n) steps, and two more if h
// is not a power of two. A leader sends (ceil(log2 n) + log2 h) x S, and a host log2 h x S to
// others; both send one S more if h is not a power of two. Hosts with fewer ranks than n need less.
// Order: kept if each host's ranks are consecutive.
// Scratch: S.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan allreduce_hosts_doubling(const Shape& shape);
Cost allreduce_hosts_doubling_cost(const Shape& shape);

}  // namespace sluice
