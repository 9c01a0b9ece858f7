// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/class_record.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace sluice {

void CallSample::add(const TimedCall& call, size_t most) {
  if (calls_.size() >= most) {
    size_t kept = 0;
    for (size_t i = 1; i < calls_.size(); i += 2) calls_[kept++] = calls_[i];
    calls_.resize(kept);
    ++level_;
  }
  calls_.push_back(call);
  const uint64_t span = (uint64_t{2} << level_) - 1;  // gaps of 1 to span, 2^level on average
  next_ += 1 + scramble(next_) % span;
}

size_t ClassRecord::octave(uint64_t nanoseconds) {
  const auto width = static_cast<size_t>(std::bit_width(nanoseconds));
  return std::min(width > 0 ? width - 1 : 0, octaves - 1);
}

// (Of both samples those calls are kept whose keys are the lowest: the same ones on all ranks,
// whatever the order in which these add records up.)
void ClassRecord::add(const ClassRecord& other, size_t most) {
  calls += other.calls;
  bytes += other.bytes;
  nanoseconds += other.nanoseconds;
  for (size_t i = 0; i < octaves; ++i) histogram[i] += other.histogram[i];
  sample.insert(sample.end(), other.sample.begin(), other.sample.end());
  if (sample.size() <= most) return;
  std::ranges::sort(sample, {}, &TimedCall::key);
  sample.resize(most);
}

void ClassCounter::add(TimedCall call, uint64_t bytes, size_t most) {
  ++calls_;
  bytes_ += bytes;
  const auto lasted = static_cast<uint64_t>(call.lasted);
  const size_t octave = ClassRecord::octave(lasted);
  nanoseconds_ += lasted;
  ++histogram_[octave];
  if (calls_ != sample_.next()) return;
  const double weight = sample_.weight();
  if (lasted < long_call) {
    weights_[octave] += weight;
    weighted_nanoseconds_ += weight * static_cast<double>(lasted);
  }
  call.key = calls_;
  sample_.add(call, most);
}

void ClassCounter::add_long(uint64_t nanoseconds) {
  ++long_;
  nanoseconds_ += nanoseconds;
  ++histogram_[ClassRecord::octave(nanoseconds)];
}

ClassRecord ClassCounter::record(uint64_t salt) {
  ClassRecord made{calls_, bytes_, nanoseconds_, histogram_, std::move(sample_.calls())};
  for (TimedCall& call : made.sample) call.key = scramble(call.key ^ salt);
  const uint64_t rest = passed_ - std::min(long_, passed_);
  const double weight = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  if (rest == 0 || weight == 0) return made;
  const double times = static_cast<double>(rest) / weight;
  made.nanoseconds += static_cast<uint64_t>(times * weighted_nanoseconds_);
  uint64_t told = 0;
  double all = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    all += times * weights_[i];
    const uint64_t until = std::min(static_cast<uint64_t>(std::llround(all)), rest);
    made.histogram[i] += until - told;
    told = until;
  }
  return made;
}

}  // namespace sluice
