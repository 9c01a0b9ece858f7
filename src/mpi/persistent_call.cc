// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/persistent_call.h"

#include <bit>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "src/mpi/communicators.h"
#include "src/mpi/errors.h"
#include "src/mpi/pending_calls.h"
#include "src/mpi/persistent_requests.h"
#include "src/mpi/runtime.h"

namespace sluice {

PersistentCall::~PersistentCall() {
  if (pending_) pending_->forget(*this);
  leave_team();
}

void PersistentCall::leave_team() {
  if (part_) Runtime::get().pending().remove(*team_, *part_);
  part_ = nullptr;
}

Status PersistentCall::open(Team& team, NonblockingTeam& part, const Algorithm& by,
                            bool* is_able) try {
  team_ = &team;
  part_ = &part;
  by_ = &by;
  Status status = prepare();
  *is_able = PersistentRequests::get().open(*this);
  if (*is_able) Runtime::get().pending().add(*this);
  return status;
} catch (const std::bad_alloc&) {
  return Runtime::get().process().no_memory_for_call;
}

// What is staged is placed at each start, because it is packed then.
Status PersistentCall::prepare() {
  Status status = place();
  const Call& placed = call();
  stays_placed_ = status.ok() && exchange_.others.empty() && !exchange_.set_aside &&
                  !placed.input.source && !placed.output.source && !placed.output.sink;
  if (!stays_placed_) placement_.reset();
  return status;
}

Status PersistentCall::place_again() {
  if (stays_placed_) return {};
  placement_.emplace(exchange_, staging_, wait_);
  return placement_->begin();
}

Status PersistentCall::start() {
  if (!part_) return Status(Code::invalid, "MPI_Finalize has begun").with(name());
  Runtime& runtime = Runtime::get();
  Status status;
  try {
    const Inside inside;
    status = place_again();
    if (status.ok()) return runtime.pending().start(*this);
  } catch (const std::bad_alloc&) {
    runtime.process().reserve.release();
    status = runtime.process().no_memory_for_call;
  }
  return runtime.pending().fail(*part_, status.with(name()));
}

int PersistentCall::raise(const Status& status) const {
  return raise_error(comm_ == real().comm_null ? real().comm_world : comm_, status);
}

void PersistentCall::complete() { PersistentRequests::get().complete(*this); }

namespace {

// Decides who does the calls of a request, and makes it, if Sluice does.
class Init {
 public:
  Init(const Row& row, const Arguments& arguments, Communicator& communicator)
      : row_(row), arguments_(arguments), communicator_(communicator), runtime_(Runtime::get()) {}

  // *made: null if MPI makes the request. May throw std::bad_alloc.
  Status run(std::unique_ptr<PersistentCall>* made) {
    const bool is_described = describe();
    if (is_described && !call_) return {};
    if (Status status = communicator_.prepare_team(row_.name); !status.ok()) return status;
    if (!communicator_.has_nonblocking()) return {};
    if (!is_described) {
      const Status cause(Code::memory, "no memory for its types");
      return communicator_.team()->fail_call(cause.with(row_.name));
    }
    const Algorithm* by = choose(false);
    if (!by) return {};
    NonblockingTeam* const part = find_part();
    if (!part) return communicator_.broken();
    Team& team = *communicator_.team();
    own_ = call_->open(team, *part, *by, &is_able_);
    if (Status status = agree(); !status.ok() || !is_able_) return status;
    if (const Algorithm* const short_by = choose(true); free_.sets != 0 && short_by != by) {
      runtime_.pending().give_cells(team, *part, std::countr_zero(free_.sets));
      call_->use(*(by = short_by));
    }
    communicator_.note_algorithm(by);
    *made = std::move(call_);
    return {};
  }

 private:
  // What a rank tells the others.
  struct Vote {
    bool is_able;
    bool is_well;
    FreeCells free;
  };
  static_assert(sizeof(Vote) <= Team::exchange_at_once);

  // False: there is no memory for it. Without a call then: MPI does it, or has an error for it.
  bool describe() try {
    call_ = std::make_unique<PersistentCall>(row_.name, arguments_.comm, runtime_.process());
    const Position position{communicator_.rank(), communicator_.size()};
    if (!call_->describe(row_, arguments_, position)) call_.reset();
    return true;
  } catch (const std::bad_alloc&) {
    call_.reset();
    return false;
  }

  const Algorithm* choose(bool has_cells) const {
    return call_->choose(*communicator_.team(), runtime_.pending().way(), has_cells);
  }

  // A part of the team, or of a new one if it can't have more. nullptr: that can't be had.
  NonblockingTeam* find_part() {
    NonblockingTeam* part = runtime_.pending().add(*communicator_.team(), &free_);
    if (part || !communicator_.renew_team(row_.name).ok() || !communicator_.team()) return part;
    return runtime_.pending().add(*communicator_.team(), &free_);
  }

  // Has all ranks know whether all have a request, else MPI makes it, and can do their part; and
  // which cells all have.
  Status agree() {
    Vote vote{is_able_, own_.ok(), free_};
    std::vector<Vote> votes(communicator_.size());
    Status status =
        communicator_.team()->exchange(call_->call(), std::as_bytes(std::span(&vote, 1)),
                                       std::as_writable_bytes(std::span(votes)));
    if (!status.ok()) return status;
    for (Rank rank = 0; rank < votes.size(); ++rank) {
      count(votes[rank]);
      if (votes[rank].is_well || !status.ok()) continue;
      status = {Code::aborted, "rank " + std::to_string(rank) + " can't do its part"};
    }
    if (!is_able_) return {};
    return (own_.ok() ? status : own_).with(row_.name);
  }
  void count(const Vote& vote) {
    is_able_ = is_able_ && vote.is_able;
    free_.sets &= vote.free.sets;
    for (uint32_t set = 0; set < free_.last.size(); ++set) {
      if (vote.free.last[set] != free_.last[set]) free_.sets &= ~(1U << set);
    }
  }

  const Row& row_;
  const Arguments& arguments_;
  Communicator& communicator_;
  Runtime& runtime_;
  std::unique_ptr<PersistentCall> call_;
  FreeCells free_;
  bool is_able_ = false;
  Status own_;  // whether this rank can do its part
};

// nullptr: MPI does the call.
Communicator* find_communicator(MPI_Comm handle) {
  Communicator* communicator = last_communicator(handle);
  if (!communicator && is_switched_off()) return nullptr;
  if (!communicator) communicator = look_up_communicator(handle);
  if (!communicator) return nullptr;
  communicator->note_algorithm(nullptr);  // until Sluice has chosen one
  const bool is_mpis = communicator->is_left_to_mpi() || !Runtime::get().is_nonblocking_carried();
  return is_mpis ? nullptr : communicator;
}

}  // namespace

bool init_persistent(const Row& row, const Arguments& arguments, MPI_Request* request,
                     int* result) {
  if (is_passing() || !request) return false;
  Communicator* communicator = nullptr;
  Status status;
  std::unique_ptr<PersistentCall> made;
  try {
    communicator = find_communicator(arguments.comm);
    if (!communicator) return false;
    const Inside inside;
    status = Init(row, arguments, *communicator).run(&made);
  } catch (const std::bad_alloc&) {
    if (!communicator) communicators_missed.store(true, std::memory_order_relaxed);
    status = communicator ? communicator->fail_for_memory()
                          : Status(Code::memory, "no memory for a communicator");
  }
  if (status.ok() && !made) return false;
  if (status.ok()) {
    *request = made.release()->request();
    *result = MPI_SUCCESS;
    return true;
  }
  log(Level::error, "%s: %s", row.name, status.message().c_str());
  *result = raise_error(arguments.comm, status);
  return true;
}

int lacks_persistent(const Row& row, MPI_Comm comm) {
  log(Level::error, "%s: this MPI library lacks it", row.name);
  real().Comm_call_errhandler(comm, MPI_ERR_UNSUPPORTED_OPERATION);
  return MPI_ERR_UNSUPPORTED_OPERATION;
}

}  // namespace sluice
