#include "thimble/train/translate/measure_bleu.h"

#include <chrono>
#include <string>
#include <vector>

#include "thimble/data/text/bleu.h"
#include "thimble/train/translate/batch_translator.h"

namespace thimble {
namespace {

Result<std::vector<WordIds>> ReadSources(const TextDataset& sentences) {
  std::vector<WordIds> sources(static_cast<size_t>(sentences.size()));
  WordIds target;
  for (int64_t i = 0; i < sentences.size(); ++i) {
    const PairLength length = sentences.LengthAt(i);
    WordIds& source = sources[static_cast<size_t>(i)];
    source.resize(static_cast<size_t>(length.source));
    target.resize(static_cast<size_t>(length.target));
    THIMBLE_TRY(sentences.Read(i, source, target));
  }
  return sources;
}

}  // namespace

Result<TranslationScore> MeasureBleu(Executor& executor, const DecodingPlans& plans,
                                     const SearchOptions& options, const TextDataset& sentences) {
  const auto start = std::chrono::steady_clock::now();
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<WordIds> sources, ReadSources(sentences));
  BatchTranslator translator(executor, plans, options);
  const std::vector<Translation> translations = translator.Translate(sources);
  Bleu tokenized(BleuKind::kTokenized);
  Bleu sacre(BleuKind::kSacre13a);
  int64_t exact = 0;
  for (int64_t i = 0; i < sentences.size(); ++i) {
    THIMBLE_ASSIGN_OR_RETURN(const std::string reference, sentences.TargetLine(i));
    const std::string line =
        sentences.target_dictionary().Line(translations[static_cast<size_t>(i)].words);
    tokenized.Add(line, reference);
    sacre.Add(line, reference);
    if (line == reference) ++exact;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return TranslationScore{tokenized.Score(), sacre.Score(), exact, sentences.size(),
                          seconds.count()};
}

}  // namespace thimble
