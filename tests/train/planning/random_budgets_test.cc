// Random networks, batches and budgets: what a budget chooses is never above it, and a smaller
// budget never changes results less.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/property_run.h"
#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/train/options/options.h"
#include "thimble/train/planning/budget_search.h"

namespace thimble {
namespace {

class RandomCase {
 public:
  RandomCase(uint64_t seed, uint32_t number) {
    std::seed_seq words{static_cast<uint32_t>(seed), number};
    random_.seed(words);
  }

  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int64_t n) { return Between(1, n) == 1; }

  // A few convolutions with norms and shortcuts.
  ImageClassifier Network() {
    struct Layer {
      int64_t channels, kernel, stride, norm;
      bool adds;
    };
    std::vector<Layer> layers;
    for (int64_t i = Between(1, 3); i > 0; --i) {
      layers.push_back(
          {8 * Between(1, 4), OneIn(3) ? 1 : 3, OneIn(3) ? 2 : 1, Between(0, 2), OneIn(2)});
    }
    ImageSpec images;
    images.height = images.width = 4 * Between(1, 4);
    images.channels = 3;
    images.classes = Between(2, 12);
    return {"random", images, [layers, classes = images.classes](NetworkBuilder& net, ValueId x) {
              int number = 0;
              for (const Layer& layer : layers) {
                const std::string name = "block" + std::to_string(++number);
                ValueId y = net.Conv(name + ".conv", x,
                                     {.out_channels = layer.channels,
                                      .kernel = layer.kernel,
                                      .stride = layer.stride,
                                      .padding = layer.kernel / 2});
                if (layer.norm == 1) y = net.BatchNorm(name + ".bn", y);
                if (layer.norm == 2) y = net.GroupNorm(name + ".gn", y, 4);
                y = net.Relu(y);
                x = layer.adds && !net.failed() && net.shape(x) == net.shape(y) ? net.Add(x, y) : y;
              }
              return net.Linear("fc", net.GlobalAveragePool(x), classes);
            }};
  }

  TrainConfig Config() {
    TrainConfig config = TinyConfig();
    config.batch = Between(1, 40);
    config.threads = Between(1, 4);
    config.prefetch = Between(0, 3);
    config.optimizer.nesterov = OneIn(3);
    if (OneIn(4)) config.clip = 1;
    if (OneIn(4)) config.levers["precision"] = OneIn(2) ? "bf16" : "mixed16";
    if (OneIn(3)) config.levers["sparse-layers"] = "block*";
    if (OneIn(4)) config.microbatch = Between(1, config.batch);
    const std::vector<std::string> allowed = {"lossy",
                                              "lossy",
                                              "equal",
                                              "same-bits",
                                              "recompute,microbatch>=4,fp16",
                                              "lossy,sparsity<=0.6"};
    config.allow = allowed[static_cast<size_t>(Between(0, 5))];
    return config;
  }

 private:
  std::mt19937_64 random_;
};

// Adds the number of budgets to `budgets`.
void Check(RandomCase random, int& budgets) {
  const ImageClassifier model = random.Network();
  TrainConfig config = random.Config();
  if (!CheckConfig(config).ok()) return;
  const ImageCounts counts{random.Between(1, 90), 0, random.Between(1, 50)};
  config = CutToData(config, *TaskOf(model, counts));
  const PlanSizer sizer(TaskOf(model, counts), BuiltinOps());
  const auto asked = sizer.Of(config);
  if (!asked.ok()) return;  // options that do not suit the network
  std::pair loss(Exactness::kSameBits, 0.0);
  bool fits = true;
  for (int64_t budget = asked->arena_bytes + 64; budget > 1000;
       budget = budget * random.Between(20, 90) / 100) {
    config.budget_bytes = budget;
    ++budgets;
    const auto choice = ChooseForBudget(config, sizer);
    if (!choice.ok()) {
      ASSERT_EQ(choice.error().kind, ErrorKind::kDoesNotFit) << choice.error().message;
      if (!fits) return;  // twice is enough
      fits = false;
      continue;
    }
    ASSERT_TRUE(fits) << budget << " fits, but a larger budget did not";
    ASSERT_LE(choice->arena_bytes, budget) << choice->options();
    ASSERT_TRUE(CheckConfig(choice->config).ok()) << choice->options();
    const auto program = MakeTrainingProgram(choice->config, model, counts, BuiltinOps());
    ASSERT_TRUE(program.ok()) << choice->options() << "\n" << program.error().message;
    ASSERT_EQ(static_cast<int64_t>(program->program.arena_bytes), choice->arena_bytes)
        << choice->options();
    const std::pair now(choice->exactness(), choice->lost_points());
    ASSERT_GE(now.first, loss.first) << budget << ": " << choice->options();
    // Costs are sums of decimal fractions.
    ASSERT_GE(now.second, loss.second - 1e-9) << budget << ": " << choice->options();
    loss = now;
  }
}

void CheckCases(uint32_t cases) {
  const PropertyRun run = PropertyRun::FromEnvironment(cases);
  int budgets = 0;
  run.ForEachCase("budget", 1,
                  [&](uint32_t number) { Check(RandomCase(run.seed, number), budgets); });
  testing::Test::RecordProperty("budgets", budgets);
  EXPECT_GT(budgets, static_cast<int>(cases)) << "most cases should have a plan";
}

TEST(RandomBudgets, AreNeverExceeded) { CheckCases(4); }
TEST(SlowRandomBudgets, AreNeverExceeded) { CheckCases(150); }

}  // namespace
}  // namespace thimble
