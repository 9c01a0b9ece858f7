# SPDX-License-Identifier: BSD-3-Clause
# What reads foreign bytes, on a corpus in the unit tests; make fuzz looks for more.
fuzz_targets = \
  tests/fuzz/links.cc \
  tests/fuzz/targets.cc \
  tests/fuzz/text.cc \
  tests/fuzz/tls.cc \
  tests/fuzz/wire.cc
fuzz_tests = $(fuzz_targets) tests/fuzz/corpus_test.cc
unit_sources += tests/fuzz/targets.h
single_threaded_tests += $(fuzz_tests)
EXTRA_DIST += tests/fuzz/fuzz \
  tests/fuzz/corpus/address \
  tests/fuzz/corpus/frames \
  tests/fuzz/corpus/greeting \
  tests/fuzz/corpus/offers \
  tests/fuzz/corpus/rules \
  tests/fuzz/corpus/settings \
  tests/fuzz/corpus/spread \
  tests/fuzz/corpus/strangers \
  tests/fuzz/corpus/tls \
  tests/fuzz/corpus/tuning_log \
  tests/fuzz/corpus/values

# With libFuzzer, by clang alone: tests/fuzz/fuzz configures for it.
EXTRA_PROGRAMS += tests/fuzz/libfuzzer
tests_fuzz_libfuzzer_SOURCES = $(fuzz_targets) tests/fuzz/libfuzzer.cc tests/unit/transports/fake_verbs.cc
tests_fuzz_libfuzzer_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_libfuzzer_LDADD = liboffline.la libcore.la $(GTEST_LIBS)

# Ten minutes for each target; FUZZ: other arguments.
FUZZ = --seconds 600
fuzz:
	$(top_srcdir)/tests/fuzz/fuzz --build '$(abs_top_builddir)/fuzz' $(FUZZ)
.PHONY: fuzz
