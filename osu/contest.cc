// SPDX-License-Identifier: BSD-3-Clause
#include "osu/contest.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "osu/memory.h"

namespace sluice::osu {
namespace {

constexpr size_t element = sizeof(float);
constexpr size_t as_malloc = 16;    // bytes into a page, as large malloc buffers mostly begin
constexpr double sample_us = 1000;  // wanted duration of a sample
constexpr int most_calls = 200;     // limit on the calls in a sample
constexpr double hopeless = 4;      // times the best: left out of the first rounds
constexpr double beaten = 1.5;      // times the best: left out of later rounds
constexpr int few = 3;

// Functions and hints have MPI's names; the rules' names differ in two places.
const char* function_of(const std::string& collective) {
  if (collective == "broadcast") return "bcast";
  return collective == "reduce_scatter" ? "reduce_scatter_block" : collective.c_str();
}

std::string hint_of(const std::string& collective) {
  return "sluice_" + (collective == "broadcast" ? "bcast" : collective);
}

// Layout's count: elements of the whole vector, or of one block.
size_t count_of(const Function& function, size_t bytes, int ranks) {
  const size_t elements = std::max<size_t>(bytes / element, 1);
  return function.flow.has_blocks() ? elements / static_cast<size_t>(ranks) : elements;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

const char* last_algorithm(MPI_Comm comm) {
  static const auto ask =
      reinterpret_cast<const char* (*)(MPI_Comm)>(dlsym(RTLD_DEFAULT, "sluice_last_algorithm"));
  return ask ? ask(comm) : nullptr;
}

struct Contest::Buffers {
  Buffers(const Function& function, size_t count, int rank, int ranks)
      : layout(function, count, rank, ranks),
        send(layout.send_elements * element, as_malloc),
        receive(layout.recv_elements * element, as_malloc) {
    std::memset(send.get(), 0, send.room());
    std::memset(receive.get(), 0, receive.room());
  }
  Layout layout;
  Memory send, receive;
};

Contest::Contest(const std::string& collective, const std::vector<std::string>& candidates,
                 MPI_Comm members, MPI_Comm control)
    : function_(*find_function(function_of(collective))), members_(members), control_(control) {
  MPI_Comm_rank(members, &rank_);
  MPI_Comm_size(members, &size_);
  as_it_comes_ = duplicate("sluice", "on");
  for (const std::string& name : candidates) {
    candidates_.push_back({name, duplicate(hint_of(collective), name), false, 0, 1, {}});
  }
}

Contest::~Contest() {
  for (Candidate& candidate : candidates_) MPI_Comm_free(&candidate.comm);
  MPI_Comm_free(&as_it_comes_);
}

bool Contest::has_size(const std::string& collective, size_t bytes, int ranks) {
  const Flow& flow = find_function(function_of(collective))->flow;
  const bool divided = flow.has_blocks() || flow.has_shares();
  return bytes >= element * (divided ? static_cast<size_t>(ranks) : 1);
}

MPI_Comm Contest::duplicate(const std::string& hint, const std::string& value) const {
  MPI_Info info;
  MPI_Comm copy;
  MPI_Info_create(&info);
  MPI_Info_set(info, hint.c_str(), value.c_str());
  MPI_Comm_dup_with_info(members_, info, &copy);
  MPI_Info_free(&info);
  return copy;
}

void Contest::call(MPI_Comm comm) const {
  const Layout& layout = buffers_->layout;
  function_.call({buffers_->send.get(), buffers_->receive.get(),
                  static_cast<int>(layout.call_count), layout.counts.data(), layout.displs.data(),
                  MPI_FLOAT, comm});
}

// Microseconds: each rank's median of `calls` calls, which a moment without its processor does not
// distort, averaged over the ranks.
double Contest::sample(MPI_Comm comm, int calls) const {
  std::vector<double> took;
  for (int i = 0; i < calls; ++i) {
    if (function_.flow.moves_data()) MPI_Barrier(members_);
    const double began = MPI_Wtime();
    call(comm);
    took.push_back(MPI_Wtime() - began);
  }
  const double mine = median(std::move(took));
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, control_);
  return std::max(1e6 * sum / size_, 1e-3);
}

double Contest::Candidate::time() const { return samples.empty() ? probe : median(samples); }

// Whether the candidate can serve this shape on all ranks.
bool Contest::try_out(Candidate* candidate) const {
  candidate->samples.clear();
  call(candidate->comm);
  int serves = last_algorithm(candidate->comm) == candidate->name ? 1 : 0, all = 0;
  MPI_Allreduce(&serves, &all, 1, MPI_INT, MPI_MIN, control_);
  candidate->serves = all == 1;
  return candidate->serves;
}

void Contest::probe(Candidate* candidate, double best) const {
  candidate->probe = sample(candidate->comm, 1);
  for (int i = 1; i < few && candidate->probe < hopeless * best; ++i) {
    candidate->probe = std::min(candidate->probe, sample(candidate->comm, 1));
  }
  candidate->calls = std::clamp(static_cast<int>(sample_us / candidate->probe), 1, most_calls);
}

double Contest::best() const {
  double best = 1e30;
  for (const Candidate& each : candidates_) {
    if (each.serves) best = std::min(best, each.time());
  }
  return best;
}

template <typename Plays>
void Contest::take_turns(int round, const Plays& plays) {
  for (size_t i = 0; i < candidates_.size(); ++i) {
    Candidate& each = candidates_[(i + static_cast<size_t>(round)) % candidates_.size()];
    if (each.serves && plays(each)) each.samples.push_back(sample(each.comm, each.calls));
  }
}

Contest::Result Contest::run(size_t bytes, int rounds) {
  buffers_ = std::make_unique<Buffers>(function_, count_of(function_, bytes, size_), rank_, size_);
  Result result;
  call(as_it_comes_);
  result.incumbent = last_algorithm(as_it_comes_);
  result.transport = "tcp";
  double best_probe = 1e30;
  for (Candidate& each : candidates_) {
    if (!try_out(&each)) continue;
    probe(&each, best_probe);
    best_probe = std::min(best_probe, each.probe);
    if (each.name == "flat") result.transport = "shm";
  }
  for (int round = 0; round < rounds; ++round) {
    const double limit = best() * (round < few ? hopeless : beaten);
    take_turns(round, [&](const Candidate& each) { return each.time() <= limit; });
  }
  // If a candidate beats the incumbent, measure these two again.
  std::string first;
  for (const Candidate& each : candidates_) {
    if (each.serves && each.time() <= best()) first = each.name;
  }
  for (int round = 0; first != result.incumbent && round < rounds; ++round) {
    take_turns(round, [&](const Candidate& each) {
      return each.name == first || each.name == result.incumbent;
    });
  }
  for (const Candidate& each : candidates_) {
    if (each.serves) result.times.emplace_back(each.name, each.time());
  }
  return result;
}

}  // namespace sluice::osu
