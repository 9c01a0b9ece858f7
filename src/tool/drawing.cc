// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/drawing.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "src/base/plain_text.h"
#include "src/tool/svg.h"
#include "src/tool/text.h"

namespace sluice {
namespace {

constexpr double left_margin = 90, right_margin = 40, top_margin = 84, bottom_margin = 76;
constexpr double mark_size = 5, mark_distance = 16;
constexpr const char* grey = "#888";
constexpr const char* reduced = "#f08c00";
constexpr const char* dark = "#333";

// The middle of a piece as a fraction of the whole data; below 0 if the piece is all of it, or if
// it is scratch with unknown content.
double position_of(const Piece& piece, Rank ranks) {
  const Part& part = piece.part;
  if (piece.area == Area::scratch) return -1;
  const double within = (part.begin + part.end) / 2.0 / part.of;
  if (piece.block != whole) return (piece.block + within) / ranks;
  return part.begin == 0 && part.end == part.of ? -1 : within;
}

// Maps a scratch piece to the part of the vector that it holds. This is known only for scratch as
// large as the whole vector; other pieces are returned as they are.
Piece resolved(const Plan& plan, Piece piece) {
  if (piece.area != Area::scratch) return piece;
  const Piece& like = plan.scratch[piece.block];
  const bool is_vector = like.block == whole && like.part == Part{};
  if (is_vector) piece = {like.area, whole, piece.part};
  return piece;
}

// Maps 0..1 to hues from red to violet; below 0: the default colour.
std::string color_at(double position) {
  if (position < 0) return "#3b5b92";
  return "hsl(" + decimal(position * 300, 0) + ",70%,42%)";
}

// The label of an arrow: the number of its part or block.
std::string label_of(const Piece& piece) {
  const Part& part = piece.part;
  const bool is_part = part.begin != 0 || part.end != part.of;
  const std::string block = piece.block == whole ? "" : std::to_string(piece.block);
  if (!is_part) return block;
  std::string text = std::to_string(part.begin);
  if (part.end != part.begin + 1) text += "-" + std::to_string(part.end - 1);
  return block.empty() ? text : block + ":" + text;
}

class Drawing {
 public:
  explicit Drawing(const Study& study)
      : study_(study),
        unit_(std::clamp(1500.0 / std::max(study.timeline.length, 1U), 30.0,
                         120.0 + 8 * study.ranks())),
        lane_(std::clamp(760.0 / study.ranks(), 30.0, 84.0)),
        svg_(std::max(x(study.timeline.length) + right_margin, 760.0),
             y(study.ranks() - 1) + bottom_margin + lane_ / 2) {}

  std::string finish() && {
    draw_grid();
    draw_messages();
    draw_marks();
    draw_title();
    draw_legend();
    return std::move(svg_).finish();
  }

 private:
  // The kinds of symbols on a rank's line, and how many of each kind fall on one time.
  enum class Mark { received, received_reduced, reduced, copied };
  using Marks = std::map<std::tuple<Rank, uint32_t, Mark>, int>;

  double x(double time) const { return left_margin + time * unit_; }
  double y(double rank) const { return top_margin + (rank + 0.5) * lane_; }

  void draw_grid();
  void draw_messages();
  void draw_message(Rank rank, StepId id);
  void draw_marks();
  void draw_mark(Mark mark, Point at);
  void draw_title();
  void draw_legend();
  void draw_color_key(double at);
  double thin() const { return study_.ranks() > 16 ? 0.8 : 1.2; }
  bool is_sparse() const { return study_.ranks() <= 8 && unit_ >= 60; }

  const Study& study_;
  double unit_, lane_;
  Svg svg_;
  bool has_colors_ = false;  // some arrow has a colour by its part of the data
  std::set<Mark> used_;
};

void Drawing::draw_grid() {
  const uint32_t length = study_.timeline.length;
  const double top = y(0) - lane_ / 2, bottom = y(study_.ranks() - 1) + lane_ / 2;
  const uint32_t every = unit_ >= 45 ? 1 : 5;
  for (uint32_t time = 0; time <= length; ++time) {
    svg_.line({x(time), top}, {x(time), bottom}, "#e4e4e4", 1);
    if (time % every != 0) continue;
    svg_.text({x(time), top - 6}, std::to_string(time),
              {.size = 11, .color = grey, .align = Align::middle});
  }
  svg_.text({left_margin - 14, top - 6}, "time", {.size = 11, .color = grey, .align = Align::end});
  const bool rooted = is_rooted(study_.algorithm->collective);
  for (Rank rank = 0; rank < study_.ranks(); ++rank) {
    const bool is_root = rooted && rank == study_.shape.root;
    svg_.line({x(0) - 6, y(rank)}, {x(length) + 6, y(rank)}, "#c4c4c4", 1.2);
    svg_.text({left_margin - 14, y(rank) + 4}, (is_root ? "root " : "rank ") + std::to_string(rank),
              {.color = dark, .align = Align::end, .bold = is_root});
  }
}

void Drawing::draw_messages() {
  for (Rank rank = 0; rank < study_.ranks(); ++rank) {
    for (StepId id = 0; id < study_.set.plans[rank].steps.size(); ++id) draw_message(rank, id);
  }
}

void Drawing::draw_message(Rank rank, StepId id) {
  const Plan& plan = study_.set.plans[rank];
  const Step& step = plan.steps[id];
  const StepTime& time = study_.timeline.steps[rank][id];
  if (step.kind != Kind::send || time.end == time.start) return;
  const auto pieces = plan.of(step.from);
  const bool is_token = pieces.empty();
  const double share = study_.bytes == 0 ? 0
                                         : static_cast<double>(study_.bytes_of(time.elements)) /
                                               static_cast<double>(study_.bytes);
  const Piece piece = is_token ? Piece{} : resolved(plan, pieces.front());
  const std::string color = is_token ? grey : color_at(position_of(piece, study_.ranks()));
  const Point from{x(time.start), y(rank)}, to{x(time.end) - mark_size, y(step.peer)};
  svg_.arrow(from, to, color, thin() + 2 * std::min(share, 1.0), is_token);
  has_colors_ = has_colors_ || (!is_token && color != color_at(-1));
  if (!is_sparse() || is_token || piece.area == Area::scratch) return;
  const std::string label = label_of(piece) + (pieces.size() > 1 ? "+" : "");
  svg_.text({from.x + 0.3 * (to.x - from.x), from.y + 0.3 * (to.y - from.y) + 4}, label,
            {.size = 10, .color = color, .align = Align::middle, .bold = true, .halo = true});
}

void Drawing::draw_mark(Mark mark, Point at) {
  switch (mark) {
    case Mark::received:
      return svg_.circle(at, mark_size - 1, "white", dark);
    case Mark::received_reduced:
      return svg_.box(at, 2 * mark_size, 2 * mark_size, reduced, dark);
    case Mark::reduced:
      return svg_.diamond(at, mark_size + 1.5, reduced, dark);
    case Mark::copied:
      return svg_.box(at, 2 * mark_size - 3, 2 * mark_size - 3, "#bbb", dark);
  }
}

void Drawing::draw_marks() {
  Marks marks;
  for (Rank rank = 0; rank < study_.ranks(); ++rank) {
    const Plan& plan = study_.set.plans[rank];
    for (StepId id = 0; id < plan.steps.size(); ++id) {
      static constexpr Mark of_kind[] = {Mark::received, Mark::received, Mark::received_reduced,
                                         Mark::reduced, Mark::copied};
      const Kind kind = plan.steps[id].kind;
      const StepTime& time = study_.timeline.steps[rank][id];
      const bool does_something = time.elements > 0 || time.end > time.start;
      if (kind == Kind::send || !does_something) continue;
      ++marks[{rank, time.end, of_kind[static_cast<size_t>(kind)]}];
    }
  }
  std::map<std::pair<Rank, uint32_t>, int> beside;  // symbols drawn so far at one place
  for (const auto& [place, count] : marks) {
    const auto& [rank, time, mark] = place;
    const Point at{x(time) + mark_distance * beside[{rank, time}]++, y(rank)};
    draw_mark(mark, at);
    used_.insert(mark);
    if (count == 1) continue;
    svg_.text({at.x + mark_size + 1, at.y - mark_size - 1}, std::to_string(count),
              {.size = 10, .color = dark, .halo = true});
  }
}

void Drawing::draw_title() {
  const std::string name =
      std::string(to_string(study_.algorithm->collective)) + " " + study_.algorithm->name;
  svg_.text({20, 28}, name + ", " + counted(study_.ranks(), "rank"),
            {.size = 18, .color = "#111", .bold = true});
  const auto& sent = study_.timeline.sent;
  const size_t most = sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
  std::string costs = counted(study_.timeline.length, "message") + " one after another";
  if (study_.bytes > 0) {
    const double share =
        static_cast<double>(study_.bytes_of(most)) / static_cast<double>(study_.bytes);
    costs += "; the busiest rank sends " + short_number(share) +
             " S, S = " + with_commas(study_.bytes) + " bytes";
  }
  svg_.text({20, 48}, costs, {.size = 12, .color = "#555"});
}

void Drawing::draw_legend() {
  const double at = y(study_.ranks() - 1) + lane_ / 2 + 30;
  const TextStyle style{.size = 11, .color = "#555"};
  double from = 24;
  const auto entry = [&](Mark mark, const char* words, double width) {
    if (!used_.contains(mark)) return;
    draw_mark(mark, {from, at});
    svg_.text({from + 12, at + 4}, words, style);
    from += width;
  };
  entry(Mark::received, "received", 90);
  entry(Mark::received_reduced, "received and reduced", 165);
  entry(Mark::reduced, "reduced", 85);
  entry(Mark::copied, "copied", 80);
  const bool tokens = study_.bytes == 0;
  svg_.arrow({from, at}, {from + 34, at}, tokens ? grey : color_at(-1), 1.6, tokens);
  svg_.text({from + 42, at + 4}, tokens ? "message without payload" : "message; wider: more bytes",
            style);
  if (has_colors_) draw_color_key(at + 24);
}

void Drawing::draw_color_key(double at) {
  constexpr int steps = 60;
  constexpr double left = 20, width = 3;
  for (int i = 0; i < steps; ++i) {
    svg_.box({left + (i + 0.5) * width, at}, width, 8, color_at((i + 0.5) / steps));
  }
  svg_.text({left + steps * width + 12, at + 4},
            is_sparse() ? "colour and number: which part or block of the data (+: and others)"
                        : "colour: which part of the data, from its begin to its end",
            {.size = 11, .color = "#555"});
}

}  // namespace

std::string draw(const Study& study) { return Drawing(study).finish(); }

}  // namespace sluice
