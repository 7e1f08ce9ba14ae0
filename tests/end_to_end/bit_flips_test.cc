// Bits that flip on a disk: in every file of a run they are detected or do no harm.
#include <cstdio>
#include <map>
#include <random>

#include "tests/end_to_end/thimble_fixture.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

// One layer: a run takes only a moment.
constexpr const char* kModel =
    "layers = [{ type = \"global_avg_pool\" }, { type = \"linear\", name = \"fc\", features = "
    "\"$classes\" }]\n[input]\nheight = 32\nwidth = 32\nchannels = 3\nclasses = 10\n";

class BitFlipsEndToEnd : public ThimbleFixture {
 protected:
  BitFlipsEndToEnd() { Put(At("net.toml"), kModel); }

  std::string Training(const std::string& run, int steps) const {
    return "train --model @/net.toml --data shapes:16,8 --batch 4 --threads 1 --log-every 1 "
           "--checkpoint-every 2 --out @/" +
           run + " --steps " + std::to_string(steps) + " ";
  }

  Json Evaluation(const std::string& run) const {
    Json evaluation = ParseObject(Run("eval @/" + run + " --json").out);
    evaluation.erase("model");  // has the run's name
    return evaluation;
  }

  // Uses a run with one wrong bit: each command that reads it must either fail and name the file,
  // or give the same result as without the flip. Returns the commands that failed.
  std::string Judge(const std::string& file) const {
    std::string refused_by;
    const auto judge = [&](const std::string& reader, const std::string& command) {
      const ProcessResult result = Run(command);
      if (result.exit_code == 0) return true;
      EXPECT_EQ(result.exit_code, 2) << file << "\n" << result.err;
      EXPECT_THAT(result.err, testing::HasSubstr(file));
      refused_by += (refused_by.empty() ? "" : " and ") + reader;
      return false;
    };
    judge("report", "report @/flipped --out @/page.html --plots @/plots");
    if (judge("eval", "eval @/flipped --json")) {
      EXPECT_EQ(Evaluation("flipped"), Evaluation("half")) << file;
    }
    if (judge("resume", Training("flipped", 6) + "--resume --extend --eval-every 0")) {
      EXPECT_TRUE(WeightsOf(At("flipped")) == WeightsOf(At("whole"))) << file;
      EXPECT_EQ(LossesOf(At("flipped")), LossesOf(At("whole"))) << file;
    }
    return refused_by.empty() ? "no effect" : "refused by " + refused_by;
  }

  // Flips `flips` bits, one at a time, equally many in each file.
  std::map<std::string, int> Flip(int flips) const {
    RunWell(Training("whole", 6) + "--eval-every 0");
    RunWell(Training("half", 4));
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(At("half"))) {
      if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), At("half")));
    }
    std::ranges::sort(files);
    std::mt19937_64 random(20190424);
    std::map<std::string, int> tally;
    for (int flip = 0; flip < flips; ++flip) {
      const std::string& file = files[static_cast<size_t>(flip) % files.size()];
      fs::remove_all(At("flipped"));
      fs::copy(At("half"), At("flipped"), fs::copy_options::recursive);
      std::string content = Content(At("flipped/" + file));
      const uint64_t bit = random() % (8 * content.size());
      content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << bit % 8));
      Put(At("flipped/" + file), content);
      ++tally[file + ": " + Judge(file)];
    }
    return tally;
  }
};

TEST_F(BitFlipsEndToEnd, AreFoundOrDoNoHarm) { Flip(14); }

class SlowBitFlipsEndToEnd : public BitFlipsEndToEnd {};

TEST_F(SlowBitFlipsEndToEnd, AreFoundOrDoNoHarm) {
  for (const auto& [outcome, count] : Flip(200)) std::printf("%3d x %s\n", count, outcome.c_str());
}

}  // namespace
}  // namespace thimble
