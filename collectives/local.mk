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

# One folder per collective.
