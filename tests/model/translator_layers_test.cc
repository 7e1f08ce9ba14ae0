#include "thimble/model/translator_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/small_translator_spec.h"

namespace thimble {
namespace {

using testing::HasSubstr;

std::string RefusalOf(const TranslatorSpec& spec) {
  const auto checked = CheckTranslator(spec);
  return checked.ok() ? "was accepted" : checked.error().message;
}

TEST(CheckTranslator, SizesMustFitTogether) {
  EXPECT_TRUE(CheckTranslator(SmallSpec()).ok());
  TranslatorSpec spec = SmallSpec();
  spec.target_words = 1;
  EXPECT_THAT(RefusalOf(spec), HasSubstr("dictionaries of 30 and 1 entries"));
  spec = SmallSpec();
  spec.heads = 3;
  EXPECT_THAT(RefusalOf(spec), HasSubstr("16 channels cannot be divided among 3 heads"));
  spec.heads = 0;
  EXPECT_THAT(RefusalOf(spec), HasSubstr("0 heads"));
}

TEST(CheckTranslator, EveryLayerHasAKernel) {
  TranslatorSpec spec = SmallSpec();
  spec.decoder_kernels = {3, 1};
  EXPECT_EQ(RefusalOf(spec), "a kernel of 1 in the decoder, expected at least 2");
  spec.decoder_kernels = {};
  EXPECT_EQ(RefusalOf(spec), "the decoder has no layers");
  spec = SmallSpec();
  spec.encoder_kernels = {0};
  EXPECT_EQ(RefusalOf(spec), "a kernel of 0 in the encoder, expected an odd number, at least 3");
  spec.encoder_kernels = {3, 4};
  EXPECT_EQ(RefusalOf(spec), "a kernel of 4 in the encoder, expected an odd number, at least 3");
}

TEST(TranslatorLayers, NamesItsLayersLikeFairseq) {
  EXPECT_EQ(TranslatorLayers::DecoderLayer(12), "decoder.layers.12");
}

}  // namespace
}  // namespace thimble
