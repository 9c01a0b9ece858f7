# SPDX-License-Identifier: BSD-3-Clause
# The face: face_sources.
