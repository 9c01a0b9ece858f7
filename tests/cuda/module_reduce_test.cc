// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions of the CUDA module, over the stand-in driver: each kernel beside the host's.
#include <algorithm>
#include <functional>
#include <random>

#include "src/reduce/kernel.h"
#include "tests/cuda/module_rig.h"
#include "tests/cuda/random_elements.h"

namespace test {
namespace {

using sluice::Op;
using sluice::Type;

// The module's own names for types and operations mean the host's.
#define SAME_TYPE(name) \
  static_assert(static_cast<int>(Type::name) == static_cast<int>(sluice_cuda_##name))
SAME_TYPE(int8);
SAME_TYPE(int16);
SAME_TYPE(int32);
SAME_TYPE(int64);
SAME_TYPE(uint8);
SAME_TYPE(uint16);
SAME_TYPE(uint32);
SAME_TYPE(uint64);
SAME_TYPE(float16);
SAME_TYPE(bfloat16);
SAME_TYPE(float32);
SAME_TYPE(float64);
SAME_TYPE(float80);
SAME_TYPE(float128);
SAME_TYPE(complex64);
SAME_TYPE(complex128);
SAME_TYPE(complex160);
SAME_TYPE(complex256);
SAME_TYPE(logical8);
SAME_TYPE(logical16);
SAME_TYPE(logical32);
SAME_TYPE(logical64);
SAME_TYPE(float32_int32);
SAME_TYPE(float64_int32);
SAME_TYPE(int64_int32);
SAME_TYPE(int32_int32);
SAME_TYPE(int16_int32);
SAME_TYPE(float80_int32);
SAME_TYPE(float32_float32);
SAME_TYPE(float64_float64);
static_assert(sluice::type_count == sluice_cuda_types);
#define SAME_OPERATION(name) \
  static_assert(static_cast<int>(Op::name) == static_cast<int>(sluice_cuda_##name))
SAME_OPERATION(sum);
SAME_OPERATION(prod);
SAME_OPERATION(min);
SAME_OPERATION(max);
SAME_OPERATION(logical_and);
SAME_OPERATION(logical_or);
SAME_OPERATION(logical_xor);
SAME_OPERATION(bit_and);
SAME_OPERATION(bit_or);
SAME_OPERATION(bit_xor);
SAME_OPERATION(minloc);
SAME_OPERATION(maxloc);
static_assert(sluice::op_count == sluice_cuda_operations);

// Which a device has no arithmetic for.
bool is_hosts_alone(Type type) {
  return type == Type::float80 || type == Type::float128 || type == Type::complex160 ||
         type == Type::complex256 || type == Type::float80_int32;
}

// One call: where its operands and its result lie in a buffer that a device and the host have.
struct Case {
  Type type;
  Op op;
  size_t elements;
  std::vector<size_t> operands;  // offsets
  size_t out;
};

class Reductions : public Module {
 protected:
  static constexpr size_t room = size_t{1} << 20;

  void SetUp() override {
    Module::SetUp();
    device_ = static_cast<std::byte*>(allocate(room));
    host_.resize(room);
    back_.resize(room);
    char why[sluice_cuda_why] = "";
    stream_ = cuda->open(&place_, why);
    ASSERT_TRUE(stream_) << why;
  }
  void TearDown() override {
    cuda->close(stream_, 1);
    free(device_);
    Module::TearDown();
  }

  // Operands one behind the other, each so far behind a multiple of 64 as `shift` says; 0: the
  // result has a place of its own, else that of this operand.
  Case make_case(Type type, Op op, size_t elements, size_t count,
                 const std::function<size_t()>& shift, size_t in_place) {
    Case made{type, op, elements, {}, 0};
    const size_t bytes = (elements * size_of(type) + 127) / 64 * 64;
    for (size_t i = 0; i <= count; ++i) made.operands.push_back(64 + i * (bytes + 64) + shift());
    made.out = made.operands.back();
    made.operands.pop_back();
    if (in_place > 0) made.out = made.operands[(in_place - 1) % count];
    used_ = 64 + (count + 1) * (bytes + 64) + 64;
    EXPECT_LE(used_, room);
    return made;
  }

  // Makes the call on the device and on the host; all bytes of the buffer must be alike then.
  void compare(const Case& each) {
    char why[sluice_cuda_why] = "";
    for (size_t i = 0; i < used_; ++i) host_[i] = static_cast<std::byte>(i * 7);
    for (const size_t operand : each.operands) {
      fill_at_random(each.type, &host_[operand], each.elements, &random_);
    }
    std::vector<const void*> operands;
    for (const size_t operand : each.operands) operands.push_back(device_ + operand);
    copy(stream_, device_, host_.data(), used_, true);
    ASSERT_EQ(
        cuda->reduce(stream_, static_cast<int>(each.type), static_cast<int>(each.op),
                     operands.data(), operands.size(), device_ + each.out, each.elements, why),
        0)
        << why;
    copy(stream_, device_, back_.data(), used_, false);
    ASSERT_EQ(finish(stream_, why), 1) << why;
    reduce_on_host(each);
    const auto wrong = std::mismatch(host_.begin(), host_.begin() + used_, back_.begin());
    const auto at = static_cast<size_t>(wrong.first - host_.begin());
    ASSERT_EQ(at, used_) << to_string(each.op) << " of " << to_string(each.type) << ", "
                         << each.operands.size() << " operands of " << each.elements << ", out at "
                         << each.out << ": differs at " << at;
  }

  void reduce_on_host(const Case& each) {
    const auto kernel = find_kernel(each.op, each.type);
    std::vector<std::byte> result(each.elements * size_of(each.type));
    const void* left = &host_[each.operands[0]];
    for (size_t i = 1; i < each.operands.size(); ++i) {
      kernel(left, &host_[each.operands[i]], result.data(), each.elements, nullptr);
      left = result.data();
    }
    if (each.elements > 0) std::memcpy(&host_[each.out], result.data(), result.size());
  }

  std::byte* device_ = nullptr;
  std::vector<std::byte> host_, back_;
  size_t used_ = 0;
  SluiceCudaStream* stream_ = nullptr;
  std::mt19937_64 random_{std::random_device{}()};
};

class EachReduction : public Reductions, public testing::WithParamInterface<uint32_t> {};

// Of all lengths, aligned and not, in place and not.
TEST_P(EachReduction, HasTheHostsBits) {
  const auto seed = std::random_device{}();
  random_.seed(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Type type = static_cast<Type>(GetParam());
  const size_t element = size_of(type);
  for (uint32_t number = 0; number < sluice::op_count; ++number) {
    const Op op = static_cast<Op>(number);
    const bool is_there = find_kernel(op, type) && !is_hosts_alone(type);
    ASSERT_EQ(cuda->can_reduce(static_cast<int>(type), static_cast<int>(number)), is_there ? 1 : 0);
    if (!is_there) continue;
    size_t common = 0;
    const std::function<size_t()> shifts[] = {
        [] { return size_t{0}; },
        [&] { return common * element; },
        [&] { return random_() % 16 * element % 64; },
        [&] { return random_() % 16; },
    };
    for (const size_t count : {2, 3, 16}) {
      for (const auto& shift : shifts) {
        for (const size_t elements : {1, 2, 7, 16, 33, 300}) {
          common = random_() % 16;
          compare(make_case(type, op, elements, count, shift, random_() % (count + 1)));
          if (HasFatalFailure()) return;
        }
      }
    }
    compare(make_case(type, op, 0, 2, shifts[0], 0));
    compare(make_case(type, op, 10007, 2, shifts[1], 0));
    if (HasFatalFailure()) return;
  }
}

std::string name_of_type(const testing::TestParamInfo<uint32_t>& info) {
  return std::string(to_string(static_cast<Type>(info.param)));
}
INSTANTIATE_TEST_SUITE_P(All, EachReduction, testing::Range(0U, sluice::type_count), name_of_type);

// More items than a grid has threads.
TEST_F(Reductions, AreAsLongAsWanted) {
  const size_t elements = (size_t{1} << 20) + 4099;
  auto* const memory = static_cast<unsigned char*>(allocate(3 * elements));
  std::vector<unsigned char> host(3 * elements);
  for (unsigned char& each : host) each = static_cast<unsigned char>(random_());
  char why[sluice_cuda_why] = "";
  copy(stream_, memory, host.data(), host.size(), true);
  // (Apart by an odd number, so that each element is an item.)
  const void* const operands[] = {memory, memory + elements};
  ASSERT_EQ(cuda->reduce(stream_, sluice_cuda_uint8, sluice_cuda_sum, operands, 2,
                         memory + 2 * elements, elements, why),
            0)
      << why;
  std::vector<unsigned char> back(elements);
  copy(stream_, memory + 2 * elements, back.data(), elements, false);
  ASSERT_EQ(finish(stream_, why), 1) << why;
  for (size_t i = 0; i < elements; ++i) {
    ASSERT_EQ(back[i], static_cast<unsigned char>(host[i] + host[i + elements])) << i;
  }
  free(memory);
}

// The driver compiles little, and that once a context.
TEST_F(Reductions, LoadWhatTheyNeedOnceAContext) {
  const auto sum = [&](int type, SluiceCudaStream* stream, void* memory) {
    char why[sluice_cuda_why] = "";
    const void* const operands[] = {memory, memory};
    EXPECT_EQ(cuda->reduce(stream, type, sluice_cuda_sum, operands, 2, memory, 4, why), 0) << why;
    EXPECT_EQ(finish(stream, why), 1) << why;
  };
  const int64_t launches = count("launches");
  for (int i = 0; i < 3; ++i) sum(sluice_cuda_int32, stream_, device_);
  sum(sluice_cuda_uint32, stream_, device_);
  EXPECT_EQ(count("modules"), 1);
  sum(sluice_cuda_float32, stream_, device_);
  sum(sluice_cuda_complex64, stream_, device_);
  EXPECT_EQ(count("modules"), 2);
  EXPECT_EQ(count("launches") - launches, 6);
}

TEST_F(Reductions, OfNothingOnlyLoad) {
  char why[sluice_cuda_why] = "";
  const void* const none[2] = {};
  const auto prepare = [&] {
    return cuda->reduce(stream_, sluice_cuda_int16, sluice_cuda_sum, none, 2, nullptr, 0, why);
  };
  const int64_t launches = count("launches");
  EXPECT_EQ(prepare(), 0) << why;
  EXPECT_EQ(count("modules"), 1);
  EXPECT_EQ(count("launches"), launches);
}

// The handles of modules in a context that is gone mean nothing any more.
TEST_F(Reductions, ForgetWhatWasLoadedInContextsThatAreGone) {
  const auto reset = call<decltype(cuDevicePrimaryCtxReset_v2)>("cuDevicePrimaryCtxReset_v2");
  for (int i = 0; i < 3; ++i) {
    char why[sluice_cuda_why] = "";
    CUcontext context = nullptr;
    EXPECT_EQ(call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 1),
              CUDA_SUCCESS);
    const SluiceCudaPlace place{context, 1};
    CUdeviceptr pointer = 0;
    call<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(context);
    EXPECT_EQ(call<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&pointer, 64), CUDA_SUCCESS);
    call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&context);
    void* const memory = reinterpret_cast<void*>(static_cast<uintptr_t>(pointer));
    const void* const operands[] = {memory, memory};
    SluiceCudaStream* const stream = cuda->open(&place, why);
    ASSERT_TRUE(stream) << why;
    EXPECT_EQ(
        cuda->reduce(stream, sluice_cuda_int32, sluice_cuda_sum, operands, 2, memory, 16, why), 0)
        << why;
    EXPECT_EQ(finish(stream, why), 1) << why;
    cuda->close(stream, 1);
    EXPECT_EQ(count("modules"), 1);
    EXPECT_EQ(reset(1), CUDA_SUCCESS);
    EXPECT_EQ(count("modules"), 0);
    EXPECT_EQ(call<decltype(cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease")(1),
              CUDA_SUCCESS);
  }
}

TEST_F(Reductions, RefuseWhatIsNone) {
  char why[sluice_cuda_why] = "";
  const std::vector<const void*> operands(17, device_);
  const auto reduce = [&](int type, int operation, size_t count) {
    return cuda->reduce(stream_, type, operation, operands.data(), count, device_, 1, why);
  };
  EXPECT_EQ(reduce(sluice_cuda_float80, sluice_cuda_sum, 2), -1);
  EXPECT_STREQ(why, "no kernel for operation 0 on type 12 and 2 operands");
  EXPECT_EQ(reduce(sluice_cuda_float32, sluice_cuda_bit_and, 2), -1);
  EXPECT_EQ(reduce(sluice_cuda_types, sluice_cuda_sum, 2), -1);
  EXPECT_EQ(reduce(-1, sluice_cuda_sum, 2), -1);
  EXPECT_EQ(reduce(sluice_cuda_int8, sluice_cuda_sum, 1), -1);
  EXPECT_EQ(reduce(sluice_cuda_int8, sluice_cuda_sum, 17), -1);
  EXPECT_EQ(cuda->can_reduce(sluice_cuda_types, sluice_cuda_sum), 0);
  EXPECT_EQ(cuda->can_reduce(sluice_cuda_int8, -1), 0);
}

TEST_F(Reductions, SayWhatFailed) {
  char why[sluice_cuda_why] = "";
  const void* const operands[] = {device_, device_};
  const auto reduce = [&] {
    return cuda->reduce(stream_, sluice_cuda_int8, sluice_cuda_sum, operands, 2, device_, 5, why);
  };
  ASSERT_TRUE(fail("launch", "1"));
  EXPECT_EQ(reduce(), -1);
  EXPECT_STREQ(
      why,
      "cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES 701 (too many resources requested "
      "for launch)");
  EXPECT_EQ(reduce(), 0) << why;
  EXPECT_EQ(finish(stream_, why), 1) << why;
  EXPECT_EQ(cuda->can_reduce(sluice_cuda_int8, sluice_cuda_sum), 1);
}

}  // namespace
}  // namespace test
