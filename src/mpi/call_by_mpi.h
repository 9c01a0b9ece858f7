// SPDX-License-Identifier: BSD-3-Clause
//
// A call that MPI's own function does because of a trial (trials.h). Its data is placed as for the
// engine, and MPI gets plain arguments. It lives in the function that calls MPI
// (prepared_call.cc), and owns what it needs: MPI's error handlers may free the communicator or
// make other calls.
#pragma once

#include <optional>

#include "src/engine/team.h"
#include "src/memory/placement.h"
#include "src/mpi/aside.h"
#include "src/mpi/datatypes.h"
#include "src/mpi/plain_arguments.h"

namespace sluice {

// A communicator's decision about a call that MPI does.
struct HandedOver {
  Way way;
  bool may_be_kept = false;  // in the call cache
};

class CallByMpi {
 public:
  enum class Stage : uint8_t {
    warming,  // made aside; the next one counts
    aside,    // made aside, and timed; Sluice does the call then
    last,     // MPI's results are the call's
  };

  // program: the call's arguments, which must outlive this.
  CallByMpi(const Arguments& program, const Exchange& call, Position position,
            const HandedOver& handed, const Process& process);
  CallByMpi(const CallByMpi&) = delete;
  CallByMpi& operator=(const CallByMpi&) = delete;

  Stage stage() const { return stage_; }
  bool is_aside() const { return stage_ != Stage::last; }
  Way& way() { return handed_.way; }
  // Begins the time that counts, places the data, and packs it. Whether `arguments` are set: they
  // are not if memory is short for data that is not dense. Throws nothing.
  bool begin();
  // What went wrong in `begin`. (If the arguments are set, MPI's function must still be called,
  // because other ranks are in it.)
  const Status& failure() const { return failure_; }
  const Arguments& arguments() const { return arguments_; }
  // Whether these are the program's, for the function that it has called; else counts are ints.
  bool is_programs() const { return is_programs_; }
  const Arguments& program() const { return program_; }
  // Whether something is to be done when MPI has returned. Then MPI must not call the program's
  // error handlers, which may free what that needs.
  bool has_sequel() const { return is_aside() || placement_; }
  // Whether the next calls may be made with the same arguments, but for the buffers.
  bool may_be_kept() const { return handed_.may_be_kept && is_where_it_lies_; }
  // To be called when MPI has returned. Unpacks results and takes the time if it succeeded.
  Status end(int result);
  // From `warming` to `aside`.
  void advance() { stage_ = Stage::aside; }
  // MPI's first error, or MPI_SUCCESS.
  int error() const { return error_; }

  // The call itself.
  Exchange& exchange() { return call_; }

 private:
  bool place_where_it_lies(Exchange& call);
  bool place_apart(Exchange& call);
  void put_input_in_place(Call& call) const;
  void take_result_from_input();
  bool place();
  bool may_use_programs() const;
  bool fall_back(Status why);

  const Arguments& program_;
  Exchange call_;
  Description input_type_, output_type_;
  const Position position_;
  HandedOver handed_;
  Stage stage_;
  std::optional<Aside> aside_;
  StagingPair staging_;
  LoneWait wait_;
  std::optional<Placement> placement_;
  PlainArguments plain_;
  Arguments arguments_;
  Status failure_;
  bool is_where_it_lies_ = false, is_programs_ = false;
  int error_ = MPI_SUCCESS;
};

}  // namespace sluice
