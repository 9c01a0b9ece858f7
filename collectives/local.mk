# SPDX-License-Identifier: BSD-3-Clause
# Plans, algorithms and the registry: core_sources.

core_sources += \
  collectives/algorithm.cc \
  collectives/algorithm.h \
  collectives/model.cc \
  collectives/model.h \
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
