#include "thimble/report/pages/comparison_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "thimble/base/byte_size.h"
#include "thimble/report/pages/html_page.h"
#include "thimble/report/pages/run_text.h"
#include "thimble/report/plots/plot_frame.h"
#include "thimble/report/plots/stacked_bars.h"
#include "thimble/report/units.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

using Runs = std::vector<RunRecord>;

TableRow Header(const Runs& runs) {
  TableRow header = {""};
  for (const std::string& name : NamesOf(runs)) header.push_back(name);
  return header;
}

// A row with `cell` of each run.
TableRow RowOf(const std::string& name, const Runs& runs,
               const std::function<std::string(const RunRecord&)>& cell) {
  TableRow row = {name};
  for (const RunRecord& run : runs) row.push_back(cell(run));
  return row;
}

// The same for values from the summary.
TableRow SummaryRow(const std::string& name, const Runs& runs,
                    const std::function<std::string(const TrainSummary&)>& cell) {
  return RowOf(name, runs,
               [&](const RunRecord& run) { return run.summary ? cell(*run.summary) : "–"; });
}

std::vector<TableRow> MemoryRows(const Runs& runs) {
  using Summary = TrainSummary;
  std::vector<TableRow> rows = {
      RowOf("arena", runs,
            [](const RunRecord& run) {
              return FormatBytes(static_cast<int64_t>(run.program.arena_bytes));
            }),
      SummaryRow("plain plan", runs,
                 [](const Summary& summary) { return FormatBytes(summary.plain_arena_bytes); }),
      SummaryRow("plain plan / arena", runs, PlainRatio),
      SummaryRow("planned peak, bytes", runs,
                 [](const Summary& summary) { return CountText(summary.planned_peak_bytes); }),
      SummaryRow("measured peak, bytes", runs,
                 [](const Summary& summary) { return CountText(summary.measured_peak_bytes); }),
      SummaryRow("process", runs,
                 [](const Summary& summary) { return FormatBytes(summary.process_peak_bytes); })};
  const auto on_gpu = [](const RunRecord& run) {
    return run.summary && run.summary->device_memory.driver_bytes > 0;
  };
  if (std::any_of(runs.begin(), runs.end(), on_gpu)) {
    rows.push_back(SummaryRow("GPU (from driver)", runs, [](const Summary& summary) {
      const int64_t bytes = summary.device_memory.driver_bytes;
      return bytes > 0 ? FormatBytes(bytes) : "–";
    }));
  }
  return rows;
}

std::vector<TableRow> ResultRows(const Runs& runs) {
  using Summary = TrainSummary;
  std::vector<TableRow> rows = {
      RowOf("steps done", runs, [](const RunRecord& run) { return CountText(StepsDone(run)); }),
      SummaryRow("time", runs,
                 [](const Summary& summary) { return DurationText(summary.seconds); }),
      SummaryRow("speed", runs, RateText),
      RowOf("arithmetic per step", runs,
            [](const RunRecord& run) {
              return fmt::format("{:.2f} GFLOP",
                                 static_cast<double>(StepCost(run.program).step_flops) / 1e9);
            }),
      SummaryRow("train loss", runs,
                 [](const Summary& summary) {
                   return summary.train_loss ? fmt::format("{:.4f}", *summary.train_loss)
                                             : std::string("–");
                 }),
      RowOf("test accuracy", runs,
            [](const RunRecord& run) {
              const std::optional<double> accuracy = TestAccuracy(run);
              return accuracy ? Percent(*accuracy) : "–";
            }),
      SummaryRow(
          "version", runs,
          [](const Summary& summary) { return summary.version.empty() ? "–" : summary.version; }),
  };
  const bool translate = std::ranges::any_of(
      runs, [](const RunRecord& run) { return run.summary && run.summary->bleu; });
  if (translate) {
    rows.insert(rows.end() - 1, SummaryRow("BLEU", runs, [](const Summary& summary) {
                  return summary.bleu ? fmt::format("{:.2f}", *summary.bleu) : std::string("–");
                }));
  }
  return rows;
}

// The run folder is not a setting.
std::vector<TableRow> DifferentSettings(const Runs& runs) {
  std::vector<TableRow> rows;
  for (const Option& option : TrainOptions()) {
    if (option.name == "out" || option.name == "resume") continue;
    TableRow row =
        RowOf(option.name, runs, [&](const RunRecord& run) { return option.get(run.config); });
    const bool same = std::all_of(row.begin() + 2, row.end(),
                                  [&](const std::string& cell) { return cell == row[1]; });
    if (!same) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<BarRow> ArenaRows(const Runs& runs) {
  const std::vector<std::string> names = NamesOf(runs);
  std::vector<BarRow> rows;
  for (size_t index = 0; index < runs.size(); ++index) {
    const MemoryAccount account = Account(runs[index].plan());
    rows.push_back({names[index], account.at_peak, account.gap_bytes});
  }
  return rows;
}

using Points = std::vector<CurvePoint> MetricsLog::*;

// One curve for each run that has points.
CurveChart ChartOf(const Runs& runs, const std::string& title, Points points, double factor) {
  const std::vector<std::string> names = NamesOf(runs);
  const bool from_zero = points == &MetricsLog::learning_rate;
  CurveChart chart{title, factor == 100 ? "%" : "", {}, from_zero};
  for (size_t index = 0; index < runs.size(); ++index) {
    Curve curve{names[index], index, runs[index].metrics.*points};
    for (CurvePoint& point : curve.points) point.value *= factor;
    if (!curve.points.empty()) chart.curves.push_back(std::move(curve));
  }
  return chart;
}

std::vector<std::pair<std::string, CurveChart>> Charts(const Runs& runs) {
  std::vector<std::pair<std::string, CurveChart>> charts = {
      {"train_loss.svg", ChartOf(runs, "training loss by epoch", &MetricsLog::train_loss, 1)},
      {"test_loss.svg", ChartOf(runs, "test loss", &MetricsLog::test_loss, 1)},
      {"train_accuracy.svg", ChartOf(runs, "training accuracy", &MetricsLog::train_accuracy, 100)},
      {"test_accuracy.svg", ChartOf(runs, "test accuracy", &MetricsLog::test_accuracy, 100)},
      {"bleu.svg", ChartOf(runs, "BLEU of the test set's translations", &MetricsLog::bleu, 1)},
      {"step_loss.svg", ChartOf(runs, "loss by step", &MetricsLog::loss, 1)},
      {"learning_rate.svg", ChartOf(runs, "learning rate", &MetricsLog::learning_rate, 1)},
  };
  std::erase_if(charts, [](const auto& named) { return named.second.curves.empty(); });
  return charts;
}

std::string Body(const Runs& runs) {
  std::string html = fmt::format("<header>\n<h1>{} runs</h1>\n", runs.size());
  html += Paragraph(fmt::format("{}", fmt::join(NamesOf(runs), " · ")), "muted") + "</header>\n";
  html += Heading("Memory") + Figure(Table(Header(runs), MemoryRows(runs)), "");
  const std::string label = "The arena of each run at its peak, by category";
  html += Figure(WideAndNarrow(StackedBars(ArenaRows(runs), kWidePlot, label),
                               StackedBars(ArenaRows(runs), kNarrowPlot, label)),
                 label + ".");
  html += Heading("Time and accuracy") + Figure(Table(Header(runs), ResultRows(runs)), "");
  html += "<div class=\"pair\">\n";
  for (const auto& [file, chart] : Charts(runs)) {
    html += Figure(CurvePlot(chart, kHalfPlot).Inline(), "");
  }
  html += "</div>\n" + Heading("Settings that differ");
  const std::vector<TableRow> settings = DifferentSettings(runs);
  if (settings.empty()) return html + Paragraph("None: the runs have the same settings.");
  return html + Figure(Table(Header(runs), settings), "");
}

}  // namespace

std::vector<std::string> NamesOf(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  std::set<std::string> different;
  for (const RunRecord& run : runs) {
    names.push_back(RunName(run.folder));
    different.insert(names.back());
  }
  if (different.size() == runs.size()) return names;
  for (size_t index = 0; index < runs.size(); ++index) names[index] = runs[index].folder;
  return names;
}

std::string ComparisonPage(const std::vector<RunRecord>& runs) {
  return HtmlPage(fmt::format("{} runs: {}", runs.size(), fmt::join(NamesOf(runs), ", ")),
                  Body(runs));
}

NamedFiles ComparisonPlots(const std::vector<RunRecord>& runs) {
  NamedFiles files = {
      {"arenas.svg",
       StackedBars(ArenaRows(runs), kWidePlot, "The arena of each run at its peak").File()}};
  for (const auto& [file, chart] : Charts(runs)) {
    files.emplace_back(file, CurvePlot(chart, kHalfPlot).File());
  }
  return files;
}

}  // namespace thimble
