#include "thimble/ops/conv2d/conv2d_add_cpu.h"

#include <array>

#include "thimble/ops/add/add_cpu.h"

namespace thimble {
namespace {

void AddOther(const KernelCall& call) {
  const std::array<TensorView, 2> inputs = {call.outputs[0], call.inputs[2]};
  AddCpu::Run({inputs, call.outputs, call.attributes, {}, call.pool, call.stream});
}

}  // namespace

void Conv2dAddCpu::Run(const KernelCall& call) {
  Conv2dCpu::Run(call);
  AddOther(call);
}

void Conv2dAddWinogradCpu::Run(const KernelCall& call) {
  Conv2dWinogradCpu::Run(call);
  AddOther(call);
}

}  // namespace thimble
