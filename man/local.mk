# SPDX-License-Identifier: BSD-3-Clause
# Manual pages: dist_man_MANS.
dist_man_MANS += man/sluice.1 man/sluice-settings.5 man/sluice-statistics.5 man/sluice.7 man/sluice-cuda.7 man/sluice-rdma.7 man/sluice-tls.7
