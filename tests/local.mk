# SPDX-License-Identifier: BSD-3-Clause
# What several levels of tests share: EXTRA_DIST.
