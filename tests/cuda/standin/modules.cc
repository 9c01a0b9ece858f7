// SPDX-License-Identifier: BSD-3-Clause
//
// Modules of PTX, and launches of their kernels.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/cuda/standin/driver.h"
#include "tests/cuda/standin/host_kernels.h"

namespace standin {
namespace {

bool is_word(char each) { return std::isalnum(static_cast<unsigned char>(each)) || each == '_'; }

// The bytes of ".param .align 8 .b8 NAME[168]" or ".param .u64 NAME".
size_t parameter_bytes(std::string_view text) {
  const size_t bracket = text.find('[');
  if (bracket != text.npos) return std::strtoull(text.data() + bracket + 1, nullptr, 10);
  const size_t type = text.rfind('.');
  return std::strtoull(text.data() + type + 2, nullptr, 10) / 8;
}

// From the name of an entry on.
Entry read_entry(std::string_view text) {
  Entry entry;
  const size_t begins = text.find('('), ends = text.find(')');
  entry.name = text.substr(0, std::find_if_not(text.begin(), text.end(), is_word) - text.begin());
  for (size_t at = begins; at < ends;) {
    const size_t next = std::min(text.find(',', at + 1), ends);
    const std::string_view one = text.substr(at + 1, next - at - 1);
    if (one.find(".param") != one.npos) entry.parameters.push_back(parameter_bytes(one));
    at = next;
  }
  constexpr std::string_view limit = ".maxntid ";
  const size_t found = text.substr(0, text.find('{')).find(limit);
  if (found != text.npos) {
    const unsigned long most = std::strtoul(text.data() + found + limit.size(), nullptr, 10);
    entry.most_threads = static_cast<unsigned>(most);
  }
  return entry;
}

// PTX of the versions that are as old as the driver: 6.0 came with CUDA 9.0, 7.0 with 11.0.
CUresult read_ptx(std::string_view text, std::vector<Entry>* entries) {
  constexpr std::string_view first = ".version ", mark = ".entry ";
  if (text.substr(0, first.size()) != first) return CUDA_ERROR_INVALID_IMAGE;
  const double version = std::strtod(text.data() + first.size(), nullptr);
  const int needed = version <= 6.0 ? 9000 : version <= 7.0 ? 11000 : 13000;
  if (driver().version < needed) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
    at += mark.size();
    entries->push_back(read_entry(text.substr(at)));
  }
  return CUDA_SUCCESS;
}

template <typename Object, typename Handle>
Object* find(const std::vector<Object*>& all, Handle handle) {
  const auto found = std::find(all.begin(), all.end(), reinterpret_cast<Object*>(handle));
  return found == all.end() ? nullptr : *found;
}

// A module that is loaded in the current context.
Module* find_module(CUmodule handle, const char* function) {
  Module* const found = find(driver().modules, handle);
  const bool is_right = found && found->alive && found->context == current();
  if (!is_right) (void)misuse(CUDA_ERROR_INVALID_HANDLE, "%s: no such module here", function);
  return is_right ? found : nullptr;
}

// The same each time.
CUfunction function_of(Module* module, const Entry* entry) {
  std::vector<Function*>& all = driver().functions;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Function* each) { return each->entry == entry; });
  Function* const function = found == all.end() ? new Function{module, entry} : *found;
  if (found == all.end()) all.push_back(function);
  return reinterpret_cast<CUfunction>(function);
}

struct Grid {
  unsigned blocks[3], threads[3];
  unsigned shared_bytes;
};

// Why this can't be launched, for the first reason.
const char* find_fault(const Function* function, const Stream* stream, const Grid& grid,
                       void** parameters, void** extra) {
  if (!function) return "no such function";
  if (!function->module->alive) return "the module is gone";
  if (function->module->context != current()) return "the module is of another context";
  if (!stream) return "no such stream";
  if (stream->context != current()) return "the stream is of another context";
  if (grid.blocks[0] == 0 || grid.blocks[0] > 0x7fffffff) return "the grid is of no size";
  if (grid.blocks[1] != 1 || grid.blocks[2] != 1) return "the grid has more than one dimension";
  if (grid.threads[1] != 1 || grid.threads[2] != 1) return "blocks have more than one dimension";
  if (grid.threads[0] == 0 || grid.threads[0] > function->entry->most_threads) {
    return "blocks are larger than the kernel allows";
  }
  if (grid.shared_bytes > 48U << 10) return "too much shared memory";
  if (extra || !parameters || !parameters[0]) return "no parameters";
  return nullptr;
}

// Behind what is in the stream, while no other kernel runs on the device.
void enqueue_kernel(Stream* stream, const HostKernel& kernel, const Grid& grid,
                    const void* parameter) {
  Driver& all = driver();
  const auto* const bytes = static_cast<const std::byte*>(parameter);
  std::vector<std::byte> kept(bytes, bytes + kernel.bytes);
  const unsigned threads = grid.blocks[0] * grid.threads[0];
  const int device = stream->context->device;
  const OperationRef operation = all.enqueue(stream, nullptr, {});
  operation->takes_slot = true;
  if (all.strikes("kernel")) operation->fails = CUDA_ERROR_ILLEGAL_ADDRESS;
  operation->run = [own = operation.get(), &kernel, kept = std::move(kept), device, threads] {
    own->fails = run_host_kernel(kernel, device, kept.data(), threads);
  };
  all.kernels[operation->number] = operation;
}

}  // namespace
}  // namespace standin

using standin::Function;
using standin::misuse;
using standin::Module;

CUresult cuModuleLoadData(CUmodule* handle, const void* image) {
  STANDIN_ENTER_UNSAFE(cuModuleLoadData);
  if (!handle || !image) return CUDA_ERROR_INVALID_VALUE;
  if (driver.strikes("module")) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  std::vector<standin::Entry> entries;
  const CUresult wrong = standin::read_ptx(static_cast<const char*>(image), &entries);
  if (wrong) return wrong;
  auto* const made = new Module{standin::current(), std::move(entries), true};
  driver.modules.push_back(made);
  ++standin::counter("modules");
  *handle = reinterpret_cast<CUmodule>(made);
  return CUDA_SUCCESS;
}

// Kernels that are under way end first.
CUresult cuModuleUnload(CUmodule handle) {
  STANDIN_ENTER_UNSAFE(cuModuleUnload);
  Module* const module = standin::find_module(handle, __func__);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  driver.wait(module->context, &lock);
  module->alive = false;
  --standin::counter("modules");
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* handle, CUmodule module_handle, const char* name) {
  STANDIN_ENTER_CONTEXT(cuModuleGetFunction);
  if (!handle || !name) return CUDA_ERROR_INVALID_VALUE;
  Module* const module = standin::find_module(module_handle, __func__);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  for (const standin::Entry& entry : module->entries) {
    if (entry.name != name) continue;
    const standin::HostKernel* const kernel = standin::find_host_kernel(name);
    if (!kernel || entry.parameters.size() != 1 || entry.parameters[0] != kernel->bytes) {
      return misuse(CUDA_ERROR_NOT_FOUND, "%s: %s is not the kernel that is known here", __func__,
                    name);
    }
    *handle = standin::function_of(module, &entry);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream_handle, void** parameters, void** extra) {
  STANDIN_ENTER_CONTEXT(cuLaunchKernel);
  const Function* const function = standin::find(driver.functions, handle);
  standin::Stream* const stream = driver.stream_of(stream_handle);
  const standin::Grid grid{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  if (const char* fault = standin::find_fault(function, stream, grid, parameters, extra)) {
    return misuse(CUDA_ERROR_INVALID_VALUE, "%s: %s", __func__, fault);
  }
  if (driver.strikes("launch")) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  ++standin::counter("launches");
  enqueue_kernel(stream, *standin::find_host_kernel(function->entry->name), grid, parameters[0]);
  return CUDA_SUCCESS;
}
