// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast by van de Geijn's method: the vector is cut into p chunks, which are scattered down a
// binomial tree and then gathered by all ranks on a ring. The ring does not send a rank the chunks
// that the scatter sent it for its subtree (as in Zhou et al., A bandwidth-saving optimization for
// MPI broadcast collective operation, ICPPW 2015). So the root only sends, and nothing is written
// twice.
//
// Cost (Barnett, Shuler, van de Geijn, Gupta, Payne and Watts, Interprocessor collective
// communication library, SHPCC 1994; Thakur, Rabenseifner and Gropp, Optimization of collective
// communication operations in MPICH, IJHPCA 19, 2005): ceil(log2 p) + p-1 steps of one message at a
// time, scatter before ring. Here a rank starts the ring with the chunks that it has: p-1 steps,
// which the root's own chunk takes to the last rank. The root sends 2(p-1)/p x S, and no other rank
// more.
// Scratch: none.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

Plan broadcast_scatter_allgather(const Shape& shape);
Cost broadcast_scatter_allgather_cost(const Shape& shape);

}  // namespace sluice
