// Svg: builds a picture from shapes and escaped text. Colours and fonts are the CSS classes of
// plot_style.h.
#pragma once

#include <string>
#include <string_view>

namespace thimble {

// Escapes UTF-8 text for elements and quoted attributes of HTML and XML. Characters that XML
// forbids (control characters) become U+FFFD.
std::string Escaped(std::string_view text);

// "12.5", "0.01", "-3": a coordinate with as many digits as a screen can show.
std::string Coordinate(double value);

// The approximate width of a text of this font size, in the same unit.
double TextWidth(std::string_view text, double font_size);

enum class Anchor { kStart, kMiddle, kEnd };

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

class Svg {
 public:
  // `label` describes the picture for screen readers.
  Svg(double width, double height, std::string_view label);

  double width() const { return width_; }
  double height() const { return height_; }

  // All texts are escaped here; class names are not.
  void Rect(const Box& box, std::string_view css_class);
  // A rectangle whose title is shown on hover (lines separated by '\n').
  void Mark(const Box& box, std::string_view css_class, std::string_view title);
  void Line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void Circle(double x, double y, double radius, std::string_view css_class);
  void Path(std::string_view commands, std::string_view css_class);
  void Text(double x, double y, std::string_view text, std::string_view css_class,
            Anchor anchor = Anchor::kStart);

  // For a page with the rules of plot_style.h; `css_class` is added to the element's class.
  std::string Inline(std::string_view css_class = {}) const;
  // A stand-alone file, with the light colours and a margin, for papers.
  std::string File() const;

 private:
  std::string Element(std::string_view attributes, double margin, std::string_view inside) const;

  double width_;
  double height_;
  std::string label_;
  std::string body_;
};

}  // namespace thimble
