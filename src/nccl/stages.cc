// SPDX-License-Identifier: BSD-3-Clause
#include "src/nccl/stages.h"

namespace sluice {
namespace {

using Next = Finding::Next;

// Nothing is in the way but, perhaps, that NCCL has not been started.
bool could_start(const Finding& finding) {
  const bool is_able =
      finding.next == Next::go || finding.next == Next::start || finding.lack == Lack::starting;
  return finding.all_on_device && is_able;
}

}  // namespace

void NcclStages::enter(Stage stage) {
  stage_ = stage;
  in_a_row_ = 0;
}

NcclStages::Action NcclStages::learn(const Finding& finding) {
  if (finding.next == Next::never) {
    enter(Stage::failed);
    return Action::give_up;
  }
  switch (stage_) {
    case Stage::watching:
      return watch(finding);
    case Stage::starting:
    case Stage::ready:
      if (finding.next != Next::go) return refuse(finding);
      if (stage_ == Stage::starting) enter(Stage::ready);
      in_a_row_ = 0;
      return Action::run;
    case Stage::failed:
      break;
  }
  return Action::carry_on;
}

NcclStages::Action NcclStages::watch(const Finding& finding) {
  in_a_row_ = could_start(finding) ? in_a_row_ + 1 : 0;
  if (in_a_row_ < enough) return Action::carry_on;
  enter(Stage::starting);
  return Action::start;
}

// NCCL's communicator stays, for when buffers are on devices again.
NcclStages::Action NcclStages::refuse(const Finding& finding) {
  if (stage_ == Stage::starting && finding.lack == Lack::starting) return Action::carry_on;
  if (++in_a_row_ >= most_refusals) enter(Stage::watching);
  return Action::carry_on;
}

}  // namespace sluice
