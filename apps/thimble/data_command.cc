#include <memory>

#include "apps/thimble/command.h"
#include "thimble/base/json.h"
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
  bool json = false;
};

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
  if (flags.json) {
    Print("{}\n", Json{{"data", data.name},
                       {"source_language", data.source_language},
                       {"target_language", data.target_language},
                       {"source_words", source_words},
                       {"target_words", target_words},
                       {"train", PairsJson(data.train.get())},
                       {"validation", PairsJson(data.validation.get())},
                       {"test", PairsJson(data.test.get())},
                       {"left_out_empty", data.train->omissions().empty_pairs},
                       {"left_out_long", data.train->omissions().long_pairs}}
                      .Dump(1));
    return;
  }
  Print("{}: {} to {}, {} and {} words; {} train, {} validation, {} test pairs\n", data.name,
        data.source_language, data.target_language, source_words, target_words, data.train->size(),
        data.validation == nullptr ? 0 : data.validation->size(), data.test->size());
}

Result<int> RunData(const DataFlags& flags) {
  THIMBLE_ASSIGN_OR_RETURN(const TrainConfig config, flags.config.Resolve());
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
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback([flags, exit_code] {
    const auto result = RunData(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
