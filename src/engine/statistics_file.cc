// SPDX-License-Identifier: BSD-3-Clause
#include "src/engine/statistics_file.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/plain_text.h"

namespace sluice {
namespace {

// Bytes of the UTF-8 character that begins here; 0 if none does.
size_t length_of_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool is_long_form = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool is_beyond = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return is_long_form || is_beyond ? 0 : length;
}

// Between quotation marks, with backslashes as both formats have them. Programs may give their
// communicators any name: what is no text becomes a question mark.
std::string quoted(std::string_view text) {
  std::string made = "\"";
  while (!text.empty()) {
    const size_t length = length_of_character(text);
    const char c = text[0];
    if (length == 0 || static_cast<unsigned char>(c) < ' ') {
      made += '?';
    } else {
      if (c == '"' || c == '\\') made += '\\';
      made += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return made + '"';
}

std::string number(double value) { return significant(value, 9); }
std::string number(uint64_t value) { return std::to_string(value); }
std::string number(const std::optional<double>& value) { return value ? number(*value) : "null"; }

double lower_end(size_t octave) { return static_cast<double>(uint64_t{1} << octave) * 1e-9; }

// Objects and lists of JSON, one member a line where they are long.
class Json {
 public:
  Json& name(std::string_view name) {
    begin_value();
    text_ += quoted(name) + ": ";
    is_named_ = true;
    return *this;
  }
  Json& value(const std::string& text) {
    begin_value();
    text_ += text;
    return *this;
  }
  Json& open(char bracket) {
    begin_value();
    text_ += bracket;
    is_first_ = true;
    return *this;
  }
  Json& close(char bracket) {
    text_ += bracket;
    is_first_ = false;
    return *this;
  }
  Json& line() {
    breaks_ = true;
    return *this;
  }
  Json& member(std::string_view of, const std::string& text) { return name(of).value(text); }
  std::string text() { return text_ + '\n'; }

 private:
  void begin_value() {
    if (!is_named_ && !is_first_) text_ += breaks_ ? "," : ", ";
    if (!is_named_ && breaks_) text_ += '\n';
    if (!is_named_) breaks_ = false;
    is_first_ = is_named_ = false;
  }
  std::string text_;
  bool is_first_ = true, is_named_ = false, breaks_ = false;
};

void put_seconds(const TimeParts& seconds, Json* json) {
  json->name("seconds").open('{').member("total", number(seconds.total));
  json->member("waiting", number(seconds.waiting)).member("moving", number(seconds.moving));
  json->member("rest", number(seconds.rest)).close('}');
}

void put_histogram(const ClassRecord::Histogram& histogram, Json* json) {
  json->name("histogram").open('[');
  for (size_t i = 0; i < histogram.size(); ++i) {
    if (histogram[i] == 0) continue;
    json->open('{').member("from", number(lower_end(i))).member("to", number(lower_end(i + 1)));
    json->member("calls", number(histogram[i])).close('}');
  }
  json->close(']');
}

// Bytes of the smallest and of the largest call.
std::string least_bytes(uint8_t size) {
  return size == CountedClass::varied ? "null" : number(size == 0 ? 0 : uint64_t{1} << (size - 1));
}
std::string most_bytes(uint8_t size) {
  return size == CountedClass::varied ? "null"
                                      : number(size == 0 ? 0 : (uint64_t{2} << (size - 1)) - 1);
}

void put_ranks(const JobClass& each, Json* json) {
  json->line().name("ranks").open('[');
  for (const JobClass::Share& share : each.shares) {
    json->open('{').member("rank", number(uint64_t{share.rank}));
    json->member("calls", number(share.calls)).member("bytes", number(share.bytes));
    put_seconds(share.seconds, json);
    json->member("low", each.sampled > 0 ? number(share.low) : "null").close('}').line();
  }
  json->close(']');
}

void put_class(const JobClass& each, Json* json) {
  const CountedClass& of = each.of;
  json->line().open('{').member("communicator", quoted(of.communicator));
  json->member("group", number(of.group)).member("size", number(uint64_t{each.ranks}));
  json->member("collective", quoted(to_string(of.collective)));
  json->member("nonblocking", of.nonblocking ? "true" : "false");
  json->member("least_bytes", least_bytes(of.size)).member("most_bytes", most_bytes(of.size));
  json->member("algorithm", quoted(of.algorithm)).member("carrier", quoted(of.carrier));
  json->member("path", quoted(of.path));
  json->line().member("calls", number(each.calls)).member("bytes", number(each.bytes));
  json->member("sampled", number(each.sampled));
  put_seconds(each.seconds, json);
  json->line();
  put_histogram(each.histogram, json);
  json->line().name("late").open('[');
  for (const JobClass::Late& late : each.late) {
    json->open('{').member("rank", number(uint64_t{late.rank}));
    json->member("calls", number(late.calls)).member("seconds", number(late.seconds)).close('}');
  }
  json->close(']');
  put_ranks(each, json);
  json->close('}');
}

void put_members(const JobStatistics& job, Json* json) {
  json->line().name("ranks").open('[');
  for (const JobStatistics::Member& member : job.members) {
    json->line().open('{').member("rank", number(uint64_t{member.rank}));
    json->member("process", quoted(member.process)).member("seconds", number(member.seconds));
    json->member("left_to_mpi", number(member.left));
    json->member("ended_by", member.why_ended.empty() ? "null" : quoted(member.why_ended));
    json->close('}');
  }
  json->close(']');
}

// What a metric is, and its samples.
class Metric {
 public:
  Metric(std::string name, const char* type, const std::string& help) : name_(std::move(name)) {
    text_ = "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " " + type + "\n";
  }
  void add(const std::string& labels, const std::string& value, const std::string& suffix = "") {
    text_ += name_ + suffix + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_, text_;
};

std::string labels_of(const CountedClass& of) {
  std::string labels = "communicator=" + quoted(of.communicator) + ",collective=\"" +
                       std::string(to_string(of.collective)) + "\",nonblocking=\"" +
                       (of.nonblocking ? "true" : "false") + "\"";
  const bool is_varied = of.size == CountedClass::varied;
  labels += ",most_bytes=\"" + (is_varied ? "varied" : most_bytes(of.size)) + "\"";
  labels += ",group=\"" + std::to_string(of.group) + "\"";
  return labels + ",algorithm=" + quoted(of.algorithm) + ",carrier=" + quoted(of.carrier) +
         ",path=" + quoted(of.path);
}

void add_parts(const std::string& labels, const TimeParts& seconds, Metric* metric) {
  const auto add = [&](const char* part, double value) {
    metric->add(labels + ",part=\"" + part + "\"", number(value));
  };
  if (!seconds.waiting) return add("unknown", seconds.total);
  add("waiting", *seconds.waiting);
  add("moving", *seconds.moving);
  add("rest", *seconds.rest);
}

void add_histogram(const std::string& labels, const JobClass& each, Metric* metric) {
  uint64_t below = 0;
  for (size_t i = 0; i < each.histogram.size(); ++i) {
    below += each.histogram[i];
    if (i < 9) continue;                                    // from a microsecond
    if (i > 33 && i + 1 < each.histogram.size()) continue;  // to 17 s
    const bool is_last = i + 1 == each.histogram.size();
    metric->add(labels + ",le=\"" + (is_last ? "+Inf" : number(lower_end(i + 1))) + "\"",
                number(below), "_bucket");
  }
  metric->add(labels, number(each.seconds.total), "_sum");
  metric->add(labels, number(below), "_count");
}

}  // namespace

std::string to_json(const JobStatistics& job, const std::string& version) {
  Json json;
  json.open('{').member("schema", "1").member("sluice", quoted(version));
  json.member("ranks_of_job", number(uint64_t{job.ranks}));
  json.name("clock").open('{').member("error", number(job.clock_error));
  json.member("drift", number(job.clock_drift)).close('}');
  put_members(job, &json);
  json.line().name("classes").open('[');
  for (const JobClass& each : job.classes) put_class(each, &json);
  return json.close(']').close('}').text();
}

std::string to_prometheus(const JobStatistics& job, const std::string& version) {
  Metric about("sluice_job_info", "gauge", "The version of Sluice.");
  Metric ranks("sluice_job_ranks", "gauge", "Ranks of the job.");
  Metric ran("sluice_job_seconds", "gauge",
             "Seconds from the first collective to the end, of all ranks.");
  Metric left("sluice_left_to_mpi_calls", "counter",
              "Calls that MPI did and that no class counts, of all ranks.");
  Metric calls("sluice_calls", "counter", "Calls of a class, on the rank that made most.");
  Metric bytes("sluice_bytes", "counter", "Bytes of a class's calls, of all ranks.");
  Metric seconds("sluice_seconds", "counter",
                 "Seconds in a class's calls, of all ranks, by what they went to.");
  Metric late("sluice_late_seconds", "counter",
              "Seconds that others waited for this rank, the last to enter a call.");
  Metric lasted("sluice_call_seconds", "histogram", "How long a class's calls took on all ranks.");
  double all = 0;
  uint64_t all_left = 0;
  for (const JobStatistics::Member& member : job.members) {
    all += member.seconds;
    all_left += member.left;
  }
  about.add("version=" + quoted(version), "1");
  ranks.add("", number(uint64_t{job.ranks}));
  ran.add("", number(all));
  left.add("", number(all_left));
  for (const JobClass& each : job.classes) {
    const std::string labels = labels_of(each.of);
    calls.add(labels, number(each.calls));
    bytes.add(labels, number(each.bytes));
    add_parts(labels, each.seconds, &seconds);
    add_histogram(labels, each, &lasted);
    for (const JobClass::Late& of : each.late) {
      late.add(labels + ",rank=\"" + number(uint64_t{of.rank}) + "\"", number(of.seconds));
    }
  }
  std::string text;
  for (const Metric* each :
       {&about, &ranks, &ran, &left, &calls, &bytes, &seconds, &late, &lasted}) {
    text += each->text();
  }
  return text;
}

StatisticsFile::StatisticsFile(const std::string& stats) {
  const size_t colon = stats.find(':');
  if (stats.substr(0, colon) == "prometheus") format_ = Format::prometheus;
  path_ = stats.substr(colon + 1);
}

std::string StatisticsFile::text(const JobStatistics& job, const std::string& version) const {
  return format_ == Format::json ? to_json(job, version) : to_prometheus(job, version);
}

std::string StatisticsFile::path_of_rank(Rank rank) const {
  constexpr std::string_view ending = ".prom";
  const std::string of = ".rank" + std::to_string(rank);
  if (format_ == Format::json || !path_.ends_with(ending)) return path_ + of;
  return path_.substr(0, path_.size() - ending.size()) + of + std::string(ending);
}

}  // namespace sluice
