// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/svg.h"

#include <cmath>
#include <utility>

#include "src/base/plain_text.h"

namespace sluice {
namespace {

std::string pixels(double value) { return decimal(value, 1); }

std::string pair(Point point) { return pixels(point.x) + "," + pixels(point.y); }

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

const char* anchor(Align align) {
  return align == Align::start ? "start" : align == Align::middle ? "middle" : "end";
}

}  // namespace

Svg::Svg(double width, double height) {
  const std::string w = pixels(width), h = pixels(height);
  text_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"" +
          attribute("width", w) + attribute("height", h) +
          attribute("viewBox", "0 0 " + w + " " + h) +
          attribute("font-family", "DejaVu Sans, Helvetica, Arial, sans-serif") + ">\n";
  box({width / 2, height / 2}, width, height, "white");
}

void Svg::line(Point from, Point to, std::string_view color, double width, bool dashed) {
  text_ += "<line" + attribute("x1", pixels(from.x)) + attribute("y1", pixels(from.y)) +
           attribute("x2", pixels(to.x)) + attribute("y2", pixels(to.y)) +
           attribute("stroke", color) + attribute("stroke-width", pixels(width)) +
           (dashed ? attribute("stroke-dasharray", "4 3") : "") + "/>\n";
}

void Svg::arrow(Point from, Point to, std::string_view color, double width, bool dashed) {
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  if (length == 0) return;
  const Point along{(to.x - from.x) / length, (to.y - from.y) / length};
  const double head = 6 + 1.5 * width, half = 2.5 + width;
  const Point neck{to.x - along.x * head, to.y - along.y * head};
  line(from, neck, color, width, dashed);
  polygon(pair(to) + " " + pair({neck.x - along.y * half, neck.y + along.x * half}) + " " +
              pair({neck.x + along.y * half, neck.y - along.x * half}),
          color, "none");
}

void Svg::box(Point center, double width, double height, std::string_view fill,
              std::string_view stroke) {
  text_ += "<rect" + attribute("x", pixels(center.x - width / 2)) +
           attribute("y", pixels(center.y - height / 2)) + attribute("width", pixels(width)) +
           attribute("height", pixels(height)) + attribute("fill", fill) +
           attribute("stroke", stroke) + "/>\n";
}

void Svg::circle(Point center, double radius, std::string_view fill, std::string_view stroke) {
  text_ += "<circle" + attribute("cx", pixels(center.x)) + attribute("cy", pixels(center.y)) +
           attribute("r", pixels(radius)) + attribute("fill", fill) + attribute("stroke", stroke) +
           "/>\n";
}

void Svg::diamond(Point center, double radius, std::string_view fill, std::string_view stroke) {
  polygon(pair({center.x - radius, center.y}) + " " + pair({center.x, center.y - radius}) + " " +
              pair({center.x + radius, center.y}) + " " + pair({center.x, center.y + radius}),
          fill, stroke);
}

void Svg::polygon(std::string_view points, std::string_view fill, std::string_view stroke) {
  text_ += "<polygon" + attribute("points", points) + attribute("fill", fill) +
           attribute("stroke", stroke) + "/>\n";
}

void Svg::text(Point at, std::string_view text, const TextStyle& style) {
  text_ +=
      "<text" + attribute("x", pixels(at.x)) + attribute("y", pixels(at.y)) +
      attribute("font-size", pixels(style.size)) + attribute("fill", style.color) +
      attribute("text-anchor", anchor(style.align)) +
      (style.bold ? attribute("font-weight", "bold") : "") +
      (style.halo ? attribute("stroke", "white") + attribute("stroke-width", "3") +
                        attribute("stroke-linejoin", "round") + attribute("paint-order", "stroke")
                  : "") +
      ">" + escaped(text) + "</text>\n";
}

std::string Svg::finish() && { return std::move(text_) + "</svg>\n"; }

}  // namespace sluice
