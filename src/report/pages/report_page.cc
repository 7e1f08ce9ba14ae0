#include "thimble/report/pages/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/byte_size.h"
#include "thimble/report/pages/html_page.h"
#include "thimble/report/pages/run_text.h"
#include "thimble/report/plots/arena_map.h"
#include "thimble/report/plots/frontier_plot.h"
#include "thimble/report/plots/layer_bars.h"
#include "thimble/report/plots/memory_plot.h"
#include "thimble/report/plots/plot_frame.h"
#include "thimble/report/plots/plot_style.h"
#include "thimble/report/plots/savings_plot.h"
#include "thimble/report/units.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

int64_t ArenaOf(const RunRecord& run) { return static_cast<int64_t>(run.program.arena_bytes); }
std::string ByteCount(int64_t bytes) { return CountText(bytes) + " bytes"; }

// Memory: planned, measured, and as reported by the process and the driver.
std::vector<Tile> MemoryTiles(const RunRecord& run) {
  const auto arena = static_cast<int64_t>(run.program.arena_bytes);
  std::vector<Tile> tiles = {{"arena", FormatBytes(arena), ByteCount(arena)}};
  if (run.summary) {
    const TrainSummary& summary = *run.summary;
    const bool agree = summary.planned_peak_bytes == summary.measured_peak_bytes;
    tiles.push_back(
        {"plain plan", FormatBytes(summary.plain_arena_bytes), PlainRatio(summary) + " the arena"});
    tiles.push_back({"planned peak", FormatBytes(summary.planned_peak_bytes),
                     ByteCount(summary.planned_peak_bytes)});
    tiles.push_back({"measured peak", FormatBytes(summary.measured_peak_bytes),
                     agree ? "as planned, to the byte" : ByteCount(summary.measured_peak_bytes)});
    tiles.push_back({"process", FormatBytes(summary.process_peak_bytes), "peak resident set"});
    if (summary.device_memory.driver_bytes > 0) {
      tiles.push_back(
          {"GPU (from driver)", FormatBytes(summary.device_memory.driver_bytes),
           fmt::format("of which context {}", FormatBytes(summary.device_memory.context_bytes))});
    }
  }
  const PlanRecord& plan = run.plan();
  tiles.push_back({"kept", BytesText(Account(plan).kept_bytes), "as counted in papers"});
  tiles.push_back({"lower bound", BytesText(plan.lower_bound_bytes), "for this order of steps"});
  return tiles;
}

std::vector<Tile> WorkTiles(const RunRecord& run) {
  const GraphCost cost = StepCost(run.program);
  std::vector<Tile> tiles = {{"parameters", CountText(run.plan().parameters), ""},
                             {"arithmetic", FlopsText(cost.step_flops),
                              fmt::format("forward {}", FlopsText(cost.forward_flops))}};
  if (const std::optional<double> accuracy = TestAccuracy(run)) {
    tiles.push_back({"test accuracy", Percent(*accuracy),
                     fmt::format("after {} steps", CountText(StepsDone(run)))});
  }
  if (run.summary) {
    tiles.push_back({"speed", RateText(*run.summary),
                     fmt::format("{} in total", DurationText(run.summary->seconds))});
  }
  return tiles;
}

std::string Top(const RunRecord& run) {
  std::string html =
      fmt::format("<header>\n<h1>{}</h1>\n", Escaped(run.config.model + " on " + run.config.data));
  std::string where = fmt::format("{} · {}", BatchText(run.config), run.plan().device);
  const auto precision = run.config.levers.find("precision");
  if (precision != run.config.levers.end()) {
    where += fmt::format(" · numbers in {}", precision->second);
  }
  if (run.summary) {
    if (!run.summary->device_name.empty() && run.summary->device_name != run.summary->device) {
      where += fmt::format(" ({})", run.summary->device_name);
    }
    where += fmt::format(" · products in {}", run.summary->math);
  }
  html += Paragraph(fmt::format("{} · run {}", where, RunName(run.folder)), "muted");
  html += Paragraph(ResultText(run), "lead") + "</header>\n";
  if (run.metrics.last_line_torn) {
    html += Paragraph("The last line of metrics.jsonl is incomplete and was ignored.", "warn");
  }
  std::vector<Tile> tiles = MemoryTiles(run);
  for (Tile& tile : WorkTiles(run)) tiles.push_back(std::move(tile));
  return html + Tiles(tiles);
}

std::string CategoryTable(const PlanRecord& plan) {
  const MemoryAccount account = Account(plan);
  const auto row = [&](std::string name, size_t bytes) -> TableRow {
    const double whole = static_cast<double>(std::max<size_t>(plan.arena_bytes, 1));
    return {std::move(name), BytesText(bytes), CountText(static_cast<int64_t>(bytes)),
            fmt::format("{:.1f} %", 100 * static_cast<double>(bytes) / whole)};
  };
  std::vector<TableRow> rows;
  for (size_t index = 0; index < kNumCategories; ++index) {
    rows.push_back(row(std::string(Name(static_cast<Category>(index))), account.at_peak[index]));
  }
  rows.push_back(row("gaps", account.gap_bytes));
  rows.push_back(row("arena", plan.arena_bytes));
  return Table({"at the peak", "", "bytes", "share"}, rows);
}

std::string MemorySection(const PlanRecord& plan) {
  const MemoryAccount account = Account(plan);
  std::string html = Heading("Memory over one step");
  html +=
      Figure(WideAndNarrow(MemoryPlot(plan, kWidePlot), MemoryPlot(plan, kNarrowPlot)),
             fmt::format("Bytes alive at each of the {} steps of the plan “{}”, by category. The "
                         "peak is at step {} ({}); the legend shows its bytes.",
                         plan.steps.size(), plan.name, account.peak_step,
                         StepText(plan, account.peak_step)));
  html += Heading("Map of the arena");
  html += Figure(WideAndNarrow(ArenaMap(plan, kWidePlot), ArenaMap(plan, kNarrowPlot)),
                 "What each byte holds over time: time runs to the right, addresses run upwards, "
                 "each rectangle is one value or the scratch memory of one step. Values that are "
                 "kept between steps are at the bottom.");
  return html;
}

std::string WhereSection(const RunRecord& run) {
  const PlanRecord& plan = run.plan();
  std::string html = Heading("At the peak, and what techniques save");
  html += "<div class=\"pair\">\n";
  html += Figure(CategoryTable(plan), "Bytes at the peak, by category.");
  if (run.savings) {
    html += Figure(SavingsPlot(*run.savings, ArenaOf(run), kHalfPlot).Inline(),
                   "The arena with and without each technique, for the same network and batch.");
  }
  html += "</div>\n";
  if (!run.frontier.empty()) {
    html += Heading("What other budgets would choose");
    html +=
        Figure(WideAndNarrow(FrontierPlot(run.frontier, kWidePlot, ArenaOf(run)),
                             FrontierPlot(run.frontier, kNarrowPlot, ArenaOf(run))),
               "Each dot is the plan that a budget of its size would choose, for the same network "
               "and batch: less memory costs time or exactness. Hover over a dot for its options.");
  }
  html += Heading("By layer, at the peak");
  const std::vector<BarRow> rows = LayersAtPeak(plan);
  const std::string label = "Bytes at the peak by layer";
  html += Figure(
      WideAndNarrow(StackedBars(rows, kWidePlot, label), StackedBars(rows, kNarrowPlot, label)),
      "What each layer holds at the peak, in the order of the network.");
  return html;
}

std::vector<CurvePoint> InPercent(std::vector<CurvePoint> points) {
  for (CurvePoint& point : points) point.value *= 100;
  return points;
}

struct NamedChart {
  std::string file;
  CurveChart chart;
};

std::vector<Curve> ActiveWeightCurves(const MetricsLog& log) {
  std::vector<Curve> curves;
  for (const std::vector<CurvePoint>& points : log.active_weights) {
    curves.push_back({"", curves.size() % 4, points, /*thin=*/true});
  }
  return curves;
}

// The charts for which the metrics have points.
std::vector<NamedChart> Charts(const MetricsLog& log) {
  std::vector<NamedChart> charts = {
      {"loss.svg",
       {"loss",
        "",
        {{"single steps", 0, log.loss, true},
         {"train", 0, log.train_loss},
         {"validation", 2, log.validation_loss},
         {"test", 1, log.test_loss}}}},
      {"accuracy.svg",
       {"accuracy",
        "%",
        {{"train", 0, InPercent(log.train_accuracy)},
         {"validation", 2, InPercent(log.validation_accuracy)},
         {"test", 1, InPercent(log.test_accuracy)}}}},
      {"bleu.svg", {"BLEU of the test set's translations", "", {{"", 1, log.bleu}}}},
      {"learning_rate.svg", {"learning rate", "", {{"", 3, log.learning_rate}}, true}},
      {"loss_scale.svg", {"loss scale", "", {{"", 3, log.loss_scale}}}},
      {"active_weights.svg", {"active weights of each sparse layer", "", ActiveWeightCurves(log)}},
      {"moved_weights.svg",
       {"weights moved by each rewiring", "", {{"", 3, log.moved_weights}}, true}},
      {"threshold.svg", {"threshold for dropping weights", "", {{"", 3, log.threshold}}}},
  };
  std::erase_if(charts, [](const NamedChart& named) {
    return std::all_of(named.chart.curves.begin(), named.chart.curves.end(),
                       [](const Curve& curve) { return curve.points.empty(); });
  });
  return charts;
}

std::string CurveSection(const RunRecord& run) {
  std::string html = Heading("Training");
  const std::vector<NamedChart> charts = Charts(run.metrics);
  if (charts.empty()) return html + Paragraph("metrics.jsonl has no values yet.", "muted");
  html += "<div class=\"pair\">\n";
  for (const NamedChart& named : charts) {
    html += Figure(CurvePlot(named.chart, kHalfPlot).Inline(), "");
  }
  return html + "</div>\n";
}

std::string PlansTable(const ProgramRecord& program) {
  std::vector<TableRow> rows;
  for (const PlanRecord& plan : program.plans) {
    rows.push_back({plan.name, fmt::format("{}", plan.runs_per_step),
                    fmt::format("{}", plan.steps.size()), BytesText(plan.arena_bytes),
                    BytesText(Account(plan).kept_bytes), FlopsText(plan.step_flops)});
  }
  return Table({"plan", "runs per training step", "steps", "arena", "kept", "arithmetic"}, rows);
}

std::string MachineText(const TrainSummary& summary) {
  std::string text =
      fmt::format("Thimble {} · {}",
                  summary.version.empty() ? "(version unknown)" : summary.version, summary.device);
  if (summary.device_name != summary.device) text += fmt::format(" ({})", summary.device_name);
  return text + fmt::format(" · products in {} · {} threads, SIMD {}", summary.math,
                            summary.threads, summary.simd);
}

std::string SettingsSection(const RunRecord& run) {
  std::string html = Heading("All plans of the run") +
                     Figure(PlansTable(run.program),
                            "Each batch shape is planned on its own; all plans share one arena.");
  html += Heading("Command and settings");
  if (run.summary) {
    const TrainSummary& summary = *run.summary;
    if (!summary.command.empty())
      html += "<pre class=\"wrap\">" + Escaped(summary.command) + "</pre>\n";
    html += Paragraph(MachineText(summary), "muted");
  }
  return html + "<details>\n<summary>Resolved configuration</summary>\n" +
         Preformatted(ToToml(run.config)) + "</details>\n";
}

}  // namespace

std::string ReportPage(const RunRecord& run) {
  return HtmlPage(fmt::format("{} · {}", RunName(run.folder), WhatRuns(run)),
                  Top(run) + MemorySection(run.plan()) + WhereSection(run) + CurveSection(run) +
                      SettingsSection(run));
}

NamedFiles ReportPlots(const RunRecord& run) {
  const PlanRecord& plan = run.plan();
  NamedFiles files = {
      {"memory.svg", MemoryPlot(plan, kWidePlot).File()},
      {"arena_map.svg", ArenaMap(plan, kWidePlot).File()},
      {"layers.svg",
       StackedBars(LayersAtPeak(plan), kWidePlot, "Bytes at the peak by layer").File()},
  };
  if (run.savings) {
    files.emplace_back("savings.svg", SavingsPlot(*run.savings, ArenaOf(run), kHalfPlot).File());
  }
  if (!run.frontier.empty()) {
    files.emplace_back("frontier.svg", FrontierPlot(run.frontier, kWidePlot, ArenaOf(run)).File());
  }
  for (const NamedChart& named : Charts(run.metrics)) {
    files.emplace_back(named.file, CurvePlot(named.chart, kHalfPlot).File());
  }
  return files;
}

}  // namespace thimble
