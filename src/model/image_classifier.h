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

// What the images look like.
struct ImageSpec {
  int64_t height = 32;
  int64_t width = 32;
  int64_t channels = 3;
  int64_t classes = 10;
  std::vector<double> mean = {127.5, 127.5, 127.5};  // per channel, of bytes 0..255
  std::vector<double> std = {64, 64, 64};
  Augmentation augmentation = Augmentation::kNone;  // what the usual recipe does in training
};

struct ImageClassifier {
  std::string name;
  ImageSpec images;
  // Normalised images (B, H, W, C) to scores (B, classes).
  std::function<ValueId(NetworkBuilder&, ValueId images)> body;
  std::string file_text = {};  // of the model file that it was read from, if it was
};

// The forward graph for a batch of this size: inputs images and labels; outputs loss and correct.
struct Network {
  Graph graph;
  ValueId loss;
  std::vector<InitRule> inits;  // one for every parameter and statistic
};

// What is drawn in training: what happens to images before they are normalised, and the seed of
// that and of dropout. A network that draws anything has the further inputs samples and epoch.
struct ImageDraws {
  Augmentation augmentation = Augmentation::kNone;
  uint64_t seed = 0;
};

// Evaluation draws nothing, whatever `draws` says.
Result<Network> BuildNetwork(const ImageClassifier& model, const OpRegistry& ops, int64_t batch,
                             Mode mode, const ImageDraws& draws = {});

// Makes a network for given images: what a training takes to train one's own.
using ModelFactory = std::function<Result<ImageClassifier>(const ImageSpec& images)>;

// A built-in network by name ("wrn-28-2", "wrn-28-2:dropout=0.3"), or one's own by its model file
// ("my/net.toml").
Result<ImageClassifier> FindModel(std::string_view name, const ImageSpec& images);

struct ModelFamily {
  std::string pattern;
  std::string what;
  std::string example;
};
std::vector<ModelFamily> ModelFamilies();

}  // namespace thimble
