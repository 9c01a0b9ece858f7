# SPDX-License-Identifier: BSD-3-Clause
# Symbolic runs of every algorithm's plans: proof_sources.
