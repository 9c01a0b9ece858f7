# SPDX-License-Identifier: BSD-3-Clause
# Plans, algorithms and the registry: core_sources.

core_sources += \
  collectives/algorithm.cc \
  collectives/algorithm.h \
  collectives/expression.cc \
  collectives/expression.h \
  collectives/model.cc \
  collectives/model.h \
  collectives/model_cost.cc \
  collectives/model_memory.cc \
  collectives/model_parts.h \
  collectives/model_run.cc \
  collectives/model_schedule.cc \
  collectives/plan.cc \
  collectives/plan.h \
  collectives/registry.cc

# Arithmetic that algorithms share.
core_sources += \
  collectives/patterns/chunk.h \
  collectives/patterns/fold.h \
  collectives/patterns/log2.h \
  collectives/patterns/radix.cc \
  collectives/patterns/radix.h \
  collectives/patterns/ring.h \
  collectives/patterns/tree.cc \
  collectives/patterns/tree.h

# One folder per collective.
core_sources += \
  collectives/allreduce/allreduce.cc \
  collectives/allreduce/allreduce.h \
  collectives/allreduce/bcube.cc \
  collectives/allreduce/bcube.h \
  collectives/allreduce/cube.cc \
  collectives/allreduce/cube.h \
  collectives/allreduce/double_tree.cc \
  collectives/allreduce/double_tree.h \
  collectives/allreduce/rabenseifner.cc \
  collectives/allreduce/rabenseifner.h \
  collectives/allreduce/recursive_doubling.cc \
  collectives/allreduce/recursive_doubling.h \
  collectives/allreduce/ring.cc \
  collectives/allreduce/ring.h \
  collectives/allreduce/ring_whole.cc \
  collectives/allreduce/ring_whole.h \
  collectives/allreduce/tree.cc \
  collectives/allreduce/tree.h \
  collectives/allreduce/up_and_down.cc \
  collectives/allreduce/up_and_down.h
core_sources += \
  collectives/reduce/binomial.cc \
  collectives/reduce/binomial.h \
  collectives/reduce/chain.cc \
  collectives/reduce/chain.h \
  collectives/reduce/phases.cc \
  collectives/reduce/phases.h \
  collectives/reduce/reduce.cc \
  collectives/reduce/reduce.h \
  collectives/reduce/ring.cc \
  collectives/reduce/ring.h
