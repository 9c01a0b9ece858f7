# SPDX-License-Identifier: BSD-3-Clause
# The transport contract and what transports share; one folder per transport: core_sources;
# and the module that asks OpenSSL.

core_sources += \
  transports/call_check.cc \
  transports/call_check.h \
  transports/conduit.h \
  transports/descriptor.cc \
  transports/descriptor.h \
  transports/interface_list.cc \
  transports/interface_list.h \
  transports/little_endian.h \
  transports/peer_memory.cc \
  transports/peer_memory.h \
  transports/pieces.cc \
  transports/pieces.h \
  transports/registrations.h \
  transports/tag_table.h \
  transports/transport.h

core_sources += \
  transports/link/conduit_stack.cc \
  transports/link/conduit_stack.h \
  transports/link/connection.cc \
  transports/link/connection.h \
  transports/link/diagnosis.cc \
  transports/link/diagnosis.h \
  transports/link/driver.cc \
  transports/link/driver.h \
  transports/link/endpoint.cc \
  transports/link/flow.cc \
  transports/link/flow.h \
  transports/link/frame.cc \
  transports/link/frame.h \
  transports/link/frame_reader.cc \
  transports/link/frame_reader.h \
  transports/link/inbox.cc \
  transports/link/inbox.h \
  transports/link/link.cc \
  transports/link/link.h \
  transports/link/link_resuming.cc \
  transports/link/link_shared.h \
  transports/link/link_state.h \
  transports/link/loans.cc \
  transports/link/loans.h \
  transports/link/outbox.cc \
  transports/link/outbox.h \
  transports/link/resumption.cc \
  transports/link/search.cc \
  transports/link/resumption.h \
  transports/link/search.h \
  transports/link/rail.cc \
  transports/link/rail.h \
  transports/link/rails.cc \
  transports/link/rails.h \
  transports/link/spread.cc \
  transports/link/shortage.h \
  transports/link/spread.h \
  transports/link/spread_choice.cc \
  transports/link/spread_choice.h \
  transports/link/spread_probe.cc \
  transports/link/spread_probe.h \
  transports/link/stream.cc \
  transports/link/stream.h \
  transports/link/stream_table.cc \
  transports/link/stream_table.h \
  transports/link/upgrade_negotiation.cc \
  transports/link/upgrade_negotiation.h \
  transports/link/vigil.cc \
  transports/link/watch.cc \
  transports/link/vigil.h \
  transports/link/watch.h \
  transports/link/window.cc \
  transports/link/window.h

core_sources += \
  transports/tcp/acceptor.cc \
  transports/tcp/acceptor.h \
  transports/tcp/admission.cc \
  transports/tcp/admission.h \
  transports/tcp/address.cc \
  transports/tcp/address.h \
  transports/tcp/blob.cc \
  transports/tcp/connector.cc \
  transports/tcp/connector.h \
  transports/tcp/context.h \
  transports/tcp/dialer.cc \
  transports/tcp/dialer.h \
  transports/tcp/dialing.cc \
  transports/tcp/dialing.h \
  transports/tcp/greeting.cc \
  transports/tcp/greeting.h \
  transports/tcp/handshake.cc \
  transports/tcp/handshake.h \
  transports/tcp/interface_rank.cc \
  transports/tcp/invitations.cc \
  transports/tcp/invitations.h \
  transports/tcp/local_socket.cc \
  transports/tcp/local_socket.h \
  transports/tcp/meeting.cc \
  transports/tcp/meeting.h \
  transports/tcp/peer_keys.h \
  transports/tcp/proofs.cc \
  transports/tcp/proofs.h \
  transports/tcp/socket.cc \
  transports/tcp/socket.h \
  transports/tcp/tcp.h

core_sources += \
  transports/shm/arena.cc \
  transports/shm/arena.h \
  transports/shm/ring.cc \
  transports/shm/ring.h \
  transports/shm/segment.cc \
  transports/shm/segment.h \
  transports/shm/shm.h \
  transports/shm/upgrade.cc \
  transports/shm/upgrade.h \
  transports/shm/single_copy.cc \
  transports/shm/single_copy.h \
  transports/shm/source.cc

core_sources += \
  transports/tls/files.cc \
  transports/tls/files.h \
  transports/tls/module.h \
  transports/tls/tls.cc \
  transports/tls/tls.h

if HAVE_OPENSSL
pkglib_LTLIBRARIES += libsluice-tls.la
endif
libsluice_tls_la_SOURCES = transports/tls/identity.c transports/tls/internal.h transports/tls/keys.c \
  transports/tls/openssl.c $(module_allocator) $(module_plugins)
libsluice_tls_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden $(OPENSSL_CFLAGS)
libsluice_tls_la_LIBADD = $(OPENSSL_LIBS)
libsluice_tls_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,relro -Wl,-z,now

core_sources += \
  transports/verbs/device.cc \
  transports/verbs/device.h \
  transports/verbs/directions.cc \
  transports/verbs/directions.h \
  transports/verbs/lanes.cc \
  transports/verbs/lanes.h \
  transports/verbs/module.h \
  transports/verbs/pair.cc \
  transports/verbs/pair.h \
  transports/verbs/program_memory.cc \
  transports/verbs/program_memory.h \
  transports/verbs/reads.cc \
  transports/verbs/reads.h \
  transports/verbs/survey.cc \
  transports/verbs/upgrade.cc \
  transports/verbs/upgrade.h

if HAVE_VERBS
pkglib_LTLIBRARIES += libsluice-verbs.la
endif
libsluice_verbs_la_SOURCES = transports/verbs/verbs.c $(module_allocator) $(module_plugins)
libsluice_verbs_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden $(VERBS_CFLAGS)
libsluice_verbs_la_LIBADD = $(VERBS_LIBS)
libsluice_verbs_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,relro -Wl,-z,now
