#include "thimble/ops/sgd_update/sgd_update_cuda.h"

#include <algorithm>

#include "thimble/ops/sgd_update/sgd_update_device.h"

namespace thimble {
namespace {

// A tensor with more elements is handed over in pieces: they are counted in 32 bits.
constexpr int64_t kMaxPieceElements = int64_t{1} << 30;

template <bool kMomentum>
SgdSettings Settings(const KernelCall& call) {
  SgdSettings settings;
  settings.learning_rate = call.In<float>(kMomentum ? 3 : 2);
  settings.weight_decay = static_cast<float>(call.attributes.Float("weight_decay"));
  if constexpr (kMomentum) {
    settings.momentum = static_cast<float>(call.attributes.Float("momentum"));
    settings.nesterov = call.attributes.Int("nesterov") != 0;
  }
  return settings;
}

template <bool kMomentum>
SgdTensor Piece(const KernelCall& call, int64_t begin, int64_t end) {
  SgdTensor tensor;
  tensor.weight = call.In<float>(0) + begin;
  tensor.gradient = call.In<float>(1) + begin;
  tensor.next_weight = call.Out<float>(0) + begin;
  if constexpr (kMomentum) {
    tensor.momentum = call.In<float>(2) + begin;
    tensor.next_momentum = call.Out<float>(1) + begin;
  }
  tensor.elements = static_cast<int>(end - begin);
  return tensor;
}

// Gathers tensors and launches them whenever the list is full.
template <bool kMomentum>
class Launcher {
 public:
  Launcher(CUstream_st* stream, const SgdSettings& settings) : stream_(stream) {
    tensors_.settings = settings;
  }
  void Add(const KernelCall& call) {
    const int64_t elements = call.out_shape(0).elements();
    for (int64_t begin = 0; begin < elements; begin += kMaxPieceElements) {
      if (tensors_.num_tensors == kMaxSgdTensors) Launch();
      tensors_.Add(Piece<kMomentum>(call, begin, std::min(elements, begin + kMaxPieceElements)));
    }
  }
  void Launch() {
    if constexpr (kMomentum) {
      LaunchSgdUpdate(stream_, tensors_);
    } else {
      LaunchSgdUpdatePlain(stream_, tensors_);
    }
    tensors_.Clear();
  }

 private:
  CUstream_st* stream_;
  SgdTensors tensors_;
};

// One launch for all calls of equal settings. Their order is free: none touches what another
// writes.
template <bool kMomentum>
void RunCalls(std::span<const KernelCall> calls) {
  for (size_t first = 0; first < calls.size(); ++first) {
    const SgdSettings settings = Settings<kMomentum>(calls[first]);
    const auto is_alike = [&](const KernelCall& call) {
      return Settings<kMomentum>(call) == settings;
    };
    const auto before = calls.first(first);
    if (std::any_of(before.begin(), before.end(), is_alike)) continue;
    Launcher<kMomentum> launcher(calls[first].stream, settings);
    for (const KernelCall& call : calls.subspan(first)) {
      if (is_alike(call)) launcher.Add(call);
    }
    launcher.Launch();
  }
}

}  // namespace

void SgdUpdateCuda::Run(const KernelCall& call) { RunCalls<true>({&call, 1}); }

void SgdUpdateCuda::RunGroup(std::span<const KernelCall> calls) { RunCalls<true>(calls); }

void SgdUpdatePlainCuda::Run(const KernelCall& call) { RunCalls<false>({&call, 1}); }

void SgdUpdatePlainCuda::RunGroup(std::span<const KernelCall> calls) { RunCalls<false>(calls); }

}  // namespace thimble
