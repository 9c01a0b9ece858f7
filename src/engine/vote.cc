// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/vote.h"

#include <algorithm>
#include <string>

#include "src/engine/execution.h"

namespace sluice {

Status describe_difference(const CallFacts& mine, const CallFacts& other) {
  if (mine.signature != other.signature || mine.bytes != other.bytes) {
    return describe_mismatch({mine.signature, mine.bytes}, {other.signature, other.bytes});
  }
  if (mine.blocks != other.blocks) return {Code::mismatch, "it has other sizes of blocks"};
  const bool types = mine.type != other.type;
  return {Code::mismatch,
          std::string("it reduces ") + (types ? "another datatype" : "by another operation")};
}

const char* describe(Carrier carrier, Lack lack) {
  const bool is_nccl = carrier == Carrier::nccl;
  switch (lack) {
    case Lack::nothing:
      break;
    case Lack::on_host:
      return "its data is not dense on one device";
    case Lack::unknown:
      return "the driver can't tell where its data is";
    case Lack::library:
      return is_nccl ? "NCCL can't be used there" : "the CUDA module can't be used there";
    case Lack::settings:
      return "SLUICE_TLS, SLUICE_TCP_INTERFACES or SLUICE_TRANSPORT is set there, "
             "which NCCL does not keep to";
    case Lack::context:
      return "its data can't be used by other processes";
    case Lack::kernels:
      return "its device has no kernel for such a reduction";
    case Lack::memory:
      return "it has no memory on its device for data that is not dense there";
    case Lack::busy:
      return is_nccl ? "NCCL is busy there with another communicator, or has as many as it may"
                     : "another thread there is in such a call";
    case Lack::starting:
      return "NCCL is being started there";
    case Lack::failed:
      return is_nccl ? "NCCL has failed there" : "a copy has failed on its device";
    case Lack::given_up:
      return "it was given up with a call of the same processes";
    case Lack::version:
      return "it has another version of NCCL";
    case Lack::shared_device:
      return "it shares its device with another rank, and NCCL needs one for each";
    case Lack::not_started:
      return "NCCL has not been started there";
    case Lack::small:
      return "the call is small";
  }
  return "";
}

bool VoteSchedule::is_due() {
  if (++calls_ < next_) return false;
  switch (pace_) {
    case Pace::rare:
      next_ += std::min(next_, longest_gap);
      break;
    case Pace::starting:
      next_ += gap_at_start;
      break;
    case Pace::each:
      next_ += 1;
      break;
  }
  return true;
}

void VoteSchedule::enter(Pace pace) {
  pace_ = pace;
  calls_ = refusals_ = 0;
  next_ = 1;
}

void VoteSchedule::learn(Outcome outcome) {
  switch (outcome) {
    case Outcome::went:
      if (pace_ != Pace::each) return enter(Pace::each);
      refusals_ = 0;
      return;
    case Outcome::passing:
      next_ = calls_ + 1;
      return;
    case Outcome::starting:
      if (pace_ == Pace::rare) return enter(Pace::starting);
      refusals_ = 0;
      return;
    case Outcome::refused:
      if (pace_ != Pace::rare && ++refusals_ == most_refusals) enter(Pace::rare);
      return;
  }
}

}  // namespace sluice
