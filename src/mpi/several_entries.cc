// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of sluice.h for a vector in several buffers of a process. They make the calls of
// MPI_Allreduce and MPI_Bcast, and match those of other ranks.
#include <new>
#include <optional>
#include <span>
#include <string>

// (mpi.h comes first: sluice.h declares them then.)
#include "src/mpi/prepared_call.h"
//
#include "sluice/sluice.h"
#include "src/base/log.h"
#include "src/engine/call.h"
#include "src/mpi/errors.h"
#include "src/mpi/host_copy_for_mpi.h"
#include "src/mpi/narrow_floats.h"
#include "src/mpi/user_operation.h"

namespace sluice {
namespace {

// The fault of the buffers; empty if there is none. May throw std::bad_alloc if there is one.
std::string fault_of(std::span<void* const> buffers, int count) {
  if (buffers.empty()) return "there must be a buffer or more";
  const auto which = [&](size_t i) {
    return "buffer " + std::to_string(i) + " of " + std::to_string(buffers.size());
  };
  for (size_t i = 0; i < buffers.size() && count > 0; ++i) {
    if (!buffers[i]) return which(i) + " is null";
    if (buffers[i] == MPI_IN_PLACE) return which(i) + " is MPI_IN_PLACE";
    for (size_t other = 0; other < i; ++other) {
      if (buffers[i] == buffers[other])
        return which(i) + " is buffer " + std::to_string(other) + " too";
    }
  }
  return {};
}

// The error for buffers in which something is wrong; MPI_SUCCESS if there is nothing.
int check_buffers(const Row& row, const Arguments& arguments, std::span<void* const> buffers) {
  Status status;
  try {
    const std::string fault = fault_of(buffers, static_cast<int>(arguments.count));
    if (fault.empty()) return MPI_SUCCESS;
    log(Level::error, "%s: %s", row.name, fault.c_str());
    status = {Code::invalid, std::string(row.name) + ": " + fault};
  } catch (const std::bad_alloc&) {
    status = {Code::invalid, {}};
  }
  return raise_error(arguments.comm, status);
}

// How MPI does such a call: on one buffer on the host, which holds the buffers' combination.
class SeveralForMpi {
 public:
  explicit SeveralForMpi(Exchange& exchange)
      : exchange_(exchange),
        wait_(progress(), knobs(), oversubscription()),
        buffers_(exchange, vector_, wait_) {}

  // buffer: which MPI is to take. May throw std::bad_alloc.
  Status begin(void** buffer);
  Status end();

 private:
  static const Process* process() {
    Runtime* const runtime = Runtime::get_if_made();
    return runtime ? &runtime->process() : nullptr;
  }
  static const ProgressMpi& progress() {
    static const ProgressMpi none;
    return process() ? process()->progress_mpi : none;
  }
  static const Knobs& knobs() {
    static const Knobs defaults;
    return process() ? process()->knobs : defaults;
  }
  static const Oversubscription& oversubscription() {
    static const Oversubscription unknown;
    return process() ? process()->oversubscription : unknown;
  }
  Status gather();
  Status make_image();
  Status move(StagedSide::Way way);

  Exchange& exchange_;
  LoneWait wait_;
  Staging vector_, moving_;
  SeveralBuffers buffers_;
  std::optional<UserOperation> operation_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* image_ = nullptr;  // a buffer in it; null: MPI takes the first one
};

Status SeveralForMpi::begin(void** buffer) {
  Status status = buffers_.begin(false);
  if (status.ok()) status = gather();
  if (!status.ok()) return status;
  const Side& first = exchange_.output;
  *buffer = const_cast<void*>(first.buffer);
  if (buffers_.vector() == offset_by(first.buffer, first.type->start)) return {};
  status = make_image();
  *buffer = image_;
  return status.ok() ? move(StagedSide::Way::unpack) : status;
}

Status SeveralForMpi::gather() {
  const Side& first = exchange_.output;
  if (exchange_.user_op) {
    operation_.emplace(*exchange_.user_op, *datatype_of(first));
    exchange_.call.reduction.context = &*operation_;
    if (Status status = operation_->prepare(first.total_elements()); !status.ok()) return status;
  }
  if (!exchange_.call.reduction.kernel && !exchange_.filled) return {};
  const Status status = buffers_.gather();
  return status.ok() && operation_ ? operation_->failure() : status;
}

// Memory with the layout of a buffer.
Status SeveralForMpi::make_image() {
  const Side& first = exchange_.output;
  MPI_Count start = 0, length = 0;
  if (real().Type_get_true_extent_x(datatype_of(first)->handle, &start, &length)) {
    return {Code::internal, "MPI does not tell a datatype's extent"};
  }
  const auto last = static_cast<ptrdiff_t>(std::max<size_t>(first.count, 1) - 1);
  const ptrdiff_t span = last * first.type->extent;
  const ptrdiff_t low = static_cast<ptrdiff_t>(start) + std::min<ptrdiff_t>(span, 0);
  const auto bytes = static_cast<size_t>(static_cast<ptrdiff_t>(length) + std::abs(span));
  memory_.reset(new (std::nothrow) std::byte[bytes]);
  if (!memory_)
    return {Code::memory, "no memory for a copy of " + std::to_string(bytes) + " bytes"};
  image_ = memory_.get() - low;
  return {};
}

// Between the vector and its image.
Status SeveralForMpi::move(StagedSide::Way way) {
  Side image = exchange_.output;
  image.buffer = image_;
  image.place = {};
  StagedSide staged(wait_);
  const Status status =
      staged.begin(way, image, exchange_.call.element, buffers_.vector(), moving_);
  return status.ok() ? staged.finish() : status;
}

Status SeveralForMpi::end() {
  if (image_ && !exchange_.filled) {
    if (Status status = move(StagedSide::Way::pack); !status.ok()) return status;
  }
  return buffers_.finish();
}

// Of a call that Sluice cannot describe, and that MPI has accepted: a reduction beyond those that
// MPI defines, of which several buffers are not combined.
Status judge_beyond(const Arguments& arguments, const FurtherBuffers& further) {
  MPI_Count size = 0;
  if (further.buffers.empty() || arguments.count == 0) return {};
  if (real().Type_size_x(arguments.datatype, &size) == MPI_SUCCESS && size == 0) return {};
  return {Code::invalid, "MPI does not define this operation for this datatype"};
}

Status no_memory() { return {Code::memory, "no memory for several buffers"}; }

// *several: set if Sluice can describe the call; then *arguments get the buffer that MPI is to
// take.
Status prepare_for_mpi(const Row& row, Position position, FurtherBuffers& further,
                       Exchange* exchange, std::optional<SeveralForMpi>* several,
                       Arguments* arguments) try {
  this_thread.passing_datatype = nullptr;
  if (!row.describe(*arguments, position, exchange) || !exchange->refusal.ok()) return {};
  further.attach(exchange);
  void* buffer = nullptr;
  const Status status = several->emplace(*exchange).begin(&buffer);
  arguments->recvbuf = arguments->buffer = buffer;
  return status;
} catch (const std::bad_alloc&) {
  return no_memory();
}

Status finish_for_mpi(const Arguments& arguments, const FurtherBuffers& further,
                      std::optional<SeveralForMpi>& several) try {
  return several ? several->end() : judge_beyond(arguments, further);
} catch (const std::bad_alloc&) {
  return no_memory();
}

// MPI does the call, on one buffer. (What its error handler throws is the program's.)
int call_mpi(const Row& row, Arguments arguments, FurtherBuffers& further) {
  int is_inter = 0, rank = 0, ranks = 0;
  if (!is_communicator(arguments.comm)) return row.call(arguments);
  real().Comm_test_inter(arguments.comm, &is_inter);
  real().Comm_rank(arguments.comm, &rank);
  real().Comm_size(arguments.comm, &ranks);
  Exchange exchange;
  std::optional<SeveralForMpi> several;
  const Position position{static_cast<Rank>(rank), static_cast<Rank>(ranks)};
  Status status = is_inter
                      ? Status(Code::invalid, "it takes no intercommunicators")
                      : prepare_for_mpi(row, position, further, &exchange, &several, &arguments);
  int result = MPI_SUCCESS;
  if (status.ok()) result = row.call(arguments);
  if (status.ok() && result == MPI_SUCCESS) status = finish_for_mpi(arguments, further, several);
  if (status.ok()) return result;
  log(Level::error, "%s: %s", row.name, status.message().c_str());
  return raise_error(arguments.comm, status);
}

int run_several(const Row& row, const Arguments& arguments, void* const buffers[], int n) {
  const std::span<void* const> all(buffers, buffers ? static_cast<size_t>(std::max(n, 0)) : 0);
  if (const int fault = check_buffers(row, arguments, all); fault != MPI_SUCCESS) return fault;
  FurtherBuffers further{all.subspan(1), {}};
  PreparedCall call(row, arguments, &further);
  const bool is_mpis = call.start() == PreparedCall::State::left_to_mpi;
  return is_mpis ? call_mpi(row, arguments, further) : call.finish();
}

int allreduce_by_mpi(const Arguments& of) {
  return real().Allreduce(of.sendbuf, of.recvbuf, static_cast<int>(of.count), of.datatype,
                          operation_for_mpi(of.datatype, of.op), of.comm);
}

int broadcast_by_mpi(const Arguments& of) {
  return real().Bcast(of.buffer, static_cast<int>(of.count), of.datatype, of.root, of.comm);
}

}  // namespace
}  // namespace sluice

extern "C" {

int sluice_allreduce_multi(void* const buffers[], int n, int count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm) {
  static constexpr sluice::Row row{"sluice_allreduce_multi",
                                   sluice::Function::Allreduce,
                                   sluice::describe_Allreduce,
                                   [](const sluice::Probe& probe) {
                                     return sluice::real().Allreduce(probe.sendbuf, probe.recvbuf,
                                                                     probe.count, probe.datatype,
                                                                     probe.op, probe.comm);
                                   },
                                   sluice::allreduce_by_mpi,
                                   sluice::allreduce_by_mpi};
  sluice::Arguments arguments;
  arguments.sendbuf = MPI_IN_PLACE;
  arguments.recvbuf = buffers && n > 0 ? buffers[0] : nullptr;
  arguments.count = count;
  arguments.datatype = datatype;
  arguments.op = op;
  arguments.comm = comm;
  return sluice::run_several(row, arguments, buffers, n);
}

int sluice_bcast_multi(void* const buffers[], int n, int count, MPI_Datatype datatype, int root,
                       MPI_Comm comm) {
  static constexpr sluice::Row row{"sluice_bcast_multi",
                                   sluice::Function::Bcast,
                                   sluice::describe_Bcast,
                                   [](const sluice::Probe& probe) {
                                     return sluice::real().Bcast(probe.buffer, probe.count,
                                                                 probe.datatype, probe.root,
                                                                 probe.comm);
                                   },
                                   sluice::broadcast_by_mpi,
                                   sluice::broadcast_by_mpi};
  sluice::Arguments arguments;
  arguments.buffer = buffers && n > 0 ? buffers[0] : nullptr;
  arguments.count = count;
  arguments.datatype = datatype;
  arguments.root = root;
  arguments.comm = comm;
  return sluice::run_several(row, arguments, buffers, n);
}

}  // extern "C"
