// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/study.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

constexpr size_t most_pieces = 3;  // shown one by one

Status reject(const std::string& what) { return {Code::invalid, what}; }

std::string algorithm_names(Collective collective) {
  std::string names;
  for (const Algorithm& each : algorithms(collective)) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  return names;
}

Result<const Algorithm*> chosen_algorithm(const StudyOptions& options) {
  Collective collective;
  if (!parse(options.collective, &collective)) {
    return reject("'" + options.collective + "' is no collective; there are " + collective_names());
  }
  const Algorithm* algorithm = find_algorithm(collective, options.algorithm);
  if (!algorithm) {
    return reject("--algorithm " + options.algorithm + ": " + options.collective + " has " +
                  algorithm_names(collective));
  }
  if (!algorithm->plan) {
    return reject("--algorithm " + options.algorithm +
                  ": has no plan to show: ranks meet in shared memory, in rounds");
  }
  if (algorithm->needs.hosts &&
      !can_serve(*algorithm, options.ranks, false, false, options.hosts)) {
    return reject("--algorithm " + options.algorithm +
                  ": is for two hosts or more, one of them with several ranks" +
                  (is_prefix(collective) ? ", each with consecutive ones" : "") +
                  " (--hosts, --placement)");
  }
  if (!can_serve(*algorithm, options.ranks, false, false, options.hosts)) {
    return reject("--ranks " + std::to_string(options.ranks) + ": " + options.algorithm +
                  " takes powers of two only");
  }
  return algorithm;
}

Status check_root(const StudyOptions& options, Collective collective) {
  if (!options.root) return {};
  const std::string what = "--root " + std::to_string(*options.root) + ": ";
  if (!is_rooted(collective)) return reject(what + options.collective + " has no root");
  if (*options.root >= options.ranks)
    return reject(what + "there are ranks 0 to " + std::to_string(options.ranks - 1));
  return {};
}

// How many equal blocks make up S.
size_t block_count(Collective collective, Rank ranks) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan:
    case Collective::broadcast:
      return 1;
    default:
      return ranks;
  }
}

std::string piece_text(const Piece& piece) {
  static constexpr const char* areas[] = {"input", "output", "scratch"};
  std::string text = areas[static_cast<size_t>(piece.area)];
  if (piece.block != whole) text += "[" + std::to_string(piece.block) + "]";
  const Part& part = piece.part;
  if (part.begin == 0 && part.end == part.of) return text;
  const bool is_one = part.end == part.begin + 1;
  text += "{" + std::to_string(part.begin) + (is_one ? "" : "-" + std::to_string(part.end - 1));
  return text + "/" + std::to_string(part.of) + "}";
}

}  // namespace

std::string collective_names() {
  std::string names;
  for (uint32_t i = 0; i < collective_count; ++i) {
    names += (i ? ", " : "") + std::string(to_string(static_cast<Collective>(i)));
  }
  return names;
}

Result<Study> make_study(const StudyOptions& options) {
  const Result<const Algorithm*> algorithm = chosen_algorithm(options);
  if (!algorithm.ok()) return algorithm.status();
  const Collective collective = (*algorithm)->collective;
  const Status root = check_root(options, collective);
  if (!root.ok()) return root;
  Shape shape;
  shape.size = options.ranks;
  shape.root = options.root.value_or(0);
  shape.radix = options.radix;
  shape.hosts = options.hosts;
  const size_t blocks = block_count(collective, options.ranks);
  const bool has_data = collective != Collective::barrier;
  const size_t elements = has_data ? options.bytes / options.element / blocks : 0;
  const Model model(all_plans(**algorithm, shape));
  if (!model.faults().empty()) return Status(Code::internal, model.faults().front());
  Study study{.algorithm = *algorithm,
              .shape = shape,
              .counts = {elements},
              .element = options.element,
              .bytes = elements * blocks * options.element,
              .set = model.set(),
              .timeline = model.timeline({elements}),
              .published = (*algorithm)->cost(shape)};
  study.shape.hosts = study.set.hosts;  // the Shape refers to host numbers that the study owns
  return study;
}

std::string memory_text(const Plan& plan, const Slice& slice) {
  const auto pieces = plan.of(slice);
  if (pieces.empty()) return "(none)";
  std::string text;
  for (size_t i = 0; i < std::min(pieces.size(), most_pieces); ++i) {
    text += (i ? ", " : "") + piece_text(pieces[i]);
  }
  const size_t more = pieces.size() - std::min(pieces.size(), most_pieces);
  return more ? text + " and " + std::to_string(more) + " more" : text;
}

std::string action_text(const Plan& plan, const Step& step) {
  const std::string from = memory_text(plan, step.from), to = memory_text(plan, step.to);
  switch (step.kind) {
    case Kind::send:
      return from;
    case Kind::recv:
      return to;
    case Kind::recv_reduce:
      return to + " = " + (step.received_first ? "received + " + from : from + " + received");
    case Kind::reduce:
      return to + " = " + from + " + " + memory_text(plan, step.with);
    case Kind::copy:
      if (step.to.count == 0) return "(waits only)";
      return to + " = " + from;
  }
  return "";
}

std::string_view to_string(Kind kind) {
  static constexpr std::string_view names[] = {"send", "recv", "recv_reduce", "reduce", "copy"};
  return names[static_cast<size_t>(kind)];
}

}  // namespace sluice
