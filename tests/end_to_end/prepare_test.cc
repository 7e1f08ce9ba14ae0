// From raw parallel text to translations of raw lines: `thimble data --prepare`, `train` and
// `translate`.
#include <filesystem>
#include <fstream>

#include "tests/end_to_end/thimble_fixture.h"
#include "thimble/data/text/text_dataset.h"

namespace thimble {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class PrepareEndToEnd : public NoReportFixture {
 protected:
  // Numbers in German and English, as raw text.
  void SetUp() override {
    NoReportFixture::SetUp();
    std::filesystem::create_directory(At("raw"));
    const TextData data = OpenTextData("numbers:400,20", {}).value();
    WriteRaw("train", *data.train);
    WriteRaw("valid", *data.validation);
    WriteRaw("test", *data.test);
  }
  void WriteRaw(const std::string& part, const TextDataset& dataset) const {
    std::ofstream source(At("raw/" + part + ".de"));
    std::ofstream target(At("raw/" + part + ".en"));
    for (int64_t i = 0; i < dataset.size(); ++i) {
      source << dataset.SourceLine(i).value() << "\n";
      target << dataset.TargetLine(i).value() << "\n";
    }
  }
  std::string Prepare(const std::string& options = "") const {
    return "data --data bitext:@/raw --prepare @/split " + options;
  }
  void RefusePrepared(const std::string& options, const std::string& reason) const {
    ExpectRefusal("data --data bitext:@/raw " + options, 2, reason);
  }
};

TEST_F(PrepareEndToEnd, FromRawTextToTranslationsOfRawLines) {
  const std::string line =
      "bitext: de to en, 112 and 104 words, 100 merges; 400 train, 20 validation, 20 test pairs\n";
  EXPECT_EQ(RunWell(Prepare("--merges 100")).out, line);
  EXPECT_EQ(RunWell(Prepare("--merges 100")).out, line);  // the same again
  EXPECT_EQ(RunWell("data --data bitext:@/split").out, line);
  EXPECT_EQ(ParseObject(RunWell("data --data bitext:@/split --json").out)["merges"], 100);
  EXPECT_EQ(ParseObject(RunWell("data --data bitext:@/raw --json").out)["merges"], 0);

  RunWell(
      "train --data bitext:@/split --batch 600 --steps 4 --lr 0.005 --beam 0 --eval-every 0 "
      "--out @/run");
  EXPECT_EQ(Content(At("run/bpe.codes")), Content(At("split/bpe.codes")));

  // Raw lines, and the same lines split: the same translations, and no unknown token.
  const auto translate = [&](const std::string& input) {
    const ProcessResult result =
        Run("translate @/run --threads 1 --beam 1 --longest 60 --verbose", {.input = At(input)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("tokens, 0 of them unknown"));
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 20);
    return result.out;
  };
  EXPECT_NE(Content(At("raw/test.de")), Content(At("split/test.de")));
  EXPECT_EQ(translate("raw/test.de"), translate("split/test.de"));

  Put(At("run/bpe.codes"), "#version: 0.1\n");
  ExpectRefusal("translate @/run", 2, "the run's merges: " + At("run/bpe.codes") + ": line 1:");
}

TEST_F(PrepareEndToEnd, AnotherPreparationIsKept) {
  RunWell(Prepare("--merges 50"));
  const std::string before = Content(At("split/train.en"));
  ExpectRefusal(Prepare("--merges 60"), 2, "bpe.codes: there is already a file");
  EXPECT_EQ(Content(At("split/train.en")), before);
  RunWell(Prepare("--merges 60 --overwrite"));
  EXPECT_NE(Content(At("split/train.en")), before);
}

TEST_F(PrepareEndToEnd, FewerMergesThanAskedFor) {
  const ProcessResult result = RunWell(Prepare("--json"));
  const int64_t merges = ParseObject(result.out)["merges"].integer<int64_t>().value_or(0);
  EXPECT_GT(merges, 100);
  EXPECT_LT(merges, 10'000);
  EXPECT_EQ(
      result.err,
      fmt::format("thimble: only {} merges: no other pair of symbols occurs twice\n", merges));
}

TEST_F(PrepareEndToEnd, WrongUse) {
  RefusePrepared("--merges 5", "--merges: only with --prepare");
  RefusePrepared("--overwrite", "--overwrite: only with --prepare");
  RefusePrepared("--prepare @/raw", "is the folder of the text itself");
  RefusePrepared("--prepare @/raw/train.de", "cannot be used");
  RefusePrepared("--prepare @/split --dump @/x.safetensors", "--dump: only for images");
  for (const char* merges : {"0", "-1", "262145", "x"}) {
    RefusePrepared(std::string("--prepare @/split --merges ") + merges, "--merges");
  }
  ExpectRefusal("data --data numbers --prepare @/split", 2, "expected --data bitext:DIR");
  ExpectRefusal("data --prepare @/split", 2, "expected --data bitext:DIR");
  Put(At("raw/test.en"), "only one line\n");
  RefusePrepared("--prepare @/split", "test.de: has 20 lines, but");
  EXPECT_FALSE(std::filesystem::exists(At("split")));
}

// A run without merges keeps its lines as they are, also after one with merges in its folder.
TEST_F(PrepareEndToEnd, RunWithoutMerges) {
  const std::string train = "train --batch 600 --steps 1 --beam 0 --eval-every 0 --out @/run ";
  RunWell(Prepare("--merges 50"));
  RunWell(train + "--data bitext:@/split");
  EXPECT_TRUE(std::filesystem::exists(At("run/bpe.codes")));
  RunWell(train + "--data bitext:@/raw --overwrite");
  EXPECT_FALSE(std::filesystem::exists(At("run/bpe.codes")));
}

TEST_F(PrepareEndToEnd, DamagedMergesOfData) {
  RunWell(Prepare("--merges 50"));
  std::ofstream(At("split/bpe.codes"), std::ios::app) << "one two three\n";
  ExpectRefusal("data --data bitext:@/split", 2, "bpe.codes: line 52: expected two symbols");
}

}  // namespace
}  // namespace thimble
