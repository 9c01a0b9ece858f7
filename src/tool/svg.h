// SPDX-License-Identifier: BSD-3-Clause
//
// Writes an SVG drawing shape by shape; later shapes cover earlier ones. Units are pixels.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

struct Point {
  double x, y;
};

enum class Align { start, middle, end };

struct TextStyle {
  double size = 12;
  std::string_view color = "#333";
  Align align = Align::start;
  bool bold = false;
  bool halo = false;  // a white outline, so that text over lines is readable
};

class Svg {
 public:
  Svg(double width, double height);

  void line(Point from, Point to, std::string_view color, double width, bool dashed = false);
  // A line with an arrowhead at `to`.
  void arrow(Point from, Point to, std::string_view color, double width, bool dashed);
  void box(Point center, double width, double height, std::string_view fill,
           std::string_view stroke = "none");
  void circle(Point center, double radius, std::string_view fill, std::string_view stroke = "none");
  void diamond(Point center, double radius, std::string_view fill,
               std::string_view stroke = "none");
  void text(Point at, std::string_view text, const TextStyle& style);

  std::string finish() &&;

 private:
  void polygon(std::string_view points, std::string_view fill, std::string_view stroke);

  std::string text_;
};

}  // namespace sluice
