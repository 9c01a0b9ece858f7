// SPDX-License-Identifier: BSD-3-Clause
//
// Allreduce: combines the operands of all ranks and gives every rank the result, with the same bits
// on all. Partial results are kept in output, so it is written while the algorithm runs.
#pragma once

#include "collectives/algorithm.h"

namespace sluice {

extern const Algorithm allreduce_ring;
extern const Algorithm allreduce_ring_whole;
extern const Algorithm allreduce_bcube;
extern const Algorithm allreduce_recursive_doubling;
extern const Algorithm allreduce_rabenseifner;
extern const Algorithm allreduce_tree;
extern const Algorithm allreduce_double_tree;
extern const Algorithm allreduce_binomial;
extern const Algorithm allreduce_direct;
extern const Algorithm allreduce_hosts_doubling;
extern const Algorithm allreduce_hosts_bcube;
extern const Algorithm allreduce_hosts_ring;
extern const Algorithm allreduce_hosts_direct;

}  // namespace sluice
