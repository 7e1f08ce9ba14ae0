#include "thimble/train/planning/training_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "thimble/base/byte_size.h"
#include "thimble/device/device.h"
#include "thimble/grad/training_graph.h"
#include "thimble/model/model_file.h"
#include "thimble/plan/memory/accounting.h"
#include "thimble/plan/pipeline.h"
#include "thimble/program/sparsity/sparsity.h"
#include "thimble/program/techniques.h"
#include "thimble/train/options/options.h"
#include "thimble/train/options/update_options.h"

namespace thimble {
namespace {

size_t FindPlan(const Program& program, const std::string& name) {
  const auto found = std::find(program.names.begin(), program.names.end(), name);
  THIMBLE_CHECK(found != program.names.end(), "no plan '{}'", name);
  return static_cast<size_t>(found - program.names.begin());
}

// Batch sizes that occur when `images` are taken `batch` at a time.
BatchSizes SizesOf(int64_t images, int64_t batch) {
  BatchSizes sizes;
  if (images >= batch) sizes.insert(batch);
  if (images % batch != 0) sizes.insert(images % batch);
  return sizes;
}

// In the arena if the host can write to it; for a GPU the ring is in host memory.
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

// The planner's passes among the techniques to leave out. kBadInput for unknown names.
Result<std::set<std::string>> SkippedPasses(const std::set<std::string>& without) {
  std::set<std::string> known;
  for (const TechniqueInfo& always : AlwaysDone()) known.emplace(always.name);
  for (const std::string& name : without) {
    if (known.contains(name)) continue;
    return BadInput(fmt::format("no technique '{}' to leave out; expected one of {}", name,
                                fmt::join(known, ", ")));
  }
  std::set<std::string> skipped;
  for (const PassInfo& pass : OptionalPasses()) {
    if (without.contains(std::string(pass.name))) skipped.emplace(pass.name);
  }
  return skipped;
}

Result<PlanOptions> MakePlanOptions(const TrainConfig& config) {
  PlanOptions options;
  THIMBLE_ASSIGN_OR_RETURN(options.recompute, ParseRecompute(config.recompute));
  options.device = DeviceOf(config);
  options.limits.scratch_bytes_per_thread = static_cast<size_t>(config.scratch_bytes);
  if (options.device == DeviceKind::kCpu) {
    options.limits.threads = ResolvedThreads(config);
  } else {
    options.limits.scratch_bytes_per_thread *= kThreadsOfAGpu;
    if (ResolvedMath(config) == "fp32") options.kernel_options.insert("fp32");
  }
  THIMBLE_ASSIGN_OR_RETURN(options.skipped_passes, SkippedPasses(config.without));
  if (config.conv == "winograd") options.kernel_options.insert(config.conv);
  return options;
}

ImageSpec MakeSpec(const ImageFormat& format, Augmentation augmentation) {
  return {format.height, format.width, format.channels, format.classes,
          format.mean,   format.std,   augmentation};
}

// Makes the forward graphs of a network; stores how its persistent values are initialized.
class ForwardMaker {
 public:
  ForwardMaker(const TrainConfig& config, TrainingProgram& program, const OpRegistry& ops)
      : config_(config), program_(program), ops_(ops) {}

  Result<Graph> operator()(int64_t samples, bool training) const {
    const ImageDraws draws{program_.augmentation, config_.seed};
    THIMBLE_ASSIGN_OR_RETURN(Network network,
                             BuildNetwork(program_.model, ops_, samples,
                                          training ? Mode::kTrain : Mode::kEvaluate, draws));
    if (training && program_.inits.empty()) program_.inits = std::move(network.inits);
    return std::move(network.graph);
  }

 private:
  const TrainConfig& config_;
  TrainingProgram& program_;
  const OpRegistry& ops_;
};

}  // namespace

std::string RingImagesName(int64_t slot) { return fmt::format("prefetch[{}].images", slot); }
std::string RingLabelsName(int64_t slot) { return fmt::format("prefetch[{}].labels", slot); }

ImageSpec SpecOf(const ImageData& data) {
  return MakeSpec(data.train->format(), data.augmentation);
}

TechniqueRequest RequestOf(const TrainConfig& config) {
  TechniqueRequest request;
  for (const Lever* lever : Levers()) request.values[lever->name] = ValueOf(*lever, config);
  request.without = config.without;
  return request;
}

Augmentation ChosenAugmentation(const TrainConfig& config, Augmentation usual) {
  if (config.augment == "none") return Augmentation::kNone;
  if (config.augment == "crop-flip") return Augmentation::kCropFlip;
  return usual;
}

Result<PlannedData> DescribeData(const TrainConfig& config) {
  if (config.data_given || !IsModelFile(config.model)) {
    THIMBLE_ASSIGN_OR_RETURN(
        const ImageDescription data,
        DescribeImageData(config.data, {.seed = config.seed, .validation = config.validation}));
    return PlannedData{MakeSpec(data.format, data.augmentation), data.counts};
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
  return fmt::format("--batch {}: there are only {} training images, so the batch is {}",
                     config.batch, counts.train, batch);
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

std::optional<size_t> TrainingProgram::RewirePlan() const {
  if (program.Find(kRewireName) == nullptr) return std::nullopt;
  return FindPlan(program, kRewireName);
}

NearlyEqualParts TrainingProgram::PartsOf(int64_t batch_samples) const {
  const auto found = cuts.find(batch_samples);
  return found == cuts.end() ? NearlyEqualParts{batch_samples, 1} : found->second;
}

int64_t TrainingProgram::runs_per_step() const { return in_parts() ? PartsOf(batch).parts + 1 : 1; }

ProgramRecord RecordOf(const TrainingProgram& program, const OpRegistry& ops,
                       int64_t plain_arena_bytes) {
  ProgramRecord record = RecordOf(program.program, ops);
  if (!program.split_by) return record;
  TechniqueRecord splitting = *program.split_by;
  if (plain_arena_bytes > 0) {
    splitting.saved_bytes = plain_arena_bytes - static_cast<int64_t>(record.arena_bytes);
  }
  std::vector<TechniqueRecord>& techniques = record.plans.front().techniques;
  techniques.insert(techniques.begin(), std::move(splitting));
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
  THIMBLE_ASSIGN_OR_RETURN(result.update, UpdateSpecOf(config));
  ProgramSpec spec{.train = SizesOf(counts.train, result.batch),
                   .update = result.update,
                   .techniques = RequestOf(CutToData(config, counts))};
  spec.train.insert(result.batch);
  result.cuts = CutBatches(spec.train, spec.techniques);
  for (const auto& [samples, parts] : result.cuts) {
    result.part = std::max(result.part, parts.LargestSize());
  }
  spec.evaluate = SizesOf(counts.test, result.part);
  spec.evaluate.merge(SizesOf(counts.validation, result.part));
  if (spec.evaluate.empty()) spec.evaluate.insert(result.part);

  THIMBLE_ASSIGN_OR_RETURN(const PlanOptions options, MakePlanOptions(config));
  THIMBLE_ASSIGN_OR_RETURN(ProgramGraphs made,
                           MakeGraphs(spec, ops, ForwardMaker(config, result, ops)));
  result.split_by = std::move(made.split_by);
  result.update = std::move(made.update);
  THIMBLE_ASSIGN_OR_RETURN(
      result.program,
      PlanProgram(made.graphs, ops, PrefetchRing(config, result.part, model.images), options));
  return result;
}

TrainConfig PlainConfig(TrainConfig config) {
  for (const Lever* lever : Levers()) Set(*lever, lever->plain, config);
  config.budget_bytes = 0;
  config.without.clear();
  return config;
}

bool IsPlain(const TrainConfig& config) {
  const auto is_plain = [&](const Lever* lever) { return ValueOf(*lever, config) == lever->plain; };
  const std::vector<const Lever*> levers = Levers();
  return config.without.empty() && std::all_of(levers.begin(), levers.end(), is_plain);
}

Result<int64_t> PlainArenaBytes(const TrainConfig& config, const ImageSpec& images,
                                const ImageCounts& counts, const OpRegistry& ops) {
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram program,
                           MakeTrainingProgram(PlainConfig(config), images, counts, ops));
  return static_cast<int64_t>(program.program.arena_bytes);
}

Result<int64_t> PlainArenaBytes(const TrainConfig& config, const TrainingProgram& planned,
                                const ImageCounts& counts, const OpRegistry& ops) {
  if (IsPlain(config)) return static_cast<int64_t>(planned.program.arena_bytes);
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram program,
                           MakeTrainingProgram(PlainConfig(config), planned.model, counts, ops));
  return static_cast<int64_t>(program.program.arena_bytes);
}

Result<TrainingProgram> MakeEvaluationProgram(const TrainConfig& config, const ImageSpec& images,
                                              int64_t num_images, const OpRegistry& ops) {
  THIMBLE_TRY(CheckDeviceIsBuilt(DeviceOf(config)));
  TrainingProgram result;
  THIMBLE_ASSIGN_OR_RETURN(result.model, FindModel(config.model, images));
  result.batch = result.part = std::min(config.batch, num_images);
  const ProgramSpec spec{.evaluate = SizesOf(num_images, result.batch),
                         .techniques = RequestOf(config)};
  THIMBLE_ASSIGN_OR_RETURN(const PlanOptions options, MakePlanOptions(config));
  THIMBLE_ASSIGN_OR_RETURN(const ProgramGraphs made,
                           MakeGraphs(spec, ops, ForwardMaker(config, result, ops)));
  THIMBLE_ASSIGN_OR_RETURN(result.program, PlanProgram(made.graphs, ops, {}, options));
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
      "does not fit: the plan needs {} ({} bytes), the budget of {} is exceeded by {}; "
      "largest at the peak: {}{}{}",
      FormatBytes(arena_bytes), arena_bytes, FormatBytes(budget_bytes),
      FormatBytes(arena_bytes - budget_bytes), largest, advice.empty() ? "" : "; ", advice));
}

}  // namespace thimble
