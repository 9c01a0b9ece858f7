// SPDX-License-Identifier: BSD-3-Clause
//
// All reductions by plans, with the data of some ranks or all on devices that work late, over a
// network that delivers late: the same bits as on the host. The operation is neither commutative
// nor associative, so that the bits tell who was combined with whom. One thread runs all ranks.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "src/engine/execution.h"
#include "tests/unit/loopback/loopback.h"
#include "tests/unit/support/fake_device.h"
#include "tests/unit/support/sweep.h"

namespace sluice {
namespace {

using ByteVector = std::vector<std::byte>;

constexpr uint64_t nowhere = 0, everywhere = ~uint64_t{0};
constexpr size_t element_bytes = sizeof(uint32_t);

void mix(const void* left, const void* right, void* out, size_t n, const void*) {
  for (size_t i = 0; i < n; ++i) {
    uint32_t a = 0, b = 0;
    std::memcpy(&a, static_cast<const std::byte*>(left) + i * sizeof a, sizeof a);
    std::memcpy(&b, static_cast<const std::byte*>(right) + i * sizeof b, sizeof b);
    a = a * 31 + (b ^ b >> 7);
    std::memcpy(static_cast<std::byte*>(out) + i * sizeof a, &a, sizeof a);
  }
}

struct DeviceCase {
  const Algorithm* algorithm;
  Rank ranks, root;
  size_t count;  // elements of the vector; or of a block, and one more in each odd rank's
  size_t segment;
  bool in_place;
  uint64_t devices;  // a bit for each rank whose data is on a device
  uint64_t seed;

  friend std::ostream& operator<<(std::ostream& out, const DeviceCase& it) {
    return out << to_string(it.algorithm->collective) << " " << it.algorithm->name << " ranks "
               << it.ranks << " root " << it.root << " count " << it.count << " segment "
               << it.segment << " in place " << it.in_place << " devices " << it.devices << " seed "
               << it.seed;
  }
};

struct BlockList {
  std::vector<size_t> counts, offsets;
  size_t total = 0;
};

BlockList blocks_of(const DeviceCase& of) {
  BlockList blocks;
  for (Rank rank = 0; rank < of.ranks; ++rank) {
    blocks.counts.push_back(of.count + (of.algorithm->needs.uniform ? 0 : rank % 2));
    blocks.offsets.push_back(blocks.total);
    blocks.total += blocks.counts.back();
  }
  return blocks;
}

std::vector<uint32_t> hosts_of(const DeviceCase& of) {
  std::vector<uint32_t> hosts;
  for (Rank rank = 0; of.algorithm->needs.hosts && rank < of.ranks; ++rank) {
    hosts.push_back(2 * rank / of.ranks);
  }
  return hosts;
}

// One rank's part of a case.
class DeviceMember final : public Channels {
 public:
  DeviceMember(const DeviceCase& of, const BlockList& blocks, Rank rank, LoopbackHub& hub)
      : rank_(rank), endpoint_(hub.endpoint(id_of(rank))), random_(of.seed * 977 + rank) {
    call_.collective = of.algorithm->collective;
    call_.root = of.root;
    call_.element = element_bytes;
    call_.reduction.kernel = mix;
    const bool scatters = call_.collective == Collective::reduce_scatter;
    const bool has_output = (call_.collective != Collective::reduce || rank == of.root) &&
                            operands_of(call_.collective, rank, of.ranks) > 0;
    call_.bytes = (scatters ? blocks.total : of.count) * element_bytes;
    call_.input.count = of.count;
    if (scatters) {
      call_.input.counts = blocks.counts;
      call_.input.offsets = blocks.offsets;
    }
    call_.output.count = scatters ? blocks.counts[rank] : of.count;
    if (of.devices >> rank & 1) {
      device.emplace(random_(), call_.reduction, element_bytes);
      call_.device = &*device;
    }
    place(has_output, of.in_place && !scatters);
  }

  Result<Channel*> channel(Rank peer) override {
    auto& channel = channels_[peer];
    if (!channel) {
      auto opened = endpoint_->open({id_of(0), 1}, {id_of(peer), endpoint_->address(), "a rank"});
      if (!opened.ok()) return opened.status();
      channel = std::move(*opened);
    }
    return channel.get();
  }

  Status start(const DeviceCase& of) {
    const std::vector<uint32_t> hosts = hosts_of(of);
    const Shape shape{rank_, of.ranks, of.root, 3, hosts};
    schedule_.emplace(of.algorithm, of.root, of.algorithm->plan(shape));
    if (device) needs = execution.measure(*schedule_, call_, of.segment);
    return execution.start(*schedule_, call_, 1, of.segment, *this);
  }
  Execution::State advance() {
    endpoint_->progress();
    return execution.advance();
  }
  // The whole output, and the input, which a plan must not change.
  ByteVector result() {
    const std::byte* const output = call_.output.base;
    if (!output) return {};
    if (device) return device->read(output, output_bytes_);
    return {output, output + output_bytes_};
  }
  bool has_its_input() {
    if (call_.input.base == call_.output.base) return true;
    const std::byte* const begin = call_.input.base;
    const ByteVector now =
        device ? device->read(begin, input_.size()) : ByteVector(begin, begin + input_.size());
    return now == input_;
  }
  void cancel() { execution.cancel(); }

  std::optional<FakeDevice> device;
  DeviceNeeds needs;
  Execution execution;

 private:
  static ProcessId id_of(Rank rank) { return {7, rank + 1}; }

  void place(bool has_output, bool in_place) {
    size_t elements = call_.input.count;
    if (!call_.input.counts.empty()) {
      elements = call_.input.offsets.back() + call_.input.counts.back();
    }
    std::mt19937 values(rank_ + 1);  // the same in each case
    input_.resize(elements * element_bytes);
    for (std::byte& byte : input_) byte = static_cast<std::byte>(values());
    output_bytes_ = call_.output.count * element_bytes;
    const auto put = [&](ByteVector& memory, const ByteVector& content) {
      memory = content;
      return device ? device->allocate(content.size(), content.data()) : memory.data();
    };
    if (has_output) {
      const bool holds_input = in_place;
      call_.output.base = put(output_, holds_input ? input_ : ByteVector(output_bytes_));
    }
    const bool is_there = has_output && in_place;
    call_.input.base = is_there ? call_.output.base : put(own_input_, input_);
  }

  const Rank rank_;
  Call call_;
  ByteVector input_, own_input_, output_;
  size_t output_bytes_ = 0;
  std::unique_ptr<Endpoint> endpoint_;
  std::map<Rank, std::unique_ptr<Channel>> channels_;
  std::optional<Schedule> schedule_;
  std::mt19937_64 random_;
};

class DeviceRun {
 public:
  explicit DeviceRun(const DeviceCase& of)
      : of_(of),
        blocks_(blocks_of(of)),
        hub_({.window = of.seed % 2 == 0 ? size_t{512} : size_t{1} << 20, .seed = of.seed}) {
    for (Rank rank = 0; rank < of.ranks; ++rank) {
      members.push_back(std::make_unique<DeviceMember>(of_, blocks_, rank, hub_));
    }
  }
  ~DeviceRun() {
    for (auto& member : members) member->cancel();
  }

  // Until all ranks are done, or one has failed, which is returned.
  DeviceMember* run() {
    for (auto& member : members) {
      const Status status = member->start(of_);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    std::vector<bool> done(of_.ranks);
    size_t left = of_.ranks;
    for (int turn = 0; turn < 1000000 && left > 0; ++turn) {
      for (Rank rank = 0; rank < of_.ranks; ++rank) {
        if (done[rank]) continue;
        const auto state = members[rank]->advance();
        if (state == Execution::State::failed) return members[rank].get();
        if (state != Execution::State::done) continue;
        done[rank] = true;
        --left;
      }
    }
    EXPECT_EQ(left, 0U) << "hangs: " << of_;
    return nullptr;
  }
  std::vector<ByteVector> results() {
    std::vector<ByteVector> all;
    for (auto& member : members) all.push_back(member->result());
    return all;
  }

  std::vector<std::unique_ptr<DeviceMember>> members;

 private:
  const DeviceCase of_;
  const BlockList blocks_;
  LoopbackHub hub_;
};

std::vector<ByteVector> run_on_host(DeviceCase of) {
  of.devices = nowhere;
  DeviceRun run(of);
  EXPECT_EQ(run.run(), nullptr);
  return run.results();
}

void compare(const DeviceCase& of, const std::vector<ByteVector>& expected) {
  DeviceRun run(of);
  const DeviceMember* const failed = run.run();
  ASSERT_EQ(failed, nullptr) << of << ": " << failed->execution.status().message();
  ASSERT_EQ(run.results(), expected) << of;
  for (auto& member : run.members) {
    ASSERT_TRUE(member->has_its_input()) << of;
    if (!member->device) continue;
    ASSERT_EQ(member->needs.scratch, member->device->asked.scratch) << of;
    ASSERT_EQ(member->needs.bounce, member->device->asked.bounce) << of;
  }
}

// (Algorithms in shared memory have no plan.)
template <typename Each>
void for_each_reduction(const std::vector<Rank>& sizes, const Each& each) {
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.plan || !is_reducing(algorithm.collective)) continue;
    for (const Rank ranks : sizes) {
      DeviceCase of{&algorithm, ranks, 0, 0, 256, false, everywhere, 1};
      if (!can_serve(algorithm, ranks, false, false, hosts_of(of))) continue;
      if (is_rooted(algorithm.collective)) of.root = ranks / 2;
      each(of);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

std::vector<Rank> device_ranks() {
  return sweep<Rank>({1, 2, 3, 4, 5, 7, 8, 13}, {1, 2, 3, 4, 7, 8}, {2, 4, 5});
}

TEST(DeviceCollectives, ReductionsOnDevicesGiveTheBitsOfTheHost) {
  uint64_t seed = 1;
  for_each_reduction(device_ranks(), [&](DeviceCase of) {
    // (In segments of 64 elements; 1 and 5 leave ranks without an element of their own.)
    for (const size_t count : sweep<size_t>({0, 1, 5, 64, 777, 2001}, {0, 5, 777}, {5, 777})) {
      of.count = count;
      const std::vector<ByteVector> expected = run_on_host(of);
      for (const bool in_place : {false, true}) {
        for (const uint64_t devices : {everywhere, seed * 0x9e3779b97f4a7c15 >> 11}) {
          of.in_place = in_place;
          of.devices = devices;
          of.seed = seed++;
          ASSERT_NO_FATAL_FAILURE(compare(of, expected));
        }
      }
    }
  });
}

TEST(DeviceCollectives, AFailureAtAnyPieceOfWorkFailsTheCallHere) {
  for_each_reduction({4}, [&](DeviceCase of) {
    of.count = 777;
    for (size_t fails_at = 1;; fails_at += sweep<size_t>(1, 5, 9)) {
      of.seed = fails_at;
      DeviceRun run(of);
      run.members[1]->device->fails_at = fails_at;
      const DeviceMember* const failed = run.run();
      if (!failed) {
        EXPECT_GT(fails_at, 1U) << of;
        EXPECT_GT(fails_at, run.members[1]->device->begun()) << of;
        return;
      }
      ASSERT_EQ(failed, run.members[1].get()) << of;
      ASSERT_TRUE(failed->execution.failed_here()) << of;
      ASSERT_EQ(failed->execution.status().message(), "a fake failure") << of;
    }
  });
}

TEST(DeviceCollectives, ADeviceWithoutMemoryFailsTheStart) {
  for_each_reduction({4}, [&](DeviceCase of) {
    of.count = 777;
    DeviceRun run(of);
    run.members[0]->device->lacks_memory = true;
    const Status status = run.members[0]->start(of);
    EXPECT_EQ(status.code(), Code::memory) << of;
  });
}

}  // namespace
}  // namespace sluice
