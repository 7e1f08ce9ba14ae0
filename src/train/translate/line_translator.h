// LineTranslator: translates lines of text with the network of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/text/dictionary.h"
#include "thimble/data/text/line_input.h"
#include "thimble/data/text/subwords/subword_splitter.h"
#include "thimble/exec/executor.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/translate/batch_translator.h"

namespace thimble {

struct TranslationSetup {
  TrainConfig config;      // of the run; batch: tokens at a time
  std::string run_folder;  // its dictionaries and, if there are any, merges
  std::string weights;     // a file
  int64_t longest = 1024;  // tokens of a sentence, </s> included; longer ones are cut
};

class LineTranslator {
 public:
  // `ops` must outlive it. kDoesNotFit if config.budget_bytes is too little for one sentence.
  static Result<std::unique_ptr<LineTranslator>> Open(const TranslationSetup& setup,
                                                      const OpRegistry& ops);

  // A translation for each line: words separated by single spaces. An empty line's is empty. Each
  // depends on its own line alone. Lines may be raw if the run has merges: words are split into
  // subwords with them, except those that are subwords already (SplitLine).
  std::vector<std::string> Translate(std::span<const InputLine> lines);

  // Of the lines so far.
  int64_t lines() const { return lines_; }
  int64_t cut_lines() const { return cut_lines_; }
  int64_t tokens() const { return tokens_; }
  int64_t unknown_tokens() const { return unknown_tokens_; }

  const Program& program() const { return program_.program; }

 private:
  LineTranslator(Dictionary source, Dictionary target)
      : source_(std::move(source)), target_(std::move(target)) {}

  // Splits words into subwords from now on.
  void UseMerges(MergeList merges);
  // The tokens as indices, with </s>; empty if there are none.
  WordIds IdsOf(const InputLine& line);
  // Replaces the last index, that of an unknown word, by those of the subwords it consists of, if
  // the dictionary has them.
  void SplitUnknown(std::string_view word, WordIds& ids);

  Dictionary source_;
  Dictionary target_;
  std::unique_ptr<const MergeList> merges_;    // or null: lines are split already
  std::unique_ptr<SubwordSplitter> splitter_;  // with them
  TrainingProgram program_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<BatchTranslator> translator_;
  int64_t lines_ = 0;
  int64_t cut_lines_ = 0;
  int64_t tokens_ = 0;
  int64_t unknown_tokens_ = 0;
};

}  // namespace thimble
