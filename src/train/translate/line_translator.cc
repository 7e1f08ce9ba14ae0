#include "thimble/train/translate/line_translator.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "thimble/data/text/subwords/split_into_entries.h"
#include "thimble/data/text/words.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/device/device.h"
#include "thimble/train/options/options.h"
#include "thimble/train/task/translation_task.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {
namespace {

Result<Dictionary> ReadDictionary(const std::string& folder, const char* name) {
  auto dictionary = Dictionary::Read(folder + "/" + name);
  if (dictionary.ok()) return dictionary;
  return WithContext("the run's dictionary", dictionary.error());
}

// The run's merges; none if its data had none.
Result<std::optional<MergeList>> ReadMerges(const std::string& folder) {
  const std::string path = folder + "/" + kMergesFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<MergeList>();
  auto merges = MergeList::Read(path);
  if (!merges.ok()) return WithContext("the run's merges", merges.error());
  return std::optional<MergeList>(std::move(*merges));
}

Result<void> CheckSetup(const TranslationSetup& setup) {
  if (setup.config.beam < 1) return BadInput("--beam 0: a translation needs at least 1 hypothesis");
  if (setup.longest < 2 || setup.longest > UINT16_MAX) {
    return BadInput(
        fmt::format("--longest {}: must be from 2 to {} tokens", setup.longest, UINT16_MAX));
  }
  THIMBLE_TRY(CheckDevice(DeviceOf(setup.config)));
  return PinSimdTarget(setup.config.simd);
}

}  // namespace

Result<std::unique_ptr<LineTranslator>> LineTranslator::Open(const TranslationSetup& setup,
                                                             const OpRegistry& ops) {
  const TrainConfig& config = setup.config;
  THIMBLE_TRY(CheckSetup(setup));
  THIMBLE_ASSIGN_OR_RETURN(TranslatorSpec spec, FindTranslator(config.model, 0, 0));
  THIMBLE_ASSIGN_OR_RETURN(Dictionary source,
                           ReadDictionary(setup.run_folder, kSourceDictionaryFile));
  THIMBLE_ASSIGN_OR_RETURN(Dictionary target,
                           ReadDictionary(setup.run_folder, kTargetDictionaryFile));
  THIMBLE_ASSIGN_OR_RETURN(std::optional<MergeList> merges, ReadMerges(setup.run_folder));
  spec.source_words = source.size();
  spec.target_words = target.size();
  std::unique_ptr<LineTranslator> made(new LineTranslator(std::move(source), std::move(target)));
  if (merges) made->UseMerges(std::move(*merges));
  THIMBLE_ASSIGN_OR_RETURN(made->program_,
                           MakeTranslationProgram(config, spec, setup.longest, ops));
  THIMBLE_TRY(CheckBudget(made->program_.program, config.budget_bytes,
                          "a smaller --longest needs less memory"));
  THIMBLE_ASSIGN_OR_RETURN(made->executor_, Executor::CreateFor(made->program_.program, ops));
  THIMBLE_TRY(LoadWeights(setup.weights, PersistentTensors(*made->executor_, TensorSet::kWeights)));
  made->executor_->StoreResidents();
  made->translator_ = std::make_unique<BatchTranslator>(*made->executor_, *made->program_.decoding,
                                                        SearchOptionsOf(config));
  return made;
}

void LineTranslator::UseMerges(MergeList merges) {
  merges_ = std::make_unique<const MergeList>(std::move(merges));
  splitter_ = std::make_unique<SubwordSplitter>(*merges_);
}

void LineTranslator::SplitUnknown(std::string_view word, WordIds& ids) {
  const std::vector<int32_t> entries = SplitIntoEntries(source_, word);
  if (entries.empty()) return;
  ids.pop_back();
  ids.insert(ids.end(), entries.begin(), entries.end());
}

WordIds LineTranslator::IdsOf(const InputLine& line) {
  const auto most = static_cast<size_t>(program_.decoding->spec.longest) - 1;
  WordIds ids;
  bool is_cut = line.was_cut;
  const std::string split = splitter_ == nullptr ? std::string() : splitter_->SplitLine(line.text);
  std::string_view rest = splitter_ == nullptr ? line.text : split;
  for (std::string_view word = TakeWord(rest); !word.empty(); word = TakeWord(rest)) {
    if (ids.size() == most) {
      is_cut = true;
      break;
    }
    ids.push_back(source_.Find(word));
    if (ids.back() != Dictionary::kUnknown) continue;
    if (splitter_ == nullptr) SplitUnknown(word, ids);
    if (ids.back() == Dictionary::kUnknown) ++unknown_tokens_;
  }
  if (ids.size() > most) {
    is_cut = true;
    ids.resize(most);
  }
  cut_lines_ += is_cut ? 1 : 0;
  tokens_ += std::ssize(ids);
  if (!ids.empty()) ids.push_back(Dictionary::kEnd);
  return ids;
}

std::vector<std::string> LineTranslator::Translate(std::span<const InputLine> lines) {
  std::vector<WordIds> sources;
  std::vector<size_t> places;  // of the sources among the lines
  for (size_t i = 0; i < lines.size(); ++i) {
    WordIds ids = IdsOf(lines[i]);
    if (ids.empty()) continue;
    sources.push_back(std::move(ids));
    places.push_back(i);
  }
  lines_ += std::ssize(lines);
  std::vector<std::string> translations(lines.size());
  const std::vector<Translation> found = translator_->Translate(sources);
  for (size_t i = 0; i < found.size(); ++i) translations[places[i]] = target_.Line(found[i].words);
  return translations;
}

}  // namespace thimble
