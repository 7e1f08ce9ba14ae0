// Shared by the end-to-end tests: the program, a temporary folder, and readers for the files of a
// run.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/test_paths.h"
#include "tests/train/file_fixture.h"
#include "thimble/base/json.h"

namespace thimble {

// Sanitizers use shadow memory and replace malloc: limits on memory and counters are meaningless.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

using Words = std::vector<std::string>;

// Words of `text`, separated by single spaces.
inline Words Split(const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

class ThimbleFixture : public FileFixture {
 protected:
  // A path below the test's folder.
  std::string At(const std::string& name) const { return folder_ + "/" + name; }

  // "train --model wrn-10-1" as the words of a command; "@" stands for the test's folder.
  Words Command(const std::string& text) const {
    Words words = {ThimbleBinary()};
    for (std::string word : Split(text)) {
      if (const size_t at = word.find('@'); at != std::string::npos) word.replace(at, 1, folder_);
      words.push_back(word);
    }
    if (!reports_ && words.size() > 1 && words[1] == "train") words.push_back("--no-report");
    return words;
  }
  ProcessResult Run(const std::string& text, const ProcessLimits& limits = {}) const {
    return RunProcess(Command(text), limits);
  }
  // Runs a command that must succeed.
  ProcessResult RunWell(const std::string& text) const {
    ProcessResult result = Run(text);
    EXPECT_EQ(result.exit_code, 0) << text << "\n" << result.err;
    return result;
  }
  // The arena that `thimble plan` states for these options. As CSV, because that is quick: it
  // leaves the table of savings out.
  std::string PlannedArena(const std::string& options) const {
    const std::string out = RunWell("plan --csv " + options).out;
    const size_t at = out.rfind("arena,");
    return at == std::string::npos ? out : out.substr(at + 6, out.rfind(',') - at - 6);
  }
  // Runs a command that must fail with this exit code and one line on standard error that contains
  // `reason`.
  void ExpectRefusal(const std::string& text, int exit_code, const std::string& reason) const {
    ExpectRefusal(Run(text), exit_code, reason, text);
  }
  static void ExpectRefusal(const ProcessResult& result, int exit_code, const std::string& reason,
                            const std::string& what) {
    EXPECT_EQ(result.exit_code, exit_code) << what << "\n" << result.err;
    EXPECT_THAT(result.err, testing::StartsWith("thimble: ")) << what;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << what << result.err;
    EXPECT_THAT(result.err, testing::HasSubstr(reason)) << what;
  }

  bool reports_ = true;  // whether trainings write their report
};

// For tests that look at other files of a run: its report takes longer than the short runs of
// tests.
class NoReportFixture : public ThimbleFixture {
 protected:
  NoReportFixture() { reports_ = false; }
};

// The object in a JSON text; an empty one, and a test failure, if it is not an object.
inline Json ParseObject(const std::string& text) {
  const Result<Json> json = ParseJson(text);
  const bool is_object = json.ok() && json->is_object();
  EXPECT_TRUE(is_object) << text;
  return is_object ? *json : Json::EmptyObject();
}

inline Json SummaryOf(const std::string& run) {
  return ParseObject(Content(run + "/summary.json"));
}

// Lines of metrics.jsonl without the seconds, which differ between runs.
inline Words MetricsOf(const std::string& run) {
  Words lines;
  std::istringstream stream(Content(run + "/metrics.jsonl"));
  for (std::string line; std::getline(stream, line);) {
    Json json = ParseObject(line);
    json.erase("seconds");
    lines.push_back(json.Dump());
  }
  return lines;
}

// Losses of the steps that were logged.
inline std::vector<double> LossesOf(const std::string& run) {
  std::vector<double> losses;
  for (const std::string& line : MetricsOf(run)) {
    const auto json = ParseObject(line);
    if (json.contains("loss")) losses.push_back(json["loss"].number());
  }
  return losses;
}

// Bytes of a file that must exist.
inline std::string BytesAt(const std::string& path) {
  EXPECT_TRUE(std::filesystem::is_regular_file(path)) << path;
  return Content(path);
}

inline std::string WeightsOf(const std::string& run) {
  return BytesAt(run + "/weights.safetensors");
}
inline std::string BestOf(const std::string& run) { return BytesAt(run + "/best.safetensors"); }
inline std::string CheckpointFile(const std::string& run) {
  return run + "/checkpoint/state.safetensors";
}

// Expects the same weights and metrics of two runs. Does not print weights.
inline void ExpectSameRun(const std::string& expected, const std::string& actual) {
  EXPECT_TRUE(WeightsOf(expected) == WeightsOf(actual)) << actual;
  EXPECT_TRUE(BestOf(expected) == BestOf(actual)) << actual;
  EXPECT_EQ(MetricsOf(expected), MetricsOf(actual));
}

}  // namespace thimble
