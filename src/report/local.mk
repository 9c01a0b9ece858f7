# SPDX-License-Identifier: BSD-3-Clause
# `sluice report`, in Python: installed in a folder of its own, and copied into the build tree, where the command finds it.
reportdir = $(pkglibexecdir)/report
dist_report_SCRIPTS = src/report/report
dist_report_DATA = src/report/drawing.py src/report/page.py src/report/reading.py src/report/verdict.py
built_report = report/report report/drawing.py report/page.py report/reading.py report/verdict.py
noinst_DATA = $(built_report)
CLEANFILES += $(built_report)
$(built_report): report/%: src/report/%
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $< $@
