# SPDX-License-Identifier: BSD-3-Clause
# The transport contract and what transports share; one folder per transport: core_sources.

core_sources += \
  transports/agreement.cc \
  transports/agreement.h \
  transports/pieces.cc \
  transports/pieces.h \
  transports/tag_table.h \
  transports/transport.h

core_sources += \
  transports/loopback/endpoint.cc \
  transports/loopback/hub.cc \
  transports/loopback/hub.h \
  transports/loopback/loopback.h
