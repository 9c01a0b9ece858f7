// SPDX-License-Identifier: BSD-3-Clause
//
// Moves the bytes of calls in flight while the program is in a function of MPI's that does not let
// them progress. It calls no MPI, so it needs no thread level: it advances plans and reduces by
// kernels of Sluice's; threads of the program complete the requests. It sleeps while no call is in
// flight, and for a millisecond whenever a thread of the program has driven them since it looked.
#pragma once

namespace sluice {

class PendingCalls;
struct Process;

class ProgressThread {
 public:
  // Once in a process. False if the system starts no thread.
  static bool begin(PendingCalls& calls, Process& process);
  // Returns when it has ended.
  static void end();
};

}  // namespace sluice
