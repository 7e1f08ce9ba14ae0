#include "thimble/train/options/usual_settings.h"

#include "thimble/data/text/text_dataset.h"
#include "thimble/model/translator.h"

namespace thimble {
namespace {

TrainConfig TranslationSettings() {
  TrainConfig config;
  config.model = "dynamicconv-tiny";
  config.batch = 4000;
  config.optimizer.name = "adam";
  config.optimizer.beta2 = 0.98;
  config.optimizer.weight_decay = 1e-4;
  config.learning_rate = 5e-4;
  config.schedule = "inverse-sqrt:1e-7";
  config.warmup_steps = 4000;
  return config;
}

}  // namespace

bool IsTranslation(const TrainConfig& config) {
  return IsTextData(config.data) || (!config.data_given && IsTranslator(config.model));
}

TrainConfig UsualSettings(const TrainConfig& given) {
  if (IsTranslation(given)) return TranslationSettings();
  TrainConfig config;
  if (given.optimizer.name == "adam") {
    config.learning_rate = 1e-3;
    config.optimizer.weight_decay = 1e-2;
  }
  return config;
}

}  // namespace thimble
