# SPDX-License-Identifier: BSD-3-Clause
# The engine: teams, selection, the execution of plans, waiting, statistics.
core_sources += \
	src/engine/agreement.cc src/engine/agreement.h \
	src/engine/ballot.cc src/engine/ballot.h \
	src/engine/call.cc src/engine/call.h \
	src/engine/call_counts.cc src/engine/call_counts.h \
	src/engine/call_in_flight.h \
	src/engine/calls_in_flight.cc src/engine/calls_in_flight.h \
	src/engine/cells_executor.cc src/engine/cells_executor.h \
	src/engine/alltoallv.cc src/engine/alltoallv.h \
	src/engine/class_counts.cc src/engine/class_counts.h \
	src/engine/class_record.cc src/engine/class_record.h \
	src/engine/copy_wait.cc src/engine/copy_wait.h \
	src/engine/wait_limits.cc src/engine/wait_limits.h \
	src/engine/decider.cc src/engine/decider.h \
	src/engine/delay.cc src/engine/delay.h \
	src/engine/device_copies.h \
	src/engine/device_work.h \
	src/engine/engine_team.h \
	src/engine/execution.cc src/engine/execution.h src/engine/execution_start.cc src/engine/plan_memory.cc src/engine/plan_memory.h \
	src/engine/executor.h \
	src/engine/flat_in_flight.cc src/engine/flat_in_flight.h \
	src/engine/get_in_flight.cc src/engine/get_in_flight.h \
	src/engine/team_failures.cc src/engine/team_failures.h \
	src/engine/team_waits.cc \
	src/engine/team_setup.cc \
	src/engine/hints.cc src/engine/hints.h \
	src/engine/new_team.h \
	src/engine/nonblocking_team.cc src/engine/nonblocking_team.h \
	src/engine/job_statistics.cc src/engine/job_statistics.h \
	src/engine/late_ranks.cc src/engine/late_ranks.h \
	src/engine/localities.cc src/engine/localities.h \
	src/engine/outcomes.cc src/engine/outcomes.h \
	src/engine/plan_executor.cc src/engine/plan_executor.h \
	src/engine/routes.h \
	src/engine/rules.cc src/engine/rules.h \
	src/engine/samples.cc src/engine/samples.h \
	src/engine/schedule.cc src/engine/schedule.h \
	src/engine/selection.cc src/engine/selection.h \
	src/engine/shared_arena.cc src/engine/shared_arena.h \
	src/engine/shm_executor.cc src/engine/shm_executor.h \
	src/engine/team_halves.cc src/engine/team_halves.h \
	src/engine/team_cache.cc src/engine/team_cache.h \
	src/engine/slots.cc src/engine/slots.h \
	src/engine/statistics.cc src/engine/statistics.h \
	src/engine/statistics_file.cc src/engine/statistics_file.h \
	src/engine/step_queue.h \
	src/engine/team_channels.h \
	src/engine/team.cc src/engine/team.h \
	src/engine/trial.cc src/engine/trial.h \
	src/engine/vote.cc src/engine/vote.h \
	src/engine/trials.cc src/engine/trials.h \
	src/engine/waiter.cc src/engine/waiter.h

# What each call goes through. (In parts so small, a call takes as few instructions as if each were compiled by itself.)
single_sources += src/engine/shm_executor.cc src/engine/team.cc
engine_parts = calls waits trials
sources_of_calls = \
  src/engine/call.cc src/engine/call_counts.cc src/engine/calls_in_flight.cc src/engine/class_counts.cc \
  src/engine/selection.cc
sources_of_waits = src/engine/shared_arena.cc src/engine/team_waits.cc src/engine/waiter.cc
sources_of_trials = src/engine/statistics.cc src/engine/trials.cc

# The rules that ship: data, installed to be read and copied, and built in.
dist_pkgdata_DATA += src/engine/builtin.rules
generated_sources += src/engine/builtin_rules.cc
src/engine/builtin_rules.cc: src/engine/builtin.rules src/engine/local.mk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && { \
	  echo '#include <string_view>' && \
	  echo 'namespace sluice { std::string_view builtin_rules(); }' && \
	  echo 'std::string_view sluice::builtin_rules() {' && \
	  printf '  return R"rules(' && sed /SPDX/d $(top_srcdir)/src/engine/builtin.rules && echo ')rules";' && \
	  echo '}'; } >$@-new && mv $@-new $@
