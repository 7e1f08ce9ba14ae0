#include <algorithm>
#include <cmath>

#include "thimble/ops/group_norm/group_norm.h"
#include "thimble/ops/group_norm/sample_passes.h"

namespace thimble {
namespace {

// For each sample: two doubles for each chunk and channel, and floats for each channel.
struct SampleScratch {
  SampleScratch(std::span<std::byte> scratch, const SampleChunks& cut, size_t arrays)
      : channels(cut.channels),
        chunks(cut.chunks),
        float_arrays(arrays),
        doubles(reinterpret_cast<double*>(scratch.data())),
        floats(reinterpret_cast<float*>(doubles + cut.samples * DoublesPerSample(cut))) {}

  static size_t DoublesPerSample(const SampleChunks& cut) { return 2 * cut.chunks * cut.channels; }
  static size_t SizeBytes(const SampleChunks& cut, size_t float_arrays) {
    return cut.samples *
           (DoublesPerSample(cut) * sizeof(double) + float_arrays * cut.channels * sizeof(float));
  }

  // (C)
  double* First(size_t sample, size_t chunk) const {
    return doubles + 2 * (sample * chunks + chunk) * channels;
  }
  double* Second(size_t sample, size_t chunk) const { return First(sample, chunk) + channels; }
  float* Floats(size_t sample, size_t array) const {
    return floats + (sample * float_arrays + array) * channels;
  }

  size_t channels;
  size_t chunks;
  size_t float_arrays;
  double* doubles;
  float* floats;
};

// The float arrays, in order. Forward has only the first two.
enum FloatArray : size_t { kMean, kFactor, kOffset, kSlope };
constexpr size_t kForwardArrays = 2;
constexpr size_t kBackwardArrays = 4;

// Data shared by all kernels: shapes, gamma, beta, and memory for the constants of each channel.
struct GroupNormCall {
  GroupNormCall(const KernelCall& the_call, size_t float_arrays)
      : call(the_call),
        cut(call.in_shape(0)),
        scratch(call.scratch, cut, float_arrays),
        groups(static_cast<size_t>(call.attributes.Int("groups"))),
        group_channels(cut.channels / groups),
        epsilon(call.attributes.Float("epsilon")),
        relu(call.attributes.Int("relu") != 0),
        count(static_cast<double>(std::max<size_t>(1, cut.rows * group_channels))) {}

  double Inverse(float variance) const { return 1.0 / std::sqrt(variance + epsilon); }
  // Computes the constants of a sample's channels, for forward and backward, so that ReLU switches
  // at the same x in both. Elements are normalized with the statistics as stored.
  void SpreadStatistics(size_t sample, const float* mean, const float* variance) const {
    float* means = scratch.Floats(sample, kMean);
    float* scales = scratch.Floats(sample, kFactor);
    const float* gamma = call.In<float>(1);
    for (size_t group = 0; group < groups; ++group) {
      const size_t place = sample * groups + group;
      const double inverse = Inverse(variance[place]);
      for (size_t c = group * group_channels; c < (group + 1) * group_channels; ++c) {
        means[c] = mean[place];
        scales[c] = static_cast<float>(gamma[c] * inverse);
      }
    }
  }
  ChannelNorm NormOf(size_t sample) const {
    return {scratch.Floats(sample, kMean), scratch.Floats(sample, kFactor), call.In<float>(2),
            relu};
  }
  void Normalize(size_t sample, size_t chunk) const {
    NormalizeChunk(cut, sample, chunk, NormOf(sample), ConstNumbersOf(call.inputs[0]),
                   NumbersOf(call.outputs[0]));
  }

  const KernelCall& call;
  SampleChunks cut;
  SampleScratch scratch;
  size_t groups;
  size_t group_channels;
  double epsilon;
  bool relu;
  double count;  // of elements in a group
};

// Mean and sum of squared distances from it, of some elements.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;

  // By the parallel-variance formula.
  void Merge(const Moments& other) {
    const double distance = other.mean - mean;
    const double both = count + other.count;
    mean += distance * other.count / both;
    squares += other.squares + distance * distance * count * other.count / both;
    count = both;
  }
};

struct ForwardSteps : GroupNormCall {
  explicit ForwardSteps(const KernelCall& kernel_call)
      : GroupNormCall(kernel_call, kForwardArrays) {}

  void Prepare(size_t /*sample*/) {}
  void Sum(size_t sample, size_t chunk) {
    MeasureChunk(cut, sample, chunk, ConstNumbersOf(call.inputs[0]), scratch.First(sample, chunk),
                 scratch.Second(sample, chunk));
  }
  void Finish(size_t sample) {
    float* mean = call.Out<float>(1);
    float* variance = call.Out<float>(2);
    for (size_t group = 0; group < groups; ++group) {
      Moments moments;
      for (size_t chunk = 0; chunk < cut.chunks; ++chunk) {
        moments.Merge(MomentsOf(sample, chunk, group));
      }
      // Rounding can give a tiny negative number if all values are equal; NaN must stay.
      const double squares = moments.squares < 0 ? 0 : moments.squares;
      mean[sample * groups + group] = static_cast<float>(moments.mean);
      variance[sample * groups + group] = static_cast<float>(squares / count);
    }
    SpreadStatistics(sample, mean, variance);
  }
  void Write(size_t sample, size_t chunk) { Normalize(sample, chunk); }

 private:
  // Of a group's channels in a chunk; all channels have the same number of elements.
  Moments MomentsOf(size_t sample, size_t chunk, size_t group) const {
    const double* means = scratch.First(sample, chunk) + group * group_channels;
    const double* squares = scratch.Second(sample, chunk) + group * group_channels;
    const auto rows = static_cast<double>(cut.RowsOf(chunk));
    const auto channels = static_cast<double>(group_channels);
    Moments moments{rows * channels, 0, 0};
    for (size_t c = 0; c < group_channels; ++c) moments.mean += means[c];
    moments.mean /= channels;
    for (size_t c = 0; c < group_channels; ++c) {
      const double distance = means[c] - moments.mean;
      moments.squares += squares[c] + rows * distance * distance;
    }
    return moments;
  }
};

struct ApplySteps : GroupNormCall {
  explicit ApplySteps(const KernelCall& kernel_call) : GroupNormCall(kernel_call, kForwardArrays) {}

  void Prepare(size_t sample) { SpreadStatistics(sample, call.In<float>(3), call.In<float>(4)); }
  void Sum(size_t /*sample*/, size_t /*chunk*/) {}
  void Finish(size_t /*sample*/) {}
  void Write(size_t sample, size_t chunk) { Normalize(sample, chunk); }
};

// group_norm_grad, and with `other` group_norm_grad_add.
struct GradSteps : GroupNormCall {
  GradSteps(const KernelCall& kernel_call, ConstNumbers what_is_added)
      : GroupNormCall(kernel_call, kBackwardArrays), other(what_is_added) {}

  void Prepare(size_t sample) { SpreadStatistics(sample, call.In<float>(3), call.In<float>(4)); }
  void Sum(size_t sample, size_t chunk) {
    SumChunkGradients(cut, sample, chunk, NormOf(sample), ConstNumbersOf(call.inputs[0]),
                      ConstNumbersOf(call.inputs[5]), scratch.First(sample, chunk),
                      scratch.Second(sample, chunk));
  }
  void Finish(size_t sample) {
    AddUpChunks(sample);
    for (size_t group = 0; group < groups; ++group) FinishGroup(sample, group);
  }
  void Write(size_t sample, size_t chunk) {
    CombineChunkGradients(cut, sample, chunk, NormOf(sample),
                          {scratch.Floats(sample, kOffset), scratch.Floats(sample, kSlope)},
                          ConstNumbersOf(call.inputs[0]), ConstNumbersOf(call.inputs[5]), other,
                          NumbersOf(call.outputs[0]));
  }

  // dgamma and dbeta: the sums over all samples, in order, stored in place of the first sample's
  // sums.
  void AddUpSamples() {
    float* dgamma = call.Out<float>(1);
    float* dbeta = call.Out<float>(2);
    if (cut.samples * cut.chunks == 0) {
      std::fill_n(dgamma, cut.channels, 0.0F);
      std::fill_n(dbeta, cut.channels, 0.0F);
      return;
    }
    for (size_t sample = 1; sample < cut.samples; ++sample) {
      AddTo(scratch.First(0, 0), scratch.First(sample, 0), 2 * cut.channels);
    }
    for (size_t c = 0; c < cut.channels; ++c) {
      dbeta[c] = static_cast<float>(scratch.First(0, 0)[c]);
      dgamma[c] = static_cast<float>(scratch.Second(0, 0)[c]);
    }
  }

  ConstNumbers other;

 private:
  static void AddTo(double* sums, const double* more, size_t size) {
    for (size_t i = 0; i < size; ++i) sums[i] += more[i];
  }

  // Adds up both sums of each channel, in place of those of the sample's first chunk.
  void AddUpChunks(size_t sample) {
    for (size_t chunk = 1; chunk < cut.chunks; ++chunk) {
      AddTo(scratch.First(sample, 0), scratch.First(sample, chunk), 2 * cut.channels);
    }
  }

  // Computes the gradient terms from a group's statistics, and the sample's share of dgamma.
  void FinishGroup(size_t sample, size_t group) {
    const float* gamma = call.In<float>(1);
    const double inverse = Inverse(call.In<float>(4)[sample * groups + group]);
    const size_t begin = group * group_channels;
    const size_t end = begin + group_channels;
    double sum = 0;
    double product = 0;
    for (size_t c = begin; c < end && cut.chunks > 0; ++c) {
      double& dgamma = scratch.Second(sample, 0)[c];
      dgamma *= inverse;
      sum += gamma[c] * scratch.First(sample, 0)[c];
      product += gamma[c] * dgamma;
    }
    std::fill(scratch.Floats(sample, kOffset) + begin, scratch.Floats(sample, kOffset) + end,
              static_cast<float>(sum * inverse / count));
    std::fill(scratch.Floats(sample, kSlope) + begin, scratch.Floats(sample, kSlope) + end,
              static_cast<float>(product * inverse * inverse / count));
  }
};

void RunGrad(const KernelCall& call, ConstNumbers other) {
  GradSteps steps(call, other);
  RunSteps(call.pool, steps.cut, steps);
  steps.AddUpSamples();
}

}  // namespace

size_t GroupNormCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return SampleScratch::SizeBytes(SampleChunks(call.inputs[0]), kForwardArrays);
}

void GroupNormCpu::Run(const KernelCall& call) {
  ForwardSteps steps(call);
  RunSteps(call.pool, steps.cut, steps);
}

size_t GroupNormApplyCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return GroupNormCpu::ScratchBytes(call, limits);
}

void GroupNormApplyCpu::Run(const KernelCall& call) {
  ApplySteps steps(call);
  RunSteps(call.pool, steps.cut, steps);
}

size_t GroupNormGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return SampleScratch::SizeBytes(SampleChunks(call.inputs[0]), kBackwardArrays);
}

void GroupNormGradCpu::Run(const KernelCall& call) { RunGrad(call, {}); }

size_t GroupNormGradAddCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return GroupNormGradCpu::ScratchBytes(call, limits);
}

void GroupNormGradAddCpu::Run(const KernelCall& call) {
  RunGrad(call, ConstNumbersOf(call.inputs[6]));
}

}  // namespace thimble
