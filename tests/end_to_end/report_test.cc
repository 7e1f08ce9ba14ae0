// `thimble report`, and the report that `thimble train` writes.
#include <fmt/format.h>

#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ReportEndToEnd : public ThimbleFixture {
 protected:
  static std::string Training(const std::string& out) {
    return "train --model wrn-10-1 --data shapes:12,4 --batch 4 --threads 1 --log-every 1 --out "
           "@/" +
           out + " ";
  }
  // The bytes alive at the peak of the first plan.
  static int64_t PeakBytes(const std::string& run) {
    const auto plan = ParseObject(Content(run + "/plan.json"))["plans"][0];
    return plan["arena_bytes"].get<int64_t>() - plan["categories"]["gaps"].get<int64_t>();
  }
  // 1234567 as "1,234,567".
  static std::string Grouped(int64_t number) {
    std::string digits = std::to_string(number);
    for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return digits;
  }
};

TEST_F(ReportEndToEnd, TrainWritesIt) {
  const ProcessResult result = RunWell(Training("run") + "--json");
  EXPECT_THAT(result.err, HasSubstr("report: " + At("run/report.html")));
  const std::string page = BytesAt(At("run/report.html"));
  const auto summary = SummaryOf(At("run"));
  EXPECT_THAT(page, HasSubstr(Grouped(PeakBytes(At("run")))));
  EXPECT_THAT(page, HasSubstr(Grouped(summary["arena_bytes"].get<int64_t>())));
  EXPECT_THAT(page, HasSubstr("as planned, to the byte"));
  for (const char* plot :
       {"memory", "arena_map", "layers", "savings", "loss", "accuracy", "learning_rate"}) {
    EXPECT_THAT(BytesAt(At("run/plots/") + plot + ".svg"), StartsWith("<?xml")) << plot;
  }
}

TEST_F(ReportEndToEnd, TheCommandRepeatsTheRun) {
  RunWell(Training("run") + "--lr 0.05 --seed 3");
  std::string command = SummaryOf(At("run"))["command"].get<std::string>();
  EXPECT_THAT(command, StartsWith("thimble train --model wrn-10-1 "));
  command.replace(command.find(At("run")), At("run").size(), At("again"));
  RunWell(command.substr(std::string("thimble ").size()));
  EXPECT_EQ(MetricsOf(At("run")), MetricsOf(At("again")));
  EXPECT_THAT(RunWell("--version").out,
              StartsWith("thimble " + SummaryOf(At("run"))["version"].text() + "\n"));
}

TEST_F(ReportEndToEnd, IsMadeFromTheFilesAlone) {
  RunWell(Training("run"));
  const std::string page = BytesAt(At("run/report.html"));
  std::filesystem::remove(At("run/report.html"));
  std::filesystem::remove_all(At("run/plots"));
  const ProcessResult result = RunWell("report @/run");
  EXPECT_EQ(result.out, At("run/report.html") + "\n" + At("run/plots") + "/*.svg\n");
  EXPECT_TRUE(BytesAt(At("run/report.html")) == page);
  RunWell("report @/run --out @/other.html --plots @/pictures");
  EXPECT_TRUE(BytesAt(At("other.html")) == page);
  EXPECT_TRUE(std::filesystem::exists(At("pictures/memory.svg")));
}

TEST_F(ReportEndToEnd, ComparesRuns) {
  RunWell(Training("a"));
  RunWell(Training("b") + "--conv winograd");
  const ProcessResult result = RunWell("report @/a @/b --out @/both.html --plots @/plots");
  EXPECT_THAT(result.out, StartsWith(At("both.html") + "\n"));
  const std::string page = BytesAt(At("both.html"));
  EXPECT_THAT(page, HasSubstr("<tr><th>conv</th><td>direct</td><td>winograd</td></tr>"));
  EXPECT_THAT(page, Not(HasSubstr("<tr><th>batch</th>")));
  EXPECT_TRUE(std::filesystem::exists(At("plots/arenas.svg")));
}

TEST_F(ReportEndToEnd, ARunThatWasKilled) {
  RunWell(Training("run"));
  std::filesystem::remove(At("run/summary.json"));
  const std::string metrics = Content(At("run/metrics.jsonl"));
  Put(At("run/metrics.jsonl"), metrics.substr(0, metrics.size() - 5));
  RunWell("report @/run");
  const std::string page = BytesAt(At("run/report.html"));
  EXPECT_THAT(page, HasSubstr("This run has no summary yet"));
  EXPECT_THAT(page, HasSubstr("The last line of metrics.jsonl is incomplete"));
}

TEST_F(ReportEndToEnd, WhatIsNoRun) {
  ExpectRefusal("report @", 2, "is not a run folder: it contains no config.toml");
  ExpectRefusal("report @/nothing", 2, "is not a run folder");
  ExpectRefusal("report", 2, "report: expected RUN...");
  RunWell(Training("run"));
  ExpectRefusal("report @/run @/nothing --out @/x.html", 2, "nothing: is not a run folder");
  EXPECT_FALSE(std::filesystem::exists(At("x.html")));
  Put(At("run/plan.json"), "{\"arena_bytes\":1,\"plans\":[{}]}");
  ExpectRefusal("report @/run", 2, "run/plan.json: plans[0].name: expected a string");
  ExpectRefusal("report @/run --no-such-option", 2, "--no-such-option");
}

TEST_F(ReportEndToEnd, WhatCannotBeWritten) {
  RunWell(Training("run"));
  ExpectRefusal("report @/run --out @/no/such/folder.html", 1, "no/such/folder.html");
  ExpectRefusal("report @/run --plots @/run/config.toml/plots", 1, "config.toml/plots");
}

TEST_F(ReportEndToEnd, ARunIsNotLostWithItsReport) {
  std::filesystem::create_directories(At("run/report.html"));
  const ProcessResult result = RunWell(Training("run") + "--report-every 1");
  EXPECT_THAT(result.err, HasSubstr("no report: " + At("run/report.html")));
  EXPECT_EQ(SummaryOf(At("run"))["finished"], true);
}

}  // namespace
}  // namespace thimble
