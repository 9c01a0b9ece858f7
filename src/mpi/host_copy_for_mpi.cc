// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/host_copy_for_mpi.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>

namespace sluice {
namespace {

bool is_on_device(const Side& side) { return side.type && !side.place.is_host(); }

// The lowest and the highest offset of a side's elements, in extents.
void find_range(const Side& side, ptrdiff_t* first, ptrdiff_t* last) {
  ptrdiff_t before = 0;
  bool any = false;
  for (uint32_t i = 0; i < side.blocks; ++i) {
    const auto elements = static_cast<ptrdiff_t>(side.elements(i));
    const ptrdiff_t start = side.displacements ? side.displacements[i] : before;
    before += elements;
    if (elements == 0) continue;
    *first = any ? std::min(*first, start) : start;
    *last = any ? std::max(*last, start + elements - 1) : start + elements - 1;
    any = true;
  }
}

template <typename Function>
Function* find_function(const char* symbol) {
  return reinterpret_cast<Function*>(find_data(symbol));
}

// MPICH before 4 ends the process if it can't tell whether it is CUDA-aware.
bool may_be_asked() {
  std::string version(8192, '\0');
  int length = 0;
  const auto get_version = find_function<int(char*, int*)>("PMPI_Get_library_version");
  return !get_version || get_version(version.data(), &length) != MPI_SUCCESS ||
         version.compare(0, 16, "MPICH Version:\t3") != 0;
}

bool ask_whether_cuda_aware() {
  constexpr int cuda = 0;  // MPIX_GPU_SUPPORT_CUDA
  int is_supported = 0;
  if (!may_be_asked()) return false;
  if (const auto query = find_function<int(int, int*)>("MPIX_GPU_query_support")) {
    return query(cuda, &is_supported) == MPI_SUCCESS && is_supported != 0;
  }
  const auto query = find_function<int()>("MPIX_Query_cuda_support");
  return query && query() == 1;
}

}  // namespace

bool is_mpi_cuda_aware() {
  static const bool is_aware = ask_whether_cuda_aware();
  return is_aware;
}

HostCopyForMpi::Range HostCopyForMpi::Range::with(const Range& other) const {
  if (is_empty()) return other;
  if (other.is_empty()) return *this;
  return {std::min(low, other.low), std::max(high, other.high)};
}

Status HostCopyForMpi::find(const Side& side, Range* range) {
  if (!is_on_device(side)) return {};
  MPI_Count start = 0, length = 0;
  if (real().Type_get_true_extent_x(datatype_of(side)->handle, &start, &length)) {
    return {Code::internal, "MPI does not tell a datatype's extent"};
  }
  ptrdiff_t first = 0, last = 0;
  find_range(side, &first, &last);
  const ptrdiff_t extent = side.type->extent;
  const auto begin = static_cast<ptrdiff_t>(start), end = static_cast<ptrdiff_t>(start + length);
  const auto buffer = reinterpret_cast<uintptr_t>(side.buffer);
  range->low = buffer + static_cast<uintptr_t>(begin + std::min(first * extent, last * extent));
  range->high = buffer + static_cast<uintptr_t>(end + std::max(first * extent, last * extent));
  return {};
}

Status HostCopyForMpi::Image::make(const Range& range) {
  const size_t bytes = range.high - range.low;
  if (bytes == 0) return {};
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return {Code::memory, "no memory for a copy of " + std::to_string(bytes) + " bytes"};
  }
  low = range.low;
  memory = {static_cast<std::byte*>(mapped), Unmap{bytes}};
  return {};
}

void HostCopyForMpi::Image::Unmap::operator()(std::byte* mapped) const { munmap(mapped, bytes); }

std::byte* HostCopyForMpi::Image::at(const void* address) const {
  const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - low;
  return offset_by(memory.get(), static_cast<ptrdiff_t>(offset));
}

// (Both buffers may be MPI_BOTTOM, for data in different places.)
bool HostCopyForMpi::is_one_image(const Range& input, const Range& output) const {
  const void *const from = exchange_.input.buffer, *const to = exchange_.output.buffer;
  if (exchange_.in_place || (from == to && from)) return true;
  return (from || to) && input.overlaps(output);
}

Status HostCopyForMpi::make_images(const Range& input, const Range& output) {
  const void *const from = exchange_.input.buffer, *const to = exchange_.output.buffer;
  const bool is_one = is_one_image(input, output);
  Image &of_input = images_[0], &of_output = images_[is_one ? 0 : 1];
  Status status = is_one ? of_input.make(input.with(output)) : of_input.make(input);
  if (status.ok() && !is_one) status = of_output.make(output);
  if (!status.ok()) return status;
  if (!input.is_empty()) input_ = of_input.at(from);
  if (!output.is_empty()) output_ = of_output.at(to);
  send_ = is_one ? of_input.at(from) : input_;
  receive_ = is_one ? of_output.at(to) : output_;
  // (The other buffer stays MPI_IN_PLACE.)
  if (exchange_.in_place) (scatters(exchange_.call) ? receive_ : send_) = nullptr;
  return {};
}

// Moves a side's data from the device to its copy (pack), or back.
Status HostCopyForMpi::move(const Side& side, std::byte* image, StagedSide::Way way) {
  using Way = StagedSide::Way;
  Side copy = side;
  copy.place = {};
  copy.buffer = image;
  std::byte* const dense = staging_.reserve(side.bytes(), side.place);
  if (!dense) return {Code::memory, "no memory to pack " + std::to_string(side.bytes()) + " bytes"};
  if (side.counts) set_packed_blocks(side, side.type->size, staging_);
  StagedSide first(wait_), second(wait_);
  Status status = first.begin(Way::pack, way == Way::pack ? side : copy, 1, dense, staging_);
  if (status.ok()) status = first.finish();
  if (status.ok()) {
    status = second.begin(Way::unpack, way == Way::pack ? copy : side, 1, dense, staging_);
  }
  return status.ok() ? second.finish() : status;
}

Status HostCopyForMpi::begin(const Exchange& exchange) {
  exchange_ = exchange;
  const Side &input = exchange_.input, &output = exchange_.output;
  Range read, written;
  Status status = find(input, &read);
  if (status.ok()) status = find(output, &written);
  if (status.ok()) status = make_images(read, written);
  if (status.ok() && input_) status = move(input, input_, StagedSide::Way::pack);
  if (status.ok() && output_ && exchange_.filled) {
    status = move(output, output_, StagedSide::Way::pack);
  }
  return status;
}

Status HostCopyForMpi::end() {
  if (!output_ || exchange_.filled) return {};
  return move(exchange_.output, output_, StagedSide::Way::unpack);
}

}  // namespace sluice
