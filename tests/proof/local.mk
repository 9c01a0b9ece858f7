# SPDX-License-Identifier: BSD-3-Clause
# Symbolic runs of every algorithm's plans: proof_sources.

proof_sources += \
  tests/proof/algorithms_test.cc \
  tests/proof/broken_test.cc \
  tests/proof/cases.cc \
  tests/proof/cases.h \
  tests/proof/mutants_test.cc
