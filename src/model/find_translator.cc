// The built-in networks for translation.
#include <fmt/format.h>

#include "thimble/base/file_reader.h"
#include "thimble/base/quote_name.h"
#include "thimble/model/file/parse_translator.h"
#include "thimble/model/model_file.h"
#include "thimble/model/model_name.h"
#include "thimble/model/translator.h"

namespace thimble {
namespace {

// By the name before the colon; nothing is known about dictionaries yet.
Result<TranslatorSpec> FamilySpec(std::string_view family) {
  TranslatorSpec spec;
  if (family == "dynamicconv-iwslt") {
    spec.encoder_kernels = {3, 7, 15, 31, 31, 31, 31};
    spec.decoder_kernels = {3, 7, 15, 31, 31, 31};
    return spec;
  }
  if (family == "dynamicconv-tiny") {
    spec.width = 64;
    spec.feed_forward = 128;
    spec.encoder_kernels = {3, 7};
    spec.decoder_kernels = {3, 7};
    spec.dropout = 0.1;
    return spec;
  }
  return BadInput(
      fmt::format("--model {}: is no network for translation; there are dynamicconv-iwslt and "
                  "dynamicconv-tiny",
                  QuoteName(family)));
}

Result<TranslatorSpec> SpecOfFile(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path, kMaxModelFileBytes));
  return ParseTranslator(std::move(text), path);
}

Result<TranslatorSpec> SpecOfName(std::string_view name) {
  THIMBLE_ASSIGN_OR_RETURN(TranslatorSpec spec, FamilySpec(name.substr(0, name.find(':'))));
  THIMBLE_ASSIGN_OR_RETURN(
      const NameParts parsed,
      ParseModelName(name, {"dropout", "attention-dropout", "tap-dropout"},
                     "dropout=RATE, attention-dropout=RATE or tap-dropout=RATE"));
  for (const auto& [key, value] : parsed.options) {
    double& rate = key == "dropout"             ? spec.dropout
                   : key == "attention-dropout" ? spec.attention_dropout
                                                : spec.tap_dropout;
    THIMBLE_ASSIGN_OR_RETURN(rate, ParseDropoutRate(name, key, value));
  }
  return spec;
}

}  // namespace

bool IsTranslator(std::string_view name) {
  if (!IsModelFile(name)) return FamilySpec(name.substr(0, name.find(':'))).ok();
  const auto text = ReadWholeFile(std::string(name), kMaxModelFileBytes);
  return text.ok() && HasTranslatorTable(*text);
}

Result<TranslatorSpec> FindTranslator(std::string_view name, int64_t source_words,
                                      int64_t target_words) {
  THIMBLE_ASSIGN_OR_RETURN(TranslatorSpec spec,
                           IsModelFile(name) ? SpecOfFile(std::string(name)) : SpecOfName(name));
  spec.source_words = source_words;
  spec.target_words = target_words;
  return spec;
}

}  // namespace thimble
