// SPDX-License-Identifier: BSD-3-Clause
#include "src/ipc/device_slabs.h"

#include <unistd.h>

#include <algorithm>

namespace sluice {

static_assert(SlabOffer::handle_size == sluice_ipc_handle);

DeviceSlabs::Slab::~Slab() {
  if (!slab_ || is_left_ || has_failed_) return;
  close_all();
  ipc_.destroy(slab_);
}

// (To close waits for the device, which may be stuck.)
void DeviceSlabs::Slab::close_all() {
  if (is_busy_) return;
  for (const Opened& each : opened_) ipc_.close(slab_, each.memory);
  opened_.clear();
}

SlabOffer DeviceSlabs::Slab::offer() const { return {id_, handle_, {}}; }

std::byte* DeviceSlabs::Slab::open(const ProcessId& process, const DeviceUuid& device,
                                   const SlabOffer& offer, std::string* why) {
  char text[sluice_cuda_why] = "";
  const auto known = std::ranges::find_if(opened_, [&](const Opened& each) {
    return each.process == process && each.device == device;
  });
  if (known != opened_.end()) {
    if (known->id == offer.slab) return known->memory;
    ipc_.close(slab_, known->memory);
    opened_.erase(known);
  }
  opened_.reserve(opened_.size() + 1);
  auto* const memory = static_cast<std::byte*>(ipc_.open(slab_, offer.handle.data(), text));
  if (memory) opened_.push_back({process, device, offer.slab, memory});
  if (!memory) *why = text;
  return memory;
}

DeviceSlabs::Token DeviceSlabs::try_take() {
  // (In a forked child another thread of the parent may hold it for good.)
  return Token(!is_of_parent() && mutex_.try_lock() ? this : nullptr);
}

DeviceSlabs::Slab* DeviceSlabs::find(int device) {
  std::erase_if(slabs_, [](const auto& slab) { return !slab->has_failed() && !slab->is_alive(); });
  const auto found =
      std::ranges::find(slabs_, device, [](const auto& slab) { return slab->device(); });
  return found == slabs_.end() ? nullptr : found->get();
}

DeviceSlabs::Slab* DeviceSlabs::make(const SluiceIpc& ipc, int device, size_t bytes,
                                     std::string* why) {
  char text[sluice_cuda_why] = "";
  std::unique_ptr<Slab> made(new Slab(ipc, device));
  slabs_.reserve(slabs_.size() + 1);
  made->slab_ = ipc.create(device, bytes, made->handle_.data(), text);
  if (!made->slab_) {
    *why = text;
    return nullptr;
  }
  made->id_ = ++last_;
  process_ = getpid();
  slabs_.push_back(std::move(made));
  return slabs_.back().get();
}

void DeviceSlabs::close() {
  const Token token = try_take();
  if (!token) return;
  for (const auto& slab : slabs_) slab->close_all();
}

void DeviceSlabs::end() {
  const Token token = try_take();
  if (!token) return;
  for (const auto& slab : slabs_) slab->is_left_ = are_left_;
  slabs_.clear();
}

}  // namespace sluice
