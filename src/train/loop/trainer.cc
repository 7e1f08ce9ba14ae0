#include "thimble/train/loop/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "thimble/base/function_ref.h"
#include "thimble/base/sealed_text.h"
#include "thimble/base/version.h"
#include "thimble/device/cpu/arena.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/exec/executor.h"
#include "thimble/plan/plan_json.h"
#include "thimble/train/loop/divergence.h"
#include "thimble/train/loop/epoch_average.h"
#include "thimble/train/loop/evaluate.h"
#include "thimble/train/loop/initialize.h"
#include "thimble/train/loop/loss_scale_watch.h"
#include "thimble/train/loop/publish_summary.h"
#include "thimble/train/loop/rewiring.h"
#include "thimble/train/loop/run_measurements.h"
#include "thimble/train/loop/run_target.h"
#include "thimble/train/loop/step_clock.h"
#include "thimble/train/loop/step_queue.h"
#include "thimble/train/loop/stop_signal.h"
#include "thimble/train/loop/weights_files.h"
#include "thimble/train/options/command_text.h"
#include "thimble/train/options/options.h"
#include "thimble/train/options/schedule.h"
#include "thimble/train/planning/budget_search.h"
#include "thimble/train/run_folder/checkpoint.h"
#include "thimble/train/run_folder/metrics.h"
#include "thimble/train/run_folder/metrics_file.h"
#include "thimble/train/run_folder/run_folder.h"
#include "thimble/train/run_folder/run_settings.h"
#include "thimble/train/run_folder/run_state.h"
#include "thimble/train/task/find_task.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One run from start to end. Members are set in the order of their dependencies.
class Trainer {
 public:
  using Open = FunctionRef<Result<OpenedTask>(const TrainConfig&)>;

  Trainer(const TrainConfig& config, Open open, const OpRegistry& ops, TrainObserver& observer)
      : config_(config), open_(open), ops_(ops), observer_(observer) {}

  Result<TrainSummary> Run() {
    stop_.emplace();
    THIMBLE_TRY(Prepare());
    THIMBLE_TRY(OpenFolder());
    if (checkpoint_ && checkpoint_->step == schedule_span_.num_steps) return FinishedBefore();
    THIMBLE_TRY(StartOrResume());
    THIMBLE_TRY(Loop());
    return Finish();
  }

 private:
  Result<void> Prepare();
  // Opens the run folder and, if it contains a run, checks that it can be resumed.
  Result<void> OpenFolder();
  Result<void> CheckCheckpoint();
  // The saved summary of a run that has already done all its steps.
  Result<TrainSummary> FinishedBefore();
  Result<void> StartOrResume();
  Result<void> Restore();
  Result<void> StartFiles(const std::string& plan_text);
  Result<void> Loop();
  // Enqueues the next step.
  Result<void> Launch();
  // Whether the next step may be enqueued now.
  bool MayLaunch() const;
  // Waits for the oldest step in flight and does what is due after it.
  Result<void> FinishStep();
  Result<void> Collect();
  Result<void> EndEpoch();
  // Evaluates the weights if that is due, and saves them.
  Result<void> EvaluateEpoch(EpochReport& report);
  Result<void> CheckFinite(const char* what, double loss);
  // Called before tensors are saved, so that diverged weights never replace a good file.
  Result<void> CheckTensors();
  Error Diverged(const std::string& what) const;
  // A line of metrics, if one is due or `always`.
  Result<void> LogStep(double loss, double learning_rate, bool always);
  Result<void> SaveCheckpointNow();
  Result<void> SaveWeights(const std::string& name);
  Result<TrainSummary> Finish();
  TrainSummary Summarize() const;

  double Rate(int64_t step) const {
    return LearningRate(schedule_, schedule_span_, config_.learning_rate, step);
  }
  bool checkpoint_due(int64_t step) const {
    return config_.checkpoint_every > 0 ? step % config_.checkpoint_every == 0
                                        : schedule_span_.EndsEpoch(step);
  }
  bool done() const { return state_.step >= schedule_span_.num_steps; }
  TensorMetadata WeightsMetadata() const {
    return {{"model", model_name_}, {"step", fmt::format("{}", state_.step)}, {"format", "pt"}};
  }

  TrainConfig config_;
  Open open_;
  const OpRegistry& ops_;
  TrainObserver& observer_;
  std::unique_ptr<TaskData> data_;
  std::string model_name_;
  std::vector<std::string> messages_;  // printed after all checks
  std::unique_ptr<TrainingSource> batches_;
  TrainingProgram program_;
  int64_t plain_arena_bytes_ = 0;
  std::optional<RunFolder> folder_;
  std::optional<MetricsFile> metrics_;
  std::optional<CheckpointInfo> checkpoint_;  // to resume from
  RunSettings settings_;
  std::unique_ptr<Executor> executor_;
  std::optional<StepQueue> queue_;
  std::optional<Rewiring> rewiring_;
  std::optional<LossScaleWatch> loss_scale_;
  Schedule schedule_;
  ScheduleSpan schedule_span_;
  RunState state_;                  // after the last step whose results are known
  int64_t launched_ = 0;            // steps launched; those from state_.step on are in flight
  int64_t checkpoint_step_ = -1;    // step of the last checkpoint; -1: none yet
  int64_t checked_step_ = -1;       // last step after which all tensors were found to be finite
  std::optional<StopSignal> stop_;  // set first, so that every stop is a graceful one
  Clock::time_point started_;
  double seconds_before_ = 0;  // spent by earlier sessions of this run
  StepClock step_clock_;       // of this session
};

Result<void> Trainer::Prepare() {
  THIMBLE_TRY(CheckConfig(config_));
  THIMBLE_TRY(CheckDevice(DeviceOf(config_)));
  THIMBLE_ASSIGN_OR_RETURN(const std::string message, ChooseTarget(config_));
  if (!message.empty()) observer_.OnMessage(message);
  THIMBLE_ASSIGN_OR_RETURN(schedule_, ParseSchedule(config_.schedule));
  THIMBLE_ASSIGN_OR_RETURN(OpenedTask opened, open_(config_));
  data_ = std::move(opened.data);
  const Task& task = *opened.task;
  messages_ = data_->Omissions();
  if (std::string cut = CutMessage(config_, task); !cut.empty()) messages_.push_back(cut);
  config_ = CutToData(std::move(config_), task);
  model_name_ = task.model();
  // A model file keeps its path, which is needed to read it again.
  if (task.model_text().empty()) config_.model = model_name_;
  THIMBLE_ASSIGN_OR_RETURN(BudgetedProgram planned, PlanWithinBudget(config_, opened.task, ops_));
  if (!planned.choice.levers.empty()) observer_.OnMessage(ToString(planned.choice));
  config_ = std::move(planned.choice.config);
  program_ = std::move(planned.program);
  THIMBLE_ASSIGN_OR_RETURN(plain_arena_bytes_, PlainArenaBytes(config_, program_, ops_));
  batches_ = data_->Training(program_.batch);
  schedule_span_.steps_per_epoch = batches_->steps_per_epoch();
  THIMBLE_ASSIGN_OR_RETURN(
      schedule_span_.num_steps,
      StepsOf(config_, schedule_span_.steps_per_epoch, program_.most_runs_per_step()));
  schedule_span_.warmup_steps = config_.warmup_steps;
  return {};
}

Result<void> Trainer::OpenFolder() {
  THIMBLE_ASSIGN_OR_RETURN(folder_, RunFolder::Open(config_));
  const std::string& model_text = program_.task->model_text();
  settings_ = SettingsOf(config_, model_text, data_->identity(), schedule_span_.num_steps);
  if (config_.overwrite) return {};
  if (!model_text.empty()) THIMBLE_TRY(folder_->CheckModelFile(config_.model, model_text));
  THIMBLE_ASSIGN_OR_RETURN(checkpoint_, ReadCheckpointInfo(folder_->checkpoint_folder()));
  return checkpoint_ ? CheckCheckpoint() : Result<void>();
}

Result<void> Trainer::CheckCheckpoint() {
  const std::string path = CheckpointPath(folder_->checkpoint_folder());
  const auto saved = SettingsFromJson(checkpoint_->settings_json);
  if (!saved.ok()) return WithContext(path, saved.error());
  if (auto same = CheckSameSettings(*saved, settings_, config_.extend); !same.ok()) {
    return WithContext("--resume " + folder_->path(), same.error());
  }
  if (checkpoint_->step > saved->steps) {
    return BadInput(fmt::format("{}: is the checkpoint of step {}, but the run has {} steps", path,
                                checkpoint_->step, saved->steps));
  }
  if (saved->steps < settings_.steps) {
    ScheduleSpan before = schedule_span_;
    before.num_steps = saved->steps;
    observer_.OnMessage(DescribeExtension(schedule_, config_.learning_rate, before, schedule_span_,
                                          checkpoint_->step));
  }
  return {};
}

Result<TrainSummary> Trainer::FinishedBefore() {
  THIMBLE_ASSIGN_OR_RETURN(TrainSummary summary, ReadSummary(folder_->File("summary.json")));
  observer_.OnMessage(fmt::format(
      "this run has done all its {} steps: nothing to do; to make it longer, add --extend and more "
      "--epochs or --steps",
      schedule_span_.num_steps));
  return summary;
}

Result<void> Trainer::StartOrResume() {
  // Making this text takes four times its size, so it is done while there is no arena.
  const std::string plan_text = SealJson(ToJson(RecordOf(program_, ops_, plain_arena_bytes_)));
  ReturnFreeMemory();  // of planning
  THIMBLE_ASSIGN_OR_RETURN(executor_, Executor::CreateFor(program_.program, ops_));
  InitializeResidents(*executor_, program_.inits, config_.seed, program_.update.sparsity);
  InitializeLossScale(*executor_, program_.update);
  if (checkpoint_) {
    // Model files are compared by content; the name may have changed.
    if (!program_.task->model_text().empty()) model_name_ = checkpoint_->model;
    THIMBLE_TRY(Restore());
  } else if (!config_.init.empty()) {
    THIMBLE_TRY(LoadInitialWeights(config_.init, *executor_));
  }
  executor_->StoreResidents();
  loss_scale_.emplace(*executor_, program_.update);
  return StartFiles(plan_text);
}

// All checks have passed: from here on, the folder belongs to this run.
Result<void> Trainer::StartFiles(const std::string& plan_text) {
  if (config_.overwrite) THIMBLE_TRY(folder_->Clear());
  THIMBLE_TRY(folder_->Remove("summary.json"));  // of a session that was stopped
  THIMBLE_ASSIGN_OR_RETURN(metrics_,
                           MetricsFile::Open(folder_->File("metrics.jsonl"), state_.metrics_bytes,
                                             state_.metrics_checksum));
  const std::string& model_text = program_.task->model_text();
  if (!model_text.empty()) THIMBLE_TRY(folder_->KeepModelFile(model_text));
  for (const FileToKeep& file : data_->FilesToKeep()) {
    THIMBLE_TRY(folder_->Write(file.name, file.content));
  }
  // Also for a resumed run: epochs or threads may have changed.
  THIMBLE_TRY(folder_->Write("config.toml", SealToml(ToToml(config_))));
  return folder_->Write("plan.json", plan_text);
}

Result<void> Trainer::Restore() {
  const std::string path = CheckpointPath(folder_->checkpoint_folder());
  THIMBLE_ASSIGN_OR_RETURN(const CheckpointInfo loaded,
                           LoadCheckpoint(folder_->checkpoint_folder(), model_name_,
                                          PersistentTensors(*executor_, TensorSet::kCheckpoint)));
  if (auto fits = CheckPatternOf(*executor_); !fits.ok()) return WithContext(path, fits.error());
  auto state = RunStateFromJson(loaded.progress_json);
  if (!state.ok()) return WithContext(path, state.error());
  if (state->step != loaded.step) {
    return BadInput(fmt::format("{}: records step {} in its metadata, but step {} in its progress",
                                path, loaded.step, state->step));
  }
  state_ = *state;
  checkpoint_step_ = state_.step;
  seconds_before_ = state_.seconds;
  observer_.OnMessage(fmt::format("resuming at step {}", state_.step));
  return {};
}

Result<void> Trainer::Loop() {
  for (const std::string& message : messages_) observer_.OnMessage(message);
  observer_.OnStart(program_, folder_->path());
  started_ = Clock::now();
  queue_.emplace(program_, *batches_, *executor_, config_.prefetch);
  rewiring_.emplace(*executor_, program_.RewirePlan(), program_.update.sparsity,
                    schedule_span_.num_steps);
  THIMBLE_TRY(queue_->Start(state_.step, schedule_span_.num_steps));
  launched_ = state_.step;
  while (!done() && !stop_->requested()) {
    while (MayLaunch()) THIMBLE_TRY(Launch());
    THIMBLE_TRY(FinishStep());
  }
  while (!queue_->empty()) THIMBLE_TRY(FinishStep());
  if (!done()) {
    THIMBLE_TRY(SaveCheckpointNow());
    observer_.OnMessage(fmt::format(
        "stopped by {} at step {} of {}; continue with: {}", SignalName(stop_->number()),
        state_.step, schedule_span_.num_steps, ContinueCommand(config_, folder_->path())));
  }
  return {};
}

// Rewiring, evaluation and files use the weights after a step, so the next step must wait for them.
bool Trainer::MayLaunch() const {
  if (queue_->empty()) return !done();
  return !queue_->full() && !schedule_span_.EndsEpoch(launched_) && !checkpoint_due(launched_) &&
         !rewiring_->IsDueAfter(launched_);
}

Result<void> Trainer::Launch() {
  if (queue_->empty()) step_clock_.Begin();
  THIMBLE_TRY(queue_->Launch(Rate(launched_)));
  if (queue_->last_launch_was_slower()) step_clock_.Skip(queue_->size());
  ++launched_;
  return {};
}

Result<void> Trainer::FinishStep() {
  THIMBLE_TRY(Collect());
  if (rewiring_->IsDueAfter(state_.step)) {
    THIMBLE_TRY(metrics_->Append(RewiringMetrics(rewiring_->Run(state_.step), state_.step)));
  }
  if (schedule_span_.EndsEpoch(state_.step)) THIMBLE_TRY(EndEpoch());
  // The last checkpoint is saved after everything else, because it marks a run as finished.
  if (checkpoint_due(state_.step) && !done()) THIMBLE_TRY(SaveCheckpointNow());
  return {};
}

Result<void> Trainer::Collect() {
  const FinishedRun run = queue_->Collect();
  const int64_t count = batches_->CountAt(state_.step);
  const double rate = Rate(state_.step);
  step_clock_.End(count);
  THIMBLE_ASSIGN_OR_RETURN(const LossScaleWatch::Change change,
                           loss_scale_->After(state_.step + 1, run.loss_scale));
  // A skipped update has left everything as it was; its loss does not count if it is not finite.
  if (!change.skipped) THIMBLE_TRY(CheckFinite("loss", run.loss));
  if (std::isfinite(run.loss)) {
    state_.loss_sum += run.loss * static_cast<double>(count);
    state_.correct += run.correct;
    state_.samples += count;
  }
  ++state_.step;
  return LogStep(run.loss, rate, change.any);
}

Result<void> Trainer::CheckFinite(const char* what, double loss) {
  if (std::isfinite(loss)) return {};
  // A checkpoint of these weights is useless, even if they are finite.
  if (checkpoint_step_ == state_.step) {
    THIMBLE_ASSIGN_OR_RETURN(const std::optional<int64_t> previous,
                             ReturnToPreviousCheckpoint(folder_->checkpoint_folder()));
    if (previous) checkpoint_step_ = *previous;
  }
  return Diverged(fmt::format("the {} is {} at step {}", what,
                              std::isnan(loss) ? "not a number" : "infinite", state_.step + 1));
}

Result<void> Trainer::CheckTensors() {
  executor_->FetchResidents();
  if (checked_step_ == state_.step) return {};
  const std::string found = FindNotFinite(PersistentTensors(*executor_, TensorSet::kCheckpoint));
  if (!found.empty()) return Diverged(fmt::format("{} after step {}", found, state_.step));
  checked_step_ = state_.step;
  return {};
}

Error Trainer::Diverged(const std::string& what) const {
  return Failed(DescribeDivergence(what, checkpoint_step_));
}

Result<void> Trainer::LogStep(double loss, double learning_rate, bool always) {
  const auto samples = static_cast<double>(std::max<int64_t>(state_.samples, 1));
  observer_.OnStep({state_.step, schedule_span_.num_steps, schedule_span_.steps_per_epoch,
                    state_.loss_sum / samples, static_cast<double>(state_.correct) / samples,
                    learning_rate, step_clock_.samples_per_second(), program_.task->unit(),
                    program_.program.arena_bytes, loss_scale_->scale()});
  if (!always && state_.step % config_.log_every != 0) return {};
  StepReport report{.step = state_.step, .loss = loss, .learning_rate = learning_rate};
  loss_scale_->AddTo(report);
  return metrics_->Append(StepMetrics(report));
}

Result<void> Trainer::EndEpoch() {
  THIMBLE_TRY(CheckTensors());
  const int64_t epoch = schedule_span_.EpochOf(state_.step);
  if (state_.samples == 0) return Diverged(fmt::format("no loss of epoch {} is finite", epoch));
  state_.train_loss = state_.loss_sum / static_cast<double>(state_.samples);
  state_.train_accuracy = static_cast<double>(state_.correct) / static_cast<double>(state_.samples);
  // If --steps ends the run within an epoch, the sums are needed to extend it later.
  if (state_.step % schedule_span_.steps_per_epoch == 0) {
    state_.loss_sum = 0;
    state_.correct = state_.samples = 0;
  }
  EpochReport report{
      .epoch = epoch, .train_loss = *state_.train_loss, .train_accuracy = *state_.train_accuracy};
  const AveragedEpochs averaged =
      LastEpochs(config_.average, schedule_span_.EpochOf(schedule_span_.num_steps));
  if (averaged.Has(report.epoch)) THIMBLE_TRY(SaveWeights(EpochWeightsName(report.epoch)));
  if (averaged.Has(report.epoch) && done()) {
    // The checkpoint that follows holds the weights of training again.
    THIMBLE_TRY(LoadAverage(*folder_, averaged, WeightsMetadata(), *executor_));
    report.averaged_epochs = averaged.count();
    THIMBLE_TRY(EvaluateEpoch(report));
    THIMBLE_TRY(LoadEpoch(*folder_, report.epoch, *executor_));
  } else {
    THIMBLE_TRY(EvaluateEpoch(report));
  }
  report.seconds = seconds_before_ + SecondsSince(started_);
  THIMBLE_TRY(metrics_->Append(EpochMetrics(report, state_.step)));
  observer_.OnEpoch(report);
  return {};
}

Result<void> Trainer::EvaluateEpoch(EpochReport& report) {
  report.evaluated = done() || (config_.eval_every > 0 && report.epoch % config_.eval_every == 0);
  if (report.evaluated) {
    THIMBLE_TRY(EvaluateParts(*executor_, program_, *data_, report));
    THIMBLE_TRY(CheckFinite("test loss", report.test.loss));
    THIMBLE_TRY(TranslateTest(*executor_, program_, *data_, config_, done(), report));
    if (NoteEvaluation(report, state_)) THIMBLE_TRY(SaveWeights("best.safetensors"));
  }
  return SaveWeights("weights.safetensors");
}

Result<void> Trainer::SaveWeights(const std::string& name) {
  THIMBLE_TRY(CheckTensors());
  THIMBLE_TRY(folder_->CheckStillThere());
  return SaveWeightsOf(*executor_, folder_->File(name), WeightsMetadata());
}

Result<void> Trainer::SaveCheckpointNow() {
  state_.seconds = seconds_before_ + SecondsSince(started_);
  state_.metrics_bytes = metrics_->size_bytes();
  state_.metrics_checksum = metrics_->checksum();
  THIMBLE_TRY(metrics_->Sync());
  CheckpointInfo info;
  info.model = model_name_;
  info.step = state_.step;
  info.simd_target = RunTarget(config_);
  info.settings_json = ToJson(settings_);
  info.progress_json = ToJson(state_);
  THIMBLE_TRY(CheckTensors());
  THIMBLE_TRY(folder_->CheckStillThere());
  THIMBLE_TRY(SaveCheckpoint(folder_->checkpoint_folder(), info,
                             PersistentTensors(*executor_, TensorSet::kCheckpoint)));
  checkpoint_step_ = state_.step;
  return {};
}

TrainSummary Trainer::Summarize() const {
  TrainSummary summary;
  AddMeasurements(*executor_, summary);
  summary.run_folder = folder_->path();
  summary.finished = done();
  summary.stop_signal = done() ? 0 : stop_->number();
  AddResults(state_, summary);
  summary.num_steps = schedule_span_.num_steps;
  summary.seconds = seconds_before_ + SecondsSince(started_);
  summary.unit = program_.task->unit();
  summary.examples_per_second = step_clock_.samples_per_second();
  summary.parameters = CountParameters(program_.main_plan().graph);
  summary.plain_arena_bytes = plain_arena_bytes_;
  summary.lower_bound_bytes = static_cast<int64_t>(program_.main_plan().lower_bound_bytes);
  summary.math = ResolvedMath(config_);
  loss_scale_->AddTo(summary);
  summary.simd = ActiveSimdTarget();
  summary.metrics_bytes = metrics_->size_bytes();
  summary.metrics_checksum = metrics_->checksum();
  summary.command = CommandOf(config_);
  summary.continue_command = ContinueCommand(config_, folder_->path());
  summary.version = Version();
  return summary;
}

Result<TrainSummary> Trainer::Finish() {
  // Weights are saved at the end of each epoch; also save those of a run that was stopped or had no
  // steps.
  if (!done() || state_.step == 0) THIMBLE_TRY(SaveWeights("weights.safetensors"));
  if (queue_) queue_->Stop();
  executor_->ScanArena();
  TrainSummary summary = Summarize();
  const Result<void> memory = CheckMeasurements(*executor_, summary);
  // Written before the last checkpoint, which marks all files as complete.
  summary.process_peak_bytes = ProcessPeakBytes();
  THIMBLE_TRY(folder_->Write("summary.json", SummaryJson(summary, config_)));
  if (done()) THIMBLE_TRY(SaveCheckpointNow());
  // Frees the arena, so that the rest stays below the process's peak.
  queue_.reset();
  executor_.reset();
  THIMBLE_TRY(PublishSummary(*folder_, config_, observer_, summary));
  if (!memory.ok()) return memory.error();
  return summary;
}

}  // namespace

Result<TrainSummary> Train(const TrainConfig& config, const OpRegistry& ops,
                           TrainObserver& observer) {
  return Trainer(
             config, [](const TrainConfig& given) { return OpenTask(given); }, ops, observer)
      .Run();
}

Result<TrainSummary> Train(const TrainConfig& config, const ModelFactory& model,
                           const OpRegistry& ops, TrainObserver& observer) {
  const auto open = [&](const TrainConfig& given) { return OpenTask(given, model); };
  return Trainer(config, open, ops, observer).Run();
}

}  // namespace thimble
