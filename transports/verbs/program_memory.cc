// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/program_memory.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/log.h"
#include "src/base/system_call.h"

namespace sluice {
namespace {

// The chunk of a run that has this byte of it.
Bytes chunk_at(const Bytes& run, const std::byte* byte) {
  const size_t first = static_cast<size_t>(byte - run.data) / ProgramMemory::chunk;
  const size_t offset = first * ProgramMemory::chunk;
  return {run.data + offset, std::min(ProgramMemory::chunk, run.size - offset)};
}

// The run that has the piece; nullptr: none.
const Bytes* run_of(const Operation& message, const Bytes& piece) {
  const auto has = [&](const Bytes& run) {
    return piece.data >= run.data && piece.data + piece.size <= run.data + run.size;
  };
  const auto found = std::ranges::find_if(message.within, has);
  return found == message.within.end() ? nullptr : &*found;
}

std::string why_not_registered(int error) {
  return error == EOPNOTSUPP ? "this kernel does not keep registered memory at a fork"
                             : error_text(error) + limit_of_locked_memory(error);
}

// What is registered as long as this lives. It may end on any thread.
class Held {
 public:
  Held(std::shared_ptr<VerbsDevice> device, std::shared_ptr<std::atomic<size_t>> pinned,
       size_t bytes)
      : device_(std::move(device)), pinned_(std::move(pinned)), bytes_(bytes) {
    *pinned_ += bytes;
  }
  ~Held() {
    if (region.handle != nullptr) device_->table().drop_region(region.handle);
    *pinned_ -= bytes_;
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  SluiceVerbsRegion region{};

 private:
  const std::shared_ptr<VerbsDevice> device_;
  const std::shared_ptr<std::atomic<size_t>> pinned_;
  const size_t bytes_;
};

}  // namespace

Status can_register_program_memory(const VerbsDevice& device) {
  std::vector<std::byte> memory(4096);
  SluiceVerbsRegion region{};
  const int error = device.table().add_region(device.handle(), memory.data(), memory.size(),
                                              SLUICE_VERBS_FILLED, &region);
  if (error != 0) return {Code::unavailable, why_not_registered(error)};
  device.table().drop_region(region.handle);
  return {};
}

bool ProgramMemory::reach(const std::shared_ptr<VerbsDevice>& device, const Operation& message,
                          bool is_written, std::vector<Bytes>* parts) {
  Registrations* const known = message.registrations;
  if (known == nullptr) return false;
  for (const Bytes& piece : message.pieces) {
    if (piece.size == 0) continue;
    const Bytes* const run = run_of(message, piece);
    if (run == nullptr) return false;
    for (size_t done = 0; done < piece.size;) {
      std::byte* const from = piece.data + done;
      const Bytes chunk = chunk_at(*run, from);
      const auto left = static_cast<size_t>(chunk.data + chunk.size - from);
      const size_t bytes = std::min(piece.size - done, left);
      if (known->find(device.get(), from, bytes, is_written) == nullptr) {
        Registration made = add(device, chunk, is_written);
        if (made.hold == nullptr) return false;
        known->add(std::move(made));
      }
      parts->push_back({from, bytes});
      done += bytes;
    }
  }
  return true;
}

Registration ProgramMemory::lend(const std::shared_ptr<VerbsDevice>& device, Bytes memory) {
  return add(device, memory, false);
}

Registration ProgramMemory::add(const std::shared_ptr<VerbsDevice>& device, Bytes memory,
                                bool is_written) {
  if (failures_ >= most_failures && ++failures_ % tries != 0) return {};
  auto held = std::make_shared<Held>(device, pinned_, memory.size);
  if (*pinned_ > most_) {
    tell("SLUICE_VERBS_PINNED allows no more");  // (at this time)
    return {};
  }
  const SluiceVerbsUse use = is_written ? SLUICE_VERBS_FILLED : SLUICE_VERBS_LENT;
  SluiceVerbsRegion& region = held->region;
  const int error =
      device->table().add_region(device->handle(), memory.data, memory.size, use, &region);
  if (error != 0) {
    note_failure(why_not_registered(error));
    return {};
  }
  failures_ = 0;
  return {memory.data,      memory.size,       device.get(),   is_written,
          region.local_key, region.remote_key, std::move(held)};
}

void ProgramMemory::note_failure(const std::string& why) {
  ++failures_;
  tell(why);
}

// Once.
void ProgramMemory::tell(const std::string& why) {
  if (std::exchange(has_told_, true)) return;
  log(Level::info,
      "RDMA: long messages are copied, because the program's memory cannot be "
      "registered: %s",
      why.c_str());
}

}  // namespace sluice
