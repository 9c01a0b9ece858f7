// SPDX-License-Identifier: BSD-3-Clause
//
// The NCCL part of the CUDA module: random jobs of every collective, compared byte for byte with
// what the host computes. Each rank is a thread, and has its sides where chance wants.
#include <atomic>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>

#include "tests/cuda/nccl_module_rig.h"

namespace nccl_module {
namespace {

using Random = std::mt19937;
using Counts = std::vector<size_t>;

size_t below(Random& random, size_t limit) { return random() % limit; }
bool is_heads(Random& random) { return random() % 2 == 0; }

constexpr size_t element_sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

// Small whole numbers, which every type can hold.
template <typename Stored>
Bytes bytes_of(Stored value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
uint16_t half_of(int value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t exponent = bits >> 23 & 255;
  if (exponent == 0) return 0;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | (exponent - 112) << 10 |
                               (bits >> 13 & 1023));
}
Bytes encode(SluiceNcclType type, int value) {
  switch (type) {
    case sluice_nccl_int8:
    case sluice_nccl_uint8:
      return bytes_of(static_cast<int8_t>(value));
    case sluice_nccl_int32:
    case sluice_nccl_uint32:
      return bytes_of(static_cast<int32_t>(value));
    case sluice_nccl_int64:
    case sluice_nccl_uint64:
      return bytes_of(static_cast<int64_t>(value));
    case sluice_nccl_float16:
      return bytes_of(half_of(value));
    case sluice_nccl_float32:
      return bytes_of(static_cast<float>(value));
    case sluice_nccl_float64:
      return bytes_of(static_cast<double>(value));
    default:
      return bytes_of(
          static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16));
  }
}

// A job as all ranks know it.
struct Case {
  SluiceNcclCollective collective;
  SluiceNcclType type;
  SluiceNcclOperation operation;
  size_t ranks, root;
  bool is_in_place;
  unsigned seed;               // of what ranks choose by themselves
  std::vector<Counts> counts;  // counts[from][to]: elements of a block

  bool is_signed() const {
    return type != sluice_nccl_uint8 && type != sluice_nccl_uint32 && type != sluice_nccl_uint64;
  }
  // An element of the block that rank `from` has for rank `to`.
  int operand(size_t from, size_t to, size_t i) const {
    const auto mixed = static_cast<int>((from * 7 + to * 13 + i * 3 + seed) % 5);
    if (operation == sluice_nccl_prod) return mixed % 2 + 1;
    return is_signed() ? mixed - 2 : mixed;
  }
  int reduced(size_t to, size_t i) const {
    int value = operand(0, to, i);
    for (size_t from = 1; from < ranks; ++from) {
      const int other = operand(from, to, i);
      if (operation == sluice_nccl_sum) value += other;
      if (operation == sluice_nccl_prod) value *= other;
      if (operation == sluice_nccl_max) value = std::max(value, other);
      if (operation == sluice_nccl_min) value = std::min(value, other);
    }
    return value;
  }
  bool has_blocks_in() const {
    return collective == sluice_nccl_alltoall || collective == sluice_nccl_reduce_scatter;
  }
  bool has_blocks_out() const {
    return collective == sluice_nccl_alltoall || collective == sluice_nccl_allgather;
  }
  bool is_to_all() const { return !has_blocks_in(); }  // a rank sends one block
};

size_t random_count(Random& random) {
  const size_t which = below(random, 8);
  return which == 0 ? 0 : which == 1 ? 3000 + below(random, 3000) : below(random, 20);
}

std::vector<Counts> random_counts(Random& random, SluiceNcclCollective collective, size_t ranks,
                                  bool is_symmetric) {
  std::vector<Counts> counts(ranks, Counts(ranks, random_count(random)));
  const bool is_even = collective < sluice_nccl_allgather || below(random, 3) == 0;
  for (size_t from = 0; from < ranks && !is_even; ++from) {
    const size_t own = random_count(random);
    for (size_t to = 0; to < ranks; ++to) {
      size_t& count = counts[from][to];
      if (collective == sluice_nccl_allgather) count = own;
      if (collective == sluice_nccl_reduce_scatter) {
        count = from == 0 ? random_count(random) : counts[0][to];
      }
      if (collective == sluice_nccl_alltoall) {
        count = is_symmetric && to < from ? counts[to][from] : random_count(random);
      }
    }
  }
  return counts;
}

Case random_case(Random& random, SluiceNcclCollective collective, size_t ranks) {
  Case made{};
  made.collective = collective;
  made.type = static_cast<SluiceNcclType>(below(random, 10));
  made.operation = static_cast<SluiceNcclOperation>(below(random, 4));
  made.ranks = ranks;
  made.root = below(random, ranks);
  made.is_in_place = collective != sluice_nccl_broadcast && is_heads(random);
  made.seed = static_cast<unsigned>(random());
  made.counts = random_counts(random, collective, ranks, made.is_in_place);
  return made;
}

// Where blocks lie in a memory. Without offsets they are consecutive.
struct Layout {
  Counts counts, offsets;
  bool has_offsets = false;
  size_t elements = 0;

  SluiceNcclSide fill(SluiceNcclSide side) const {
    side.count = counts[0];
    side.counts = has_offsets ? counts.data() : nullptr;
    side.offsets = has_offsets ? offsets.data() : nullptr;
    return side;
  }
};

// Consecutive, or in any order with gaps.
Layout random_layout(Random& random, Counts counts) {
  Layout made{std::move(counts), {}};
  const size_t blocks = made.counts.size();
  std::vector<size_t> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  const bool is_even = std::count(made.counts.begin(), made.counts.end(), made.counts[0]) ==
                       static_cast<std::ptrdiff_t>(blocks);
  const bool is_consecutive = blocks == 1 || is_heads(random);
  made.has_offsets = blocks > 1 && (!is_even || !is_consecutive || is_heads(random));
  made.offsets.resize(blocks);
  if (!is_consecutive) std::shuffle(order.begin(), order.end(), random);
  for (const size_t block : order) {
    if (!is_consecutive) made.elements += below(random, 4);
    made.offsets[block] = made.elements;
    made.elements += made.counts[block];
  }
  made.elements += is_consecutive ? 0 : below(random, 4);
  return made;
}

// The contents of a memory before and after a job.
struct Picture {
  Bytes before, after;

  Picture(Random& random, size_t bytes) : before(bytes) {
    for (std::byte& each : before) each = static_cast<std::byte>(random());
    after = before;
  }
  // Elements of a block at an offset; also_before: it is an operand.
  template <typename ValueOf>
  void put(SluiceNcclType type, size_t offset, size_t count, bool also_before, ValueOf value_of) {
    for (size_t i = 0; i < count; ++i) {
      const Bytes value = encode(type, value_of(i));
      const auto at = static_cast<std::ptrdiff_t>((offset + i) * value.size());
      std::copy(value.begin(), value.end(), after.begin() + at);
      if (also_before) std::copy(value.begin(), value.end(), before.begin() + at);
    }
  }
};

// One rank's part of a case.
class Part {
 public:
  Part(const Case& all, size_t rank)
      : all_(all), rank_(rank), random_(all.seed + static_cast<unsigned>(rank)) {
    const bool is_received = all.collective != sluice_nccl_reduce || rank == all.root;
    has_in_ = all.collective != sluice_nccl_broadcast && !(all.is_in_place && is_received);
    in_layout_ = random_layout(random_, in_counts());
    out_layout_ = random_layout(random_, out_counts());
    if (all.is_in_place && all.collective == sluice_nccl_alltoall) in_layout_ = out_layout_;
    if (has_in_) draw_input();
    if (is_received) draw_output();
  }

  SluiceNcclJob job() const {
    SluiceNcclJob made{};
    made.collective = all_.collective;
    made.type = all_.type;
    made.operation = all_.operation;
    made.root = static_cast<int>(all_.root);
    if (out_) made.out = out_->side(0);
    if (in_) made.in = in_->side(0);
    made.in = in_layout_.fill(made.in);
    made.out = out_layout_.fill(made.out);
    return made;
  }
  void expect_results() const {
    if (in_) {
      EXPECT_EQ(in_->contents(), in_picture_->after) << "the input is as before";
    }
    if (out_) {
      EXPECT_EQ(out_->contents(), out_picture_->after);
    }
  }

 private:
  Counts in_counts() const {
    const Counts& own = all_.counts[rank_];
    return all_.has_blocks_in() ? own : Counts{own[rank_]};
  }
  Counts out_counts() const {
    Counts found;
    for (size_t from = 0; from < all_.ranks; ++from) found.push_back(all_.counts[from][rank_]);
    return all_.has_blocks_out() ? found : Counts{found[rank_]};
  }
  Where random_place() { return static_cast<Where>(is_heads(random_) ? 0 : 1 + below(random_, 2)); }
  std::unique_ptr<Memory> allocate(const Picture& picture) {
    return std::make_unique<Memory>(random_place(), static_cast<int>(rank_), picture.before);
  }
  void put_operands(Picture* picture) {
    for (size_t to = 0; to < in_layout_.counts.size(); ++to) {
      picture->put(all_.type, in_layout_.offsets[to], in_layout_.counts[to], true,
                   [&](size_t i) { return all_.operand(rank_, to, i); });
    }
  }
  void draw_input() {
    in_picture_.emplace(random_, in_layout_.elements * element_sizes[all_.type]);
    put_operands(&*in_picture_);
    in_ = allocate(*in_picture_);
  }
  void draw_output() {
    const bool is_large = all_.is_in_place && all_.collective == sluice_nccl_reduce_scatter;
    const Layout& larger = is_large ? in_layout_ : out_layout_;
    // (In place the result may be longer than the blocks, because these may be anywhere.)
    const size_t elements = std::max(larger.elements, out_layout_.elements);
    out_picture_.emplace(random_, elements * element_sizes[all_.type]);
    if (all_.is_in_place && all_.collective != sluice_nccl_allgather) put_operands(&*out_picture_);
    for (size_t block = 0; block < out_layout_.counts.size(); ++block) {
      const size_t from = all_.collective == sluice_nccl_broadcast ? all_.root : block;
      const bool is_operand =
          (all_.collective == sluice_nccl_broadcast && rank_ == all_.root) ||
          (all_.collective == sluice_nccl_allgather && all_.is_in_place && block == rank_);
      out_picture_->put(all_.type, out_layout_.offsets[block], out_layout_.counts[block],
                        is_operand, [&](size_t i) { return result(from, i); });
    }
    out_ = allocate(*out_picture_);
  }
  int result(size_t from, size_t i) const {
    switch (all_.collective) {
      case sluice_nccl_allreduce:
      case sluice_nccl_reduce:
        return all_.reduced(0, i);
      case sluice_nccl_reduce_scatter:
        return all_.reduced(rank_, i);
      default:
        return all_.operand(from, all_.is_to_all() ? 0 : rank_, i);
    }
  }

  const Case& all_;
  const size_t rank_;
  Random random_;
  bool has_in_ = false;
  Layout in_layout_, out_layout_;
  std::optional<Picture> in_picture_, out_picture_;
  std::unique_ptr<Memory> in_, out_;
};

using Parameters = std::tuple<SluiceNcclCollective, int>;
class NcclJobs : public NcclModule, public testing::WithParamInterface<Parameters> {
 protected:
  // One job, from its begin to its end. False, and the group is aborted, if it or another failed.
  bool run(SluiceNcclGroup* group, const Part& part) {
    char why[sluice_cuda_why] = "";
    const SluiceNcclJob job = part.job();
    bool is_well = table()->reserve(group, &job, why) == 0 && table()->start(group, &job, why) == 0;
    SluiceNcclState state = sluice_nccl_running;
    while (is_well && !has_failed_ && state == sluice_nccl_running) {
      std::this_thread::yield();
      state = table()->advance(group, why);
    }
    is_well = is_well && state == sluice_nccl_ready;
    if (!is_well && !has_failed_.exchange(true)) ADD_FAILURE() << why;
    return is_well;
  }
  // Before the memory of a job that failed is freed: freeing waits for kernels.
  static void give_up(SluiceNcclGroup* group) {
    table()->abort(group);
    await_state({group}, sluice_nccl_ended);
  }
  void play(const std::vector<Case>& cases, const Id& id, int rank) {
    SluiceNcclGroup* const group = create(id, rank, static_cast<int>(cases[0].ranks));
    bool is_well = leave_state(group, sluice_nccl_starting) == sluice_nccl_ready;
    EXPECT_TRUE(is_well) << reason_of(group);
    if (!is_well) give_up(group);
    for (size_t number = 0; number < cases.size() && is_well; ++number) {
      const Case& now = cases[number];
      SCOPED_TRACE("case " + std::to_string(number) + " rank " + std::to_string(rank) + " type " +
                   std::to_string(now.type) + " operation " + std::to_string(now.operation) +
                   (now.is_in_place ? " in place" : ""));
      const Part part(now, static_cast<size_t>(rank));
      is_well = run(group, part);
      is_well ? part.expect_results() : give_up(group);
    }
    if (is_well) table()->end(group);
    forget_all({group});
  }

  std::atomic<bool> has_failed_{false};
};

TEST_P(NcclJobs, OfRandomShapes) {
  const auto [collective, ranks] = GetParam();
  const unsigned seed = 100U * static_cast<unsigned>(collective) + static_cast<unsigned>(ranks);
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  std::vector<Case> cases;
  for (int i = 0; i < 60; ++i) {
    cases.push_back(random_case(random, collective, static_cast<size_t>(ranks)));
  }
  const Id id = fresh_id();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { play(cases, id, rank); });
  }
  for (std::thread& each : threads) each.join();
}

// "allreduce_of_2".
std::string name_of(const testing::TestParamInfo<Parameters>& info) {
  static const char* const names[] = {"allreduce", "reduce",   "broadcast",
                                      "allgather", "alltoall", "reduce_scatter"};
  const auto [collective, ranks] = info.param;
  return std::string(names[collective]) + "_of_" + std::to_string(ranks);
}

INSTANTIATE_TEST_SUITE_P(
    Collectives, NcclJobs,
    testing::Combine(testing::Values(sluice_nccl_allreduce, sluice_nccl_reduce,
                                     sluice_nccl_broadcast, sluice_nccl_allgather,
                                     sluice_nccl_alltoall, sluice_nccl_reduce_scatter),
                     testing::Range(1, most_ranks + 1)),
    name_of);

}  // namespace
}  // namespace nccl_module
