# SPDX-License-Identifier: BSD-3-Clause
# What is installed: TESTS, and installcheck.
