# SPDX-License-Identifier: BSD-3-Clause
# Status, knobs, log, deadlines, copies, system calls, files, text, opening modules: core_sources.
core_sources += \
	src/base/copy.cc \
	src/base/copy.h \
	src/base/deadline.h \
	src/base/file.cc \
	src/base/file.h \
	src/base/interposition.cc src/base/interposition.h \
	src/base/knobs.cc \
	src/base/knobs.h \
	src/base/log.cc \
	src/base/log.h \
	src/base/module.cc src/base/module.h \
	src/base/plain_text.cc src/base/plain_text.h \
	src/base/report_value.h \
	src/base/random.cc src/base/random.h \
	src/base/setting_sources.cc src/base/setting_sources.h \
	src/base/spelling.cc \
	src/base/spelling.h \
	src/base/status.cc \
	src/base/status.h \
	src/base/system_call.cc src/base/system_call.h \
	src/base/write.cc src/base/write.h

# In each module that is linked with a library.
module_allocator = src/base/module_allocator.c
# In those whose library has plug-ins that are linked with it.
module_plugins = src/base/module_plugins.c
