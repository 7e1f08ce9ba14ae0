// Feeds arbitrary text to the parsers of option values. The first byte selects one: first those
// with their own parser, then the options of the table.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/base/byte_size.h"
#include "thimble/data/image_dataset.h"
#include "thimble/model/image_classifier.h"
#include "thimble/model/model_file.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/recompute/recompute_spec.h"
#include "thimble/train/options/command_text.h"
#include "thimble/train/options/options.h"
#include "thimble/train/options/schedule.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {
namespace {

// Messages quote option values verbatim; the command line later puts them on one line.
void CheckOptionError(const Error& error) {
  THIMBLE_CHECK(error.kind == ErrorKind::kBadInput, "the error is not kBadInput: {}",
                error.message);
}

void ReadSize(std::string_view text) {
  const Result<int64_t> bytes = ParseByteSize(text);
  if (!bytes.ok()) return CheckOptionError(bytes.error());
  THIMBLE_CHECK(*bytes >= 0 && !FormatBytes(*bytes).empty(), "{} bytes", *bytes);
  const Result<int64_t> again = ParseByteSize(std::to_string(*bytes));
  THIMBLE_CHECK(again.ok() && *again == *bytes, "{} bytes are not read back", *bytes);
}

void ReadRecompute(std::string_view text) {
  const Result<RecomputeSpec> spec = ParseRecompute(text);
  if (!spec.ok()) return CheckOptionError(spec.error());
  const Result<RecomputeSpec> again = ParseRecompute(ToString(*spec));
  THIMBLE_CHECK(again.ok() && *again == *spec, "{} is not read back", ToString(*spec));
}

void ReadSchedule(std::string_view text) {
  const Result<Schedule> schedule = ParseSchedule(text);
  if (!schedule.ok()) return CheckOptionError(schedule.error());
  const ScheduleSpan span{.num_steps = 100, .steps_per_epoch = 10, .warmup_steps = 5};
  for (const int64_t step : {0, 4, 5, 50, 99}) {
    THIMBLE_CHECK(LearningRate(*schedule, span, 0.1, step) >= 0, "the learning rate is negative");
  }
}

void ReadModelName(std::string_view text) {
  // Model files have their own target; deep networks take seconds.
  constexpr size_t kMostBuilt = 64;
  if (IsModelFile(text)) return;
  const Result<ImageClassifier> model = FindModel(text, ImageSpec{});
  if (!model.ok()) return CheckOptionError(model.error());
  THIMBLE_CHECK(!ModelName(model->name).empty(), "no name");
  if (text.starts_with("wrn-10-") && text.size() < kMostBuilt) {
    const auto network = BuildNetwork(*model, BuiltinOps(), 2, Mode::kTrain);
    THIMBLE_CHECK(network.ok(), "{}", network.error().message);
  }
}

void ReadData(std::string_view text) {
  const auto data = DescribeImageData(text, {.validation = 7});
  if (!data.ok()) return CheckOptionError(data.error());
  THIMBLE_CHECK(data->counts.train > 0 && data->counts.test > 0, "no images");
}

void SetOption(const Option& option, std::string_view text) {
  TrainConfig config;
  if (const auto set = option.set(config, text); !set.ok()) return CheckOptionError(set.error());
  if (const auto checked = CheckConfig(config); !checked.ok()) {
    return CheckOptionError(checked.error());
  }
  TrainConfig again;
  const std::string value = option.get(config);
  THIMBLE_CHECK(value.empty() || option.set(again, value).ok(), "{} is rejected when read back",
                value);
  THIMBLE_CHECK(value.empty() || option.get(again) == value, "{} is not read back", value);
  THIMBLE_CHECK(FirstDifference(config, config).empty(), "a config differs from itself");
  THIMBLE_CHECK(!CommandOf(config).empty(), "no command");
}

void Read(uint8_t choice, std::string_view text) {
  constexpr void (*kOthers[])(std::string_view) = {ReadSize, ReadRecompute, ReadSchedule,
                                                   ReadModelName, ReadData};
  const auto& options = TrainOptions();
  const size_t place = choice % (options.size() + std::size(kOthers));
  if (place < std::size(kOthers)) return kOthers[place](text);
  SetOption(options[place - std::size(kOthers)], text);
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size > 0) thimble::Read(bytes[0], thimble::AsText(bytes + 1, size - 1));
  return 0;
}
