#include "thimble/train/planning/training_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <type_traits>

#include "thimble/base/byte_size.h"
#include "thimble/base/function_ref.h"
#include "thimble/device/device.h"
#include "thimble/grad/training_graph.h"
#include "thimble/plan/memory/accounting.h"
#include "thimble/program/sparsity/sparsity.h"
#include "thimble/program/techniques.h"
#include "thimble/train/options/options.h"
#include "thimble/train/options/update_options.h"
#include "thimble/train/planning/plan_options.h"

namespace thimble {
namespace {

size_t FindPlan(const Program& program, const std::string& name) {
  const auto found = std::find(program.names.begin(), program.names.end(), name);
  THIMBLE_CHECK(found != program.names.end(), "no plan '{}'", name);
  return static_cast<size_t>(found - program.names.begin());
}

// In the arena if the host can write to it; for a GPU the ring is in host memory. A slot has room
// for the largest part.
std::vector<Resident> PrefetchRing(const TrainConfig& config, const Task& task,
                                   const BatchCuts& cuts) {
  const int64_t slots = DeviceOf(config) == DeviceKind::kCpu ? config.prefetch : 0;
  std::vector<Resident> ring;
  for (int64_t slot = 0; slot < slots; ++slot) {
    for (const BatchField& field : task.fields()) {
      size_t bytes = 0;
      for (const auto& [shape, parts] : cuts) {
        bytes = std::max(bytes, field.BytesOf(shape.With(parts.LargestSize())));
      }
      ring.push_back({RingName(slot, field.name), bytes, 0, Category::kData});
    }
  }
  return ring;
}

// Makes the forward graphs of a task; stores how its persistent values are initialized.
class ForwardMaker {
 public:
  ForwardMaker(TrainingProgram& program, const OpRegistry& ops) : program_(program), ops_(ops) {}

  Result<Graph> operator()(const BatchShape& shape, bool training) const {
    THIMBLE_ASSIGN_OR_RETURN(
        Network network,
        program_.task->Build(ops_, shape, training ? Mode::kTrain : Mode::kEvaluate));
    if (training && program_.inits.empty()) program_.inits = std::move(network.inits);
    return std::move(network.graph);
  }

 private:
  TrainingProgram& program_;
  const OpRegistry& ops_;
};

template <class Key>
size_t PlanOf(const std::map<Key, size_t>& plans, const std::type_identity_t<Key>& key,
              FunctionRef<std::string()> name) {
  const auto found = plans.find(key);
  THIMBLE_CHECK(found != plans.end(), "no plan '{}'", name());
  return found->second;
}

// The largest first, each once.
void Add(const std::vector<BatchShape>& shapes, BatchShapes& all) {
  for (const BatchShape& shape : shapes) {
    if (std::find(all.begin(), all.end(), shape) == all.end()) all.push_back(shape);
  }
  std::ranges::stable_sort(all, std::greater(), &BatchShape::size);
}

// What translations of a part of the data need; nullopt if there is nothing to translate.
std::optional<DecodingSpec> DecodingOf(const TrainConfig& config, const Task& task, DataPart part) {
  const int64_t longest = task.longest_to_translate(part);
  if (longest == 0 || config.beam == 0) return std::nullopt;
  return DecodingSpec{.hypotheses = config.beam, .longest = longest};
}

// Removes the graphs that belong to a group.
std::vector<NamedGraph> TakeGroups(std::vector<NamedGraph>& graphs) {
  const auto first = std::stable_partition(
      graphs.begin(), graphs.end(), [](const NamedGraph& graph) { return graph.group.empty(); });
  std::vector<NamedGraph> taken(std::make_move_iterator(first),
                                std::make_move_iterator(graphs.end()));
  graphs.erase(first, graphs.end());
  return taken;
}

// Notes which plan is for what.
void IndexPlans(const ProgramSpec& spec, TrainingProgram& result) {
  const auto index = [&](const std::string& name) { return FindPlan(result.program, name); };
  for (const BatchShape& shape : spec.evaluate) {
    result.evaluate_plans[shape] = index(EvaluateName(shape));
  }
  for (const auto& [shape, parts] : result.cuts) {
    if (!result.in_parts()) {
      result.train_plans[shape] = index(TrainName(shape));
      continue;
    }
    result.update_plans[shape] = index(UpdateName(shape));
    for (const int64_t first : {int64_t{0}, parts.parts - 1}) {
      const BatchShape part = shape.With(parts.Size(first));
      result.part_plans[{part, shape}] = index(PartName(part, shape));
    }
  }
}

// Makes the graphs and plans them, those that translate last: their batches are as large as the
// arena permits.
Result<ProgramGraphs> PlanGraphs(ProgramSpec& spec, const std::vector<Resident>& ring,
                                 const std::optional<DecodingSpec>& decoding,
                                 const PlanOptions& options, const OpRegistry& ops,
                                 TrainingProgram& result) {
  const TranslatorSpec* translator = decoding ? result.task->translator() : nullptr;
  if (decoding) {
    THIMBLE_ASSIGN_OR_RETURN(spec.others, DecodingGraphs(*translator, *decoding, ops));
  }
  THIMBLE_ASSIGN_OR_RETURN(ProgramGraphs made, MakeGraphs(spec, ops, ForwardMaker(result, ops)));
  const std::vector<NamedGraph> to_decode = TakeGroups(made.graphs);
  THIMBLE_ASSIGN_OR_RETURN(result.program, PlanProgram(made.graphs, ops, ring, options));
  if (decoding) {
    THIMBLE_ASSIGN_OR_RETURN(result.decoding,
                             AddDecodingPlans(result.program, to_decode, *translator, *decoding,
                                              result.program.arena_bytes, ops, options));
  }
  IndexPlans(spec, result);
  return made;
}

}  // namespace

std::string RingName(int64_t slot, const std::string& field) {
  return fmt::format("prefetch[{}].{}", slot, field);
}

TechniqueRequest RequestOf(const TrainConfig& config) {
  TechniqueRequest request;
  for (const Lever* lever : Levers()) request.values[lever->name] = ValueOf(*lever, config);
  request.without = config.without;
  return request;
}

TrainConfig CutToData(TrainConfig config, const Task& task) {
  const int64_t largest = task.largest_batch();
  if (largest == 0 || config.batch <= largest) return config;
  config.batch = largest;
  if (config.microbatch >= config.batch) config.microbatch = 0;
  config.bn_group = std::min(config.bn_group, config.batch);
  return config;
}

std::string CutMessage(const TrainConfig& config, const Task& task) {
  const int64_t batch = CutToData(config, task).batch;
  if (batch == config.batch) return "";
  return fmt::format("--batch {}: there are only {} training {}, so the batch is {}", config.batch,
                     task.largest_batch(), task.unit(), batch);
}

size_t TrainingProgram::TrainPlan(const BatchShape& shape) const {
  return PlanOf(train_plans, shape, [&] { return TrainName(shape); });
}

size_t TrainingProgram::EvaluatePlan(const BatchShape& shape) const {
  return PlanOf(evaluate_plans, shape, [&] { return EvaluateName(shape); });
}

size_t TrainingProgram::PartPlan(const BatchShape& of_part, const BatchShape& of_batch) const {
  return PlanOf(part_plans, {of_part, of_batch}, [&] { return PartName(of_part, of_batch); });
}

size_t TrainingProgram::UpdatePlan(const BatchShape& of_batch) const {
  return PlanOf(update_plans, of_batch, [&] { return UpdateName(of_batch); });
}

std::optional<size_t> TrainingProgram::RewirePlan() const {
  if (program.Find(kRewireName) == nullptr) return std::nullopt;
  return FindPlan(program, kRewireName);
}

NearlyEqualParts TrainingProgram::PartsOf(const BatchShape& shape) const {
  const auto found = cuts.find(shape);
  return found == cuts.end() ? NearlyEqualParts{shape.samples, 1} : found->second;
}

int64_t TrainingProgram::runs_per_step() const { return in_parts() ? PartsOf(full).parts + 1 : 1; }

int64_t TrainingProgram::most_runs_per_step() const {
  int64_t runs = runs_per_step();
  if (!in_parts()) return runs;
  for (const auto& [shape, parts] : cuts) runs = std::max(runs, parts.parts + 1);
  return runs;
}

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

Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config, const TaskPtr& task,
                                            const OpRegistry& ops, size_t enough_bytes) {
  THIMBLE_TRY(CheckDeviceIsBuilt(DeviceOf(config)));
  TrainingProgram result;
  result.task = task;
  result.data = config.data;
  result.batch = CutToData(config, *task).batch;
  THIMBLE_ASSIGN_OR_RETURN(result.update, UpdateSpecOf(config));
  ProgramSpec spec{.train = task->TrainShapes(result.batch),
                   .update = result.update,
                   .techniques = RequestOf(CutToData(config, *task))};
  result.full = spec.train.front();
  result.cuts = CutBatches(spec.train, spec.techniques);
  for (const auto& [shape, parts] : result.cuts) {
    result.part = std::max(result.part, shape.With(parts.LargestSize()).size());
  }
  Add(task->EvaluateShapes(DataPart::kTest, result.part), spec.evaluate);
  Add(task->EvaluateShapes(DataPart::kValidation, result.part), spec.evaluate);
  if (spec.evaluate.empty()) {
    spec.evaluate.push_back(result.full.With(result.PartsOf(result.full).LargestSize()));
  }

  THIMBLE_ASSIGN_OR_RETURN(PlanOptions options, PlanOptionsOf(config));
  options.enough_bytes = enough_bytes;
  THIMBLE_ASSIGN_OR_RETURN(
      ProgramGraphs made,
      PlanGraphs(spec, PrefetchRing(config, *task, result.cuts),
                 DecodingOf(config, *task, DataPart::kTest), options, ops, result));
  result.split_by = std::move(made.split_by);
  result.update = std::move(made.update);
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

Result<int64_t> PlainArenaBytes(const TrainConfig& config, const TaskPtr& task,
                                const OpRegistry& ops) {
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram program,
                           MakeTrainingProgram(PlainConfig(config), task, ops));
  return static_cast<int64_t>(program.program.arena_bytes);
}

Result<int64_t> PlainArenaBytes(const TrainConfig& config, const TrainingProgram& planned,
                                const OpRegistry& ops) {
  if (IsPlain(config)) return static_cast<int64_t>(planned.program.arena_bytes);
  return PlainArenaBytes(config, planned.task, ops);
}

Result<TrainingProgram> MakeEvaluationProgram(const TrainConfig& config, const TaskPtr& task,
                                              DataPart part, const OpRegistry& ops) {
  THIMBLE_TRY(CheckDeviceIsBuilt(DeviceOf(config)));
  TrainingProgram result;
  result.task = task;
  result.batch = result.part = config.batch;
  ProgramSpec spec{.evaluate = task->EvaluateShapes(part, config.batch),
                   .techniques = RequestOf(config)};
  THIMBLE_ASSIGN_OR_RETURN(const PlanOptions options, PlanOptionsOf(config));
  THIMBLE_TRY(PlanGraphs(spec, {}, DecodingOf(config, *task, part), options, ops, result));
  return result;
}

Result<TrainingProgram> MakeTranslationProgram(const TrainConfig& config,
                                               const TranslatorSpec& translator, int64_t longest,
                                               const OpRegistry& ops) {
  THIMBLE_TRY(CheckDeviceIsBuilt(DeviceOf(config)));
  const DecodingSpec decoding{
      .hypotheses = config.beam, .tokens = config.batch, .longest = longest};
  TrainingProgram result;
  ProgramSpec spec{.techniques = RequestOf(config)};
  THIMBLE_ASSIGN_OR_RETURN(spec.others, DecodingGraphs(translator, decoding, ops));
  THIMBLE_ASSIGN_OR_RETURN(const PlanOptions options, PlanOptionsOf(config));
  THIMBLE_ASSIGN_OR_RETURN(const ProgramGraphs made,
                           MakeGraphs(spec, ops, ForwardMaker(result, ops)));
  THIMBLE_ASSIGN_OR_RETURN(result.program.residents, LayOutResidents(made.graphs));
  const size_t limit_bytes = config.budget_bytes > 0 ? static_cast<size_t>(config.budget_bytes)
                                                     : std::numeric_limits<size_t>::max();
  THIMBLE_ASSIGN_OR_RETURN(result.decoding,
                           AddDecodingPlans(result.program, made.graphs, translator, decoding,
                                            limit_bytes, ops, options));
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
