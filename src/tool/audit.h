// SPDX-License-Identifier: BSD-3-Clause
//
// Whether `sluice run` has the dynamic linker load the audit module (src/audit/audit.c), which
// serves programs that take MPI's functions from the MPI library's own handle. Ranks may decide
// differently: the module changes how a rank reaches Sluice, not what Sluice does.
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/tool/preload.h"
#include "src/tool/program.h"

namespace sluice {

enum class AuditWish { if_useful, yes, no };

struct AuditChoice {
  std::string module;    // the path; empty: none is loaded
  std::string language;  // if it was not asked for: whose interpreter the program is
  std::string problem;   // why none is loaded, though the language is known and the module there
};

// library: the path of libsluice.so, which `preload` has. If nothing is wished, the module is
// loaded for interpreters of languages that call libraries by handles, unless they are linked with
// MPI themselves. An error if it is wished and missing, or would not be loaded.
Result<AuditChoice> choose_audit(AuditWish wish, const Program& program, const Loaded& loaded,
                                 const std::string& library, const Preload& preload);

// Puts the module into this process's environment, which the program inherits. Where the C library
// would send each call between libraries through its audit code (glibc before 2.35), it also has
// all calls bound at the start (LD_BIND_NOW), which avoids that. (With glibc 2.31 a call takes 186
// instructions in place of 9. Since 2.35 it is 9 with the module, too.)
void apply_audit(const AuditChoice& choice);

}  // namespace sluice
