// SPDX-License-Identifier: BSD-3-Clause
//
// gpu_kernels --driver PATH [--elements N] [--megabytes N] [--seed N]: the kernels of the CUDA
// module on a device, by the module's table of functions alone. Each reduction of N random elements
// (a million), beside the host's kernel, of 2, 3 and 16 operands, aligned and not; short runs
// packed and unpacked beside a loop; and how fast a reduction moves bytes, beside a copy within the
// device.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cuda/module.h"
#include "src/reduce/kernel.h"
#include "tests/cuda/random_elements.h"

namespace {

using sluice::Op;
using sluice::Type;

int checks = 0;
std::mt19937_64 random_bits;

[[noreturn]] void fail(const std::string& what) {
  std::printf("FAILED: %s\n", what.c_str());
  std::exit(1);
}

// Device 0, and a stream there.
class Device {
 public:
  explicit Device(const char* driver) {
    void* const handle = dlopen(driver, RTLD_NOW);
    void* const module = dlopen((build_folder() + "/.libs/libsluice-cuda.so").c_str(), RTLD_NOW);
    if (!handle || !module) fail(dlerror());
    cuda_ = reinterpret_cast<SluiceCudaEntry*>(dlsym(module, SLUICE_CUDA_SYMBOL))();
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(handle, "cuInit"));
    const SluiceCudaSettings settings{.pinned = size_t{64} << 20,
                                      .scratch = size_t{16} << 30,
                                      .blocking_streams = 0,
                                      .sync_contexts = 1};
    if (cuda_->version != SLUICE_CUDA_VERSION) fail("another version of the module");
    if (!init || init(0) != 0) fail("cuInit");
    expect(cuda_->begin(handle, &settings, why_) == 0);
    stream_ = cuda_->open(&place_, why_);
    expect(stream_ != nullptr);
  }
  ~Device() {
    cuda_->close(stream_, 1);
    cuda_->end();
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  char* allocate(size_t bytes) {
    void* const memory = cuda_->allocate(&place_, bytes, why_);
    expect(memory != nullptr);
    return static_cast<char*>(memory);
  }
  void release(void* memory) { cuda_->release(memory); }
  void copy(void* device, void* host, size_t bytes, bool to_device) {
    copy({device, host, 0, 0, 1, bytes}, to_device);
  }
  void copy(const SluiceCudaRuns& runs, bool to_device) {
    expect(cuda_->copy(stream_, &runs, 1, to_device ? 1 : 0, why_) == 0);
  }
  void copy_within(void* to, const void* from, size_t bytes) {
    expect(cuda_->copy_within(stream_, to, from, bytes, why_) == 0);
  }
  bool can_reduce(Type type, Op op) {
    return cuda_->can_reduce(static_cast<int>(type), static_cast<int>(op)) != 0;
  }
  void reduce(Type type, Op op, const std::vector<const void*>& operands, void* out,
              size_t elements) {
    expect(cuda_->reduce(stream_, static_cast<int>(type), static_cast<int>(op), operands.data(),
                         operands.size(), out, elements, why_) == 0);
  }
  void finish() {
    int reached = cuda_->mark(stream_, 0, why_);
    while (reached == 0 && (reached = cuda_->reached(stream_, 0, why_)) == 0) {
      std::this_thread::yield();
    }
    expect(reached == 1);
  }

 private:
  // This program is in tests/cuda of it.
  static std::string build_folder() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../..";
  }
  void expect(bool good) {
    if (!good) fail(why_);
  }

  const SluiceCuda* cuda_ = nullptr;
  SluiceCudaPlace place_{nullptr, 0};
  SluiceCudaStream* stream_ = nullptr;
  char why_[sluice_cuda_why] = "";
};

// shift: bytes that operands are apart from a multiple of 16; each operand's own if it is odd.
void compare(Device* device, Type type, Op op, size_t elements, size_t count, size_t shift) {
  const size_t bytes = elements * size_of(type), room = bytes + 256;
  char* const memory = device->allocate((count + 1) * room);
  std::vector<std::vector<char>> host(count, std::vector<char>(bytes));
  std::vector<const void*> operands;
  for (size_t i = 0; i < count; ++i) {
    char* const place = memory + i * (room / 16 * 16) + (shift % 2 ? shift * i % 16 : shift);
    test::fill_at_random(type, host[i].data(), elements, &random_bits);
    device->copy(place, host[i].data(), bytes, true);
    operands.push_back(place);
  }
  char* const out = memory + count * (room / 16 * 16) + shift;
  std::vector<char> result(bytes), wanted(host[0]);
  device->reduce(type, op, operands, out, elements);
  device->copy(out, result.data(), bytes, false);
  device->finish();
  device->release(memory);
  for (size_t i = 1; i < count; ++i) {
    find_kernel(op, type)(wanted.data(), host[i].data(), wanted.data(), elements, nullptr);
  }
  ++checks;
  for (size_t i = 0; i < elements; ++i) {
    const size_t at = i * size_of(type);
    if (std::memcmp(&result[at], &wanted[at], size_of(type)) == 0) continue;
    fail(std::string(to_string(op)) + " of " + std::string(to_string(type)) + ", " +
         std::to_string(count) + " operands, shift " + std::to_string(shift) + ": element " +
         std::to_string(i) + " of " + std::to_string(elements) + " is another on the host");
  }
}

void compare_all(Device* device, size_t elements) {
  for (uint32_t type_number = 0; type_number < sluice::type_count; ++type_number) {
    for (uint32_t op_number = 0; op_number < sluice::op_count; ++op_number) {
      const auto type = static_cast<Type>(type_number);
      const auto op = static_cast<Op>(op_number);
      if (!device->can_reduce(type, op)) continue;
      compare(device, type, op, elements, 2, 0);
      compare(device, type, op, elements / 10 + 3, 3, size_of(type) % 16);
      compare(device, type, op, elements / 10 + 3, 16, 3);
    }
  }
}

// Each run's bytes, from the device and back to it; what is between them stays.
void compare_packing(Device* device, size_t rows, size_t bytes, size_t stride, size_t shift) {
  const size_t span = rows * stride + 64;
  char* const memory = device->allocate(span);
  std::vector<char> image(span), packed(rows * bytes), wanted(rows * bytes), back(span);
  for (char& each : image) each = static_cast<char>(random_bits());
  device->copy(memory, image.data(), span, true);
  const SluiceCudaRuns runs{memory + shift, packed.data(), static_cast<ptrdiff_t>(stride),
                            bytes,          rows,          bytes};
  device->copy(runs, false);
  device->finish();
  for (size_t i = 0; i < rows; ++i) {
    std::memcpy(&wanted[i * bytes], &image[shift + i * stride], bytes);
  }
  if (packed != wanted) fail("packed rows of " + std::to_string(bytes) + " bytes");
  for (char& each : packed) each = static_cast<char>(random_bits());
  for (size_t i = 0; i < rows; ++i) {
    std::memcpy(&image[shift + i * stride], &packed[i * bytes], bytes);
  }
  device->copy(runs, true);
  device->copy(memory, back.data(), span, false);
  device->finish();
  device->release(memory);
  if (back != image) fail("unpacked rows of " + std::to_string(bytes) + " bytes");
  checks += 2;
}

// Seconds that each of some repetitions takes, when they follow one another.
template <typename Begin>
double time_of(Device* device, Begin begin) {
  constexpr int times = 20;
  begin();
  device->finish();
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) begin();
  device->finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count() / times;
}

// Bytes that are read or written in a second.
void measure(Device* device, size_t bytes) {
  std::vector<char*> memory;
  for (int i = 0; i < 9; ++i) memory.push_back(device->allocate(bytes));
  const double copy = time_of(device, [&] { device->copy_within(memory[0], memory[1], bytes); });
  std::printf("# GB/s read and written, %zu MB an operand; a copy within the device: %.1f\n",
              bytes >> 20, 2e-9 * static_cast<double>(bytes) / copy);
  std::printf("%-18s%12s%12s%12s\n", "# sum, minloc", "2 operands", "8 operands", "unaligned");
  for (uint32_t number = 0; number < sluice::type_count; ++number) {
    const auto type = static_cast<Type>(number);
    const Op op = device->can_reduce(type, Op::sum)      ? Op::sum
                  : device->can_reduce(type, Op::minloc) ? Op::minloc
                                                         : Op::logical_and;
    if (!device->can_reduce(type, op)) continue;
    const size_t elements = bytes / size_of(type) - 1;
    std::printf("%-18s", std::string(to_string(type)).c_str());
    for (const size_t count : {2, 8, 0}) {  // 0: 2, unaligned
      const auto first = memory.begin() + 1;
      const std::vector<const void*> operands(first, first + (count == 8 ? 8 : 2));
      char* const out = memory[0] + (count == 0 ? size_of(type) : 0);
      const double time =
          time_of(device, [&] { device->reduce(type, op, operands, out, elements); });
      std::printf("%12.1f", 1e-9 * static_cast<double>((operands.size() + 1) * bytes) / time);
    }
    std::printf("\n");
  }
  for (char* each : memory) device->release(each);
}

}  // namespace

int main(int argc, char** argv) {
  const char* driver = "libcuda.so.1";
  size_t elements = 1000000, megabytes = 256;
  uint64_t seed = std::random_device{}();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--driver") driver = argv[i + 1];
    if (option == "--elements") elements = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--megabytes") megabytes = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  random_bits.seed(seed);
  Device device(driver);
  compare_all(&device, elements);
  for (const size_t bytes : {1, 2, 4, 8, 12, 16, 48, 100, 255}) {
    for (const size_t shift : {0, 1, 4, 16}) {
      compare_packing(&device, elements / 20 + 70, bytes, bytes + 16, shift);
    }
  }
  std::printf("%d checks held\n", checks);
  if (megabytes > 0) measure(&device, megabytes << 20);
  return 0;
}
