#include "thimble/report/pages/html_page.h"

#include <fmt/format.h>

#include "thimble/report/pages/page_assets.h"
#include "thimble/report/plots/plot_style.h"

namespace thimble {

std::string HtmlPage(std::string_view title, std::string_view body_html) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n";
  page += fmt::format("<title>{}</title>\n<style>\n", Escaped(title));
  page += PageRules();
  page += PlotRules(Theme::kLight);
  // Prints always use the light colours.
  page += "@media screen and (prefers-color-scheme:dark){\n" + PlotRules(Theme::kDark) + "}\n";
  page += "</style>\n</head>\n<body>\n<main>\n";
  page += body_html;
  page += "</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n<script>\n";
  page += PageScript();
  return page + "</script>\n</body>\n</html>\n";
}

std::string Heading(std::string_view text) { return fmt::format("<h2>{}</h2>\n", Escaped(text)); }

std::string Paragraph(std::string_view text, std::string_view css_class) {
  return fmt::format("<p class=\"{}\">{}</p>\n", css_class, Escaped(text));
}

std::string Tiles(const std::vector<Tile>& tiles) {
  std::string html = "<dl class=\"tiles\">\n";
  for (const Tile& tile : tiles) {
    html += fmt::format("<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", Escaped(tile.name),
                        Escaped(tile.value), Escaped(tile.remark));
  }
  return html + "</dl>\n";
}

std::string Figure(std::string_view plots_html, std::string_view caption) {
  std::string html = fmt::format("<figure>\n{}", plots_html);
  if (!caption.empty()) html += fmt::format("<figcaption>{}</figcaption>\n", Escaped(caption));
  return html + "</figure>\n";
}

std::string WideAndNarrow(const Svg& wide, const Svg& narrow) {
  return wide.Inline("wide") + narrow.Inline("narrow");
}

std::string Table(const TableRow& header, const std::vector<TableRow>& rows) {
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& cell : header) html += fmt::format("<th>{}</th>", Escaped(cell));
  html += "</tr></thead>\n<tbody>\n";
  for (const TableRow& row : rows) {
    html += "<tr>";
    for (size_t column = 0; column < row.size(); ++column) {
      html += column == 0 ? fmt::format("<th>{}</th>", Escaped(row[column]))
                          : fmt::format("<td>{}</td>", Escaped(row[column]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string Preformatted(std::string_view text) {
  // Browsers drop the first newline after <pre>, so one is added here.
  return fmt::format("<pre>\n{}</pre>\n", Escaped(text));
}

}  // namespace thimble
