# SPDX-License-Identifier: BSD-3-Clause
# Plans, algorithms and the registry: core_sources.

core_sources += \
  collectives/algorithm.cc \
  collectives/algorithm.h \
  collectives/plan.cc \
  collectives/plan.h \
  collectives/registry.cc

# The symbolic run of all ranks' plans: the command, the proof and unit tests use it, the library does not.
offline_sources += \
  collectives/model/cost.cc \
  collectives/model/expression.cc \
  collectives/model/expression.h \
  collectives/model/memory.cc \
  collectives/model/model.cc \
  collectives/model/model.h \
  collectives/model/parts.h \
  collectives/model/run.cc \
  collectives/model/schedule.cc

# Arithmetic that algorithms share.
core_sources += \
  collectives/patterns/chunk.h \
  collectives/patterns/fold.h \
  collectives/patterns/hosts.cc \
  collectives/patterns/hosts.h \
  collectives/patterns/log2.h \
  collectives/patterns/radix.cc \
  collectives/patterns/radix.h \
  collectives/patterns/ring.h \
  collectives/patterns/tree.cc \
  collectives/patterns/tree.h

# One folder per collective.
core_sources += \
  collectives/allreduce/allreduce.h \
  collectives/allreduce/bcube.cc \
  collectives/allreduce/binomial.cc \
  collectives/allreduce/cube.cc \
  collectives/allreduce/cube.h \
  collectives/allreduce/direct.cc \
  collectives/allreduce/double_tree.cc \
  collectives/allreduce/hosts_doubling.cc \
  collectives/allreduce/hosts_shares.cc \
  collectives/allreduce/rabenseifner.cc \
  collectives/allreduce/recursive_doubling.cc \
  collectives/allreduce/recursive_doubling.h \
  collectives/allreduce/ring.cc \
  collectives/allreduce/ring_whole.cc \
  collectives/allreduce/tree.cc \
  collectives/allreduce/up_and_down.cc \
  collectives/allreduce/up_and_down.h
core_sources += \
  collectives/reduce/binomial.cc \
  collectives/reduce/chain.cc \
  collectives/reduce/direct.cc \
  collectives/reduce/hosts_binomial.cc \
  collectives/reduce/hosts_chain.cc \
  collectives/reduce/hosts_shares.cc \
  collectives/reduce/hosts_shares.h \
  collectives/reduce/phases.cc \
  collectives/reduce/phases.h \
  collectives/reduce/reduce.h \
  collectives/reduce/ring.cc
core_sources += \
  collectives/allgather/allgather.h \
  collectives/allgather/blocks.h \
  collectives/allgather/bruck.cc \
  collectives/allgather/hosts_bruck.cc \
  collectives/allgather/hosts_shares.cc \
  collectives/allgather/recursive_doubling.cc \
  collectives/allgather/ring.cc
core_sources += \
  collectives/alltoall/alltoall.h \
  collectives/alltoall/bruck.cc \
  collectives/alltoall/hosts.cc \
  collectives/alltoall/linear.cc \
  collectives/alltoall/pairwise.cc
core_sources += \
  collectives/barrier/all_to_all.cc \
  collectives/barrier/all_to_one.cc \
  collectives/barrier/barrier.h \
  collectives/barrier/dissemination.cc \
  collectives/barrier/hosts_dissemination.cc
core_sources += \
  collectives/broadcast/binomial.cc \
  collectives/broadcast/broadcast.h \
  collectives/broadcast/chain.cc \
  collectives/broadcast/hosts_binomial.cc \
  collectives/broadcast/hosts_chain.cc \
  collectives/broadcast/one_to_all.cc \
  collectives/broadcast/scatter_allgather.cc
core_sources += \
  collectives/reduce_scatter/direct.cc \
  collectives/reduce_scatter/hosts_shares.cc \
  collectives/reduce_scatter/partials.h \
  collectives/reduce_scatter/recursive_halving.cc \
  collectives/reduce_scatter/reduce_scatter.h \
  collectives/reduce_scatter/ring.cc
core_sources += \
  collectives/gather/binomial.cc \
  collectives/gather/gather.h \
  collectives/gather/hosts_linear.cc \
  collectives/gather/linear.cc \
  collectives/gather/trees.cc \
  collectives/gather/trees.h
core_sources += \
  collectives/scan/chain.cc \
  collectives/scan/doubling.cc \
  collectives/scan/hosts_doubling.cc \
  collectives/scan/recursion.h \
  collectives/scan/scan.h
core_sources += \
  collectives/shm/shm.cc \
  collectives/shm/shm.h \
  collectives/shm/cma.cc \
  collectives/shm/grouped.h \
  collectives/shm/grouped_moving.cc \
  collectives/shm/grouped_reducing.cc \
  collectives/shm/groups.h \
  collectives/shm/mixed.cc \
  collectives/shm/moving.cc \
  collectives/shm/block_table.h \
  collectives/shm/cuts.h \
  collectives/shm/slot_exchange.h \
  collectives/shm/published_buffers.h \
  collectives/shm/reducing.cc \
  collectives/shm/root_table.h \
  collectives/shm/rooted_moving.cc \
  collectives/shm/scanning.cc \
  collectives/shm/past_cache.cc \
  collectives/shm/past_cache.h
# (In one unit with the other algorithms they would take longer.)
single_sources += collectives/shm/rooted_moving.cc
