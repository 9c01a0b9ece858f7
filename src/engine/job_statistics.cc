// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/job_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace sluice {
namespace {

// Writes values one after another, as they are in memory.
class Writer {
 public:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(uint64_t{text.size()});
    text_ += text;
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    put(uint64_t{values.size()});
    for (const T& value : values) put(value);
  }
  std::string text() { return std::move(text_); }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  template <typename T>
  void get(T* value) {
    if (text_.size() < sizeof *value) return fail();
    std::memcpy(value, text_.data(), sizeof *value);
    text_.remove_prefix(sizeof *value);
  }
  void get(std::string* text) {
    const size_t size = count(1);
    text->assign(text_.substr(0, size));
    text_.remove_prefix(size);
  }
  template <typename T>
  void get(std::vector<T>* values) {
    values->resize(count(sizeof(T)));
    for (T& value : *values) get(&value);
  }
  size_t count(size_t least_each) {
    uint64_t number = 0;
    get(&number);
    if (number <= text_.size() / least_each) return number;
    fail();
    return 0;
  }
  bool is_good() const { return good_; }

 private:
  void fail() {
    good_ = false;
    text_ = {};
  }
  std::string_view text_;
  bool good_ = true;
};

// Both ways, so that they agree.
void pass(Writer& writer, const auto&... values) { (writer.put(values), ...); }
void pass(Reader& reader, auto&... values) { (reader.get(&values), ...); }

void pass_rank(auto& to, auto& of) {
  pass(to, of.rank, of.process, of.host, of.began, of.ended, of.left, of.why_ended, of.exchanges);
}

void pass_class(auto& to, auto& of) {
  auto& [key, counted] = of;
  auto& record = counted.record;
  pass(to, key.communicator, key.group, key.collective, key.algorithm, key.carrier, key.path,
       key.size, key.nonblocking, counted.rank, counted.ranks, record.calls, record.bytes,
       record.nanoseconds, record.histogram, record.sample);
}

constexpr double nanosecond = 1e-9;

// How ranks depend on each other's entry.
enum class Needs { all, root, lower };

Needs needs_of(Collective collective) {
  if (is_prefix(collective)) return Needs::lower;
  const bool spreads = collective == Collective::broadcast || collective == Collective::scatter ||
                       collective == Collective::scatterv;
  return spreads ? Needs::root : Needs::all;
}

// One call on all ranks of a communicator. Times in nanoseconds, on one clock.
struct SampledCall {
  Rank root = 0;
  std::vector<double> entered, lasted;  // lasted < 0: the rank has no such call
  bool is_whole() const {
    return std::ranges::none_of(lasted, [](double each) { return each < 0; });
  }
};

// The rank that each rank waits for: the last to enter of those that it needs.
std::vector<Rank> latest_for_each(const SampledCall& call, Needs needs) {
  const auto ranks = static_cast<Rank>(call.entered.size());
  std::vector<Rank> latest(ranks, call.root);
  if (needs == Needs::root) return latest;
  Rank last = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (call.entered[rank] > call.entered[last]) last = rank;
    latest[rank] = last;
  }
  if (needs == Needs::all) std::ranges::fill(latest, last);
  return latest;
}

// (Of few, not the lowest: one call may be short by luck.)
double tenth_percentile(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t last = values.size() - 1;
  const size_t at = std::min(std::max<size_t>(values.size() / 10, 1), last);
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
  return values[at];
}

// The clocks of the ranks that have told.
class Clocks {
 public:
  static constexpr double drift = 1e-4;  // seconds a second, between hosts, as in samples.cc

  explicit Clocks(std::span<const RankStatistics> told) : offsets_(told.size()) {
    const auto is_of_first = [&](const RankStatistics& each) {
      return each.host != 0 && each.host == told[0].host;
    };
    are_one_ = std::ranges::all_of(told, is_of_first);
    if (are_one_) return;
    size_t exchanges = told[0].exchanges.size();
    for (const auto& each : told) exchanges = std::min(exchanges, each.exchanges.size());
    std::vector<std::vector<ExchangeTimes>> times(exchanges);
    for (size_t i = 0; i < exchanges; ++i) {
      for (const auto& each : told) times[i].push_back(each.exchanges[i]);
    }
    find_clock_offsets(times, offsets_);
  }
  double ahead(size_t index) const { return are_one_ ? 0 : offsets_[index].ahead; }
  double error() const {
    double most = 0;
    for (const ClockOffset& each : offsets_) most = std::max(most, each.error);
    return are_one_ ? 0 : most * nanosecond;
  }
  double drifts() const { return are_one_ ? 0 : drift; }

 private:
  bool are_one_ = false;
  std::vector<ClockOffset> offsets_;
};

// A class on the ranks that have it.
struct Gathered {
  struct Part {
    size_t from;  // index of what was told
    const Statistics::Class* counted;
  };
  std::vector<Part> parts;
};

class ClassSummary {
 public:
  ClassSummary(const CountedClass& of, const Gathered& gathered,
               std::span<const RankStatistics> told, const Clocks& clocks)
      : gathered_(gathered), told_(told), clocks_(clocks) {
    class_.of = of;
  }

  JobClass make() && {
    add_up();
    find_whole_calls();
    if (!calls_.empty()) split();
    return std::move(class_);
  }

 private:
  void add_up();
  void find_whole_calls();
  void split();
  double split_rank(Rank rank, JobClass::Share* share);
  void tell_late(const std::vector<double>& scales);

  const Gathered& gathered_;
  std::span<const RankStatistics> told_;
  const Clocks& clocks_;
  JobClass class_;
  std::vector<size_t> share_of_;  // of each rank of the communicator
  std::vector<SampledCall> calls_;
  std::vector<std::vector<Rank>> latest_;  // of each call, for each rank
};

void ClassSummary::add_up() {
  for (const auto& [from, counted] : gathered_.parts) {
    const ClassRecord& record = counted->record;
    class_.ranks = std::max(class_.ranks, counted->ranks);
    class_.calls = std::max(class_.calls, record.calls);
    class_.bytes += record.bytes;
    const double total = static_cast<double>(record.nanoseconds) * nanosecond;
    class_.seconds.total += total;
    for (size_t i = 0; i < record.histogram.size(); ++i) class_.histogram[i] += record.histogram[i];
    class_.shares.push_back({told_[from].rank, record.calls, record.bytes, {total, {}, {}, {}}, 0});
  }
}

void ClassSummary::find_whole_calls() {
  share_of_.assign(class_.ranks, class_.shares.size());
  std::unordered_map<uint64_t, SampledCall> calls;
  for (size_t i = 0; i < gathered_.parts.size(); ++i) {
    const auto& [from, counted] = gathered_.parts[i];
    if (counted->rank >= class_.ranks) continue;
    share_of_[counted->rank] = i;
    for (const TimedCall& each : counted->record.sample) {
      SampledCall& call = calls[each.key];
      call.root = each.root;
      call.entered.resize(class_.ranks);
      call.lasted.resize(class_.ranks, -1);
      // (A clock's nanoseconds since long ago fit a double to 1 ns for 104 days.)
      call.entered[counted->rank] = static_cast<double>(each.entered) - clocks_.ahead(from);
      call.lasted[counted->rank] = each.lasted;
    }
  }
  const Needs needs = needs_of(class_.of.collective);
  for (auto& [key, call] : calls) {
    if (!call.is_whole() || call.root >= class_.ranks) continue;
    latest_.push_back(latest_for_each(call, needs));
    calls_.push_back(std::move(call));
  }
  class_.sampled = calls_.size();
}

// How long a rank waits in a call.
double waits(const SampledCall& call, Rank rank, Rank latest) {
  return std::clamp(call.entered[latest] - call.entered[rank], 0.0, call.lasted[rank]);
}

// Returns how many seconds a nanosecond of the rank's sampled calls stands for.
double ClassSummary::split_rank(Rank rank, JobClass::Share* share) {
  double lasted = 0, waited = 0, rest = 0;
  std::vector<double> net;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const double wait = waits(calls_[i], rank, latest_[i][rank]);
    lasted += calls_[i].lasted[rank];
    waited += wait;
    net.push_back(calls_[i].lasted[rank] - wait);
  }
  const double low = tenth_percentile(net);
  for (const double each : net) rest += std::max(each - low, 0.0);
  const double scale = lasted > 0 ? share->seconds.total / lasted : 0;
  share->low = low * nanosecond;
  share->seconds.waiting = scale * waited;
  share->seconds.rest = scale * rest;
  share->seconds.moving =
      std::max(share->seconds.total - *share->seconds.waiting - *share->seconds.rest, 0.0);
  return scale;
}

void ClassSummary::split() {
  std::vector<double> scales(class_.ranks);
  TimeParts& all = class_.seconds;
  all.waiting = all.moving = all.rest = 0;
  for (Rank rank = 0; rank < class_.ranks; ++rank) {
    JobClass::Share& share = class_.shares[share_of_[rank]];
    scales[rank] = split_rank(rank, &share);
    *all.waiting += *share.seconds.waiting;
    *all.moving += *share.seconds.moving;
    *all.rest += *share.seconds.rest;
  }
  tell_late(scales);
}

void ClassSummary::tell_late(const std::vector<double>& scales) {
  std::vector<JobClass::Late> late(class_.ranks);
  const double calls = static_cast<double>(class_.calls) / static_cast<double>(calls_.size());
  for (size_t i = 0; i < calls_.size(); ++i) {
    std::vector<double> longest(class_.ranks);
    for (Rank rank = 0; rank < class_.ranks; ++rank) {
      const Rank latest = latest_[i][rank];
      const double wait = waits(calls_[i], rank, latest);
      longest[latest] = std::max(longest[latest], wait * nanosecond);
      late[latest].seconds += scales[rank] * wait;
    }
    for (Rank rank = 0; rank < class_.ranks; ++rank) {
      if (longest[rank] >= JobClass::least_wait) late[rank].calls += calls;
    }
  }
  for (Rank rank = 0; rank < class_.ranks; ++rank) {
    late[rank].rank = class_.shares[share_of_[rank]].rank;
    if (late[rank].seconds > 0) class_.late.push_back(late[rank]);
  }
  std::ranges::sort(class_.late, std::greater<>(), &JobClass::Late::seconds);
}

// Numbers the groups of processes from 0: by their lowest rank, the larger one first.
void number_groups(std::vector<JobClass>* classes) {
  struct Group {
    Rank lowest;
    Rank ranks;
    uint64_t is;
  };
  std::map<uint64_t, Group> met;
  for (const JobClass& each : *classes) {
    Group& group =
        met.try_emplace(each.of.group, Group{~Rank{0}, each.ranks, each.of.group}).first->second;
    for (const auto& share : each.shares) group.lowest = std::min(group.lowest, share.rank);
  }
  std::vector<Group> groups;
  for (const auto& [is, group] : met) groups.push_back(group);
  std::ranges::sort(
      groups, {}, [](const Group& each) { return std::tuple(each.lowest, ~each.ranks, each.is); });
  std::map<uint64_t, uint64_t> numbers;
  for (const Group& each : groups) numbers.emplace(each.is, numbers.size());
  for (JobClass& each : *classes) each.of.group = numbers[each.of.group];
}

}  // namespace

std::string RankStatistics::pack() const {
  Writer writer;
  pass_rank(writer, *this);
  pass(writer, uint64_t{classes.size()});
  for (const Class& each : classes) pass_class(writer, each);
  return writer.text();
}

bool RankStatistics::unpack(std::string_view bytes, RankStatistics* statistics) {
  Reader reader(bytes);
  pass_rank(reader, *statistics);
  statistics->classes.resize(reader.count(1));
  for (Class& each : statistics->classes) pass_class(reader, each);
  return reader.is_good();
}

JobStatistics put_together(uint32_t ranks, std::span<const RankStatistics> told) {
  JobStatistics job;
  job.ranks = ranks;
  if (told.empty()) return job;
  const Clocks clocks(told);
  job.clock_error = clocks.error();
  job.clock_drift = clocks.drifts();
  std::map<CountedClass, Gathered> gathered;
  for (size_t i = 0; i < told.size(); ++i) {
    const RankStatistics& rank = told[i];
    job.members.push_back({rank.rank, rank.process,
                           static_cast<double>(rank.ended - rank.began) * nanosecond, rank.left,
                           rank.why_ended});
    for (const auto& each : rank.classes) gathered[each.of].parts.push_back({i, &each.counted});
  }
  for (const auto& [of, parts] : gathered) {
    job.classes.push_back(ClassSummary(of, parts, told, clocks).make());
  }
  number_groups(&job.classes);
  std::ranges::stable_sort(job.classes, std::greater<>(),
                           [](const JobClass& each) { return each.seconds.total; });
  return job;
}

}  // namespace sluice
