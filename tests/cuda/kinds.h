// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of every kind that a CUDA driver has, for tests. The program loads the driver itself.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda/standin/cuda_driver.h"
#include "tests/mpi/harness.h"

namespace test {

// The driver's functions, looked up in the library that load_driver loaded.
void* find_in_driver(const char* name);
bool has_in_driver(const char* name);
template <typename Function>
Function* in_driver(const char* name) {
  return reinterpret_cast<Function*>(find_in_driver(name));
}
#define CUDA(function) test::in_driver<decltype(::function)>(#function)

// Loads a driver and makes the primary context of one of its devices current: this process's own.
void load_driver(const std::string& path, int own = 0);
// The primary contexts of all devices.
const std::vector<CUcontext>& primary_contexts();

void expect_success(CUresult result, const char* what);

// other_device: the last one, or the first if the last is this process's own; other_context: of the
// own device; registered: pinned memory of the program's own. Virtual memory: mapped is the own
// device's, lent is that but only the other device may use it; numa is the host's, which only the
// own device may use, or the processor too (open_numa).
enum class Kind {
  host,
  device,
  other_device,
  other_context,
  pool,
  mapped,
  lent,
  numa,
  open_numa,
  managed,
  pinned,
  registered
};
inline constexpr Kind kinds[] = {Kind::host,          Kind::device, Kind::other_device,
                                 Kind::other_context, Kind::pool,   Kind::mapped,
                                 Kind::lent,          Kind::numa,   Kind::open_numa,
                                 Kind::managed,       Kind::pinned, Kind::registered};
const char* name_of(Kind kind);

// Memory of a kind, filled and read through the driver.
class KindMemory {
 public:
  KindMemory(Kind kind, size_t bytes);
  ~KindMemory();
  KindMemory(const KindMemory&) = delete;
  KindMemory& operator=(const KindMemory&) = delete;

  void* data() const { return reinterpret_cast<void*>(static_cast<uintptr_t>(at_)); }
  bool is_host() const {
    return kind_ == Kind::host || kind_ == Kind::managed || kind_ == Kind::pinned ||
           kind_ == Kind::registered || kind_ == Kind::open_numa;
  }
  void write(const void* from, size_t bytes);
  void read(void* to, size_t bytes) const;
  template <typename T>
  void put(const std::vector<T>& values) {
    write(values.data(), values.size() * sizeof(T));
  }
  template <typename T>
  std::vector<T> get(size_t count) const {
    std::vector<T> values(count);
    read(values.data(), count * sizeof(T));
    return values;
  }

 private:
  void map(CUmemLocationType owner);
  void allocate_in(CUcontext context);
  void register_own();

  const Kind kind_;
  const size_t bytes_;
  size_t mapped_ = 0;
  CUdeviceptr at_ = 0;
  std::vector<std::byte> host_;
};

}  // namespace test
