#include "thimble/report/plots/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/report/plots/plot_style.h"

namespace thimble {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::string_view AnchorName(Anchor anchor) {
  switch (anchor) {
    case Anchor::kStart:
      return "start";
    case Anchor::kMiddle:
      return "middle";
    case Anchor::kEnd:
      return "end";
  }
  return "start";
}

// U+FFFE and U+FFFF, which XML forbids.
bool IsNonCharacter(std::string_view text, size_t at) {
  const std::string_view three = text.substr(at, 3);
  return three == "\xEF\xBF\xBE" || three == "\xEF\xBF\xBF";
}

std::string BoxAttributes(const Box& box) {
  return fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", Coordinate(box.x),
                     Coordinate(box.y), Coordinate(box.width), Coordinate(box.height));
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if (c == '\'') {
      escaped += "&#39;";
    } else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
      escaped += kReplacement;
    } else if (IsNonCharacter(text, i)) {
      escaped += kReplacement;
      i += 2;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Coordinate(double value) {
  std::string text = fmt::format("{:.2f}", std::isfinite(value) ? value : 0.0);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double TextWidth(std::string_view text, double font_size) {
  // Counts bytes that start a character; a sans-serif digit or letter is about this wide.
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
  return 0.56 * font_size * static_cast<double>(characters);
}

Svg::Svg(double width, double height, std::string_view label)
    : width_(width), height_(height), label_(label) {}

void Svg::Rect(const Box& box, std::string_view css_class) {
  body_ += fmt::format("<rect class=\"{}\" {}/>\n", css_class, BoxAttributes(box));
}

void Svg::Mark(const Box& box, std::string_view css_class, std::string_view title) {
  body_ += fmt::format("<rect class=\"{}\" {}><title>{}</title></rect>\n", css_class,
                       BoxAttributes(box), Escaped(title));
}

void Svg::Line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", css_class,
                       Coordinate(x1), Coordinate(y1), Coordinate(x2), Coordinate(y2));
}

void Svg::Circle(double x, double y, double radius, std::string_view css_class) {
  body_ += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n", css_class,
                       Coordinate(x), Coordinate(y), Coordinate(radius));
}

void Svg::Path(std::string_view commands, std::string_view css_class) {
  body_ += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", css_class, commands);
}

void Svg::Text(double x, double y, std::string_view text, std::string_view css_class,
               Anchor anchor) {
  body_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
                       css_class, Coordinate(x), Coordinate(y), AnchorName(anchor), Escaped(text));
}

std::string Svg::Element(std::string_view attributes, double margin,
                         std::string_view inside) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" {} viewBox=\"{} {} {} {}\" role=\"img\" "
      "aria-label=\"{}\">\n{}{}</svg>\n",
      attributes, Coordinate(-margin), Coordinate(-margin), Coordinate(width_ + 2 * margin),
      Coordinate(height_ + 2 * margin), Escaped(label_), inside, body_);
}

std::string Svg::Inline(std::string_view css_class) const {
  return Element(fmt::format("class=\"plot {}\"", css_class), 0, {});
}

std::string Svg::File() const {
  constexpr double kMargin = 8;
  const std::string attributes =
      fmt::format("class=\"plot\" width=\"{}\" height=\"{}\"", Coordinate(width_ + 2 * kMargin),
                  Coordinate(height_ + 2 * kMargin));
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" +
         Element(attributes, kMargin, fmt::format("<style>{}</style>\n", PlotRules(Theme::kLight)));
}

}  // namespace thimble
