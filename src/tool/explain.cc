// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/explain.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "src/base/knobs.h"
#include "src/tool/drawing.h"
#include "src/tool/text.h"

namespace sluice {
namespace {

constexpr unsigned most_hosts = 1024;  // the same limit holds for ranks on one host
constexpr size_t few_steps = 48;       // up to this many steps of all ranks: show all

bool is_message(const Step& step) {
  return step.kind == Kind::send || step.kind == Kind::recv || step.kind == Kind::recv_reduce;
}

std::string peer_text(const Step& step) {
  if (!is_message(step)) return "";
  return std::string(step.kind == Kind::send ? "to " : "from ") + std::to_string(step.peer) + " #" +
         std::to_string(step.ordinal);
}

std::string after_text(const Plan& plan, const Step& step) {
  std::string text;
  for (const After& after : plan.after_of(step)) {
    text += (text.empty() ? "" : " ") + std::to_string(after.step) + (after.pipelined ? "~" : "");
  }
  return text;
}

std::string time_text(const StepTime& time) {
  const std::string start = std::to_string(time.start);
  return time.end == time.start ? start : start + "-" + std::to_string(time.end);
}

void print_rank(const Study& study, Rank rank) {
  const Plan& plan = study.set.plans[rank];
  TextTable table({"STEP", "TIME", "DOES", "PEER", "MEMORY", "BYTES", "AFTER"});
  table.right(0);
  table.right(5);
  for (StepId id = 0; id < plan.steps.size(); ++id) {
    const Step& step = plan.steps[id];
    const StepTime& time = study.timeline.steps[rank][id];
    table.add({std::to_string(id), time_text(time), std::string(to_string(step.kind)),
               peer_text(step), action_text(plan, step), with_commas(study.bytes_of(time.elements)),
               after_text(plan, step)});
  }
  printf("\nRank %u%s\n%s", rank, plan.steps.empty() ? ": nothing to do" : "",
         plan.steps.empty() ? "" : table.text().c_str());
}

std::string in_size(double factor) { return factor == 0 ? "0" : short_number(factor) + " S"; }

// "1,835,008 B = 1.75 S"
std::string measured(const Study& study, size_t elements) {
  const size_t bytes = study.bytes_of(elements);
  const std::string text = with_commas(bytes) + " B";
  if (bytes == 0 || study.bytes == 0) return text;
  return text + " = " + in_size(static_cast<double>(bytes) / static_cast<double>(study.bytes));
}

size_t most(const std::vector<size_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

void print_costs(const Study& study) {
  TextTable table({"COST", "OF THESE PLANS", "PUBLISHED"});
  table.add({"messages one after another", std::to_string(study.timeline.length),
             short_number(study.published.steps)});
  table.add({"bytes sent, at most by a rank", measured(study, most(study.timeline.sent)),
             in_size(study.published.bytes)});
  if (!study.timeline.between.empty()) {
    const bool told = study.algorithm->needs.hosts;
    table.add({"bytes to other hosts, at most by a host",
               measured(study, most(study.timeline.between)),
               told ? in_size(study.published.between) : "-"});
  }
  table.add({"scratch, at most of a rank", measured(study, most(study.timeline.scratch)),
             in_size(study.published.scratch)});
  printf("%s", table.text().c_str());
}

void print_title(const Study& study) {
  const std::string collective(to_string(study.algorithm->collective));
  printf("%s %s, %s", collective.c_str(), study.algorithm->name,
         counted(study.ranks(), "rank").c_str());
  if (is_rooted(study.algorithm->collective)) printf(", root %u", study.shape.root);
  if (!study.shape.hosts.empty()) {
    printf(" on %s", counted(count_hosts(study.shape.hosts), "host").c_str());
  }
  printf("\n%s\n\n", study.algorithm->help);
  if (study.bytes > 0) {
    printf("S = %s B in elements of %zu B\n", with_commas(study.bytes).c_str(), study.element);
  }
}

void print_notes() {
  printf(
      "\nTIME    in messages one after another; copies and reductions take none\n"
      "PEER    the other rank, and the number of the message between the two, in this direction\n"
      "MEMORY  area[block]{part}: input[3] is the block of rank 3, output{2/8} the third eighth\n"
      "AFTER   the steps that it waits for; ~ segment by segment\n");
}

bool shows(const Study& study, const ExplainOptions& options, Rank rank) {
  if (options.rank) return rank == *options.rank;
  size_t steps = 0;
  for (const Plan& plan : study.set.plans) steps += plan.steps.size();
  return rank == 0 || steps <= few_steps;
}

void print_text(const Study& study, const ExplainOptions& options) {
  print_title(study);
  print_costs(study);
  bool all = true;
  for (Rank rank = 0; rank < study.ranks(); ++rank) {
    const bool shown = shows(study, options, rank);
    if (shown) print_rank(study, rank);
    all = all && shown;
  }
  print_notes();
  if (!all && !options.rank) printf("\nThe other ranks: --rank R, or all of them with --json\n");
}

void add_step(const Study& study, Rank rank, StepId id, Json* json) {
  const Plan& plan = study.set.plans[rank];
  const Step& step = plan.steps[id];
  const StepTime& time = study.timeline.steps[rank][id];
  json->open_object().add("kind", to_string(step.kind));
  if (is_message(step)) {
    json->add("peer", size_t{step.peer}).add("ordinal", size_t{step.ordinal});
  }
  json->add("memory", action_text(plan, step)).add("bytes", study.bytes_of(time.elements));
  json->add("start", size_t{time.start}).add("end", size_t{time.end}).open_array("after");
  for (const After& after : plan.after_of(step)) json->add("", size_t{after.step});
  json->close().close();
}

void add_costs(const Study& study, Json* json) {
  json->open_object("costs").add("steps", size_t{study.timeline.length});
  json->add("bytes_sent", study.bytes_of(most(study.timeline.sent)));
  json->add("bytes_between_hosts", study.bytes_of(most(study.timeline.between)));
  json->add("scratch", study.bytes_of(most(study.timeline.scratch))).close();
  json->open_object("published").add("steps", study.published.steps);
  json->add("bytes_sent_in_s", study.published.bytes);
  json->add("bytes_between_hosts_in_s", study.published.between);
  json->add("scratch_in_s", study.published.scratch).close();
}

void print_json(const Study& study, const ExplainOptions& options) {
  Json json;
  json.open_object().add("collective", to_string(study.algorithm->collective));
  json.add("algorithm", study.algorithm->name).add("ranks", size_t{study.ranks()});
  if (is_rooted(study.algorithm->collective)) json.add("root", size_t{study.shape.root});
  json.add("bytes", study.bytes).add("element", study.element);
  add_costs(study, &json);
  json.open_array("plans");
  for (Rank rank = 0; rank < study.ranks(); ++rank) {
    if (options.rank && rank != *options.rank) continue;
    json.open_object().add("rank", size_t{rank}).open_array("steps");
    for (StepId id = 0; id < study.set.plans[rank].steps.size(); ++id) {
      add_step(study, rank, id, &json);
    }
    json.close().close();
  }
  json.close().close();
  printf("%s", json.text().c_str());
}

Status write_file(const std::string& path, const std::string& text) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "we"), &fclose);
  if (file && fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
      fflush(file.get()) == 0) {
    return {};
  }
  return {Code::invalid, "--svg " + path + ": " + strerror(errno)};
}

// "4x2": ranks 0 and 1 on host 0, and so on. The caller compares the number of ranks.
Status parse_hosts(const std::string& text, std::vector<uint32_t>* hosts) {
  unsigned count = 0, each = 0;
  char more = 0;
  if (sscanf(text.c_str(), "%ux%u%c", &count, &each, &more) != 2 || count > most_hosts ||
      each > most_hosts) {
    return {Code::invalid, "--hosts " + text + ": it takes HOSTSxRANKS, such as 4x2"};
  }
  for (unsigned i = 0; i < count * each; ++i) hosts->push_back(i / each);
  return {};
}

// "0,0,1,1": hosts are numbered in the order of their lowest ranks.
Status parse_placement(const std::string& text, std::vector<uint32_t>* hosts) {
  uint32_t count = 0;
  const char* at = text.c_str();
  while (true) {
    char* end = nullptr;
    const unsigned long host = strtoul(at, &end, 10);
    if (end == at || (*end != ',' && *end != 0) || host > count) {
      return {Code::invalid, "--placement " + text +
                                 ": it takes the host of each rank, numbered as they come, "
                                 "such as 0,0,1,1"};
    }
    count = std::max(count, static_cast<uint32_t>(host) + 1);
    hosts->push_back(static_cast<uint32_t>(host));
    if (*end == 0) return {};
    at = end + 1;
  }
}

Status read_hosts(const ExplainOptions& options, std::vector<uint32_t>* hosts) {
  if (options.hosts.empty() && options.placement.empty()) return {};
  const Status status = options.hosts.empty() ? parse_placement(options.placement, hosts)
                                              : parse_hosts(options.hosts, hosts);
  if (!status.ok() || hosts->size() == options.study.ranks) return status;
  return {Code::invalid, "--ranks " + std::to_string(options.study.ranks) +
                             ": hosts are given for " + std::to_string(hosts->size())};
}

}  // namespace

Status explain(const ExplainOptions& options) {
  StudyOptions wanted = options.study;
  if (Status status = read_hosts(options, &wanted.hosts); !status.ok()) return status;
  if (!parse_size(options.size, &wanted.bytes)) {
    return {Code::invalid,
            "--bytes " + options.size + ": it takes a size such as 65536, 64k or 1m"};
  }
  if (options.rank && *options.rank >= wanted.ranks) {
    return {Code::invalid, "--rank " + std::to_string(*options.rank) + ": there are ranks 0 to " +
                               std::to_string(wanted.ranks - 1)};
  }
  const Result<Study> study = make_study(wanted);
  if (!study.ok()) return study.status();
  if (!options.svg.empty()) {
    const Status written = write_file(options.svg, draw(*study));
    if (!written.ok()) return written;
  }
  options.json ? print_json(*study, options) : print_text(*study, options);
  return {};
}

}  // namespace sluice
