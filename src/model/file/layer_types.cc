#include "thimble/model/file/layer_types.h"

#include <fmt/format.h>

namespace thimble {
namespace {

using Numbers = std::span<const int64_t>;

// Far above any practical value; a larger number is a mistake.
constexpr int64_t kMaxChannels = 1 << 16;
constexpr int64_t kMaxFeatures = 1 << 20;
constexpr int64_t kMaxWindow = 1 << 10;

double Channels(const Shape& x) { return x.rank() == 0 ? 1 : static_cast<double>(x[x.rank() - 1]); }

double Features(const Shape& x) {
  double product = 1;
  for (size_t axis = 1; axis < x.rank(); ++axis) product *= static_cast<double>(x[axis]);
  return product;
}

double Square(int64_t side) { return static_cast<double>(side) * static_cast<double>(side); }

LayerSize WithoutParameters(const Shape& /*x*/, Numbers /*numbers*/) { return {}; }

LayerType Conv() {
  return {"conv",
          true,
          false,
          {{"channels", 1, kMaxChannels},
           {"kernel", 1, kMaxWindow, 3},
           {"stride", 1, kMaxWindow, 1},
           {"padding", 0, kMaxWindow, 0}},
          [](const Shape& x, Numbers n) {
            const double window = Square(n[1]) * Channels(x);
            return LayerSize{static_cast<double>(n[0]) * window, 2 * window};
          },
          [](NetworkBuilder& net, const LayerCall& call) {
            const Numbers n = call.numbers;
            return net.Conv(
                call.name, call.x,
                {.out_channels = n[0], .kernel = n[1], .stride = n[2], .padding = n[3]});
          }};
}

LayerType BatchNorm() {
  return {
      "batch_norm",
      true,
      false,
      {},
      [](const Shape& x, Numbers) {
        return LayerSize{4 * Channels(x), 8};
      },
      [](NetworkBuilder& net, const LayerCall& call) { return net.BatchNorm(call.name, call.x); }};
}

LayerType GroupNorm() {
  return {"group_norm",
          true,
          false,
          {{"groups", 1, kMaxChannels}},
          [](const Shape& x, Numbers) {
            return LayerSize{2 * Channels(x), 8};
          },
          [](NetworkBuilder& net, const LayerCall& call) {
            return net.GroupNorm(call.name, call.x, call.numbers[0]);
          }};
}

// Model files have whole numbers only, so the rate is in percent.
LayerType Dropout() {
  return {"dropout",
          false,
          false,
          {{"percent", 0, 99}},
          &WithoutParameters,
          [](NetworkBuilder& net, const LayerCall& call) {
            return net.Dropout(call.x, static_cast<double>(call.numbers[0]) / 100);
          }};
}

LayerType Relu() {
  return {
      "relu", false, false, {}, &WithoutParameters, [](NetworkBuilder& net, const LayerCall& call) {
        return net.Relu(call.x);
      }};
}

LayerType Add() {
  return {
      "add", false, true, {}, &WithoutParameters, [](NetworkBuilder& net, const LayerCall& call) {
        return net.Add(call.x, call.other);
      }};
}

LayerType AveragePool() {
  return {"avg_pool",
          false,
          false,
          {{"kernel", 1, kMaxWindow}, {"stride", 1, kMaxWindow}},
          [](const Shape& /*x*/, Numbers n) {
            return LayerSize{0, Square(n[0])};
          },
          [](NetworkBuilder& net, const LayerCall& call) {
            return net.AveragePool(call.x, call.numbers[0], call.numbers[1]);
          }};
}

LayerType GlobalAveragePool() {
  return {"global_avg_pool",
          false,
          false,
          {},
          [](const Shape& x, Numbers) {
            return LayerSize{0, Features(x) / Channels(x)};
          },
          [](NetworkBuilder& net, const LayerCall& call) { return net.GlobalAveragePool(call.x); }};
}

LayerType Linear() {
  return {"linear",
          true,
          false,
          {{"features", 1, kMaxFeatures}},
          [](const Shape& x, Numbers n) {
            return LayerSize{static_cast<double>(n[0]) * (Features(x) + 1), 2 * Features(x)};
          },
          [](NetworkBuilder& net, const LayerCall& call) {
            return net.Linear(call.name, call.x, call.numbers[0]);
          }};
}

}  // namespace

const std::vector<LayerType>& LayerTypes() {
  static const std::vector<LayerType> types = {Conv(),        BatchNorm(),         GroupNorm(),
                                               Relu(),        Dropout(),           Add(),
                                               AveragePool(), GlobalAveragePool(), Linear()};
  return types;
}

const LayerType* FindLayerType(std::string_view name) {
  for (const LayerType& type : LayerTypes()) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::string RangeOf(const NumberKey& key) { return fmt::format("{} to {}", key.least, key.most); }

}  // namespace thimble
