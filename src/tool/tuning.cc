// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/tuning.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "src/base/plain_text.h"

namespace sluice {
namespace {

constexpr size_t open_ended_from = size_t{1} << 20;
constexpr double impossible = std::numeric_limits<double>::infinity();

std::vector<std::string> strings_of(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

template <typename T>
bool parse_number(const std::string& text, T* number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

// "point COLLECTIVE RANKS BYTES TRANSPORT [hosts=N] incumbent=NAME NAME=US... end". Names after the
// incumbent are algorithms, one of which may be called hosts.
bool parse_point(const std::vector<std::string>& words, TuningPoint* point) {
  if (words.size() < 8 || words.back() != "end" || !parse(words[1], &point->collective) ||
      !parse_number(words[2], &point->ranks) || !parse_number(words[3], &point->bytes)) {
    return false;
  }
  point->transport = words[4];
  for (size_t i = 5; i + 1 < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) return false;
    const std::string name = words[i].substr(0, equals), value = words[i].substr(equals + 1);
    double time = 0;
    if (!point->incumbent.empty()) {
      if (!parse_number(value, &time) || time <= 0) return false;
      point->times[name] = time;
    } else if (name == "incumbent") {
      point->incumbent = value;
    } else if (name != "hosts" || !parse_number(value, &point->hosts)) {
      return false;
    }
  }
  return point->times.contains(point->incumbent);
}

// The points of one collective at one number of ranks, by size. Finds their winners.
class Series {
 public:
  Series(std::vector<const TuningPoint*> points, double margin)
      : points_(std::move(points)), switching_(std::log1p(margin)) {
    for (const TuningPoint* point : points_) {
      for (const auto& [name, time] : point->times) names_.insert(name);
    }
  }

  // One winner for all points: for alltoallv, whose rules test no bytes.
  std::vector<std::string> common_winner() const {
    std::string best;
    double least = impossible;
    for (const std::string& name : names_) {
      double sum = 0;
      for (const TuningPoint* point : points_) sum += cost(*point, name, impossible);
      if (sum < least) {
        least = sum;
        best = name;
      }
    }
    return std::vector<std::string>(points_.size(), best);
  }

  // The cheapest path from the smallest size to the largest; every change of winner costs.
  std::vector<std::string> winners() const {
    std::vector<std::map<std::string, Step>> steps;
    for (const TuningPoint* point : points_) {
      std::map<std::string, Step> here;
      for (const std::string& name : names_) {
        Step step{cost(*point, name, switching_), ""};
        if (!steps.empty()) extend(steps.back(), name, &step);
        if (step.cost < impossible) here[name] = step;
      }
      steps.push_back(std::move(here));
    }
    std::vector<std::string> path;
    std::string name = cheapest(steps.back());
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      path.insert(path.begin(), name);
      name = step->at(name).from;
    }
    return path;
  }

 private:
  struct Step {
    double cost = 0;
    std::string from;
  };

  // A candidate's cost at a point, in logarithms of time. most: what it may lose to the fastest.
  double cost(const TuningPoint& point, const std::string& name, double most) const {
    const auto found = point.times.find(name);
    if (found == point.times.end()) return impossible;
    double fastest = impossible;
    for (const auto& [other, time] : point.times) fastest = std::min(fastest, time);
    const double loss = std::log(found->second / fastest);
    if (loss > most) return impossible;
    return loss + (name == point.incumbent ? 0 : switching_);
  }

  void extend(const std::map<std::string, Step>& before, const std::string& name,
              Step* step) const {
    double least = impossible;
    for (const auto& [from, past] : before) {
      const double whole = past.cost + (from == name ? 0 : switching_);
      if (whole >= least) continue;
      least = whole;
      step->from = from;
    }
    step->cost += least;
  }

  static std::string cheapest(const std::map<std::string, Step>& steps) {
    return std::ranges::min_element(steps, {}, [](const auto& s) { return s.second.cost; })->first;
  }

  std::vector<const TuningPoint*> points_;
  std::set<std::string> names_;
  double switching_;
};

// What rules test besides ranks and bytes.
struct PointKind {
  Collective collective;
  std::string transport;
  bool one_host;
  auto operator<=>(const PointKind&) const = default;
};
using ByRanks = std::map<Rank, std::vector<const TuningPoint*>>;

std::map<PointKind, ByRanks> group(const std::vector<TuningPoint>& points) {
  std::map<PointKind, ByRanks> groups;
  for (const TuningPoint& point : points) {
    groups[{point.collective, point.transport, point.hosts == 1}][point.ranks].push_back(&point);
  }
  for (auto& [key, by_ranks] : groups) {
    for (auto& [ranks, series] : by_ranks) {
      std::ranges::stable_sort(series, {}, [](const TuningPoint* point) { return point->bytes; });
    }
  }
  return groups;
}

// From half-way to the number of ranks below, to half-way to the one above.
Rule::Bounds ranks_around(const ByRanks& measured, ByRanks::const_iterator at) {
  Rule::Bounds ranks{at->first, at->first};
  if (at != measured.begin()) ranks.low = (std::prev(at)->first + at->first) / 2 + 1;
  if (const auto next = std::next(at); next != measured.end()) {
    ranks.high = (at->first + next->first) / 2;
  }
  return ranks;
}

Rule::Bounds hosts_like(const PointKind& key) {
  if (key.one_host) return {1, 1};
  return {2, ~size_t{0}};
}

class Making {
 public:
  Making(const TuningLog& log, double margin) : log_(log), margin_(margin) {
    tuning_.winners.resize(log.points.size());
  }

  Tuning run() {
    for (const auto& [key, by_ranks] : group(log_.points)) {
      for (auto at = by_ranks.begin(); at != by_ranks.end(); ++at) {
        const Series series(at->second, margin_);
        const bool sized = key.collective != Collective::alltoallv;
        const auto winners = sized ? series.winners() : series.common_winner();
        note(at->second, winners);
        TunedRule rule;
        rule.rule.collective = key.collective;
        rule.rule.transport = key.transport;
        if (key.transport != "shm") rule.rule.hosts = hosts_like(key);
        rule.rule.ranks = ranks_around(by_ranks, at);
        add_rules(at->second, winners, sized && key.collective != Collective::barrier, rule);
      }
    }
    return std::move(tuning_);
  }

 private:
  void note(const std::vector<const TuningPoint*>& points, const std::vector<std::string>& names) {
    for (size_t i = 0; i < points.size(); ++i) {
      tuning_.winners[static_cast<size_t>(points[i] - log_.points.data())] = names[i];
      if (names[i] == "mpi") ++tuning_.mpi_wins;
    }
  }

  // A rule for each stretch of sizes with the same winner.
  void add_rules(const std::vector<const TuningPoint*>& points,
                 const std::vector<std::string>& winners, bool sized, TunedRule rule) {
    size_t above = 0;
    for (size_t i = 0, end = 0; i < points.size(); i = end) {
      double gain = 0;
      for (end = i; end < points.size() && winners[end] == winners[i]; ++end) {
        const auto& times = points[end]->times;
        gain += std::log(times.at(points[end]->incumbent) / times.at(winners[i]));
      }
      const size_t last = points[end - 1]->bytes;
      rule.rule.algorithm = winners[i];
      rule.points = end - i;
      rule.gain = std::exp(gain / static_cast<double>(rule.points));
      if (sized) rule.rule.bytes.low = above;
      const bool open = !sized || (end == points.size() && last >= open_ended_from);
      rule.rule.bytes.high = open ? ~size_t{0} : last;
      above = last + 1;
      tuning_.rules.push_back(rule);
    }
  }

  const TuningLog& log_;
  const double margin_;
  Tuning tuning_;
};

std::string condition(const char* name, const Rule::Bounds& bounds) {
  const bool open = bounds.high == ~size_t{0};
  if (open && bounds.low == 0) return "";
  return std::string(name) + ":" + format_size(bounds.low) + "-" +
         (open ? "" : format_size(bounds.high)) + " ";
}

std::string to_text(const Rule& rule) {
  const std::string conditions = condition("ranks", rule.ranks) + condition("hosts", rule.hosts) +
                                 condition("bytes", rule.bytes);
  char line[160];
  std::snprintf(line, sizeof line, "%-14s %-4s %-34s-> %-20s",
                std::string(sluice::to_string(*rule.collective)).c_str(), rule.transport.c_str(),
                conditions.c_str(), rule.algorithm.c_str());
  return line;
}

}  // namespace

Result<TuningLog> parse_tuning_log(std::string_view text) {
  TuningLog log;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.starts_with("job ")) log.job = line.substr(4);
    if (!line.starts_with("point ")) continue;
    TuningPoint point;
    if (!parse_point(strings_of(line), &point)) {
      return Status{Code::invalid, "line " + std::to_string(number) + " is no point"};
    }
    log.points.push_back(std::move(point));
  }
  return log;
}

Tuning make_tuning(const TuningLog& log, double margin) { return Making(log, margin).run(); }

std::string to_text(const TuningLog& log, const Tuning& tuning, std::string_view header) {
  std::string text(header);
  text += "# Measured: " + log.job + "\n# " + std::to_string(log.points.size()) +
          " points; MPI's own collective keeps " + std::to_string(tuning.mpi_wins) +
          " of them. The built-in rules follow\n"
          "# these, where these can't serve. Behind each rule: how much faster than the built-in "
          "choice.\n#\n# collective  transport conditions                    -> algorithm\n";
  for (const TunedRule& tuned : tuning.rules) {
    text += to_text(tuned.rule) + " # " + decimal(tuned.gain, 2) + " at " +
            std::to_string(tuned.points) + (tuned.points == 1 ? " point\n" : " points\n");
  }
  return text;
}

}  // namespace sluice
