#include "tests/train/file_fixture.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

class ConfigFileTest : public FileFixture {
 protected:
  ConfigFileTest() { path_ = folder_ + "/run.toml"; }

  Result<void> Read(const std::string& content) {
    Put(path_, content);
    return ReadConfigFile(path_, config_);
  }
  // The error message for `content`, after the file's name.
  std::string Refusal(const std::string& content) {
    const Result<void> result = Read(content);
    if (result.ok()) return "was accepted";
    EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(result.error().message.find(path_ + ":"), 0U) << result.error().message;
    return result.error().message.substr(path_.size() + 1);
  }
  // The configuration written to TOML and read back.
  void ExpectRoundTrip(const TrainConfig& config) {
    const std::string text = ToToml(config);
    config_ = {};
    const Result<void> result = Read(text);
    ASSERT_TRUE(result.ok()) << result.error().message;
    for (const Option& option : TrainOptions()) {
      EXPECT_EQ(option.get(config_), option.get(config)) << option.name;
    }
  }

  TrainConfig config_;
};

TEST_F(ConfigFileTest, FillsWhatItNamesOnly) {
  ASSERT_TRUE(Read("# a comment\nmodel = \"wrn-10-1\"\nbatch = 7\nlr = 1\nnesterov = true\n"
                   "budget = \"8MB\"\nscratch = 65536\nweight-decay = 1e-4\n")
                  .ok());
  EXPECT_EQ(config_.model, "wrn-10-1");
  EXPECT_EQ(config_.batch, 7);
  EXPECT_EQ(config_.learning_rate, 1);
  EXPECT_TRUE(config_.optimizer.nesterov);
  EXPECT_EQ(config_.budget_bytes, 8'000'000);
  EXPECT_EQ(config_.scratch_bytes, 65536);
  EXPECT_EQ(config_.optimizer.weight_decay, 1e-4);
  EXPECT_EQ(config_.data, TrainConfig().data);
}

TEST_F(ConfigFileTest, EmptyIsFine) {
  ASSERT_TRUE(Read("").ok());
  EXPECT_EQ(ToToml(config_), ToToml({}));
}

TEST_F(ConfigFileTest, DefaultsComeBack) { ExpectRoundTrip({}); }

TEST_F(ConfigFileTest, EverythingComesBack) {
  TrainConfig config;
  config.model = "wrn-16-4";
  config.batch = 3;
  config.learning_rate = 1.0 / 3;
  config.optimizer = {.momentum = 0, .nesterov = true, .weight_decay = 1e-300};
  config.seed = 1'234'567'890'123'456'789;
  config.without = {"in-place", "order"};
  config.resume = true;
  config.budget_bytes = 9'007'199'254'740'992;
  ExpectRoundTrip(config);
}

TEST_F(ConfigFileTest, TextOfAllKindsComesBack) {
  std::string controls;
  for (char c = 1; c < 0x20; ++c) controls += c;
  for (const std::string& text :
       {std::string("\"quoted\""), std::string("back\\slash\\"), std::string("'''\"\"\""),
        std::string("# = [x]"), std::string("größe 🧵"), std::string("\x7f"), controls,
        std::string("zero\0inside", 11), std::string("ends in a newline\n")}) {
    TrainConfig config;
    config.out = text;
    ExpectRoundTrip(config);
  }
}

TEST_F(ConfigFileTest, UnknownKey) {
  EXPECT_EQ(Refusal("batch = 7\nbtach = 8\n"), "2: unknown option 'btach'; did you mean batch?");
  EXPECT_EQ(Refusal("\n\n[train]\nbatch = 8\n"), "3: unknown option 'train'");
}

TEST_F(ConfigFileTest, WrongType) {
  EXPECT_EQ(Refusal("batch = \"7\"\n"), "1: 'batch': expected a whole number");
  EXPECT_EQ(Refusal("\nbatch = 7.5\n"), "2: 'batch': expected a whole number");
  EXPECT_EQ(Refusal("\nlr = \"fast\"\n"), "2: 'lr': expected a number");
  EXPECT_EQ(Refusal("model = 28\n"), "1: 'model': expected a string");
  EXPECT_EQ(Refusal("model = true\n"), "1: 'model': expected a string");
  EXPECT_EQ(Refusal("nesterov = 1\n"), "1: 'nesterov': expected true or false");
  EXPECT_EQ(Refusal("batch = true\n"), "1: 'batch': expected a whole number");
  EXPECT_EQ(Refusal("budget = 1.5\n"),
            "1: 'budget': expected a number of bytes or a string such as \"8MB\"");
  EXPECT_EQ(Refusal("batch = [1, 2]\n"), "1: 'batch': expected a whole number");
  EXPECT_EQ(Refusal("batch = 2020-01-01\n"), "1: 'batch': expected a whole number");
  EXPECT_EQ(Refusal("batch.size = 1\n"), "1: 'batch': expected a whole number");
}

TEST_F(ConfigFileTest, WrongValue) {
  EXPECT_EQ(Refusal("model = \"x\"\n\nbatch = 0\n"),
            "3: --batch 0: expected a whole number, at least 1");
  EXPECT_EQ(Refusal("lr = inf\n"), "1: --lr inf: expected a number, at least 0");
  EXPECT_EQ(Refusal("lr = nan\n"), "1: --lr nan: expected a number, at least 0");
  EXPECT_EQ(Refusal("lr = -1\n"), "1: --lr -1: expected a number, at least 0");
  EXPECT_EQ(Refusal("budget = \"much\"\n").find("1: --budget: 'much' is not a size"), 0U);
}

TEST_F(ConfigFileTest, ErrorsAreOneShortLine) {
  const std::string much(10'000, 'x');
  for (const std::string& text :
       {std::string("budget = \"8\\nMB\""), std::string("\"a\\nb\" = 1"),
        "budget = \"" + much + "\"", "\"" + much + "\" = 1", "batch = " + much}) {
    const std::string refusal = Refusal(text);
    EXPECT_EQ(refusal.find("1: "), 0U) << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
    EXPECT_LT(refusal.size(), 2000U) << refusal;
  }
}

TEST_F(ConfigFileTest, BadSyntax) {
  EXPECT_EQ(Refusal("batch = 7\nbatch 8\n").substr(0, 3), "2: ");
  EXPECT_EQ(Refusal("batch = 7\nbatch = 8\n").substr(0, 3), "2: ");  // twice
  EXPECT_EQ(Refusal("\n\nmodel = \"open\n").substr(0, 3), "3: ");
  EXPECT_EQ(Refusal("batch = \n").substr(0, 3), "1: ");
  EXPECT_EQ(Refusal("batch = 99999999999999999999\n").substr(0, 3), "1: ");
  EXPECT_EQ(Refusal("model = \"\xff\"\n").substr(0, 3), "1: ");
  EXPECT_EQ(Refusal("[[=").substr(0, 3), "1: ");
}

TEST_F(ConfigFileTest, MissingOrMuchTooLong) {
  const Result<void> missing = ReadConfigFile(folder_ + "/none.toml", config_);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(missing.error().message.find(folder_ + "/none.toml"), std::string::npos);
  EXPECT_FALSE(ReadConfigFile(folder_, config_).ok());
  EXPECT_FALSE(Read(std::string((1 << 20) + 1, '#')).ok());
}

}  // namespace
}  // namespace thimble
