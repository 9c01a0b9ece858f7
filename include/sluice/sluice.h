// SPDX-License-Identifier: BSD-3-Clause
//
// The public interface of libsluice, for C and C++. A program needs none of it: Sluice is preloaded
// or linked and the program's MPI calls arrive there by themselves. It serves to ask whether Sluice
// is there, and which.
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0
#define SLUICE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

// The version of the library that is loaded, as SLUICE_VERSION writes it: a constant string. May be
// called at any time, before MPI_Init too. A program that must also run without Sluice looks it up:
// dlsym(RTLD_DEFAULT, "sluice_version") is null where Sluice is not active.
__attribute__((visibility("default"))) const char* sluice_version(void);

#ifdef __cplusplus
}
#endif

#endif
