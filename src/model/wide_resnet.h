// WideResNet for small images (pre-activation residual network): wrn-DEPTH-WIDTH[:OPTIONS].
#pragma once

#include <string_view>

#include "thimble/base/result.h"
#include "thimble/model/image_classifier.h"

namespace thimble {

// `name` is "wrn-D-K" with D = 6n + 4 and K >= 1: three groups of n blocks, 16·K, 32·K and 64·K
// wide, at full, half and quarter resolution. Parameters have the names of the usual PyTorch
// implementation. Options may follow after a colon, separated by commas:
// - group-norm=N: every batch norm becomes a group norm of N channels per group; names stay.
// - dropout=RATE: between the two convolutions of each block, in training.
Result<ImageClassifier> MakeWideResNet(std::string_view name, const ImageSpec& images);

}  // namespace thimble
