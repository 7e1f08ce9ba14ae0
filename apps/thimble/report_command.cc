#include <memory>

#include "apps/thimble/command.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/report/pages/report_writer.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out;
  std::string plots;
  bool sweep = false;
};

Result<int> RunReport(const ReportFlags& flags) {
  const bool one = flags.runs.size() == 1;
  std::string page = flags.out;
  std::string plots = flags.plots;
  if (page.empty()) page = one ? ReportPath(flags.runs.front()) : "comparison.html";
  if (plots.empty() && one) plots = PlotsFolder(flags.runs.front());
  if (flags.sweep && !one) return BadInput("--sweep: expected one run");
  THIMBLE_TRY(one ? WriteReport(flags.runs.front(), page, plots, BuiltinOps(), flags.sweep)
                  : WriteComparison(flags.runs, page, plots));
  Print("{}\n", page);
  if (!plots.empty()) Print("{}/*.svg\n", plots);
  return 0;
}

}  // namespace

void AddReportCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "report", "write an HTML page with plots of one run, or a comparison of several runs");
  auto flags = std::make_shared<ReportFlags>();
  command->add_option("run", flags->runs, "run folders")->required()->type_name("DIR");
  command
      ->add_option(
          "--out", flags->out,
          "page to write; without it RUN/report.html, or ./comparison.html for several runs")
      ->type_name("FILE")
      ->group(option_group::kWhere);
  command
      ->add_option(
          "--plots", flags->plots,
          "folder for the plots as SVG files; without it RUN/plots, or none for several runs")
      ->type_name("DIR")
      ->group(option_group::kWhere);
  command->add_flag("--sweep", flags->sweep,
                    "add what every budget would choose for this network; takes seconds");
  command->callback([flags, exit_code] {
    const auto result = RunReport(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
