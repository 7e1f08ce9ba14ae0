#include "thimble/train/options/usual_settings.h"

#include <string_view>

#include "thimble/data/text/text_dataset.h"
#include "thimble/model/translator.h"

namespace thimble {
namespace {

// Used where no network is given.
constexpr std::string_view kTinyTranslator = "dynamicconv-tiny";

TrainConfig TranslationSettings() {
  TrainConfig config;
  config.model = kTinyTranslator;
  config.batch = 4000;
  config.optimizer.name = "adam";
  config.optimizer.beta2 = 0.98;
  config.optimizer.weight_decay = 1e-4;
  config.learning_rate = 5e-4;
  config.schedule = "inverse-sqrt:1e-7";
  config.warmup_steps = 4000;
  return config;
}

// The recipe is for 512 channels and tens of thousands of updates. A network of 64 learns `numbers`
// in about a thousand, with a rate that would be too high for the large one.
TrainConfig SmallTranslationSettings() {
  TrainConfig config = TranslationSettings();
  config.learning_rate = 3e-3;
  config.warmup_steps = 200;
  return config;
}

}  // namespace

bool IsTranslation(const TrainConfig& config) {
  return IsTextData(config.data) || (!config.data_given && IsTranslator(config.model));
}

TrainConfig UsualSettings(const TrainConfig& given) {
  if (IsTranslation(given)) {
    const bool small = !IsTranslator(given.model) || given.model.starts_with(kTinyTranslator);
    return small ? SmallTranslationSettings() : TranslationSettings();
  }
  TrainConfig config;
  if (given.optimizer.name == "adam") {
    config.learning_rate = 1e-3;
    config.optimizer.weight_decay = 1e-2;
  }
  return config;
}

}  // namespace thimble
