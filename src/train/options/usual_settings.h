// Usual settings: values of options that suit what is trained, for those that the user did not
// give.
#pragma once

#include "thimble/train/options/config.h"

namespace thimble {

// Whether the configuration is about translation, by its data or, if none were given, by its model.
bool IsTranslation(const TrainConfig& config);

// What options start from, before a file and the command line are applied; `given` is the
// configuration with both applied to the defaults. Translation uses Adam with the recipe of
// DynamicConv on IWSLT'14 (dynamicconv-tiny with a higher rate, reached sooner) and batches of
// 4,000 tokens; other training with Adam its usual rate.
TrainConfig UsualSettings(const TrainConfig& given);

}  // namespace thimble
