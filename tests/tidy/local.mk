# SPDX-License-Identifier: BSD-3-Clause
# The style as a test.
