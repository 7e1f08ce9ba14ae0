#include <memory>
#include <optional>

#include "apps/thimble/command.h"
#include "thimble/base/json.h"
#include "thimble/data/text/bitext_folder.h"
#include "thimble/data/text/subwords/prepare_bitext.h"
#include "thimble/data/text/text_dataset.h"
#include "thimble/train/loop/dump_batches.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

struct DataFlags {
  ConfigFlags config;
  std::string dump;
  int64_t dump_steps = 10;
  std::string dump_part;
  std::string prepare;
  std::optional<int64_t> merges;
  bool overwrite = false;
  bool json = false;
};

constexpr int64_t kUsualMerges = 10'000;  // as fairseq's preparation of IWSLT'14

Result<void> Dump(const DataFlags& flags, const TrainConfig& config, const ImageData& data) {
  if (flags.dump_part.empty()) return DumpBatches(config, data, flags.dump_steps, flags.dump);
  THIMBLE_ASSIGN_OR_RETURN(const ImageDataset* dataset, FindPart(data, flags.dump_part));
  return DumpImages(*dataset, flags.dump);
}

Json PairsJson(const TextDataset* dataset) {
  return dataset == nullptr ? Json() : Json(dataset->size());
}

void PrintText(const DataFlags& flags, const TextData& data) {
  const int64_t source_words = data.train->source_dictionary().size();
  const int64_t target_words = data.train->target_dictionary().size();
  const int64_t merges = data.merges == nullptr ? 0 : data.merges->size();
  if (flags.json) {
    Print("{}\n", Json{{"data", data.name},
                       {"source_language", data.source_language},
                       {"target_language", data.target_language},
                       {"source_words", source_words},
                       {"target_words", target_words},
                       {"merges", merges},
                       {"train", PairsJson(data.train.get())},
                       {"validation", PairsJson(data.validation.get())},
                       {"test", PairsJson(data.test.get())},
                       {"left_out_empty", data.train->omissions().empty_pairs},
                       {"left_out_long", data.train->omissions().long_pairs}}
                      .Dump(1));
    return;
  }
  Print("{}: {} to {}, {} and {} words{}; {} train, {} validation, {} test pairs\n", data.name,
        data.source_language, data.target_language, source_words, target_words,
        merges == 0 ? "" : fmt::format(", {} merges", merges), data.train->size(),
        data.validation == nullptr ? 0 : data.validation->size(), data.test->size());
}

// Writes the text of --data to the folder of --prepare, split into subwords, and describes it.
Result<void> Prepare(const DataFlags& flags, const std::string& data) {
  constexpr std::string_view kBitext = "bitext:";
  if (!data.starts_with(kBitext)) {
    return BadInput(fmt::format("--prepare: expected --data bitext:DIR, got '{}'", data));
  }
  if (!flags.dump.empty()) return BadInput("--dump: only for images");
  const BitextArgument from = SplitBitextArgument(data.substr(kBitext.size()));
  const int64_t asked = flags.merges.value_or(kUsualMerges);
  THIMBLE_ASSIGN_OR_RETURN(const Preparation made,
                           PrepareBitext({.from = from.folder,
                                          .languages = from.languages,
                                          .to = flags.prepare,
                                          .merges = static_cast<int32_t>(asked),
                                          .overwrite = flags.overwrite}));
  if (made.merges < asked) {
    WriteMessage(fmt::format("thimble: only {} merges: no other pair of symbols occurs twice\n",
                             made.merges));
  }
  THIMBLE_ASSIGN_OR_RETURN(const TextData text,
                           OpenTextData(fmt::format("{}{},{}-{}", kBitext, flags.prepare,
                                                    made.source_language, made.target_language),
                                        {}));
  PrintText(flags, text);
  return {};
}

Result<int> RunData(const DataFlags& flags) {
  THIMBLE_ASSIGN_OR_RETURN(const TrainConfig config, flags.config.Resolve());
  if (!flags.prepare.empty()) {
    THIMBLE_TRY(Prepare(flags, config.data));
    return 0;
  }
  if (flags.merges || flags.overwrite) {
    return BadInput(
        fmt::format("--{}: only with --prepare", flags.merges ? "merges" : "overwrite"));
  }
  if (IsTextData(config.data)) {
    if (!flags.dump.empty()) return BadInput("--dump: only for images");
    THIMBLE_ASSIGN_OR_RETURN(const TextData text, OpenTextData(config.data, {}));
    PrintText(flags, text);
    return 0;
  }
  THIMBLE_ASSIGN_OR_RETURN(
      const ImageData data,
      OpenImageData(config.data, {.seed = config.seed, .validation = config.validation}));
  if (!flags.dump.empty()) THIMBLE_TRY(Dump(flags, config, data));
  const ImageFormat& format = data.train->format();
  const ImageCounts counts = CountsOf(data);
  if (flags.json) {
    Print("{}\n", Json{{"data", data.name},
                       {"height", format.height},
                       {"width", format.width},
                       {"channels", format.channels},
                       {"classes", format.classes},
                       {"train", counts.train},
                       {"validation", counts.validation},
                       {"test", counts.test},
                       {"mean", format.mean},
                       {"std", format.std}}
                      .Dump(1));
  } else {
    Print("{}: {}x{}x{}, {} classes; {} train, {} validation, {} test images\n", data.name,
          format.height, format.width, format.channels, format.classes, counts.train,
          counts.validation, counts.test);
  }
  return 0;
}

}  // namespace

void AddDataCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("data", "check a data set and describe it");
  auto flags = std::make_shared<DataFlags>();
  flags->config.AddTo(*command, {"data", "batch", "validation", "augment", "seed"});
  command
      ->add_option("--dump", flags->dump,
                   "write the first training batches to this .safetensors file")
      ->type_name("FILE")
      ->group(option_group::kWhere);
  command->add_option("--dump-steps", flags->dump_steps, "number of batches to write")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000).description(""))
      ->type_name("N")
      ->group(option_group::kWhere);
  command
      ->add_option(
          "--dump-part", flags->dump_part,
          "write all images of this part instead, in the order in which evaluation reads them")
      ->type_name("train|validation|test")
      ->group(option_group::kWhere);
  command
      ->add_option("--prepare", flags->prepare,
                   "learn subwords from the parallel text of --data and write all of it to this "
                   "folder, split")
      ->type_name("DIR")
      ->group(option_group::kWhere);
  command->add_option("--merges", flags->merges, "number of subwords to learn, of both languages")
      ->default_str(std::to_string(kUsualMerges))
      ->check(CLI::Range(1, kMaxMerges).description(""))
      ->type_name("N")
      ->group(option_group::kWhere);
  command
      ->add_flag("--overwrite", flags->overwrite,
                 "let --prepare replace files that have other content")
      ->group(option_group::kWhere);
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "To train a translator from raw or tokenised text in DIR (train.de, train.en, test.de, "
      "...):\n"
      "  thimble data --data bitext:DIR --prepare SPLIT\n"
      "  thimble train --data bitext:SPLIT --out RUN\n"
      "  thimble translate RUN < lines\n");
  command->callback([flags, exit_code] {
    const auto result = RunData(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
