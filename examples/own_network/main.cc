// Defines a network with NetworkBuilder, plans it, and trains it in its arena.
//
//   own_network [steps] [run folder]
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "thimble/data/image_dataset.h"
#include "thimble/model/image_classifier.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/report/plan_text.h"
#include "thimble/train/loop/trainer.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/task/find_task.h"

namespace {

using thimble::NetworkBuilder;
using thimble::ValueId;

// Convolution, batch norm, ReLU.
ValueId Layer(NetworkBuilder& net, const std::string& name, ValueId x, int64_t channels,
              int64_t stride) {
  x = net.Conv(name + ".conv", x,
               {.out_channels = channels, .kernel = 3, .stride = stride, .padding = 1});
  return net.Relu(net.BatchNorm(name + ".bn", x));
}

// Three layers, the second with a shortcut around it: (B, H, W, C) to (B, classes).
thimble::Result<thimble::ImageClassifier> MakeSmallNetwork(const thimble::ImageSpec& images) {
  return thimble::ImageClassifier{
      "small", images, [classes = images.classes](NetworkBuilder& net, ValueId x) {
        x = Layer(net, "first", x, 16, 2);
        x = net.Add(x, Layer(net, "second", x, 16, 1));
        x = Layer(net, "third", x, 32, 2);
        return net.Linear("classify", net.GlobalAveragePool(x), classes);
      }};
}

// Prints what the training will need, without allocating it.
thimble::Result<void> PrintPlan(const thimble::TrainConfig& config) {
  const thimble::OpRegistry& ops = thimble::BuiltinOps();
  THIMBLE_ASSIGN_OR_RETURN(const auto task, thimble::DescribeTask(config, MakeSmallNetwork));
  THIMBLE_ASSIGN_OR_RETURN(const auto planned, thimble::MakeTrainingProgram(config, task, ops));
  fmt::print("{}\n", thimble::PlanText({.model = "small",
                                        .batch = config.batch,
                                        .record = thimble::RecordOf(planned.program, ops)}));
  return {};
}

thimble::Result<void> Run(const thimble::TrainConfig& config) {
  THIMBLE_TRY(PrintPlan(config));
  thimble::TrainObserver silent;
  THIMBLE_ASSIGN_OR_RETURN(const thimble::TrainSummary summary,
                           thimble::Train(config, MakeSmallNetwork, thimble::BuiltinOps(), silent));
  fmt::print("planned peak  {:>9} bytes\nmeasured peak {:>9} bytes\n", summary.planned_peak_bytes,
             summary.measured_peak_bytes);
  fmt::print("test accuracy {:.1f} % after {} steps; files in {}\n",
             100 * summary.test_accuracy.value_or(0), summary.steps, summary.run_folder);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  thimble::TrainConfig config;
  config.data = "shapes:2000,500";
  config.batch = 50;
  config.steps = argc > 1 ? std::atol(argv[1]) : 400;
  config.out = argc > 2 ? argv[2] : "";  // empty: a new folder below runs/
  config.schedule = "cosine";
  const auto result = Run(config);
  if (result.ok()) return 0;
  fmt::print(stderr, "own_network: {}\n", result.error().message);
  return thimble::ExitCode(result.error());
}
