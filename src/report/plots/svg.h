// Svg: a picture under construction. Knows shapes, escaping and nothing of what is drawn; colours
// and fonts are classes of plot_style.h.
#pragma once

#include <string>
#include <string_view>

namespace thimble {

// Text as it may stand in HTML and XML, within elements and quoted attributes. What XML has no
// place for (control characters) becomes a replacement character. Expects UTF-8.
std::string Escaped(std::string_view text);

// "12.5", "0.01", "-3": a coordinate with as many digits as a screen can show.
std::string Coordinate(double value);

// About how wide a text of this size is drawn, in the same unit.
double TextWidth(std::string_view text, double font_size);

enum class Anchor { kStart, kMiddle, kEnd };

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

class Svg {
 public:
  // `label` says what the picture shows to those who cannot see it.
  Svg(double width, double height, std::string_view label);

  double width() const { return width_; }
  double height() const { return height_; }

  // All texts are escaped here; classes are our own words.
  void Rect(const Box& box, std::string_view css_class);
  // A rectangle that answers: its title shows on hover (lines separated by '\n').
  void Mark(const Box& box, std::string_view css_class, std::string_view title);
  void Line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void Circle(double x, double y, double radius, std::string_view css_class);
  void Path(std::string_view commands, std::string_view css_class);
  void Text(double x, double y, std::string_view text, std::string_view css_class,
            Anchor anchor = Anchor::kStart);

  // For a page that has the rules of plot_style.h; `css_class` is added to that of the element.
  std::string Inline(std::string_view css_class = {}) const;
  // A file on its own, with the light colours and a margin, for papers.
  std::string File() const;

 private:
  std::string Element(std::string_view attributes, double margin, std::string_view inside) const;

  double width_;
  double height_;
  std::string label_;
  std::string body_;
};

}  // namespace thimble
