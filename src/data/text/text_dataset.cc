#include "thimble/data/text/text_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "thimble/base/nearest_name.h"
#include "thimble/base/quote_name.h"
#include "thimble/data/text/bitext.h"
#include "thimble/data/text/bitext_folder.h"
#include "thimble/data/text/numbers_dataset.h"

namespace thimble {
namespace {

// The sentences of "numbers" are the same for every run, so that results can be compared; the run's
// seed decides their order.
constexpr uint64_t kNumbersSeed = 0;
// Every token occurs at least 40 times in as many training pairs; docs/text-data.md says how far a
// small network gets with them.
constexpr int64_t kNumbersTrain = 50'000;
constexpr int64_t kNumbersTest = 2'000;

Result<int64_t> ParseNumbersSize(std::string_view text) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error == std::errc() && end == text.data() + text.size() && size >= 1 && size <= INT32_MAX) {
    return size;
  }
  return BadInput(fmt::format("data 'numbers': {} is not a number of pairs, expected 1 to {}",
                              QuoteName(text), INT32_MAX));
}

Result<TextData> OpenNumbers(std::string_view sizes, const TextDataOptions&) {
  int64_t train = kNumbersTrain;
  int64_t test = kNumbersTest;
  const size_t comma = sizes.find(',');
  if (!sizes.empty()) {
    THIMBLE_ASSIGN_OR_RETURN(train, ParseNumbersSize(sizes.substr(0, comma)));
  }
  if (comma != std::string_view::npos) {
    THIMBLE_ASSIGN_OR_RETURN(test, ParseNumbersSize(sizes.substr(comma + 1)));
  }
  const auto dictionaries = MakeNumbersDictionaries();
  const auto open = [&](NumbersSplit split, int64_t size) {
    return std::make_unique<NumbersDataset>(dictionaries, kNumbersSeed, split, size);
  };
  return TextData{.name = {},
                  .source_language = "de",
                  .target_language = "en",
                  .train = open(NumbersSplit::kTrain, train),
                  .validation = open(NumbersSplit::kValidation, test),
                  .test = open(NumbersSplit::kTest, test),
                  .merges = nullptr,
                  .identity = {}};
}

Result<TextData> OpenBitextData(std::string_view argument, const TextDataOptions& options) {
  const auto [folder, languages] = SplitBitextArgument(argument);
  return OpenBitext(folder, languages, options);
}

// A data set of text that --data can name.
struct TextDatasetKind {
  std::string_view name;
  std::string_view form;  // as shown in help; an argument in brackets is optional
  // `argument` is the text after the colon, or empty.
  Result<TextData> (*open)(std::string_view argument, const TextDataOptions& options);

  bool needs_argument() const { return form.find('[') > form.find(':'); }
};

// All data sets of text; a new one is one entry here.
constexpr TextDatasetKind kTextDatasets[] = {
    {"numbers", "numbers[:TRAIN[,TEST]]", OpenNumbers},
    {"bitext", "bitext:DIR[,SOURCE-TARGET]", OpenBitextData},
};

const TextDatasetKind* FindTextDataset(std::string_view spec) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  for (const TextDatasetKind& kind : kTextDatasets) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

Error UnknownTextData(std::string_view spec) {
  std::vector<std::string> names;
  for (const TextDatasetKind& kind : kTextDatasets) names.emplace_back(kind.name);
  return BadInput(fmt::format("data '{}': unknown; expected {}{}", spec, TextDataForms(),
                              DidYouMean(spec.substr(0, spec.find(':')), names)));
}

}  // namespace

std::string TextDataForms() {
  std::string forms;
  for (const TextDatasetKind& kind : kTextDatasets) {
    if (!forms.empty()) forms += "|";
    forms += kind.form;
  }
  return forms;
}

bool IsTextData(std::string_view spec) { return FindTextDataset(spec) != nullptr; }

Result<TextData> OpenTextData(std::string_view spec, const TextDataOptions& options) {
  const TextDatasetKind* kind = FindTextDataset(spec);
  const size_t colon = spec.find(':');
  const bool has_colon = colon != std::string_view::npos;
  const std::string_view argument = has_colon ? spec.substr(colon + 1) : "";
  if (kind == nullptr || (argument.empty() && (has_colon || kind->needs_argument()))) {
    return UnknownTextData(spec);
  }
  if (options.max_sentence_tokens < 2 || options.max_sentence_tokens > UINT16_MAX) {
    return BadInput(fmt::format("sentences of at most {} tokens: expected 2 to {}",
                                options.max_sentence_tokens, UINT16_MAX));
  }
  THIMBLE_ASSIGN_OR_RETURN(TextData data, kind->open(argument, options));
  data.name = kind->name;
  data.max_sentence_tokens = options.max_sentence_tokens;
  data.identity =
      fmt::format("{} {}-{}, {} training and {} test pairs, {} and {} words{}{}", data.name,
                  data.source_language, data.target_language, data.train->size(), data.test->size(),
                  data.train->source_dictionary().size(), data.train->target_dictionary().size(),
                  data.identity.empty() ? "" : ", ", data.identity);
  return data;
}

}  // namespace thimble
