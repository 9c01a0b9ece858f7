// SPDX-License-Identifier: BSD-3-Clause
//
// Graphs captured from streams, as far as they concern others: nothing is recorded, but while a
// stream is captured, calls that are "potentially unsafe" fail and make the capture invalid.
#include <algorithm>

#include "tests/cuda/standin/driver.h"

namespace standin {
namespace {

thread_local CUstreamCaptureMode own_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool forbids(const Stream& stream) {
  if (!stream.captured || own_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (stream.captured_by == std::this_thread::get_id()) {
    return stream.capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  }
  return own_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
         stream.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

}  // namespace

CUresult Driver::refuse_unsafe() {
  CUresult result = CUDA_SUCCESS;
  for (Stream* stream : streams_) {
    if (!forbids(*stream)) continue;
    stream->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

}  // namespace standin

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  STANDIN_ENTER(cuThreadExchangeStreamCaptureMode);
  if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, standin::own_mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  STANDIN_ENTER_CONTEXT(cuStreamBeginCapture_v2);
  standin::Stream* const stream = driver.stream_of(handle);
  if (!stream || stream->legacy || stream->captured) return CUDA_ERROR_INVALID_VALUE;
  stream->captured = true;
  stream->invalidated = false;
  stream->capture_mode = mode;
  stream->captured_by = std::this_thread::get_id();
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  STANDIN_ENTER_CONTEXT(cuStreamEndCapture);
  standin::Stream* const stream = driver.stream_of(handle);
  if (!stream || !stream->captured || !graph) return CUDA_ERROR_INVALID_VALUE;
  stream->captured = false;
  *graph = nullptr;
  return stream->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}
