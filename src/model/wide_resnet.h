// WideResNet for small images (pre-activation residual network): wrn-DEPTH-WIDTH.
#pragma once

#include <string_view>

#include "thimble/base/result.h"
#include "thimble/model/image_classifier.h"

namespace thimble {

// `name` is "wrn-D-K" with D = 6n + 4 and K >= 1: three groups of n blocks, 16·K, 32·K and 64·K
// wide, at full, half and quarter resolution. Parameters carry the names of the usual PyTorch
// implementation.
Result<ImageClassifier> MakeWideResNet(std::string_view name, const ImageSpec& images);

}  // namespace thimble
