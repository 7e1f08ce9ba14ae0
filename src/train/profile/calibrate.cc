#include "thimble/train/profile/calibrate.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "thimble/model/image_classifier.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/profile/profile_run.h"
#include "thimble/train/task/image_task.h"
#include "thimble/train/task/translation_task.h"

namespace thimble {
namespace {

// Values of levers that decide which kernels run.
std::vector<std::map<std::string, std::string>> KernelChoices(DeviceKind device) {
  const std::string on = "true";
  std::vector<std::map<std::string, std::string>> choices = {
      {},
      {{"update-in-backward", on}},
      {{"sparsity", "0.8"}},
      {{"precision", "fp16"}},
      {{"precision", "fp16"}, {"update-in-backward", on}},
      {{"precision", "fp16"}, {"update-in-backward", on}, {"store", "optimizer=q8"}},
      {{"precision", "fp16"}, {"update-in-backward", on}, {"sparsity", "0.8"}},
      {{"precision", "fp16"},
       {"update-in-backward", on},
       {"sparsity", "0.8"},
       {"store", "optimizer=q8"}},
      {{"precision", "bf16"}},
  };
  if (device != DeviceKind::kCpu) return choices;
  std::map<std::string, std::string> folded = {{"precision", "fp16"},
                                               {"update-in-backward", on},
                                               {"store", "optimizer=q8"},
                                               {"fold-norms", on}};
  choices.push_back(folded);
  folded["sparsity"] = "0.8";
  choices.push_back(std::move(folded));
  return choices;
}

Result<TaskPtr> TaskToMeasure(const TrainConfig& config) {
  if (config.model == kSmallTranslator) {
    constexpr int64_t kWords = 2000;
    const TranslatorSpec spec{.source_words = kWords,
                              .target_words = kWords,
                              .width = 256,
                              .feed_forward = 512,
                              .heads = 4,
                              .encoder_kernels = {15},
                              .decoder_kernels = {15}};
    return TaskPtr(std::make_shared<TranslationTask>(config.model, spec, nullptr, config.seed));
  }
  THIMBLE_ASSIGN_OR_RETURN(ImageClassifier model, FindModel(config.model, ImageSpec{}));
  return TaskPtr(MakeImageTask(config, std::move(model), {}));
}

Result<void> Measure(const TrainConfig& config, const OpRegistry& ops, OpTimes::Samples& samples) {
  constexpr int kRepeat = 2;
  THIMBLE_ASSIGN_OR_RETURN(const TaskPtr task, TaskToMeasure(config));
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram program, MakeTrainingProgram(config, task, ops));
  THIMBLE_ASSIGN_OR_RETURN(const Profile profile, RunProfile(config, program, kRepeat, ops));
  AddSamples(profile, program.program, ops, samples);
  return {};
}

// One sample for each size: the median of those with the same arithmetic and bytes.
void Merge(std::vector<OpSample>& samples) {
  std::ranges::sort(samples, {}, [](const OpSample& sample) {
    return std::tuple(sample.cost.flops, sample.cost.bytes, sample.seconds);
  });
  std::vector<OpSample> merged;
  for (size_t first = 0, end = 0; first < samples.size(); first = end) {
    const NodeCost cost = samples[first].cost;
    while (end < samples.size() && samples[end].cost.flops == cost.flops &&
           samples[end].cost.bytes == cost.bytes) {
      ++end;
    }
    merged.push_back(samples[first + (end - first) / 2]);
  }
  samples = std::move(merged);
}

}  // namespace

void AddSamples(const Profile& profile, const Program& program, const OpRegistry& ops,
                OpTimes::Samples& samples) {
  const double scale = profile.step_seconds / Total(ByOp(profile)).seconds;
  size_t measured = 0;  // the plans that a step runs, in order
  for (size_t index = 0; index < program.plans.size(); ++index) {
    if (program.runs_per_step[index] == 0) continue;
    const Plan& plan = program.plans[index];
    const std::vector<double>& seconds =
        measured == 0 ? profile.op_seconds : profile.others[measured - 1].op_seconds;
    ++measured;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      if (!(seconds[i] > 0)) continue;
      const Node& node = plan.graph.node(plan.steps[i].node);
      samples[KindOf(plan, plan.steps[i], ops)].push_back(
          {CostOf(plan.graph, ops, node), scale * seconds[i]});
    }
  }
}

std::vector<MeasuredNetwork> NetworksToMeasure(DeviceKind device) {
  // On a CPU, times grow with the size; on a GPU, small calls all take the same time.
  const std::vector<int64_t> sizes = device == DeviceKind::kCpu
                                         ? std::vector<int64_t>{2, 10}
                                         : std::vector<int64_t>{2, 5, 10, 20, 50, 100};
  constexpr int64_t kUsual = 10;
  std::vector<MeasuredNetwork> networks;
  const auto add = [&](int64_t batch, int64_t part, std::map<std::string, std::string> levers) {
    networks.push_back({"wrn-10-2", batch, part, std::move(levers)});
  };
  for (const auto& levers : KernelChoices(device)) {
    for (const int64_t size : sizes) add(2 * size, size, levers);
    add(4 * kUsual, 0, levers);
    for (const int64_t scratch_bytes : {64 << 10, 128 << 10}) {
      add(2 * kUsual, kUsual, levers);
      networks.back().scratch_bytes = scratch_bytes;
    }
  }
  for (const char* precision : {"fp32", "fp16"}) {
    for (const int64_t tokens : {500, 2000}) {
      networks.push_back({kSmallTranslator, tokens, 0, {{"precision", precision}}});
    }
    networks.push_back({kSmallTranslator, 1000, 500, {{"precision", precision}}});
  }
  return networks;
}

Result<OpTimes> Calibrate(const TrainConfig& config, const std::vector<MeasuredNetwork>& networks,
                          const OpRegistry& ops) {
  OpTimes::Samples samples;
  for (const MeasuredNetwork& network : networks) {
    TrainConfig tried;
    tried.device = config.device;
    tried.threads = config.threads;
    tried.math = config.math;
    tried.model = network.model;
    tried.batch = network.batch;
    tried.microbatch = network.microbatch;
    tried.scratch_bytes = network.scratch_bytes;
    tried.levers = network.levers;
    if (network.model == kSmallTranslator) tried.optimizer.name = "adam";
    THIMBLE_TRY(Measure(tried, ops, samples));
  }
  for (auto& [kind, of_kind] : samples) Merge(of_kind);
  return OpTimes(samples, DeviceOf(config) == DeviceKind::kCpu ? ResolvedThreads(config) : 1);
}

}  // namespace thimble
