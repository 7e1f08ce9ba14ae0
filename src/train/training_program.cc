#include "thimble/train/training_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "thimble/base/byte_size.h"
#include "thimble/base/nearly_equal_parts.h"
#include "thimble/device/device.h"
#include "thimble/grad/training_graph.h"
#include "thimble/model/model_file.h"
#include "thimble/plan/memory/accounting.h"
#include "thimble/plan/pass.h"

namespace thimble {
namespace {

std::string TrainName(int64_t samples) { return fmt::format("train {}", samples); }
std::string PartName(const BatchShare& share) {
  return fmt::format("train {} of {}", share.samples, share.batch);
}
std::string UpdateName(int64_t samples) { return fmt::format("update {}", samples); }
std::string EvaluateName(int64_t samples) { return fmt::format("evaluate {}", samples); }

size_t FindPlan(const Program& program, const std::string& name) {
  const auto found = std::find(program.names.begin(), program.names.end(), name);
  THIMBLE_CHECK(found != program.names.end(), "no plan '{}'", name);
  return static_cast<size_t>(found - program.names.begin());
}

// Batch sizes that occur when `images` are taken `batch` at a time, largest first.
std::set<int64_t, std::greater<>> BatchSizes(int64_t images, int64_t batch) {
  std::set<int64_t, std::greater<>> sizes;
  if (images >= batch) sizes.insert(batch);
  if (images % batch != 0) sizes.insert(images % batch);
  return sizes;
}

// In the arena where the host can write to it; for a GPU the ring is memory of the host.
std::vector<Resident> PrefetchRing(const TrainConfig& config, int64_t batch,
                                   const ImageSpec& images) {
  const int64_t slots = DeviceOf(config) == DeviceKind::kCpu ? config.prefetch : 0;
  const int64_t image_bytes = images.height * images.width * images.channels;
  std::vector<Resident> ring;
  for (int64_t slot = 0; slot < slots; ++slot) {
    ring.push_back(
        {RingImagesName(slot), static_cast<size_t>(batch * image_bytes), 0, Category::kData});
    ring.push_back(
        {RingLabelsName(slot), static_cast<size_t>(batch) * sizeof(int32_t), 0, Category::kData});
  }
  return ring;
}

Result<PlanOptions> MakePlanOptions(const TrainConfig& config) {
  PlanOptions options;
  THIMBLE_ASSIGN_OR_RETURN(options.recompute, ParseRecompute(config.recompute));
  options.device = DeviceOf(config);
  options.limits.scratch_bytes_per_thread = static_cast<size_t>(config.scratch_bytes);
  if (options.device == DeviceKind::kCpu) {
    options.limits.threads = ResolvedThreads(config);
  } else {
    // Plans are the same on every machine, whatever its host has.
    constexpr size_t kThreadsOfAGpu = 16;
    options.limits.scratch_bytes_per_thread *= kThreadsOfAGpu;
    if (ResolvedMath(config) == "fp32") options.kernel_options.insert("fp32");
  }
  options.skipped_passes = config.without;
  if (config.conv == "winograd") options.kernel_options.insert(config.conv);
  return options;
}

// What the configuration asks for that changes the graph of a batch of this size.
std::vector<TechniqueRecord> GraphTechniques(const TrainConfig& config, const Graph& graph,
                                             int64_t samples) {
  const bool has_norm = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                    [](const Node& node) { return node.op == "batch_norm"; });
  if (config.bn_group == 0 || !has_norm) return {};
  const int64_t group = CutNearlyEqually(samples, config.bn_group).LargestSize();
  return {
      {.name = "ghost batch norm",
       .exactness = std::string(Name(Exactness::kLossy)),
       .what = "normalize parts of the batch by their own statistics",
       .done = fmt::format("batch-norm statistics per {} sample{}", group, group == 1 ? "" : "s")}};
}

Result<void> AddEvaluation(const TrainingProgram& result, const OpRegistry& ops,
                           const std::set<int64_t, std::greater<>>& sizes,
                           std::vector<NamedGraph>& graphs) {
  for (int64_t samples : sizes) {
    THIMBLE_ASSIGN_OR_RETURN(Network network,
                             BuildNetwork(result.model, ops, samples, Mode::kEvaluate));
    graphs.push_back({EvaluateName(samples), std::move(network.graph)});
  }
  return {};
}

// The graphs of training with one batch size, in the order in which they run.
class TrainingGraphs {
 public:
  TrainingGraphs(const TrainConfig& config, TrainingProgram& program, const OpRegistry& ops)
      : config_(config), program_(program), ops_(ops) {}

  Result<void> AddBatch(int64_t samples, std::vector<NamedGraph>& graphs) {
    const bool full = samples == program_.batch;
    if (program_.in_parts()) return AddParts(samples, full, graphs);
    THIMBLE_ASSIGN_OR_RETURN(Network network, Forward(samples));
    THIMBLE_TRY(AppendUpdate(network.graph, ops_, network.loss, config_.optimizer));
    Add(TrainName(samples), std::move(network.graph), full ? 1 : 0, samples, graphs);
    return {};
  }

 private:
  void Add(std::string name, Graph graph, int64_t runs, int64_t samples,
           std::vector<NamedGraph>& graphs) const {
    std::vector<TechniqueRecord> techniques = GraphTechniques(config_, graph, samples);
    graphs.push_back({std::move(name), std::move(graph), runs, std::move(techniques)});
  }

  Result<Network> Forward(int64_t samples) {
    THIMBLE_ASSIGN_OR_RETURN(Network network,
                             BuildNetwork(program_.model, ops_, samples, Mode::kTrain,
                                          {program_.augmentation, config_.seed}, config_.bn_group));
    if (program_.inits.empty()) program_.inits = network.inits;
    return network;
  }

  Result<void> AddParts(int64_t batch, bool full, std::vector<NamedGraph>& graphs) {
    const NearlyEqualParts parts = CutNearlyEqually(batch, program_.microbatch);
    Graph update;
    // Parts of two sizes at most, the larger ones first.
    for (int64_t first = 0; first < parts.parts;) {
      const BatchShare share{parts.Size(first), batch};
      int64_t end = first;
      while (end < parts.parts && parts.Size(end) == share.samples) ++end;
      THIMBLE_ASSIGN_OR_RETURN(Network network, Forward(share.samples));
      if (first == 0) {
        THIMBLE_ASSIGN_OR_RETURN(update,
                                 MakeUpdateGraph(network.graph, ops_, config_.optimizer, share));
      }
      THIMBLE_TRY(AppendSums(network.graph, ops_, network.loss, share));
      Add(PartName(share), std::move(network.graph), full ? end - first : 0, share.samples, graphs);
      first = end;
    }
    graphs.push_back({UpdateName(batch), std::move(update), full ? 1 : 0});
    return {};
  }

  const TrainConfig& config_;
  TrainingProgram& program_;
  const OpRegistry& ops_;
};

// Sets what parts the batches of these sizes are trained in.
void ChooseParts(const TrainConfig& config, const std::set<int64_t, std::greater<>>& sizes,
                 TrainingProgram& program) {
  program.microbatch =
      config.microbatch == 0 ? program.batch : std::min(config.microbatch, program.batch);
  for (const int64_t samples : sizes) {
    const int64_t largest = CutNearlyEqually(samples, program.microbatch).LargestSize();
    program.part = std::max(program.part, largest);
  }
}

}  // namespace

std::string RingImagesName(int64_t slot) { return fmt::format("prefetch[{}].images", slot); }
std::string RingLabelsName(int64_t slot) { return fmt::format("prefetch[{}].labels", slot); }

ImageSpec SpecOf(const ImageData& data) {
  const ImageFormat& format = data.train->format();
  return {format.height, format.width, format.channels,  format.classes,
          format.mean,   format.std,   data.augmentation};
}

Augmentation ChosenAugmentation(const TrainConfig& config, Augmentation usual) {
  if (config.augment == "none") return Augmentation::kNone;
  if (config.augment == "crop-flip") return Augmentation::kCropFlip;
  return usual;
}

ImageCounts CountsOf(const ImageData& data) {
  return {data.train->size(), data.validation ? data.validation->size() : 0, data.test->size()};
}

Result<PlannedData> DescribeImageData(const std::string& spec, int64_t validation) {
  const std::string name = spec.substr(0, spec.find(':'));
  if (name == "cifar10" || name == "cifar100") {
    constexpr ImageCounts kPublished = {50000, 0, 10000};
    if (validation >= kPublished.train) {
      return BadInput(fmt::format("validation: cannot hold out {} of {} training images",
                                  validation, kPublished.train));
    }
    ImageSpec images;
    images.classes = name == "cifar10" ? 10 : 100;
    images.augmentation = Augmentation::kCropFlip;
    return PlannedData{images, {kPublished.train - validation, validation, kPublished.test}};
  }
  THIMBLE_ASSIGN_OR_RETURN(const ImageData data, OpenImageData(spec, {.validation = validation}));
  return PlannedData{SpecOf(data), CountsOf(data)};
}

Result<PlannedData> DescribeData(const TrainConfig& config) {
  if (config.data_given || !IsModelFile(config.model)) {
    return DescribeImageData(config.data, config.validation);
  }
  THIMBLE_ASSIGN_OR_RETURN(const ModelFile file, ReadModelFile(config.model));
  return PlannedData{file.images, {}};
}

TrainConfig CutToData(TrainConfig config, const ImageCounts& counts) {
  if (counts.train == 0 || config.batch <= counts.train) return config;
  config.batch = counts.train;
  if (config.microbatch >= config.batch) config.microbatch = 0;
  config.bn_group = std::min(config.bn_group, config.batch);
  return config;
}

std::string CutMessage(const TrainConfig& config, const ImageCounts& counts) {
  const int64_t batch = CutToData(config, counts).batch;
  if (batch == config.batch) return "";
  return fmt::format("--batch {}: there are {} training images; the batch is {}", config.batch,
                     counts.train, batch);
}

size_t TrainingProgram::TrainPlan(int64_t samples) const {
  return FindPlan(program, TrainName(samples));
}

size_t TrainingProgram::EvaluatePlan(int64_t samples) const {
  return FindPlan(program, EvaluateName(samples));
}

size_t TrainingProgram::PartPlan(const BatchShare& share) const {
  return FindPlan(program, PartName(share));
}

size_t TrainingProgram::UpdatePlan(int64_t batch_samples) const {
  return FindPlan(program, UpdateName(batch_samples));
}

int64_t TrainingProgram::runs_per_step() const {
  return in_parts() ? CutNearlyEqually(batch, microbatch).parts + 1 : 1;
}

std::string MicrobatchExactness(const Graph& forward, int64_t samples) {
  const bool with_statistics =
      std::any_of(forward.nodes.begin(), forward.nodes.end(),
                  [](const Node& node) { return node.op == "batch_norm"; });
  if (!with_statistics) return std::string(Name(Exactness::kEqual));
  return fmt::format("{}: batch-norm statistics per {} sample{}", Name(Exactness::kLossy), samples,
                     samples == 1 ? "" : "s");
}

ProgramRecord RecordOf(const TrainingProgram& program, const OpRegistry& ops,
                       int64_t plain_arena_bytes) {
  ProgramRecord record = RecordOf(program.program, ops);
  if (!program.in_parts()) return record;
  TechniqueRecord microbatch;
  microbatch.name = "microbatch";
  const NearlyEqualParts parts = CutNearlyEqually(program.batch, program.microbatch);
  microbatch.exactness = MicrobatchExactness(program.main_plan().graph, parts.LargestSize());
  microbatch.what = "train a batch in parts, and update from the sum of their gradients";
  microbatch.done =
      fmt::format("{} parts of {}{} samples", parts.parts,
                  parts.total % parts.parts == 0 ? "" : "at most ", parts.LargestSize());
  if (plain_arena_bytes > 0) {
    microbatch.saved_bytes = plain_arena_bytes - static_cast<int64_t>(record.arena_bytes);
  }
  std::vector<TechniqueRecord>& techniques = record.plans.front().techniques;
  techniques.insert(techniques.begin(), std::move(microbatch));
  return record;
}

Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config, const ImageSpec& images,
                                            const ImageCounts& counts, const OpRegistry& ops) {
  THIMBLE_ASSIGN_OR_RETURN(const ImageClassifier model, FindModel(config.model, images));
  return MakeTrainingProgram(config, model, counts, ops);
}

Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config, const ImageClassifier& model,
                                            const ImageCounts& counts, const OpRegistry& ops) {
  THIMBLE_TRY(CheckDeviceIsBuilt(DeviceOf(config)));
  TrainingProgram result;
  result.model = model;
  result.data = config.data;
  result.augmentation = ChosenAugmentation(config, model.images.augmentation);
  result.batch = CutToData(config, counts).batch;
  auto train_sizes = BatchSizes(counts.train, result.batch);
  train_sizes.insert(result.batch);
  ChooseParts(config, train_sizes, result);
  auto evaluate_sizes = BatchSizes(counts.test, result.part);
  evaluate_sizes.merge(BatchSizes(counts.validation, result.part));
  if (evaluate_sizes.empty()) evaluate_sizes.insert(result.part);

  std::vector<NamedGraph> graphs;
  TrainingGraphs training(config, result, ops);
  for (int64_t samples : train_sizes) THIMBLE_TRY(training.AddBatch(samples, graphs));
  THIMBLE_TRY(AddEvaluation(result, ops, evaluate_sizes, graphs));
  THIMBLE_ASSIGN_OR_RETURN(const PlanOptions options, MakePlanOptions(config));
  THIMBLE_ASSIGN_OR_RETURN(
      result.program,
      PlanProgram(graphs, ops, PrefetchRing(config, result.part, model.images), options));
  return result;
}

TrainConfig PlainConfig(TrainConfig config) {
  const TrainConfig defaults;
  config.microbatch = defaults.microbatch;
  config.conv = defaults.conv;
  config.recompute = defaults.recompute;
  config.bn_group = defaults.bn_group;
  config.scratch_bytes = defaults.scratch_bytes;
  config.budget_bytes = defaults.budget_bytes;
  config.without = defaults.without;
  return config;
}

bool IsPlain(const TrainConfig& config) {
  const TrainConfig plain = PlainConfig(config);
  const bool whole = config.microbatch == 0 || config.microbatch == config.batch;
  return whole && config.conv == plain.conv && config.recompute == plain.recompute &&
         config.bn_group == plain.bn_group && config.scratch_bytes == plain.scratch_bytes &&
         config.without == plain.without;
}

Result<int64_t> PlainArenaBytes(const TrainConfig& config, const ImageSpec& images,
                                const ImageCounts& counts, const OpRegistry& ops) {
  THIMBLE_ASSIGN_OR_RETURN(const ImageClassifier model, FindModel(config.model, images));
  return PlainArenaBytes(config, model, counts, ops);
}

Result<int64_t> PlainArenaBytes(const TrainConfig& config, const ImageClassifier& model,
                                const ImageCounts& counts, const OpRegistry& ops) {
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram program,
                           MakeTrainingProgram(PlainConfig(config), model, counts, ops));
  return static_cast<int64_t>(program.program.arena_bytes);
}

Result<TrainingProgram> MakeEvaluationProgram(const TrainConfig& config, const ImageSpec& images,
                                              int64_t num_images, const OpRegistry& ops) {
  THIMBLE_TRY(CheckDeviceIsBuilt(DeviceOf(config)));
  TrainingProgram result;
  THIMBLE_ASSIGN_OR_RETURN(result.model, FindModel(config.model, images));
  result.batch = result.microbatch = result.part = std::min(config.batch, num_images);
  std::vector<NamedGraph> graphs;
  THIMBLE_TRY(AddEvaluation(result, ops, BatchSizes(num_images, result.batch), graphs));
  THIMBLE_ASSIGN_OR_RETURN(const PlanOptions options, MakePlanOptions(config));
  THIMBLE_ASSIGN_OR_RETURN(result.program, PlanProgram(graphs, ops, {}, options));
  return result;
}

Result<void> CheckBudget(const Program& program, int64_t budget_bytes, const std::string& advice) {
  const auto arena_bytes = static_cast<int64_t>(program.arena_bytes);
  if (budget_bytes <= 0 || arena_bytes <= budget_bytes) return {};
  const auto worst =
      std::max_element(program.plans.begin(), program.plans.end(),
                       [](const Plan& a, const Plan& b) { return a.arena_bytes < b.arena_bytes; });
  const MemoryAccount account = Account(*worst);
  std::string largest;
  for (const Holding& held : LargestAt(Holdings(*worst), account.peak_step, 3)) {
    largest += fmt::format("{}{} {}", largest.empty() ? "" : ", ", held.name,
                           FormatBytes(static_cast<int64_t>(held.size_bytes)));
  }
  return DoesNotFit(fmt::format(
      "does not fit: the plan needs {} ({} bytes), the budget is {}, {} are missing; "
      "largest at the peak: {}{}{}",
      FormatBytes(arena_bytes), arena_bytes, FormatBytes(budget_bytes),
      FormatBytes(arena_bytes - budget_bytes), largest, advice.empty() ? "" : "; ", advice));
}

}  // namespace thimble
