// SPDX-License-Identifier: BSD-3-Clause
//
// NCCL's functions.
#include <cstdlib>
#include <map>

#include "tests/cuda/standin_nccl/communicator.h"

using namespace standin_nccl;
using Stream = sluice::cuda::CUstream;
using Reference = std::shared_ptr<Communicator>;

namespace {

// Never destroyed: threads may outlive main. No handle is used twice, so that a stale one is
// noticed.
struct Registry {
  std::mutex mutex;
  std::map<ncclComm_t, Reference> alive;
  uintptr_t last = 0;
};

Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

ncclComm_t enter(const Reference& communicator) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  const auto handle = reinterpret_cast<ncclComm_t>(registry().last += 16);
  registry().alive[handle] = communicator;
  return handle;
}

Reference find(ncclComm_t handle, const char* function, bool is_end = false) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  const auto found = registry().alive.find(handle);
  if (found == registry().alive.end()) {
    (void)misuse(ncclInvalidArgument, "%s: no such communicator", function);
    return nullptr;
  }
  Reference communicator = found->second;
  if (!communicator->is_own_process()) {
    (void)misuse(ncclInvalidUsage, "%s: the communicator of another process", function);
    return nullptr;
  }
  if (is_end) registry().alive.erase(found);
  return communicator;
}

// What a thread has called between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  struct Part {
    Reference communicator;
    CUstream stream;
    std::vector<Task> tasks;
  };
  std::vector<Part> parts;
};
thread_local Group group;

ncclResult_t add_to_group(const Reference& communicator, const Task& task, CUstream stream,
                          const char* function) {
  for (Group::Part& part : group.parts) {
    if (part.communicator != communicator) continue;
    if (part.stream != stream) {
      return misuse(ncclInvalidUsage, "%s: a second stream in a group", function);
    }
    part.tasks.push_back(task);
    return ncclSuccess;
  }
  group.parts.push_back({communicator, stream, {task}});
  return ncclSuccess;
}

ncclResult_t call(const Task& task, ncclComm_t handle, Stream given, const char* function) {
  const auto stream = reinterpret_cast<CUstream>(given);
  const Reference communicator = find(handle, function);
  if (!communicator) return ncclInvalidArgument;
  ncclResult_t result = communicator->check(task, stream, function);
  if (group.depth == 0) {
    return result ? result : communicator->submit({task}, stream, function);
  }
  if (!result) result = add_to_group(communicator, task, stream, function);
  if (result && !group.error) group.error = result;
  return result;
}

bool is_initialized(const ncclConfig_t& config) {
  return config.magic == 0xcafebeef && config.size >= sizeof config && config.version >= 21800;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  if (!version) return ncclInvalidArgument;
  const char* const given = std::getenv("NCCL_STANDIN_VERSION");
  *version = given ? std::atoi(given) : 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (!id) return ncclInvalidArgument;
  return SharedFile::make(id) ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const bool is_right = handle && ranks > 0 && ranks <= most_ranks && rank >= 0 && rank < ranks &&
                        (!config || is_initialized(*config)) && group.depth == 0;
  if (!is_right) return misuse(ncclInvalidArgument, "ncclCommInitRankConfig: wrong arguments");
  const bool is_blocking = !config || config->blocking != 0;
  const auto communicator = std::make_shared<Communicator>(id, rank, ranks, is_blocking);
  const ncclResult_t result = communicator->begin();
  *handle = result && result != ncclInProgress ? nullptr : enter(communicator);
  return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  const Reference communicator = find(handle, __func__);
  if (!communicator || !error) return ncclInvalidArgument;
  *error = communicator->poll();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const Reference communicator = find(handle, __func__, true);
  return communicator ? communicator->abort() : ncclInvalidArgument;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const Reference communicator = find(handle, __func__);
  return communicator ? communicator->finalize() : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const Reference communicator = find(handle, __func__, true);
  return communicator ? communicator->destroy() : ncclInvalidArgument;
}

const char* ncclGetErrorString(ncclResult_t result) {
  static const char* const texts[] = {"no error",       "unhandled cuda error", "system error",
                                      "internal error", "invalid argument",     "invalid usage",
                                      "remote error",   "in progress"};
  return result < std::size(texts) ? texts[result] : "unknown result code";
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t handle, Stream stream) {
  return call({{Kind::all_reduce, type, operation, 0, count}, from, to, 0}, handle, stream,
              __func__);
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t handle, Stream stream) {
  const Descriptor what{Kind::reduce, type, operation, static_cast<uint32_t>(root), count};
  return call({what, from, to, 0}, handle, stream, __func__);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t handle, Stream stream) {
  const Descriptor what{Kind::broadcast, type, 0, static_cast<uint32_t>(root), count};
  return call({what, from, to, 0}, handle, stream, __func__);
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t handle, Stream stream) {
  return call({{Kind::all_gather, type, 0, 0, count}, from, to, 0}, handle, stream, __func__);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t handle, Stream stream) {
  return call({{Kind::reduce_scatter, type, operation, 0, count}, from, to, 0}, handle, stream,
              __func__);
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t handle, Stream stream) {
  return call({{Kind::send, type, 0, 0, count}, from, nullptr, peer}, handle, stream, __func__);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                      Stream stream) {
  return call({{Kind::receive, type, 0, 0, count}, nullptr, to, peer}, handle, stream, __func__);
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return misuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return ncclSuccess;
  Group ended;
  std::swap(ended, group);
  ncclResult_t result = ended.error;
  for (Group::Part& part : ended.parts) {
    if (result && result != ncclInProgress) break;
    const ncclResult_t own =
        part.communicator->submit(std::move(part.tasks), part.stream, "ncclGroupEnd");
    if (own) result = own;
  }
  return result;
}
