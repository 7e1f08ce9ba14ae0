// ImageClassifier: a network from images to class scores, for any batch size, and its forward
// graphs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/augmentation.h"
#include "thimble/base/result.h"
#include "thimble/model/network_builder.h"

namespace thimble {

// The format of the images.
struct ImageSpec {
  int64_t height = 32;
  int64_t width = 32;
  int64_t channels = 3;
  int64_t classes = 10;
  std::vector<double> mean = {127.5, 127.5, 127.5};  // per channel, of bytes 0..255
  std::vector<double> std = {64, 64, 64};
  Augmentation augmentation = Augmentation::kNone;  // as in the usual training recipe
};

struct ImageClassifier {
  std::string name;
  ImageSpec images;
  // Normalised images (B, H, W, C) to scores (B, classes).
  std::function<ValueId(NetworkBuilder&, ValueId images)> body;
  std::string file_text = {};  // text of the model file; empty for other networks
};

// The forward graph for a batch of this size: inputs images and labels; outputs loss and correct.
struct Network {
  Graph graph;
  ValueId loss;
  std::vector<InitRule> inits;  // one for every parameter and statistic
};

// Randomness in training: the augmentation of images before they are normalised, and the seed for
// it and for dropout. A network that uses random numbers has the additional inputs samples and
// epoch.
struct ImageDraws {
  Augmentation augmentation = Augmentation::kNone;
  uint64_t seed = 0;
};

// Evaluation uses no random numbers and ignores `draws`.
Result<Network> BuildNetwork(const ImageClassifier& model, const OpRegistry& ops, int64_t batch,
                             Mode mode, const ImageDraws& draws = {});

// Makes a network for a given image format; with it, a caller can train their own network.
using ModelFactory = std::function<Result<ImageClassifier>(const ImageSpec& images)>;

// A built-in network by name ("wrn-28-2", "wrn-28-2:dropout=0.3"), or a model file ("my/net.toml").
Result<ImageClassifier> FindModel(std::string_view name, const ImageSpec& images);

struct ModelFamily {
  std::string pattern;
  std::string what;
  std::string example;
};
std::vector<ModelFamily> ModelFamilies();

}  // namespace thimble
