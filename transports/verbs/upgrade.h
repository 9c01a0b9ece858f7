// SPDX-License-Identifier: BSD-3-Clause
//
// A link's upgrade to RDMA: a queue pair (transports/verbs/pair.h) between two processes whose
// devices reach each other. The module that knows libibverbs is opened, and a device chosen, when a
// link first needs one. If there is none, or no memory can be registered, the link stays on its
// socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "transports/conduit.h"
#include "transports/verbs/module.h"

namespace sluice {

struct VerbsOptions {
  size_t ring = size_t{64} << 10;      // registered bytes a link and direction, on each side
  std::string devices;                 // as for survey_verbs
  bool local = false;                  // also between processes of one host
  const SluiceVerbs* table = nullptr;  // instead of the module's
  std::string system = "/sys";         // as for survey_verbs
  // Bytes that one step of a call sends a peer, in segments, from which on they are read from the
  // sender's memory.
  static constexpr size_t never = size_t{1} << 40;
  size_t get_least = never;
  size_t pairs = 1;                 // by which a link reads, at most VerbsEnd::most_lanes
  size_t pinned = size_t{1} << 30;  // bytes of the program's memory registered at a time
  bool demanded = false;            // to lack a device that `devices` names is an error
};

std::shared_ptr<UpgradeMaker> make_verbs_upgrades(const VerbsOptions& options);

}  // namespace sluice
