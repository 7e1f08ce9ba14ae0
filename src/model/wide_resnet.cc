#include "thimble/model/wide_resnet.h"

#include <fmt/format.h>

#include <charconv>

namespace thimble {
namespace {

// Beyond these a name is a slip of the finger; graphs stay below a few thousand nodes.
constexpr int kMaxDepth = 1000;
constexpr int kMaxWidth = 64;

struct BlockSpec {
  std::string name;
  int64_t channels;
  int64_t stride;
};

ValueId Block(NetworkBuilder& net, ValueId x, const BlockSpec& block) {
  const bool same_shape =
      net.shape(x).rank() == 4 && net.shape(x)[3] == block.channels && block.stride == 1;
  const ValueId active = net.Relu(net.BatchNorm(block.name + ".bn1", x));
  ValueId y = net.Conv(block.name + ".conv1", active,
                       {.out_channels = block.channels, .stride = block.stride, .padding = 1});
  y = net.Relu(net.BatchNorm(block.name + ".bn2", y));
  y = net.Conv(block.name + ".conv2", y, {.out_channels = block.channels, .padding = 1});
  // Where the shape changes, the shortcut starts from the normalised input; elsewhere from the raw
  // one.
  const ValueId shortcut =
      same_shape ? x
                 : net.Conv(block.name + ".convShortcut", active,
                            {.out_channels = block.channels, .kernel = 1, .stride = block.stride});
  return net.Add(y, shortcut);
}

ValueId Body(NetworkBuilder& net, ValueId images, int depth, int width, int64_t classes) {
  const int blocks_per_group = (depth - 4) / 6;
  ValueId x = net.Conv("conv1", images, {.out_channels = 16, .padding = 1});
  for (int group = 0; group < 3; ++group) {
    const int64_t channels = (int64_t{16} << group) * width;
    for (int index = 0; index < blocks_per_group; ++index) {
      x = Block(net, x,
                {fmt::format("block{}.layer.{}", group + 1, index), channels,
                 group > 0 && index == 0 ? 2 : 1});
    }
  }
  x = net.Relu(net.BatchNorm("bn1", x));
  return net.Linear("fc", net.GlobalAveragePool(x), classes);
}

// Parses one number of the name; nullptr-safe end position.
bool ParseNumber(std::string_view text, int& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<ImageClassifier> MakeWideResNet(std::string_view name, const ImageSpec& images) {
  int depth = 0;
  int width = 0;
  const size_t dash = name.rfind('-');
  const bool parsed = name.starts_with("wrn-") && dash > 4 && dash != std::string_view::npos &&
                      ParseNumber(name.substr(4, dash - 4), depth) &&
                      ParseNumber(name.substr(dash + 1), width);
  if (!parsed) {
    return BadInput(
        fmt::format("--model {}: expected wrn-DEPTH-WIDTH, for example wrn-28-2", name));
  }
  if (depth < 10 || depth > kMaxDepth || (depth - 4) % 6 != 0) {
    return BadInput(
        fmt::format("--model {}: depth {} is impossible; it must be 6n+4, from 10 to {} "
                    "(10, 16, 22, 28, …)",
                    name, depth, kMaxDepth));
  }
  if (width < 1 || width > kMaxWidth) {
    return BadInput(
        fmt::format("--model {}: width {} must be from 1 to {}", name, width, kMaxWidth));
  }
  if (images.height % 4 != 0 || images.height != images.width) {
    return BadInput(
        fmt::format("--model {}: images are {}x{}, expected a square side divisible by 4", name,
                    images.height, images.width));
  }
  const int64_t classes = images.classes;
  return ImageClassifier{std::string(name), images,
                         [depth, width, classes](NetworkBuilder& net, ValueId x) {
                           return Body(net, x, depth, width, classes);
                         }};
}

}  // namespace thimble
