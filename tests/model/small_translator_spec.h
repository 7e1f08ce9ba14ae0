// A network for translation that is small enough for tests.
#pragma once

#include "thimble/model/translator.h"

namespace thimble {

inline TranslatorSpec SmallSpec() {
  return {.source_words = 30,
          .target_words = 40,
          .width = 16,
          .feed_forward = 24,
          .heads = 2,
          .encoder_kernels = {3, 5},
          .decoder_kernels = {2, 5}};
}

}  // namespace thimble
