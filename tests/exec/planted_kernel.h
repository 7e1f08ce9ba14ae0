// Kernels with a fault, planted among the built-in ops, and a small graph that runs one of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/exec/small_training.h"
#include "thimble/graph/append_node.h"

namespace thimble {

// The built-in ops, and "planted": x -> y of the same shape, run by this kernel.
inline OpRegistry OpsWithPlanted(void (*run)(const KernelCall&), size_t scratch_bytes = 0,
                                 DeviceKind device = DeviceKind::kCpu) {
  Kernel kernel;
  kernel.device = device;
  kernel.name = "planted";
  kernel.declines = &Always;
  kernel.run = run;
  kernel.scratch_bytes = [](const OpCall&, const KernelLimits&) -> size_t { return 0; };
  if (scratch_bytes != 0) {
    kernel.scratch_bytes = [](const OpCall&, const KernelLimits& limits) -> size_t {
      return limits.scratch_bytes_per_thread;
    };
  }
  OpRegistry ops;
  for (const OpDef& op : BuiltinOps().ops()) ops.Add(op);
  ops.Add(OpDef("planted").Input("x").Output("y").ShapeRule(SameAs(0)).Kernels({kernel}));
  return ops;
}

// What a planted kernel should do.
inline void CopyInput(const KernelCall& call) {
  for (int64_t i = 0; i < call.out_shape(0).elements(); ++i)
    call.Out<float>(0)[i] = call.In<float>(0)[i];
}

// The words of y, and beyond.
inline float* Words(const KernelCall& call) { return call.Out<float>(0); }
inline int64_t NumWords(const KernelCall& call) { return call.out_shape(0).elements(); }

// A graph with one planted node, with separate memory for each value, in the order of the values,
// executed once with the audit on.
class PlantedRun {
 public:
  explicit PlantedRun(void (*run)(const KernelCall&), size_t scratch_bytes = 0,
                      DeviceKind device = DeviceKind::kCpu)
      : ops_(OpsWithPlanted(run, scratch_bytes, device)),
        scratch_bytes_(scratch_bytes),
        device_(device) {}

  // Values of 80 bytes leave a gap up to the next multiple of 64; values of 128 bytes leave none.
  static constexpr int64_t kPadded = 20;
  static constexpr int64_t kFlush = 32;

  ValueId Input(int64_t elements) {
    return graph_.AddValue({"x", {elements}, DType::kF32, Role::kInput, {}, {}});
  }
  ValueId Append(const std::string& op, const std::string& name, ValueId input,
                 Phase phase = Phase::kForward) {
    NodeSpec spec;
    spec.op = op;
    spec.inputs = {input};
    spec.layer = name;
    spec.phase = phase;
    spec.output_role = phase == Phase::kForward ? Role::kActivation : Role::kGradient;
    spec.output_names = {name};
    return AppendNode(graph_, ops_, std::move(spec)).value()[0];
  }
  void Output(ValueId value) { graph_.outputs.push_back(value); }
  Graph& graph() { return graph_; }

  // Plans, fills the input and runs this often; the first run is audited.
  Executor& Run(int times = 1) {
    Make();
    for (int i = 0; i < times; ++i) RunOnce();
    return *executor_;
  }
  void Make() {
    PlanOptions options;
    options.device = device_;
    options.limits.scratch_bytes_per_thread = scratch_bytes_;
    options.skipped_passes = {"order", "in-place", "placement"};
    auto program = PlanProgram({{"planted", graph_}}, ops_, {}, options);
    THIMBLE_CHECK(program.ok(), "{}", program.error().message);
    executor_ = MakeExecutor(std::move(program).value(), ops_);
  }
  void RunOnce() {
    executor_->Prepare(0);
    const TensorView x = executor_->View(0, "x");
    const std::vector<float> ones(static_cast<size_t>(x.shape.elements()), 1.0F);
    executor_->WriteNow(x, std::as_bytes(std::span(ones)));
    executor_->Run(0);
  }
  Executor& executor() { return *executor_; }
  // All faults, one per line.
  std::string Faults() {
    executor_->ScanArena();
    std::string text;
    for (const std::string& fault : executor_->audit().faults()) text += fault + "\n";
    return text;
  }

 private:
  OpRegistry ops_;
  size_t scratch_bytes_;
  DeviceKind device_;
  Graph graph_;
  std::unique_ptr<Executor> executor_;
};

// Kernels that do not do what was planned.
inline void WriteOneWordTooMany(const KernelCall& call) {
  CopyInput(call);
  Words(call)[NumWords(call)] = 5;
}
inline void WriteOneWordTooFew(const KernelCall& call) {
  for (int64_t i = 0; i + 1 < NumWords(call); ++i) Words(call)[i] = 5;
}

}  // namespace thimble
