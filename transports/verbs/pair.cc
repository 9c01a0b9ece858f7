// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/pair.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "src/base/random.h"

namespace sluice {
namespace {

constexpr uint32_t length_bits = 20;
constexpr uint32_t max_length = (1U << length_bits) - 1;
static_assert(verbs_credit_mask == (1U << (32 - length_bits)) - 1);
constexpr uint32_t inline_bytes = 220;  // wished; a device may give less
constexpr int completions_at_once = 16;

// The network mask of this host's IPv4 address in the GID's last bytes, if it has that address.
std::optional<uint32_t> mask_of(const uint8_t* gid) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::optional<uint32_t> found;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (!each->ifa_addr || !each->ifa_netmask || each->ifa_addr->sa_family != AF_INET) continue;
    const in_addr& own = reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
    if (std::memcmp(&own, gid + 12, 4) != 0) continue;
    found = reinterpret_cast<const sockaddr_in*>(each->ifa_netmask)->sin_addr.s_addr;
  }
  freeifaddrs(all);
  return found;
}

uint32_t ipv4_of(const uint8_t* gid) {
  uint32_t address;
  std::memcpy(&address, gid + 12, sizeof(address));
  return address;
}

size_t bytes_of(std::span<const iovec> runs) {
  size_t bytes = 0;
  for (const iovec& run : runs) bytes += run.iov_len;
  return bytes;
}

bool shares_subnet(const uint8_t* own, const uint8_t* peer) {
  const std::optional<uint32_t> mask = mask_of(own);
  return !mask || (ipv4_of(own) & *mask) == (ipv4_of(peer) & *mask);
}

}  // namespace

VerbsPair::VerbsPair(std::shared_ptr<VerbsDevice> device, size_t ring)
    : device_(std::move(device)), ring_bytes_(ring), out_(ring), in_(ring) {
  const size_t largest = size_t{VerbsSends::max_writes - 2} * device_->port().max_message;
  max_batch_ = std::min({ring_bytes_ / 4, largest, size_t{max_length}});
}

VerbsPair::~VerbsPair() {
  if (queue_.handle == nullptr) return;
  device_->remove(queue_.number);
  table().drop_queue(queue_.handle);
}

Result<std::unique_ptr<VerbsPair>> VerbsPair::make(const std::shared_ptr<VerbsDevice>& device,
                                                   size_t ring) {
  std::unique_ptr<VerbsPair> pair(new VerbsPair(device, ring));
  if (Status made = pair->make_parts(); !made.ok()) return made;
  return pair;
}

Status VerbsPair::make_parts() {
  for (const bool remote : {true, false}) {
    auto memory = VerbsMemory::make(device_, ring_bytes_, remote);
    if (!memory.ok()) return memory.status();
    (remote ? ring_ : staging_) = std::move(*memory);
  }
  if (Status drawn = draw_random(&sequence_, sizeof(sequence_)); !drawn.ok()) return drawn;
  sequence_ &= 0xFFFFFF;
  SluiceVerbsQueue asked{
      device_->port().number, 0, VerbsSends::depth, VerbsReceives::depth, inline_bytes, nullptr, 0};
  const int error = table().make_queue(device_->handle(), &asked);
  if (error != 0) {
    return {Code::unavailable, device_->label() + ": no queue pair: " + strerror(error) +
                                   limit_of_locked_memory(error)};
  }
  queue_ = asked;
  device_->add(queue_.number);
  return {};
}

VerbsAddress address_of(const VerbsDevice& device, uint32_t number, uint32_t sequence) {
  VerbsAddress address;
  address.ethernet = device.port().ethernet;
  address.gid_kind = device.gid().kind;
  address.mtu = device.port().mtu;
  std::ranges::copy(device.gid().raw, address.gid);
  address.lid = device.port().lid;
  address.number = number;
  address.sequence = sequence;
  return address;
}

VerbsPair::End VerbsPair::end() const {
  End end{address_of(*device_, queue_.number, sequence_)};
  end.ring_bytes = static_cast<uint32_t>(ring_bytes_);
  end.key = ring_->remote_key();
  end.ring = reinterpret_cast<uintptr_t>(ring_->data());
  return end;
}

Status reaches(const VerbsPort& port, size_t ring, const VerbsPair::End& peer) {
  const auto differs = [&](const std::string& what) {
    return Status(Code::unavailable, port.label() + ": the peer's " + what);
  };
  if (peer.magic != VerbsPair::End::expected) return differs("offer is of another kind");
  if (peer.ring_bytes != ring) return differs("ring has another size");
  return reaches(port, peer);
}

Status reaches(const VerbsPort& port, const VerbsAddress& peer) {
  const auto differs = [&](const std::string& what) {
    return Status(Code::mismatch, port.label() + ": the peer's " + what);
  };
  const SluiceVerbsGid& own = port.address();
  SluiceVerbsGid theirs{};
  std::ranges::copy(peer.gid, theirs.raw);
  const std::string both = ": " + text_of_gid(theirs) + ", here " + text_of_gid(own);
  if (peer.ethernet != port.port.ethernet) {
    return differs(std::string("port is of another network: ") +
                   (peer.ethernet != 0 ? "RoCE, here InfiniBand" : "InfiniBand, here RoCE"));
  }
  if (peer.ethernet == 0) {
    const bool same_fabric = std::equal(own.raw, own.raw + 8, peer.gid);
    return same_fabric ? Status() : differs("port is in another fabric (subnet prefix)" + both);
  }
  if (peer.gid_kind != own.kind || is_ipv4(own) != is_ipv4(theirs)) {
    return differs("address is of another kind" + both);
  }
  const bool apart = is_ipv4(own) && !shares_subnet(own.raw, peer.gid);
  return apart ? differs("address is in another subnet" + both) : Status();
}

SluiceVerbsWay way_to(const VerbsDevice& device, const VerbsAddress& peer, uint32_t own_sequence) {
  const SluiceVerbsPort& port = device.port();
  const bool global = port.ethernet != 0 || port.lid == 0;
  SluiceVerbsWay way{port.number,
                     device.gid().index,
                     std::min(port.mtu, peer.mtu),
                     global,
                     peer.lid,
                     {},
                     peer.number,
                     peer.sequence,
                     own_sequence,
                     1};
  std::ranges::copy(peer.gid, way.peer_gid);
  return way;
}

Status VerbsPair::connect(const End& peer, const void* link) {
  if (Status can = reaches(device_->about(), ring_bytes_, peer); !can.ok()) return can;
  const auto cannot = [&](const std::string& why) {
    return Status(Code::mismatch, device_->label() + ": " + why);
  };
  if (const std::string why = device_->given_up(); !why.empty()) return cannot(why);
  if (device_->timed_out(peer.gid)) return cannot("connecting to that address timed out before");
  peer_ = peer;
  const SluiceVerbsWay way = way_to(*device_, peer, sequence_);
  int error = table().receive(queue_.handle, VerbsReceives::depth);
  in_.note_posted(VerbsReceives::depth);
  if (error == 0) error = table().connect(queue_.handle, &way);
  device_->note_connect(link, peer.gid, error);
  return error == 0 ? Status() : cannot(std::string("cannot connect: ") + strerror(error));
}

VerbsPair::State VerbsPair::after(State state, Event event) {
  constexpr State ends[][3] = {
      // by error        silence          stop
      {State::broken, State::hopeless, State::stopped},   // working
      {State::broken, State::hopeless, State::stopped},   // broken
      {State::hopeless, State::hopeless, State::silent},  // hopeless
      {State::stopped, State::silent, State::stopped},    // stopped
      {State::silent, State::silent, State::silent},      // silent
  };
  return ends[static_cast<size_t>(state)][static_cast<size_t>(event)];
}

void VerbsPair::fail(int error, const std::string& what) {
  state_ = after(state_, Event::error);
  if (error_ != 0) return;
  error_ = error;
  failure_ = "RDMA (" + device_->label() + "): " + what;
}

// Its immediate is that of a credit, of nothing.
void VerbsPair::send_probe() {
  const size_t longest = size_t{128} << std::min(device_->port().mtu, peer_.mtu);
  SluiceVerbsWrite write{};
  write.from = staging_->data();
  write.bytes =
      static_cast<uint32_t>(std::min({ring_bytes_, longest, size_t{device_->port().max_message}}));
  write.to = peer_.ring;
  write.has_immediate = write.signalled = 1;
  write.immediate = immediate(0);
  out_.make_other();
  post({&write, 1});
}

bool VerbsPair::has_probe() {
  poll();
  return heard_;
}

size_t VerbsPair::write(std::span<const iovec> runs) {
  if (room() < bytes_of(runs)) poll();
  const uint64_t before = out_.staged();
  for (const iovec& run : runs) {
    if (!write(static_cast<const std::byte*>(run.iov_base), run.iov_len)) break;
  }
  if (out_.unposted() > 0) post_batch();
  return out_.staged() - before;
}

// False if there was not room for all.
bool VerbsPair::write(const std::byte* from, size_t left) {
  while (left > 0) {
    const size_t bytes = std::min({left, room(), max_batch_ - out_.unposted()});
    if (bytes == 0) return false;
    out_.stage(staging_->data(), from, bytes);
    from += bytes;
    left -= bytes;
    if (out_.unposted() == max_batch_) post_batch();
  }
  return true;
}

// At most max_batch_ bytes.
void VerbsPair::post_batch() {
  std::array<SluiceVerbsWrite, VerbsSends::max_writes> writes;  // as many as are needed are set
  const size_t whole = out_.unposted();
  const uint32_t count =
      out_.make_batch(staging_->data(), peer_.ring, device_->port().max_message, writes.data());
  writes[count - 1].has_immediate = 1;
  writes[count - 1].immediate = immediate(whole);
  post({writes.data(), count});
}

// The immediate of a batch; it tells the credit.
uint32_t VerbsPair::immediate(size_t bytes) {
  return static_cast<uint32_t>(bytes) | in_.tell_credit() << length_bits;
}

bool VerbsPair::post(std::span<SluiceVerbsWrite> writes) {
  for (SluiceVerbsWrite& write : writes) {
    write.local_key = staging_->local_key();
    write.remote_key = peer_.key;
    write.inlined = write.bytes > 0 && write.bytes <= queue_.inlined;
    out_.number(write);
  }
  const int error = table().write(queue_.handle, writes.data(), static_cast<int>(writes.size()));
  if (error != 0) fail(ECONNRESET, std::string("cannot send: ") + strerror(error));
  return error == 0;
}

// A write of no bytes: with an immediate it carries the credit, otherwise it is signalled, and
// completes after all others.
bool VerbsPair::post_empty(bool has_immediate) {
  SluiceVerbsWrite write{};
  write.from = staging_->data();
  write.to = peer_.ring;
  write.has_immediate = has_immediate;
  write.signalled = !has_immediate;
  if (has_immediate) write.immediate = immediate(0);
  out_.make_other();
  return post({&write, 1});
}

// Tells the credit if half is owed. If no request is free, a later call does it.
void VerbsPair::give_credit() {
  if (in_.owes_credit() && works() && out_.free_requests() >= 2) (void)post_empty(true);
}

bool VerbsPair::has_arrived() {
  if (readable() == 0) poll();
  give_credit();
  return readable() > 0 || error_ != 0;
}

size_t VerbsPair::read(std::span<const iovec> runs) {
  if (readable() == 0) poll();
  size_t bytes = 0;
  for (const iovec& run : runs) {
    bytes += in_.read(ring_->data(), static_cast<std::byte*>(run.iov_base), run.iov_len);
  }
  in_.free_batches();
  give_credit();
  return bytes;
}

// This ends: the peer has credit for a ring's bytes and max_batches batches.
void VerbsPair::poll() {
  SluiceVerbsDone done[completions_at_once];
  int count = 0;
  do {
    count = table().poll(queue_.handle, done, completions_at_once);
    for (int i = 0; i < count; ++i) complete(done[i]);
  } while (count == completions_at_once);
  if (count < 0) fail("its completions cannot be read");
  renew_receives();
}

// What the device tells by events explains more than a status.
std::string VerbsPair::reason_of(int status) {
  device_->take_events();
  const std::string problem = device_->problem(queue_.number);
  return problem.empty() ? table().status_text(status) : problem;
}

// (A completion that failed counts for nothing: the pair is broken, or stopped.)
void VerbsPair::complete(const SluiceVerbsDone& done) {
  armed_ = false;
  if (done.received != 0) in_.end_request();
  if (done.status != 0) {
    if (works()) fail(ECONNRESET, reason_of(done.status));
  } else if (done.received != 0) {
    take_immediate(done.immediate);
  } else if (!out_.complete(done.id)) {
    fail(EPROTO, "a completion of no request");
  }
}

void VerbsPair::take_immediate(uint32_t immediate) {
  const uint32_t bytes = immediate & max_length;
  in_.owe_request();
  heard_ = true;
  if (!out_.take_credit(immediate >> length_bits)) {
    fail(EPROTO, "the peer gave credit for what was not sent");
  }
  if (bytes == 0 || error_ == EPROTO) return;
  if (!in_.take_batch(bytes)) fail(EPROTO, "the peer wrote more than it had credit for");
}

void VerbsPair::renew_receives() {
  const uint32_t owed = in_.requests_owed();
  if (owed < receives_at_once || !works()) return;
  const int error = table().receive(queue_.handle, static_cast<int>(owed));
  if (error != 0) fail(EIO, std::string("cannot receive: ") + strerror(error));
  in_.note_posted(error == 0 ? owed : 0);
}

void VerbsPair::fail(const std::string& what) {
  state_ = after(state_, Event::silence);
  fail(EIO, what);
}

void VerbsPair::stop() {
  if (is_stopping()) return;
  state_ = after(state_, Event::stop);
  check_events();
  if (const int error = table().stop(queue_.handle); error != 0) {
    fail(std::string("cannot stop: ") + strerror(error));
  }
}

void VerbsPair::check_events() {
  device_->take_events();
  const std::string what = device_->problem(queue_.number);
  if (what.empty()) return;
  if (!device_->reports(queue_.number)) return fail(what);
  fail(EIO, what);
}

bool VerbsPair::delivered() {
  poll();
  if (!works() || out_.have_completed()) return true;
  if (!out_.is_last_signalled() && out_.free_requests() > 0) (void)post_empty(false);
  return false;
}

void VerbsPair::arm() {
  if (const int error = table().arm(queue_.handle); error != 0) {
    fail(EIO, std::string("cannot wait: ") + strerror(error));
  }
  armed_ = true;
}

// (Events that are left from before only end a sleep too early. To take them now would take those
// of pairs that were armed just before.)
bool VerbsPair::sleeps(bool reads, bool writes) {
  device_->note_sleep();
  poll();
  if (!armed_) {
    arm();
    poll();
  }
  return error_ == 0 && !stopped() && (!reads || readable() == 0) && (!writes || room() == 0);
}

}  // namespace sluice
