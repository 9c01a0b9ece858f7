// SPDX-License-Identifier: BSD-3-Clause
#include "src/memory/device_reduction.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/log.h"
#include "src/memory/placement.h"

namespace sluice {
namespace {

// Of a buffer on another device, which is copied here piece by piece.
constexpr size_t longest_piece = size_t{4} << 20;

}  // namespace

DeviceReduction::~DeviceReduction() {
  unplaced_.call.device = nullptr;
  if (!stream_) return;
  const bool is_quiet = await_stream();
  cuda_module().close(std::exchange(stream_, nullptr), is_quiet && failure_.ok());
  if (is_quiet) give_back();
}

bool DeviceReduction::suits(size_t least) {
  const Call& call = unplaced_.call;
  const auto& arithmetic = call.reduction.arithmetic;
  if (unplaced_.input.place.is_host() || !arithmetic || call.bytes < least) return false;
  if (unplaced_.set_aside) return false;
  UnplacedCall first = unplaced_;
  first.others = {};
  const Whereabouts found = find_data(first, 1);
  if (found.kind != Whereabouts::Kind::on_device) return false;
  place_ = found.place;
  if (!std::ranges::all_of(unplaced_.others, [&](const Side& each) { return can_reach(each); }))
    return false;
  return cuda_module().can_reduce(static_cast<int>(arithmetic->type),
                                  static_cast<int>(arithmetic->op)) != 0;
}

// (The driver copies between the contexts of any devices; but memory without a context is for those
// devices alone that the program allows.)
bool DeviceReduction::can_reach(const Side& other) const {
  return other.place.device >= 0 && has_dense_blocks(other, true) &&
         (is_near(other) || other.place.context);
}

// 0: all are near.
size_t DeviceReduction::piece_of_far() const {
  const auto is_near_one = [&](const Side& other) { return is_near(other); };
  if (std::ranges::all_of(unplaced_.others, is_near_one)) return 0;
  const size_t element = unplaced_.call.element;
  return std::min(unplaced_.output.bytes(), longest_piece / element * element);
}

void DeviceReduction::describe(StagingPair& staging) {
  Call& call = unplaced_.call;
  view_in_place(unplaced_, staging, &call);
  call.device = this;
}

bool DeviceReduction::begin(const DeviceNeeds& needs) {
  char why[sluice_cuda_why] = "no memory for segments can be pinned";
  if (acquire(needs, why)) {
    combine_buffers();
    return true;
  }
  log(Level::info, "the host reduces what lies on %s: %s", name().c_str(), why);
  if (stream_) cuda_module().close(std::exchange(stream_, nullptr), 1);
  give_back();
  unplaced_.call.device = nullptr;
  unplaced_.call.input = unplaced_.call.output = {};
  return false;
}

bool DeviceReduction::acquire(const DeviceNeeds& needs, char* why) {
  const SluiceCuda& module = cuda_module();
  const Arithmetic& arithmetic = *unplaced_.call.reduction.arithmetic;
  stream_ = module.open(&place_, why);
  // (Without elements, it has the driver compile the kernel.)
  const void* const none[2] = {};
  if (!stream_ || module.reduce(stream_, static_cast<int>(arithmetic.type),
                                static_cast<int>(arithmetic.op), none, 2, nullptr, 0, why) != 0) {
    return false;
  }
  constexpr size_t alignment = 256;
  const size_t own = (needs.scratch + alignment - 1) / alignment * alignment;
  scratch_ = static_cast<std::byte*>(module.allocate(&place_, own + piece_of_far(), why));
  if (!scratch_) return false;
  far_ = scratch_ + own;
  if (needs.bounce > 0) bounce_ = reserve_pinned(place_, needs.bounce);
  needs_ = needs;
  return bounce_ || needs.bounce == 0;
}

void DeviceReduction::give_back() {
  if (scratch_) cuda_module().release(std::exchange(scratch_, nullptr));
  if (bounce_) give_back_pinned(std::exchange(bounce_, nullptr));
}

void DeviceReduction::check(int result, const char* what, const char* why) {
  if (result >= 0 || !failure_.ok()) return;
  failure_ = {Code::unavailable, std::string("can't ") + what + " " + name() + ": " + why};
}

void DeviceReduction::reduce(const std::byte* left, const std::byte* right, std::byte* out,
                             size_t elements) {
  const void* const operands[] = {left, right};
  reduce(operands, out, elements);
}

void DeviceReduction::reduce(std::span<const void* const> operands, std::byte* out,
                             size_t elements) {
  char why[sluice_cuda_why] = "";
  begin_collected();
  if (!failure_.ok()) return;
  const Arithmetic& arithmetic = *unplaced_.call.reduction.arithmetic;
  has_more_ = true;
  check(cuda_module().reduce(stream_, static_cast<int>(arithmetic.type),
                             static_cast<int>(arithmetic.op), operands.data(), operands.size(), out,
                             elements, why),
        "reduce on", why);
}

// In the order of the buffers.
void DeviceReduction::combine_buffers() {
  std::byte* const vector = unplaced_.call.output.base;
  std::vector<const void*> near{vector};
  const auto reduce_near = [&] {
    if (near.size() > 1) reduce(near, vector, unplaced_.output.count);
    near.resize(1);
  };
  for (const Side& other : unplaced_.others) {
    if (!is_near(other)) {
      reduce_near();
      combine_far(data_of(other));
      continue;
    }
    near.push_back(data_of(other));
    if (near.size() == sluice_cuda_operands) reduce_near();
  }
  reduce_near();
}

void DeviceReduction::combine_far(const std::byte* operand) {
  const size_t bytes = unplaced_.output.bytes(), piece = piece_of_far();
  for (size_t at = 0; at < bytes; at += piece) {
    const size_t size = std::min(piece, bytes - at);
    std::byte* const sum = unplaced_.call.output.base + at;
    copy(far_, operand + at, size);
    reduce(sum, far_, sum, size / unplaced_.call.element);
  }
}

Status DeviceReduction::finish() {
  for (const Side& other : unplaced_.others) {
    copy(const_cast<std::byte*>(data_of(other)), unplaced_.call.output.base,
         unplaced_.output.bytes());
  }
  (void)await_stream();
  return failure_;
}

void DeviceReduction::copy(std::byte* to, const std::byte* from, size_t bytes) {
  char why[sluice_cuda_why] = "";
  begin_collected();
  if (!failure_.ok()) return;
  has_more_ = true;
  check(cuda_module().copy_within(stream_, to, from, bytes, why), "copy within", why);
}

// Adds a copy, which may adjoin the last one.
void DeviceReduction::collect(std::byte* device, std::byte* host, size_t bytes, bool to_device) {
  if (to_device != to_device_ || collected_ == std::size(copies_)) begin_collected();
  to_device_ = to_device;
  if (collected_ > 0) {
    SluiceCudaRuns& last = copies_[collected_ - 1];
    if (device == static_cast<std::byte*>(last.device) + last.bytes &&
        host == static_cast<std::byte*>(last.host) + last.bytes) {
      last.bytes += bytes;
      return;
    }
  }
  copies_[collected_++] = {device, host, 0, 0, 1, bytes};
}

void DeviceReduction::begin_collected() {
  const unsigned count = std::exchange(collected_, 0);
  if (count == 0 || !failure_.ok()) return;
  char why[sluice_cuda_why] = "";
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) bytes += copies_[i].bytes;
  count_traffic(to_device_, bytes);
  has_more_ = true;
  check(cuda_module().copy(stream_, copies_, count, to_device_, why),
        to_device_ ? "copy to" : "copy from", why);
}

uint32_t DeviceReduction::ticket() {
  begin_collected();
  has_more_ = false;
  ++given_;
  set_mark();
  return given_;
}

// Sets a mark for the tickets that have none, if there are such tickets and one is free.
void DeviceReduction::set_mark() {
  const bool is_free = set_ - passed_ < sluice_cuda_marks;
  const uint32_t marked = set_ == 0 ? 0 : tickets_[(set_ - 1) % sluice_cuda_marks];
  if (!is_free || marked == given_ || !failure_.ok()) return;
  char why[sluice_cuda_why] = "";
  const uint32_t number = set_++ % sluice_cuda_marks;
  tickets_[number] = given_;
  check(cuda_module().mark(stream_, number, why), "work on", why);
}

bool DeviceReduction::reached(uint32_t ticket) {
  char why[sluice_cuda_why] = "";
  while (failure_.ok() && done_ < ticket && passed_ < set_) {
    const uint32_t number = passed_ % sluice_cuda_marks;
    const int reached = cuda_module().reached(stream_, number, why);
    check(reached, "work on", why);
    if (reached <= 0) break;
    done_ = tickets_[number];
    ++passed_;
  }
  set_mark();
  return failure_.ok() && done_ >= ticket;
}

// Waits until the stream is empty, as it is after a call that has not failed. False if the wait has
// failed.
bool DeviceReduction::await_stream() {
  begin_collected();
  if (failure_.ok() && done_ == given_ && !has_more_) return true;
  char why[sluice_cuda_why] = "";
  const SluiceCuda& module = cuda_module();
  const int marked = module.mark(stream_, 0, why);
  check(marked, "work on", why);
  if (marked != 0) return true;
  int reached = 0;
  const auto is_done = [&] { return (reached = module.reached(stream_, 0, why)) != 0; };
  const Status status = is_done() ? Status() : wait_.wait_for_copy(is_done, "work on " + name());
  check(reached, "work on", why);
  if (failure_.ok()) failure_ = status;
  if (status.ok()) has_more_ = false;
  return status.ok();
}

}  // namespace sluice
