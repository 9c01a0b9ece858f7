// SPDX-License-Identifier: BSD-3-Clause
//
// A call as a job of NCCL: which calls NCCL has, where their data is, and what NCCL is told of it.
// Nothing touches the memory, so addresses here are mere numbers.
#include "src/nccl/device_job.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "src/memory/whereabouts.h"

namespace sluice {
namespace {

void no_kernel(const void*, const void*, void*, size_t, const void*) {}

Call reducing_call(Collective collective, Type type, Op op) {
  Call call;
  call.collective = collective;
  call.element = size_of(type);
  call.reduction.kernel = no_kernel;
  call.reduction.arithmetic = Arithmetic{type, op};
  return call;
}

Call moving_call(Collective collective) {
  Call call;
  call.collective = collective;
  return call;
}

void* device_address(uintptr_t number) {
  return reinterpret_cast<void*>(uintptr_t{0x7000'0000'0000} + number);
}

ElementType dense_type(size_t bytes) {
  return {bytes, 0, static_cast<ptrdiff_t>(bytes), nullptr, true};
}

DevicePlace place_on(int device, uintptr_t context = 1) {
  DevicePlace place;
  place.device = device;
  place.context = reinterpret_cast<decltype(place.context)>(context);
  return place;
}

const std::map<Collective, SluiceNcclCollective> nccl_collectives = {
    {Collective::allreduce, sluice_nccl_allreduce},
    {Collective::reduce, sluice_nccl_reduce},
    {Collective::broadcast, sluice_nccl_broadcast},
    {Collective::allgather, sluice_nccl_allgather},
    {Collective::allgatherv, sluice_nccl_allgather},
    {Collective::reduce_scatter, sluice_nccl_reduce_scatter},
    {Collective::alltoall, sluice_nccl_alltoall},
};
// NCCL's type, and its bytes.
const std::map<Type, std::pair<SluiceNcclType, size_t>> nccl_types = {
    {Type::int8, {sluice_nccl_int8, 1}},         {Type::uint8, {sluice_nccl_uint8, 1}},
    {Type::int32, {sluice_nccl_int32, 4}},       {Type::uint32, {sluice_nccl_uint32, 4}},
    {Type::int64, {sluice_nccl_int64, 8}},       {Type::uint64, {sluice_nccl_uint64, 8}},
    {Type::float16, {sluice_nccl_float16, 2}},   {Type::bfloat16, {sluice_nccl_bfloat16, 2}},
    {Type::float32, {sluice_nccl_float32, 4}},   {Type::float64, {sluice_nccl_float64, 8}},
    {Type::complex64, {sluice_nccl_float32, 4}}, {Type::complex128, {sluice_nccl_float64, 8}},
};
const std::map<Op, SluiceNcclOperation> nccl_operations = {{Op::sum, sluice_nccl_sum},
                                                           {Op::prod, sluice_nccl_prod},
                                                           {Op::min, sluice_nccl_min},
                                                           {Op::max, sluice_nccl_max}};

// Sums of complex numbers are sums of their parts; nothing else of them is.
bool has_nccl(Collective collective, Type type, Op op) {
  const bool is_complex = type == Type::complex64 || type == Type::complex128;
  return nccl_collectives.contains(collective) && nccl_types.contains(type) &&
         nccl_operations.contains(op) && (!is_complex || op == Op::sum);
}

TEST(NcclTerms, EveryReduction) {
  size_t known = 0;
  for (uint32_t c = 0; c < collective_count; ++c) {
    for (uint32_t t = 0; t < type_count; ++t) {
      for (uint32_t o = 0; o < op_count; ++o) {
        const auto collective = static_cast<Collective>(c);
        const auto type = static_cast<Type>(t);
        const auto op = static_cast<Op>(o);
        SCOPED_TRACE(std::string(to_string(collective)) + " " + std::string(to_string(type)) + " " +
                     std::string(to_string(op)));
        const auto terms = nccl_terms(reducing_call(collective, type, op));
        ASSERT_EQ(terms.has_value(), has_nccl(collective, type, op));
        if (!terms) continue;
        ++known;
        EXPECT_EQ(terms->collective, nccl_collectives.at(collective));
        EXPECT_EQ(terms->type, nccl_types.at(type).first);
        EXPECT_EQ(terms->bytes, nccl_types.at(type).second);
        EXPECT_EQ(terms->operation, nccl_operations.at(op));
      }
    }
  }
  EXPECT_EQ(known, 7U * (10 * 4 + 2));
}

TEST(NcclTerms, WhatIsOnlyMovedIsBytes) {
  for (uint32_t c = 0; c < collective_count; ++c) {
    const auto collective = static_cast<Collective>(c);
    const auto terms = nccl_terms(moving_call(collective));
    ASSERT_EQ(terms.has_value(), nccl_collectives.contains(collective)) << to_string(collective);
    if (!terms) continue;
    EXPECT_EQ(terms->collective, nccl_collectives.at(collective));
    EXPECT_EQ(terms->type, sluice_nccl_uint8);
    EXPECT_EQ(terms->bytes, 1U);
  }
}

TEST(NcclTerms, OperationsOfTheProgramHaveNone) {
  Call call = reducing_call(Collective::allreduce, Type::int32, Op::sum);
  call.reduction.arithmetic = {};
  EXPECT_FALSE(nccl_terms(call));
}

// Blocks of a call.
class NcclBlocks : public testing::Test {
 protected:
  uint32_t digest(Collective collective, Numbers counts, uint32_t blocks, size_t bytes) {
    type_ = dense_type(bytes);
    UnplacedCall unplaced;
    unplaced.call = moving_call(collective);
    Side& side = collective == Collective::reduce_scatter ? unplaced.input : unplaced.output;
    side = {device_address(0), &type_, blocks, 0, counts, {}, {}};
    return digest_of_blocks(unplaced);
  }

  ElementType type_;
};

TEST_F(NcclBlocks, SizesInBytesInTheirOrder) {
  const int counts[] = {4, 0, 6}, swapped[] = {0, 4, 6}, halves[] = {8, 0, 12}, more[] = {4, 0, 7};
  const int64_t wide[] = {4, 0, 6};
  for (const Collective collective : {Collective::allgatherv, Collective::reduce_scatter}) {
    const uint32_t known = digest(collective, counts, 3, 8);
    EXPECT_NE(known, 0U);
    EXPECT_EQ(digest(collective, wide, 3, 8), known);
    EXPECT_EQ(digest(collective, halves, 3, 4), known);
    EXPECT_NE(digest(collective, swapped, 3, 8), known);
    EXPECT_NE(digest(collective, more, 3, 8), known);
    EXPECT_NE(digest(collective, counts, 3, 4), known);
    EXPECT_NE(digest(collective, counts, 2, 8), known);
  }
}

TEST_F(NcclBlocks, EqualOnesWithoutCountsAreThoseWithEqualCounts) {
  const int counts[] = {5, 5};
  UnplacedCall unplaced;
  unplaced.call = moving_call(Collective::reduce_scatter);
  const ElementType type = dense_type(4);
  unplaced.input = {device_address(0), &type, 2, 5, {}, {}, {}};
  EXPECT_EQ(digest_of_blocks(unplaced), digest(Collective::reduce_scatter, counts, 2, 4));
}

TEST_F(NcclBlocks, NoneWhereMpiHasThemEqual) {
  const int counts[] = {4, 0, 6};
  for (uint32_t c = 0; c < collective_count; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (collective == Collective::allgatherv || collective == Collective::reduce_scatter) continue;
    EXPECT_EQ(digest(collective, counts, 3, 8), 0U) << to_string(collective);
  }
}

// Where the sides of an allreduce of floats lie.
class NcclData : public testing::Test {
 protected:
  using Kind = Whereabouts::Kind;

  NcclData() {
    unplaced_.call = reducing_call(Collective::allreduce, Type::float32, Op::sum);
    unplaced_.input = {device_address(0), &type_, 1, 100, {}, {}, place_on(1)};
    unplaced_.output = {device_address(0x1000), &type_, 1, 100, {}, {}, place_on(1)};
  }
  Whereabouts find() const { return find_data(unplaced_, nccl_terms(unplaced_.call)->bytes); }
  void expect(Kind kind) const {
    const Whereabouts found = find();
    EXPECT_EQ(found.kind, kind);
    EXPECT_EQ(found.place.is_host(), kind != Kind::on_device);
  }

  ElementType type_ = dense_type(4);
  UnplacedCall unplaced_;
};

TEST_F(NcclData, DenseOnADevice) {
  const Whereabouts found = find();
  EXPECT_EQ(found.kind, Kind::on_device);
  EXPECT_EQ(found.place.device, 1);
  EXPECT_EQ(found.place.context, place_on(1).context);
  unplaced_.input.type = nullptr;
  expect(Kind::on_device);
}

TEST_F(NcclData, AnEmptySideIsNowhere) {
  unplaced_.input.place = {};
  unplaced_.input.count = 0;
  expect(Kind::on_device);
  unplaced_.output.count = 0;
  expect(Kind::elsewhere);
  unplaced_.output.type = unplaced_.input.type = nullptr;
  expect(Kind::elsewhere);
}

TEST_F(NcclData, OnTheHost) {
  unplaced_.input.place = {};
  expect(Kind::elsewhere);
  unplaced_.input.place = place_on(1);
  unplaced_.output.place = {};
  expect(Kind::elsewhere);
}

TEST_F(NcclData, OnTwoDevicesOrInTwoContexts) {
  unplaced_.input.place = place_on(0);
  expect(Kind::elsewhere);
  unplaced_.input.place = place_on(1, 2);
  expect(Kind::elsewhere);
}

// Memory of pools, and virtual memory, is in no context: each of the device's has it.
TEST_F(NcclData, WithoutAContextIsInThatOfTheOtherSide) {
  for (Side* const side : {&unplaced_.input, &unplaced_.output}) {
    unplaced_.input.place = unplaced_.output.place = place_on(1);
    side->place = place_on(1, 0);
    const Whereabouts found = find();
    EXPECT_EQ(found.kind, Kind::on_device);
    EXPECT_EQ(found.place.context, place_on(1).context);
    side->place = place_on(0, 0);
    expect(Kind::elsewhere);
  }
  unplaced_.input.place = unplaced_.output.place = place_on(1, 0);
  EXPECT_EQ(find().kind, Kind::on_device);
  EXPECT_EQ(find().place.context, nullptr);
}

TEST_F(NcclData, Unknown) {
  unplaced_.input.place.device = DevicePlace::unknown;
  expect(Kind::unknown);
  unplaced_.input.place = place_on(1);
  unplaced_.output.place.device = DevicePlace::unknown;
  expect(Kind::unknown);
}

TEST_F(NcclData, Gaps) {
  type_.extent = 8;
  expect(Kind::elsewhere);
  unplaced_.input.count = unplaced_.output.count = 1;  // whose gap comes after it
  expect(Kind::on_device);
  type_.run = false;
  expect(Kind::elsewhere);
}

TEST_F(NcclData, BlocksAreReducedAWholeNumberOfElementsApart) {
  type_.extent = 6;
  unplaced_.call = moving_call(Collective::allgather);
  unplaced_.input.count = 1;
  unplaced_.output.blocks = 3;
  unplaced_.output.count = 1;
  expect(Kind::on_device);
  unplaced_.call = reducing_call(Collective::allreduce, Type::float32, Op::sum);
  expect(Kind::elsewhere);
}

TEST_F(NcclData, Unaligned) {
  unplaced_.input.buffer = device_address(2);
  expect(Kind::elsewhere);
  unplaced_.call = moving_call(Collective::allgather);  // of bytes
  expect(Kind::on_device);
  unplaced_.call = reducing_call(Collective::allreduce, Type::float32, Op::sum);
  type_.start = 2;
  unplaced_.output.type = nullptr;
  expect(Kind::on_device);  // where its first byte is
  type_.start = 1;
  expect(Kind::elsewhere);
}

// What NCCL is told by rank 2 of 4.
class NcclJobOfRank : public testing::Test {
 protected:
  static constexpr Rank rank = 2, ranks = 4;

  const SluiceNcclJob& describe() {
    job_.describe(unplaced_, *nccl_terms(unplaced_.call), staging_);
    return job_.job();
  }
  const SluiceNcclJob& describe_sizes() {
    job_.describe_sizes(unplaced_, *nccl_terms(unplaced_.call), staging_);
    return job_.job();
  }
  void reduce_by(Collective collective, Type type) {
    unplaced_.call = reducing_call(collective, type, Op::sum);
    type_ = dense_type(size_of(type));
  }
  void move_by(Collective collective, size_t bytes) {
    unplaced_.call = moving_call(collective);
    type_ = dense_type(bytes);
  }
  Side side(void* at, size_t count, uint32_t blocks = 1) {
    return {at, &type_, blocks, count, {}, {}, place_on(0)};
  }
  static void expect(const SluiceNcclSide& side, const void* memory, size_t count) {
    EXPECT_EQ(side.memory, memory);
    EXPECT_EQ(side.count, count);
    EXPECT_EQ(side.on_host, 0);
    EXPECT_EQ(side.offsets, nullptr);
  }
  static void expect(const SluiceNcclSide& side, const void* memory,
                     const std::vector<size_t>& counts, const std::vector<size_t>& offsets) {
    EXPECT_EQ(side.memory, memory);
    ASSERT_TRUE(side.counts && side.offsets);
    EXPECT_EQ(std::vector(side.counts, side.counts + counts.size()), counts);
    EXPECT_EQ(std::vector(side.offsets, side.offsets + offsets.size()), offsets);
  }

  void* const at_ = device_address(0x10000);
  void* const to_ = device_address(0x20000);
  ElementType type_;
  UnplacedCall unplaced_;
  StagingPair staging_;
  DeviceJob job_{rank};
};

TEST_F(NcclJobOfRank, OneBlock) {
  reduce_by(Collective::allreduce, Type::float64);
  unplaced_.input = side(at_, 100);
  unplaced_.output = side(to_, 100);
  const SluiceNcclJob& job = describe();
  EXPECT_EQ(job.collective, sluice_nccl_allreduce);
  EXPECT_EQ(job.type, sluice_nccl_float64);
  EXPECT_EQ(job.operation, sluice_nccl_sum);
  expect(job.in, at_, 100);
  expect(job.out, to_, 100);
  unplaced_.input = unplaced_.output;  // MPI_IN_PLACE
  describe();
  EXPECT_EQ(job.in.memory, nullptr);
  expect(job.out, to_, 100);
}

TEST_F(NcclJobOfRank, RootsAndOthers) {
  reduce_by(Collective::reduce, Type::int32);
  unplaced_.call.root = 1;
  unplaced_.input = side(at_, 100);
  const SluiceNcclJob& job = describe();
  EXPECT_EQ(job.root, 1);
  expect(job.in, at_, 100);
  EXPECT_EQ(job.out.memory, nullptr);
  unplaced_.call.root = rank;
  unplaced_.input = unplaced_.output = side(to_, 100);
  describe();
  EXPECT_EQ(job.root, static_cast<int>(rank));
  EXPECT_EQ(job.in.memory, nullptr);
  expect(job.out, to_, 100);
  move_by(Collective::broadcast, 4);
  unplaced_.input = {};
  describe();
  EXPECT_EQ(job.type, sluice_nccl_uint8);
  EXPECT_EQ(job.in.memory, nullptr);
  expect(job.out, to_, 400);
}

TEST_F(NcclJobOfRank, EqualBlocks) {
  move_by(Collective::allgather, 4);
  unplaced_.input = side(at_, 100);
  unplaced_.output = side(to_, 100, ranks);
  const SluiceNcclJob& job = describe();
  expect(job.in, at_, 400);
  expect(job.out, to_, 400);
  unplaced_.input.buffer = offset_by(to_, rank * 400);  // MPI_IN_PLACE
  describe();
  EXPECT_EQ(job.in.memory, nullptr);
  unplaced_.input.buffer = to_;  // which is in place on rank 0 alone
  describe();
  EXPECT_EQ(job.in.memory, to_);
}

TEST_F(NcclJobOfRank, BlocksWithGapsBetweenThem) {
  move_by(Collective::allgatherv, 4);
  const int counts[] = {10, 0, 30, 5}, displacements[] = {60, -1000, 20, 8};
  unplaced_.input = side(at_, 30);
  unplaced_.output = {to_, &type_, ranks, 0, counts, displacements, place_on(0)};
  const SluiceNcclJob& job = describe();
  expect(job.in, at_, 120);
  expect(job.out, offset_by(to_, 32), {40, 0, 120, 20}, {208, 0, 48, 0});
  unplaced_.input.buffer = offset_by(to_, 80);  // MPI_IN_PLACE
  describe();
  EXPECT_EQ(job.in.memory, nullptr);
  unplaced_.output = side(to_, 30, ranks);  // nothing is left of the blocks before
  describe();
  expect(job.out, to_, 120);
  EXPECT_EQ(job.out.counts, nullptr);
}

TEST_F(NcclJobOfRank, UnevenBlocksThatAreReduced) {
  reduce_by(Collective::reduce_scatter, Type::int64);
  const int64_t counts[] = {7, 0, 1, 2};
  unplaced_.input = {at_, &type_, ranks, 0, counts, {}, place_on(0)};
  unplaced_.output = side(to_, 1);
  const SluiceNcclJob& job = describe();
  expect(job.in, at_, {7, 0, 1, 2}, {0, 0, 7, 8});
  expect(job.out, to_, 1);
  unplaced_.input.buffer = to_;
  unplaced_.set_aside = true;  // MPI_IN_PLACE: the whole input is where the output begins
  describe();
  expect(job.in, nullptr, {7, 0, 1, 2}, {0, 0, 7, 8});
  expect(job.out, to_, 1);
}

TEST_F(NcclJobOfRank, AlltoallInPlace) {
  move_by(Collective::alltoall, 2);
  unplaced_.input = side(at_, 50, ranks);
  unplaced_.output = side(to_, 50, ranks);
  const SluiceNcclJob& job = describe();
  expect(job.in, at_, 100);
  unplaced_.input = unplaced_.output;
  unplaced_.set_aside = true;
  describe();
  EXPECT_EQ(job.in.memory, nullptr);
  expect(job.out, to_, 100);
}

// Each is two elements of NCCL's.
TEST_F(NcclJobOfRank, ComplexNumbers) {
  reduce_by(Collective::allreduce, Type::complex128);
  unplaced_.input = side(at_, 100);
  unplaced_.output = side(to_, 100);
  const SluiceNcclJob& job = describe();
  EXPECT_EQ(job.type, sluice_nccl_float64);
  expect(job.in, at_, 200);
  expect(job.out, to_, 200);
  reduce_by(Collective::reduce_scatter, Type::complex64);
  const int counts[] = {3, 0, 2, 1};
  unplaced_.input = {at_, &type_, ranks, 0, counts, {}, place_on(0)};
  unplaced_.output = side(to_, 2);
  describe();
  EXPECT_EQ(job.type, sluice_nccl_float32);
  expect(job.in, at_, {6, 0, 4, 2}, {0, 0, 6, 10});
  expect(job.out, to_, 4);
}

// Where data is not dense on the device, its sizes are those of the packed data.
TEST_F(NcclJobOfRank, SizesOfDataElsewhere) {
  reduce_by(Collective::reduce_scatter, Type::float32);
  const int counts[] = {3, 0, 2, 1};
  type_.extent = 12;
  unplaced_.input = {at_, &type_, ranks, 0, counts, {}, {}};
  unplaced_.output = side(to_, 2);
  const SluiceNcclJob& job = describe_sizes();
  expect(job.in, at_, {3, 0, 2, 1}, {0, 3, 3, 5});
  EXPECT_EQ(job.out.memory, to_);
  EXPECT_EQ(job.out.count, 2U);
  EXPECT_TRUE(job.in.on_host && job.out.on_host);
  move_by(Collective::alltoall, 6);
  type_.extent = 8;
  unplaced_.input = side(at_, 50, ranks);
  unplaced_.output = side(to_, 50, ranks);
  describe_sizes();
  EXPECT_EQ(job.in.count, 300U);
  EXPECT_EQ(job.out.count, 300U);
  EXPECT_EQ(job.in.offsets, nullptr);
}

// After Placement has set the call's views.
TEST_F(NcclJobOfRank, DataOnTheHost) {
  std::vector<std::byte> packed(400);
  Call call = reducing_call(Collective::allreduce, Type::complex64, Op::sum);
  call.output.base = packed.data();
  call.output.count = 50;
  call.input = call.output;
  const NcclTerms terms = *nccl_terms(call);
  job_.describe_on_host(call, terms);
  const SluiceNcclJob& job = job_.job();
  EXPECT_EQ(job.in.memory, nullptr);
  EXPECT_EQ(job.out.memory, packed.data());
  EXPECT_EQ(job.out.count, 100U);
  EXPECT_TRUE(job.out.on_host);
  std::vector<std::byte> more(400);
  call.input.base = more.data();
  job_.describe_on_host(call, terms);
  EXPECT_EQ(job.in.memory, more.data());
  EXPECT_EQ(job.in.count, 100U);
  EXPECT_TRUE(job.in.on_host);
}

}  // namespace
}  // namespace sluice
