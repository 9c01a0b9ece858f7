// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/call.h"

namespace sluice {
namespace {

uint32_t input_blocks(Collective collective, Rank ranks) {
  switch (collective) {
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::reduce_scatter:
    case Collective::scatter:
    case Collective::scatterv:
      return ranks;
    default:
      return 1;
  }
}

void pack(const View& view, uint32_t blocks, size_t element) {
  if (!view.source) return;
  for (uint32_t i = 0; i < blocks; ++i) {
    const View::Extent extent = view.block(blocks == 1 ? whole : i);
    view.source->move(extent.offset * element, extent.count * element);
  }
}

}  // namespace

Status pack_all(const Call& call, Rank ranks) {
  pack(call.input, input_blocks(call.collective, ranks), call.element);
  pack(call.output, 1, call.element);
  return why_not_packed(call);
}

Status why_not_packed(const Call& call) {
  for (const View* view : {&call.input, &call.output}) {
    if (!view->source) continue;
    if (Status status = view->source->failure(); !status.ok()) return status;
  }
  return {};
}

}  // namespace sluice
