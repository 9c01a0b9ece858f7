# SPDX-License-Identifier: BSD-3-Clause
# Unit tests: unit_sources, single_threaded_tests.

unit_sources += tests/unit/main.cc
EXTRA_DIST += tests/unit/gtest-is-missing
unit_sources += \
  tests/unit/engine/played_trial.h \
  tests/unit/engine/programs_rank.h \
  tests/unit/engine/trials_rig.h \
  tests/unit/loopback/hub.h \
  tests/unit/loopback/loopback.h \
  tests/unit/support/allocations.h \
  tests/unit/support/arenas.h \
  tests/unit/support/blocks.h \
  tests/unit/support/child.h \
  tests/unit/support/fake_device.h \
  tests/unit/support/ranks.h \
  tests/unit/support/silent_channel.h \
  tests/unit/support/stopwatch.h \
  tests/unit/support/sweep.h \
  tests/unit/transports/breaks.h \
  tests/unit/transports/conformance.h \
  tests/unit/transports/fake_verbs.h \
  tests/unit/transports/rails_rig.h \
  tests/unit/transports/rig.h \
  tests/unit/transports/slow_filter.h \
  tests/unit/transports/tcp_played.h \
  tests/unit/transports/tcp_proved.h \
  tests/unit/transports/tcp_rig.h \
  tests/unit/transports/tls_rig.h \
  tests/unit/transports/upgrade_rig.h \
  tests/unit/transports/verbs_rig.h \
  tests/unit/transports/wiretap.h

# Each of these groups is compiled together, like the folders of the library: files of a group may
# not give two things one name.
# What tests share, and how ranks are told apart.
support_tests = \
  tests/unit/engine/grouped_test.cc \
  tests/unit/engine/localities_test.cc \
  tests/unit/host/locality_test.cc \
  tests/unit/loopback/endpoint.cc \
  tests/unit/loopback/hub.cc \
  tests/unit/support/allocations.cc \
  tests/unit/support/arenas.cc \
  tests/unit/support/ranks.cc
# Teams: set-up, hints, ends.
teams_tests = \
  tests/unit/engine/agreement_test.cc \
  tests/unit/transports/rails_memory_test.cc \
  tests/unit/transports/verbs_memory_test.cc \
  tests/unit/engine/team_setup_test.cc \
  tests/unit/engine/exchange_test.cc \
  tests/unit/engine/giving_up_test.cc \
  tests/unit/engine/hints_test.cc \
  tests/unit/engine/in_flight_test.cc \
  tests/unit/engine/team_cache_test.cc \
  tests/unit/engine/slots_test.cc \
  tests/unit/engine/trials_alltoallv_test.cc \
  tests/unit/engine/trials_devices_test.cc \
  tests/unit/engine/trials_test.cc \
  tests/unit/engine/turns_test.cc
# Collectives of teams, by plans and in shared memory.
calls_tests = \
  tests/unit/engine/alltoallv_test.cc \
  tests/unit/engine/collectives_test.cc \
  tests/unit/engine/shm_algorithms_test.cc \
  tests/unit/engine/ballot_test.cc \
  tests/unit/engine/vote_test.cc \
  tests/unit/nccl/stages_test.cc \
  tests/unit/engine/cma_test.cc \
  tests/unit/engine/reproducible_test.cc \
  tests/unit/ipc/device_slabs_test.cc \
  tests/unit/nccl/device_group_test.cc
# Shared memory and TCP, used by several threads, and what ends them.
shm_tests = \
  tests/unit/transports/arena_test.cc \
  tests/unit/transports/ring_test.cc \
  tests/unit/transports/upgrade_ends_test.cc \
  tests/unit/transports/upgrade_sleepers_test.cc
tcp_tests = \
  tests/unit/memory/layout_stack_test.cc \
  tests/unit/transports/conformance.cc \
  tests/unit/transports/conformance_threads_test.cc \
  tests/unit/transports/fake_verbs.cc \
  tests/unit/transports/tcp_threads_test.cc \
  tests/unit/transports/verbs_threads_test.cc

# Tests that start no thread: the program with the thread sanitizer does without them.
# Without a transport.
pure_tests = \
  tests/unit/base/copy_test.cc \
  tests/unit/base/deadline_test.cc \
  tests/unit/base/file_test.cc \
  tests/unit/base/knobs_test.cc \
  tests/unit/base/log_test.cc \
  tests/unit/base/module_test.cc \
  tests/unit/base/setting_sources_test.cc \
  tests/unit/base/system_call_test.cc \
  tests/unit/base/write_test.cc \
  tests/unit/collectives/algorithm_test.cc \
  tests/unit/collectives/hosts_test.cc \
  tests/unit/collectives/model_test.cc \
  tests/unit/collectives/patterns_test.cc \
  tests/unit/collectives/plan_test.cc \
  tests/unit/engine/packing_test.cc \
  tests/unit/engine/device_work_test.cc \
  tests/unit/engine/locale_test.cc \
  tests/unit/engine/outcomes_test.cc \
  tests/unit/engine/rules_test.cc \
  tests/unit/engine/class_record_test.cc \
  tests/unit/engine/job_statistics_test.cc \
  tests/unit/engine/statistics_test.cc \
  tests/unit/engine/call_lease_test.cc \
  tests/unit/engine/delay_test.cc \
  tests/unit/engine/samples_test.cc \
  tests/unit/engine/trial_programs_test.cc \
  tests/unit/engine/trial_test.cc \
  tests/unit/engine/waiter_test.cc \
  tests/unit/memory/layout_test.cc \
  tests/unit/memory/placement_test.cc \
  tests/unit/ipc/slab_phases_test.cc \
  tests/unit/ipc/slab_offer_test.cc \
  tests/unit/nccl/device_job_test.cc \
  tests/unit/reduce/kernel_test.cc \
  tests/unit/tool/tuning_test.cc
# Transports, and executions over them, between ranks that one thread drives.
links_tests = \
  tests/unit/engine/device_collectives_test.cc \
  tests/unit/transports/admission_test.cc \
  tests/unit/transports/conformance_test.cc \
  tests/unit/transports/descriptor_test.cc \
  tests/unit/transports/dialing_test.cc \
  tests/unit/transports/flow_test.cc \
  tests/unit/transports/diagnosis_test.cc \
  tests/unit/transports/diagnosis_walk_test.cc \
  tests/unit/transports/frames_test.cc \
  tests/unit/transports/meeting_test.cc \
  tests/unit/transports/rail_test.cc \
  tests/unit/transports/rails_decoy_test.cc \
  tests/unit/transports/rails_ends_test.cc \
  tests/unit/transports/rails_proved_test.cc \
  tests/unit/transports/rails_test.cc \
  tests/unit/transports/resumption_test.cc \
  tests/unit/transports/search_test.cc \
  tests/unit/transports/spread_choice_test.cc \
  tests/unit/transports/spread_test.cc \
  tests/unit/transports/spread_probe_test.cc \
  tests/unit/transports/succession_test.cc \
  tests/unit/transports/tcp_address_test.cc \
  tests/unit/transports/tcp_breaks_test.cc \
  tests/unit/transports/tcp_buffers_test.cc \
  tests/unit/transports/tcp_cuts_test.cc \
  tests/unit/transports/tcp_dialing_test.cc \
  tests/unit/transports/tcp_ends_test.cc \
  tests/unit/transports/tcp_faults_test.cc \
  tests/unit/transports/tcp_late_test.cc \
  tests/unit/transports/tcp_meeting_test.cc \
  tests/unit/transports/tcp_receiving_test.cc \
  tests/unit/transports/tcp_resuming_test.cc \
  tests/unit/transports/tcp_proofs_test.cc \
  tests/unit/transports/tcp_deferral_test.cc \
  tests/unit/transports/tcp_strangers_test.cc \
  tests/unit/transports/tcp_test.cc \
  tests/unit/transports/upgrade_negotiation_test.cc \
  tests/unit/transports/upgrade_probe_test.cc \
  tests/unit/transports/verbs_ends_test.cc \
  tests/unit/transports/vigil_test.cc \
  tests/unit/transports/watch_test.cc \
  tests/unit/transports/window_test.cc
# Shared memory between ranks that one thread drives.
segments_tests = \
  tests/unit/transports/segment_test.cc \
  tests/unit/transports/shm_test.cc \
  tests/unit/transports/get_test.cc \
  tests/unit/transports/single_copy_test.cc \
  tests/unit/transports/upgrade_test.cc
# Modules of transports.
modules_tests = \
  tests/unit/transports/tls_certificates_test.cc \
  tests/unit/transports/local_socket_test.cc \
  tests/unit/transports/tls_keys_test.cc \
  tests/unit/transports/tls_links_test.cc \
  tests/unit/transports/tls_test.cc \
  tests/unit/transports/verbs_breaks_test.cc \
  tests/unit/transports/verbs_devices_test.cc \
  tests/unit/transports/verbs_reasons_test.cc \
  tests/unit/transports/verbs_get_test.cc \
  tests/unit/transports/verbs_get_walk_test.cc \
  tests/unit/transports/verbs_test.cc

unit_sources += $(support_tests) $(teams_tests) $(calls_tests) $(shm_tests) $(tcp_tests)
single_threaded_tests += $(pure_tests) $(links_tests) $(segments_tests) $(modules_tests)

# How fast the TCP transport alone is; not a test: make tests/unit/transports/tcp_bench
EXTRA_PROGRAMS += tests/unit/transports/tcp_bench
tests_unit_transports_tcp_bench_SOURCES = tests/unit/transports/tcp_bench.cc
tests_unit_transports_tcp_bench_LDADD = libcore.la
