#include "thimble/model/image_classifier.h"

#include <fmt/format.h>

#include "thimble/model/model_file.h"
#include "thimble/model/translator.h"
#include "thimble/model/wide_resnet.h"

namespace thimble {
namespace {

Result<void> CheckImages(const ImageSpec& images, int64_t batch) {
  if (batch < 1) return BadInput(fmt::format("--batch {}: must be at least 1", batch));
  // 2^20 images of 2^20 bytes are far beyond any use and keep all products below 2^63.
  if (batch > (1 << 20)) return BadInput(fmt::format("--batch {}: must be at most 1048576", batch));
  const size_t channels = static_cast<size_t>(images.channels);
  if (images.height < 1 || images.width < 1 || images.channels < 1 || images.classes < 2 ||
      images.mean.size() != channels || images.std.size() != channels) {
    return BadInput(
        "images: height, width and channels must be positive, with at least two classes "
        "and a mean and std per channel");
  }
  return {};
}

// Applies the random augmentation to the images, if there is any.
ValueId DrawnImages(NetworkBuilder& net, ValueId images, int64_t batch, const ImageDraws& draws) {
  if (net.mode() == Mode::kEvaluate || draws.augmentation == Augmentation::kNone) return images;
  return net.Apply({.op = "image_crop_flip",
                    .inputs = {images, net.Samples(batch), net.Epoch()},
                    .attributes = {{"seed", static_cast<int64_t>(net.seed())}},
                    .layer = "augment"});
}

}  // namespace

Result<Network> BuildNetwork(const ImageClassifier& model, const OpRegistry& ops, int64_t batch,
                             Mode mode, const ImageDraws& draws) {
  const ImageSpec& spec = model.images;
  THIMBLE_TRY(CheckImages(spec, batch));
  NetworkBuilder net(ops, mode);
  net.set_seed(draws.seed);
  const ValueId images =
      net.Input(kImagesInput, {batch, spec.height, spec.width, spec.channels}, DType::kU8);
  const ValueId labels = net.Input(kLabelsInput, {batch}, DType::kI32);
  const ValueId drawn = DrawnImages(net, images, batch, draws);
  const ValueId scores = model.body(net, net.NormalizeImages(drawn, spec.mean, spec.std));
  if (!net.failed() && net.shape(scores) != Shape{batch, spec.classes}) {
    net.Fail(
        BadInput(fmt::format("{}: the scores have shape {}, expected {}", model.name,
                             ToString(net.shape(scores)), ToString(Shape{batch, spec.classes}))));
  }
  net.SoftmaxCrossEntropy(scores, labels);
  THIMBLE_ASSIGN_OR_RETURN(NetworkBuilder::Built built, std::move(net).Finish());
  const ValueId loss = built.graph.Find(kLossOutput);
  return Network{std::move(built.graph), loss, std::move(built.inits)};
}

Result<ImageClassifier> FindModel(std::string_view name, const ImageSpec& images) {
  if (IsModelFile(name)) {
    THIMBLE_ASSIGN_OR_RETURN(const ModelFile file, ReadModelFile(std::string(name)));
    return ToClassifier(file, images);
  }
  if (name.starts_with("wrn")) return MakeWideResNet(name, images);
  if (IsTranslator(name)) {
    return BadInput(fmt::format(
        "--model {}: translates sentences, but the data are images; try --data numbers", name));
  }
  return BadInput(
      fmt::format("--model {}: unknown model; expected wrn-DEPTH-WIDTH, for example wrn-28-2, "
                  "dynamicconv-iwslt, dynamicconv-tiny, or a model file: FILE.toml",
                  name));
}

std::vector<ModelFamily> ModelFamilies() {
  return {
      {"wrn-DEPTH-WIDTH[:OPTIONS]",
       "WideResNet for small images: DEPTH = 6n+4 (10, 16, 22, 28, 40, …), WIDTH >= 1; OPTIONS "
       "separated by commas: group-norm=CHANNELS (per group; replaces batch norm), "
       "dropout=RATE",
       "wrn-28-2"},
      {"dynamicconv-iwslt[:OPTIONS]",
       "DynamicConv network for translation, 7 encoder and 6 decoder layers of 512 channels; "
       "OPTIONS: dropout=RATE, attention-dropout=RATE, tap-dropout=RATE",
       "dynamicconv-iwslt"},
      {"dynamicconv-tiny[:OPTIONS]",
       "the same with 2 and 2 layers of 64 channels, for small vocabularies", "dynamicconv-tiny"},
      {"FILE.toml", "your own network as a model file (docs/model-files.md)",
       "examples/models/resnet.toml"}};
}

}  // namespace thimble
