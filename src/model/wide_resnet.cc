#include "thimble/model/wide_resnet.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "thimble/model/model_name.h"

namespace thimble {
namespace {

// Larger numbers are typing errors; the limits keep graphs below a few thousand nodes.
constexpr int kMaxDepth = 1000;
constexpr int kMaxWidth = 64;

// The parsed name.
struct WideResNetSpec {
  int depth = 0;
  int width = 0;
  int64_t group_channels = 0;  // per group of group norm; 0: batch norm
  double dropout = 0;          // rate; 0: none
};

// Channels of the first norm; all others have a multiple of it.
constexpr int64_t kFirstChannels = 16;

struct BlockSpec {
  std::string name;
  int64_t channels;
  int64_t stride;
};

ValueId Norm(NetworkBuilder& net, const std::string& name, ValueId x, const WideResNetSpec& spec) {
  if (net.failed()) return {};
  if (spec.group_channels == 0) return net.BatchNorm(name, x);
  return net.GroupNorm(name, x, net.shape(x)[3] / spec.group_channels);
}

ValueId Block(NetworkBuilder& net, ValueId x, const BlockSpec& block, const WideResNetSpec& spec) {
  const bool same_shape =
      net.shape(x).rank() == 4 && net.shape(x)[3] == block.channels && block.stride == 1;
  const ValueId active = net.Relu(Norm(net, block.name + ".bn1", x, spec));
  ValueId y = net.Conv(block.name + ".conv1", active,
                       {.out_channels = block.channels, .stride = block.stride, .padding = 1});
  y = net.Relu(Norm(net, block.name + ".bn2", y, spec));
  if (spec.dropout > 0) y = net.Dropout(y, spec.dropout);
  y = net.Conv(block.name + ".conv2", y, {.out_channels = block.channels, .padding = 1});
  // If the shape changes, the shortcut starts from the normalised input, otherwise from the raw
  // one.
  const ValueId shortcut =
      same_shape ? x
                 : net.Conv(block.name + ".convShortcut", active,
                            {.out_channels = block.channels, .kernel = 1, .stride = block.stride});
  return net.Add(y, shortcut);
}

ValueId Body(NetworkBuilder& net, ValueId images, const WideResNetSpec& spec, int64_t classes) {
  const int blocks_per_group = (spec.depth - 4) / 6;
  ValueId x = net.Conv("conv1", images, {.out_channels = kFirstChannels, .padding = 1});
  for (int group = 0; group < 3; ++group) {
    const int64_t channels = (kFirstChannels << group) * spec.width;
    for (int index = 0; index < blocks_per_group; ++index) {
      x = Block(net, x,
                {fmt::format("block{}.layer.{}", group + 1, index), channels,
                 group > 0 && index == 0 ? 2 : 1},
                spec);
    }
  }
  x = net.Relu(Norm(net, "bn1", x, spec));
  return net.Linear("fc", net.GlobalAveragePool(x), classes);
}

// Parses the entire text as one number.
template <class Number>
bool ParseNumber(std::string_view text, Number& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

Result<void> ParseSize(std::string_view name, std::string_view text, WideResNetSpec& spec) {
  const size_t dash = text.rfind('-');
  const bool parsed = text.starts_with("wrn-") && dash > 4 && dash != std::string_view::npos &&
                      ParseNumber(text.substr(4, dash - 4), spec.depth) &&
                      ParseNumber(text.substr(dash + 1), spec.width);
  if (!parsed) {
    return BadInput(
        fmt::format("--model {}: expected wrn-DEPTH-WIDTH, for example wrn-28-2", name));
  }
  if (spec.depth < 10 || spec.depth > kMaxDepth || (spec.depth - 4) % 6 != 0) {
    return BadInput(
        fmt::format("--model {}: depth {} is impossible; it must be 6n+4, from 10 to {} "
                    "(10, 16, 22, 28, …)",
                    name, spec.depth, kMaxDepth));
  }
  if (spec.width < 1 || spec.width > kMaxWidth) {
    return BadInput(
        fmt::format("--model {}: width {} must be from 1 to {}", name, spec.width, kMaxWidth));
  }
  return {};
}

Result<void> ParseGroupNorm(std::string_view name, std::string_view value, WideResNetSpec& spec) {
  if (!ParseNumber(value, spec.group_channels) || spec.group_channels < 1) {
    return BadInput(
        fmt::format("--model {}: group-norm={}: expected a number of channels per "
                    "group, at least 1",
                    name, value));
  }
  if (kFirstChannels % spec.group_channels != 0) {
    return BadInput(
        fmt::format("--model {}: group-norm={}: the {} channels of the first norm "
                    "cannot be divided into groups of {}",
                    name, value, kFirstChannels, value));
  }
  return {};
}

Result<WideResNetSpec> ParseName(std::string_view name) {
  WideResNetSpec spec;
  THIMBLE_TRY(ParseSize(name, name.substr(0, name.find(':')), spec));
  THIMBLE_ASSIGN_OR_RETURN(
      const NameParts parsed,
      ParseModelName(name, {"group-norm", "dropout"}, "group-norm=CHANNELS or dropout=RATE"));
  for (const auto& [key, value] : parsed.options) {
    if (key == "dropout") {
      THIMBLE_ASSIGN_OR_RETURN(spec.dropout, ParseDropoutRate(name, key, value));
    } else {
      THIMBLE_TRY(ParseGroupNorm(name, value, spec));
    }
  }
  return spec;
}

}  // namespace

Result<ImageClassifier> MakeWideResNet(std::string_view name, const ImageSpec& images) {
  THIMBLE_ASSIGN_OR_RETURN(const WideResNetSpec spec, ParseName(name));
  if (images.height % 4 != 0 || images.height != images.width) {
    return BadInput(
        fmt::format("--model {}: images are {}x{}, expected a square side divisible by 4", name,
                    images.height, images.width));
  }
  return ImageClassifier{std::string(name), images,
                         [spec, classes = images.classes](NetworkBuilder& net, ValueId x) {
                           return Body(net, x, spec, classes);
                         }};
}

}  // namespace thimble
