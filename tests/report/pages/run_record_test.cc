#include "thimble/report/pages/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/report/toy_record.h"
#include "tests/train/file_fixture.h"
#include "thimble/base/crc64.h"
#include "thimble/plan/plan_json.h"
#include "thimble/report/pages/report_page.h"
#include "thimble/train/options/options.h"
#include "thimble/train/run_folder/metrics.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class RunRecordTest : public FileFixture {
 protected:
  RunRecordTest() {
    const RunRecord run = ToyRun();
    Put(folder_ + "/config.toml", ToToml(run.config));
    Put(folder_ + "/plan.json", ToJson(run.program));
    Put(folder_ + "/metrics.jsonl", "{\"step\":1,\"loss\":2.5,\"lr\":0.1}\n");
    Put(folder_ + "/summary.json", SummaryJson(*run.summary, run.config));
  }
  std::string Refusal() const {
    const auto run = ReadRunFolder(folder_);
    if (run.ok()) return "";
    EXPECT_EQ(run.error().kind, ErrorKind::kBadInput);
    return run.error().message;
  }
};

TEST_F(RunRecordTest, HasAllFiles) {
  const auto run = ReadRunFolder(folder_);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->folder, folder_);
  EXPECT_EQ(run->config.model, "toy-net");
  EXPECT_EQ(run->program, ToyRun().program);
  EXPECT_EQ(run->metrics.loss.size(), 1U);
  ASSERT_TRUE(run->summary.has_value());
  EXPECT_EQ(run->summary->command, "thimble train --model toy-net");
}

TEST_F(RunRecordTest, ARunThatGoesOnHasNoSummary) {
  std::filesystem::remove(folder_ + "/summary.json");
  std::filesystem::remove(folder_ + "/metrics.jsonl");
  const auto run = ReadRunFolder(folder_);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_FALSE(run->summary.has_value());
  EXPECT_TRUE(run->metrics.loss.empty());
}

TEST_F(RunRecordTest, NoRunFolder) {
  EXPECT_EQ(ReadRunFolder(folder_ + "/nothing").error().message,
            folder_ + "/nothing: is not a run folder: it contains no config.toml");
  EXPECT_EQ(ReadRunFolder("").error().kind, ErrorKind::kBadInput);
  std::filesystem::remove(folder_ + "/plan.json");
  EXPECT_THAT(Refusal(), StartsWith(folder_ + "/plan.json"));
}

TEST_F(RunRecordTest, WrongFilesAreNamedWithTheirPlace) {
  Put(folder_ + "/config.toml", "model = \"a\"\nno-such = 1\n");
  EXPECT_EQ(Refusal(), folder_ + "/config.toml:2: unknown option 'no-such'");
  Put(folder_ + "/config.toml", "model = \"a\"\n");
  Put(folder_ + "/plan.json", "{\"arena_bytes\":1,\"plans\":[]}");
  EXPECT_EQ(Refusal(), folder_ + "/plan.json: plans: expected a list with at least one plan");
  Put(folder_ + "/plan.json", ToJson(ToyRun().program));
  Put(folder_ + "/metrics.jsonl", "{\"step\":1}\nx\n");
  EXPECT_EQ(Refusal(), folder_ + "/metrics.jsonl: line 2: expected a JSON object");
  Put(folder_ + "/metrics.jsonl", "");
  Put(folder_ + "/summary.json", "{");
  EXPECT_EQ(Refusal(), folder_ + "/summary.json: is truncated or not JSON: byte 2 is unexpected");
}

// A plan or a summary that is cut anywhere is rejected.
TEST_F(RunRecordTest, TornFiles) {
  for (const char* name : {"/plan.json", "/summary.json"}) {
    const std::string whole = Content(folder_ + name);
    for (size_t size = 0; size + 2 < whole.size(); size += 37) {
      Put(folder_ + name, whole.substr(0, size));
      EXPECT_THAT(Refusal(), StartsWith(folder_ + name)) << size;
    }
    Put(folder_ + name, whole);
  }
  EXPECT_EQ(Refusal(), "");
}

TEST_F(RunRecordTest, FoldersAndHugeFilesInPlaceOfFiles) {
  std::filesystem::remove(folder_ + "/summary.json");
  std::filesystem::create_directory(folder_ + "/summary.json");
  EXPECT_THAT(Refusal(), HasSubstr("summary.json"));
  std::filesystem::remove(folder_ + "/summary.json");
  Put(folder_ + "/summary.json", std::string((1 << 20) + 1, ' '));
  EXPECT_THAT(Refusal(), HasSubstr("summary.json"));
}

TEST_F(RunRecordTest, BracketsWithoutEnd) {
  Put(folder_ + "/plan.json", std::string(1'000'000, '['));
  EXPECT_EQ(Refusal(), folder_ + "/plan.json: byte 16: expected at most 16 nested brackets");
  // Inside strings they are ordinary characters.
  RunRecord run = ToyRun();
  run.program.plans[0].name = std::string(40, '[') + "\"\\{{{";
  Put(folder_ + "/plan.json", ToJson(run.program));
  EXPECT_EQ(Refusal(), "");
  Put(folder_ + "/summary.json", std::string(1000, '{'));
  EXPECT_EQ(Refusal(), folder_ + "/summary.json: byte 16: expected at most 16 nested brackets");
}

// Files with a few changed bytes are rejected or give a page, but never crash. Without their
// checksums, which would reject all of them.
TEST_F(RunRecordTest, ChangedBytes) {
  std::mt19937 random(7);
  const auto below = [&](size_t bound) { return random() % bound; };
  size_t pages = 0;
  for (const char* name : {"/config.toml", "/plan.json", "/metrics.jsonl", "/summary.json"}) {
    std::string whole = Content(folder_ + name);
    if (const size_t seal = whole.find("crc64:"); seal != whole.npos)
      whole.replace(seal, 6, "older:");
    for (int round = 0; round < 150; ++round) {
      std::string changed = whole;
      for (size_t change = 0; change <= below(3); ++change) {
        static constexpr char kBytes[] = "0123456789-e{}[]\",:\0\xff x";
        changed[below(changed.size())] = kBytes[below(sizeof(kBytes))];
      }
      Put(folder_ + name, changed);
      const auto run = ReadRunFolder(folder_);
      if (!run.ok()) {
        EXPECT_THAT(run.error().message, StartsWith(folder_ + name));
        continue;
      }
      ++pages;
      EXPECT_THAT(ReportPage(*run), testing::EndsWith("</html>\n"));
    }
    Put(folder_ + name, whole);
  }
  EXPECT_GT(pages, 50U);
}

TEST_F(RunRecordTest, LinesThatTheRunDidNotWrite) {
  TrainSummary summary = *ToyRun().summary;
  const std::string lines = Content(folder_ + "/metrics.jsonl");
  Crc64 checksum;
  checksum.Append(lines);
  summary.metrics_bytes = static_cast<int64_t>(lines.size());
  summary.metrics_checksum = checksum.value();
  Put(folder_ + "/summary.json", SummaryJson(summary, {}));
  EXPECT_EQ(Refusal(), "");
  Put(folder_ + "/metrics.jsonl", lines + lines);  // the run continued
  EXPECT_EQ(Refusal(), "");
  std::string changed = lines;
  changed[lines.find_last_of("0123456789")] = '7';
  ASSERT_NE(changed, lines);
  for (const std::string& bad : {changed, lines.substr(1)}) {
    Put(folder_ + "/metrics.jsonl", bad);
    EXPECT_THAT(Refusal(), StartsWith(folder_ + "/metrics.jsonl: is damaged or was edited"));
  }
}

}  // namespace
}  // namespace thimble
