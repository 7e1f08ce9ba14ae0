#include "thimble/train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>

#include "thimble/base/version.h"
#include "thimble/data/batches.h"
#include "thimble/device/cpu/arena.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/exec/executor.h"
#include "thimble/plan/plan_json.h"
#include "thimble/train/checkpoint.h"
#include "thimble/train/command_text.h"
#include "thimble/train/initialize.h"
#include "thimble/train/metrics.h"
#include "thimble/train/options.h"
#include "thimble/train/run_folder.h"
#include "thimble/train/run_state.h"
#include "thimble/train/schedule.h"
#include "thimble/train/step_queue.h"
#include "thimble/train/stop_signal.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One run from start to end. Members are made in the order in which they depend on each other.
class Trainer {
 public:
  Trainer(const TrainConfig& config, const ModelFactory& make_model, const OpRegistry& ops,
          TrainObserver& observer)
      : config_(config), make_model_(make_model), ops_(ops), observer_(observer) {}

  Result<TrainSummary> Run() {
    stop_.emplace();
    THIMBLE_TRY(Prepare());
    THIMBLE_TRY(StartOrResume());
    THIMBLE_TRY(Loop());
    return Finish();
  }

 private:
  // What decides the last bits of results: a SIMD target of the CPU, or a device with its math.
  std::string Target() const;
  Result<void> ChooseTarget();
  Result<void> Prepare();
  Result<void> StartOrResume();
  Result<void> Restore();
  Result<void> Loop();
  // Enqueues the next step.
  Result<void> Launch();
  // Whether it may be, while others are under way.
  bool MayLaunch() const;
  // Waits for the oldest step under way and does what is due behind it.
  Result<void> FinishStep();
  Result<void> Collect();
  Result<void> EndEpoch();
  Result<void> CheckFinite(const char* what, double loss) const;
  Result<void> LogStep(double loss, double learning_rate);
  Result<void> SaveCheckpointNow();
  Result<void> SaveWeights(const std::string& name);
  Result<TrainSummary> Finish();
  TrainSummary Summarize() const;
  Result<void> CheckMemory(const TrainSummary& summary) const;

  double Rate(int64_t step) const {
    return LearningRate(schedule_, schedule_span_, config_.learning_rate, step);
  }
  double ImagesPerSecond() const {
    return step_seconds_ > 0 ? static_cast<double>(step_samples_) / step_seconds_ : 0;
  }
  bool checkpoint_due(int64_t step) const {
    return config_.checkpoint_every > 0 ? step % config_.checkpoint_every == 0 : epoch_ends(step);
  }
  bool epoch_ends(int64_t step) const {
    return step % schedule_span_.steps_per_epoch == 0 || step >= schedule_span_.num_steps;
  }
  bool done() const { return state_.step >= schedule_span_.num_steps; }
  bool at_epoch_end() const { return state_.step % schedule_span_.steps_per_epoch == 0; }
  // Of the step done last, from 1; --steps may end a run in the middle of one.
  int64_t epoch() const {
    const int64_t steps = schedule_span_.steps_per_epoch;
    return (state_.step + steps - 1) / steps;
  }

  TrainConfig config_;
  const ModelFactory& make_model_;
  const OpRegistry& ops_;
  TrainObserver& observer_;
  ImageData data_;
  std::optional<TrainBatches> batches_;
  TrainingProgram program_;
  int64_t plain_arena_bytes_ = 0;
  std::optional<RunFolder> folder_;
  std::unique_ptr<Executor> executor_;
  std::optional<StepQueue> queue_;
  Schedule schedule_;
  ScheduleSpan schedule_span_;
  RunState state_;                  // as of the last step whose results are known
  int64_t launched_ = 0;            // steps; those behind state_.step are under way
  std::optional<StopSignal> stop_;  // from the very start: a run is stopped politely or not at all
  Clock::time_point started_;
  double seconds_before_ = 0;  // by earlier sessions of this run
  // Plain steps of this session, for the rate: audited ones are left out. A step is timed from the
  // end of the one before where that was under way.
  Clock::time_point step_started_;
  double step_seconds_ = 0;
  int64_t step_samples_ = 0;
};

std::string Trainer::Target() const {
  if (DeviceOf(config_) == DeviceKind::kCpu) return ActiveSimdTarget();
  return fmt::format("{}-{}", config_.device, ResolvedMath(config_));
}

// The target decides the last bits of results: a resumed run goes on with the one it has, chosen
// before anything else. (Plans do not depend on it: scratch is sized for the largest tile.)
Result<void> Trainer::ChooseTarget() {
  THIMBLE_TRY(PinSimdTarget(config_.simd));
  if (!config_.resume || config_.out.empty()) return {};
  THIMBLE_ASSIGN_OR_RETURN(const std::optional<CheckpointInfo> checkpoint,
                           ReadCheckpointInfo(CheckpointFolder(config_.out)));
  if (!checkpoint || checkpoint->simd_target == Target()) return {};
  const bool may_choose = DeviceOf(config_) == DeviceKind::kCpu && config_.simd == "auto";
  if (may_choose && PinSimdTarget(checkpoint->simd_target).ok()) return {};
  observer_.OnMessage(
      fmt::format("the checkpoint was made with {}: going on with {}, not bit for bit",
                  checkpoint->simd_target, Target()));
  return {};
}

Result<void> Trainer::Prepare() {
  THIMBLE_TRY(CheckConfig(config_));
  THIMBLE_TRY(CheckDevice(DeviceOf(config_)));
  THIMBLE_TRY(ChooseTarget());
  THIMBLE_ASSIGN_OR_RETURN(schedule_, ParseSchedule(config_.schedule));
  THIMBLE_ASSIGN_OR_RETURN(
      data_, OpenImageData(config_.data, {.seed = config_.seed, .validation = config_.validation}));
  THIMBLE_ASSIGN_OR_RETURN(ImageClassifier model, make_model_(SpecOf(data_)));
  model.images.augmentation = data_.augmentation;  // a matter of the data, not of the network
  // A file is needed again: what it is called does not find it.
  if (model.file_text.empty()) config_.model = model.name;
  THIMBLE_ASSIGN_OR_RETURN(program_, MakeTrainingProgram(config_, model, CountsOf(data_), ops_));
  THIMBLE_TRY(CheckBudget(program_.program, config_.budget_bytes));
  THIMBLE_ASSIGN_OR_RETURN(plain_arena_bytes_,
                           PlainArenaBytes(config_, model, CountsOf(data_), ops_));
  batches_.emplace(*data_.train, program_.batch, config_.seed);
  schedule_span_.steps_per_epoch = batches_->steps_per_epoch();
  schedule_span_.num_steps =
      config_.steps > 0 ? config_.steps : config_.epochs * schedule_span_.steps_per_epoch;
  schedule_span_.warmup_steps = config_.warmup_steps;
  return {};
}

Result<void> Trainer::StartOrResume() {
  THIMBLE_ASSIGN_OR_RETURN(folder_, RunFolder::Open(config_));
  const ImageClassifier& model = program_.model;
  if (!model.file_text.empty()) {
    THIMBLE_TRY(folder_->KeepModelFile(config_.model, model.file_text));
  }
  THIMBLE_ASSIGN_OR_RETURN(const std::optional<CheckpointInfo> checkpoint,
                           ReadCheckpointInfo(folder_->checkpoint_folder()));
  THIMBLE_ASSIGN_OR_RETURN(executor_, Executor::Create(program_.program, ops_));
  InitializeResidents(*executor_, program_.inits, config_.seed);
  if (checkpoint) {
    // A model file is the same by what is in it, whatever it is called by now.
    if (!model.file_text.empty()) program_.model.name = checkpoint->model;
    THIMBLE_TRY(Restore());
  } else if (!config_.init.empty()) {
    THIMBLE_TRY(LoadTensors(config_.init, PersistentTensors(*executor_, false), LoadRule::kExact));
  }
  executor_->StoreResidents();
  // Also where a run goes on: it may have got more epochs or other threads.
  THIMBLE_TRY(folder_->Write("config.toml", ToToml(config_)));
  THIMBLE_TRY(folder_->Write("plan.json", ToJson(RecordOf(program_, ops_, plain_arena_bytes_))));
  return folder_->StartMetrics(state_.metrics_bytes);
}

Result<void> Trainer::Restore() {
  const std::string path = CheckpointPath(folder_->checkpoint_folder());
  THIMBLE_ASSIGN_OR_RETURN(const CheckpointInfo loaded,
                           LoadCheckpoint(folder_->checkpoint_folder(), program_.model.name,
                                          PersistentTensors(*executor_, true)));
  auto state = RunStateFromJson(loaded.progress_json);
  if (!state.ok()) return WithContext(path, state.error());
  if (state->step != loaded.step) {
    return BadInput(fmt::format("{}: says step {} in one place and {} in another", path,
                                loaded.step, state->step));
  }
  state_ = *state;
  seconds_before_ = state_.seconds;
  observer_.OnMessage(fmt::format("resuming at step {}", state_.step));
  return {};
}

Result<void> Trainer::Loop() {
  observer_.OnStart(program_, folder_->path());
  started_ = Clock::now();
  queue_.emplace(program_, *batches_, *executor_, config_.prefetch);
  queue_->Start(state_.step, schedule_span_.num_steps);
  launched_ = state_.step;
  while (!done() && !stop_->requested()) {
    while (MayLaunch()) THIMBLE_TRY(Launch());
    THIMBLE_TRY(FinishStep());
  }
  while (!queue_->empty()) THIMBLE_TRY(FinishStep());
  if (!done()) {
    THIMBLE_TRY(SaveCheckpointNow());
    observer_.OnMessage(fmt::format("stopped at step {} of {}; continue with --resume --out {}",
                                    state_.step, schedule_span_.num_steps, folder_->path()));
  }
  return {};
}

// Evaluation and files see the weights behind a step, so none may follow it before they are done.
bool Trainer::MayLaunch() const {
  if (queue_->empty()) return !done();
  return !queue_->full() && !epoch_ends(launched_) && !checkpoint_due(launched_);
}

Result<void> Trainer::Launch() {
  if (queue_->empty()) step_started_ = Clock::now();
  THIMBLE_TRY(queue_->Launch(Rate(launched_)));
  ++launched_;
  return {};
}

Result<void> Trainer::FinishStep() {
  THIMBLE_TRY(Collect());
  if (epoch_ends(state_.step)) THIMBLE_TRY(EndEpoch());
  if (checkpoint_due(state_.step) || done()) THIMBLE_TRY(SaveCheckpointNow());
  return {};
}

Result<void> Trainer::Collect() {
  const FinishedRun run = queue_->Collect();
  const int64_t count = batches_->CountAt(state_.step);
  const double rate = Rate(state_.step);
  const Clock::time_point now = Clock::now();
  if (!run.audited) {
    step_seconds_ += std::chrono::duration<double>(now - step_started_).count();
    step_samples_ += count;
  }
  step_started_ = now;
  THIMBLE_TRY(CheckFinite("loss", run.loss));
  state_.loss_sum += run.loss * static_cast<double>(count);
  state_.correct += run.correct;
  state_.samples += count;
  ++state_.step;
  return LogStep(run.loss, rate);
}

// Nothing is saved once training has diverged.
Result<void> Trainer::CheckFinite(const char* what, double loss) const {
  if (std::isfinite(loss)) return {};
  return Failed(
      fmt::format("the {} is {} at step {}: training has diverged; the last checkpoint is kept; a "
                  "lower --lr or a --warmup would help",
                  what, loss, state_.step));
}

Result<void> Trainer::LogStep(double loss, double learning_rate) {
  const auto samples = static_cast<double>(state_.samples);
  observer_.OnStep({state_.step, schedule_span_.num_steps, schedule_span_.steps_per_epoch,
                    state_.loss_sum / samples, static_cast<double>(state_.correct) / samples,
                    learning_rate, ImagesPerSecond(), program_.program.arena_bytes});
  if (state_.step % config_.log_every != 0) return {};
  return folder_->AppendMetrics(StepMetrics(state_.step, loss, learning_rate));
}

Result<void> Trainer::EndEpoch() {
  state_.train_loss = state_.loss_sum / static_cast<double>(state_.samples);
  state_.train_accuracy = static_cast<double>(state_.correct) / static_cast<double>(state_.samples);
  // A run that --steps ended within an epoch may be resumed with more.
  if (at_epoch_end()) {
    state_.loss_sum = 0;
    state_.correct = state_.samples = 0;
  }
  EpochReport report{
      .epoch = epoch(), .train_loss = state_.train_loss, .train_accuracy = state_.train_accuracy};
  report.evaluated = done() || (config_.eval_every > 0 && report.epoch % config_.eval_every == 0);
  if (report.evaluated) {
    if (data_.validation) {
      THIMBLE_ASSIGN_OR_RETURN(report.validation,
                               Evaluate(*executor_, program_, *data_.validation));
    }
    THIMBLE_ASSIGN_OR_RETURN(report.test, Evaluate(*executor_, program_, *data_.test));
    THIMBLE_TRY(CheckFinite("test loss", report.test.loss));
    state_.test_loss = report.test.loss;
    state_.test_accuracy = report.test.accuracy;
    const double accuracy = data_.validation ? report.validation.accuracy : report.test.accuracy;
    if (accuracy > state_.best_accuracy) {
      state_.best_accuracy = accuracy;
      state_.best_epoch = report.epoch;
      THIMBLE_TRY(SaveWeights("best.safetensors"));
    }
  }
  THIMBLE_TRY(SaveWeights("weights.safetensors"));
  report.seconds = seconds_before_ + SecondsSince(started_);
  THIMBLE_TRY(folder_->AppendMetrics(EpochMetrics(report, state_.step)));
  observer_.OnEpoch(report);
  return {};
}

Result<void> Trainer::SaveWeights(const std::string& name) {
  executor_->FetchResidents();
  return SaveTensors(
      folder_->File(name), PersistentTensors(*executor_, false),
      {{"model", program_.model.name}, {"step", fmt::format("{}", state_.step)}, {"format", "pt"}});
}

Result<void> Trainer::SaveCheckpointNow() {
  state_.seconds = seconds_before_ + SecondsSince(started_);
  state_.metrics_bytes = folder_->metrics_bytes();
  CheckpointInfo info;
  info.model = program_.model.name;
  info.step = state_.step;
  info.simd_target = Target();
  info.progress_json = ToJson(state_);
  executor_->FetchResidents();
  return SaveCheckpoint(folder_->checkpoint_folder(), info, PersistentTensors(*executor_, true));
}

TrainSummary Trainer::Summarize() const {
  const AllocationCounts allocations = executor_->allocations_in_runs();
  TrainSummary summary;
  summary.run_folder = folder_->path();
  summary.finished = done();
  summary.steps = state_.step;
  summary.train_loss = state_.train_loss;
  summary.train_accuracy = state_.train_accuracy;
  summary.test_loss = state_.test_loss;
  summary.test_accuracy = state_.test_accuracy;
  summary.best_accuracy = state_.best_accuracy;
  summary.best_epoch = state_.best_epoch;
  summary.seconds = seconds_before_ + SecondsSince(started_);
  summary.images_per_second = ImagesPerSecond();
  summary.parameters = CountParameters(program_.main_plan().graph);
  summary.plain_arena_bytes = plain_arena_bytes_;
  summary.arena_bytes = static_cast<int64_t>(program_.program.arena_bytes);
  summary.lower_bound_bytes = static_cast<int64_t>(program_.main_plan().lower_bound_bytes);
  summary.planned_peak_bytes = static_cast<int64_t>(executor_->planned_peak_bytes());
  summary.measured_peak_bytes = static_cast<int64_t>(executor_->audit().measured_peak_bytes());
  summary.arena_resident_bytes = executor_->device().ArenaResidentBytes();
  summary.process_peak_bytes = ProcessPeakBytes();
  summary.heap_calls_in_steps = allocations.heap_calls;
  summary.map_calls_in_steps = allocations.map_calls;
  summary.device = config_.device;
  summary.device_name = executor_->device().name();
  summary.math = ResolvedMath(config_);
  summary.device_memory = executor_->device().memory();
  summary.device_allocations = executor_->device().allocation_calls();
  summary.device_allocations_in_steps = executor_->device_allocations_in_runs();
  summary.simd = ActiveSimdTarget();
  summary.threads = executor_->pool().num_threads();
  summary.command = CommandOf(config_);
  summary.version = Version();
  return summary;
}

Result<void> Trainer::CheckMemory(const TrainSummary& summary) const {
  const auto& faults = executor_->audit().faults();
  if (!faults.empty()) {
    return Failed(fmt::format("planned and measured memory differ in {} places; the first: {}",
                              faults.size(), faults.front()));
  }
  if (summary.planned_peak_bytes != summary.measured_peak_bytes) {
    return Failed(fmt::format("planned peak {} bytes, measured {}", summary.planned_peak_bytes,
                              summary.measured_peak_bytes));
  }
  if (summary.device_allocations_in_steps != 0) {
    return Failed(fmt::format("{} allocated memory {} times during steps", summary.device,
                              summary.device_allocations_in_steps));
  }
  // Elsewhere the driver keeps books of its own on the heap.
  if (DeviceOf(config_) != DeviceKind::kCpu) return {};
  if (summary.heap_calls_in_steps != 0 || summary.map_calls_in_steps != 0) {
    return Failed(fmt::format("memory was allocated during steps: {} heap and {} mapping calls",
                              summary.heap_calls_in_steps, summary.map_calls_in_steps));
  }
  return {};
}

Result<TrainSummary> Trainer::Finish() {
  if (state_.step == 0) THIMBLE_TRY(SaveWeights("weights.safetensors"));
  if (queue_) queue_->Stop();
  executor_->ScanArena();
  TrainSummary summary = Summarize();
  summary.json = SummaryJson(summary, config_);
  THIMBLE_TRY(folder_->Write("summary.json", summary.json));
  observer_.OnFinish(summary);
  THIMBLE_TRY(CheckMemory(summary));
  return summary;
}

}  // namespace

Result<TrainSummary> Train(const TrainConfig& config, const OpRegistry& ops,
                           TrainObserver& observer) {
  const ModelFactory by_name = [&](const ImageSpec& images) {
    return FindModel(config.model, images);
  };
  return Train(config, by_name, ops, observer);
}

Result<TrainSummary> Train(const TrainConfig& config, const ModelFactory& model,
                           const OpRegistry& ops, TrainObserver& observer) {
  return Trainer(config, model, ops, observer).Run();
}

}  // namespace thimble
