#include "thimble/train/options/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <mutex>
#include <thread>

#include "thimble/base/byte_size.h"
#include "thimble/data/image_dataset.h"
#include "thimble/data/text/text_dataset.h"
#include "thimble/program/techniques.h"
#include "thimble/train/options/update_options.h"
#include "thimble/train/options/usual_settings.h"

namespace thimble {
namespace {

Error WrongValue(const std::string& name, std::string_view text, std::string_view expected) {
  return BadInput(fmt::format("--{} {}: expected {}", name, text, expected));
}

template <class T>
bool ParseWhole(std::string_view text, T& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

// `field` returns a reference into a configuration, const or not.
template <class Field>
Option Text(std::string name, std::string value, std::string help, bool decides, Field field) {
  return {name,
          OptionKind::kText,
          std::move(help),
          decides,
          [field](TrainConfig& config, std::string_view text) -> Result<void> {
            field(config) = std::string(text);
            return {};
          },
          [field](const TrainConfig& config) { return field(config); },
          std::move(value)};
}

template <class Field>
Option Integer(std::string name, std::string help, bool decides, int64_t minimum, Field field) {
  return {name,
          OptionKind::kInteger,
          std::move(help),
          decides,
          [=](TrainConfig& config, std::string_view text) -> Result<void> {
            int64_t value = 0;
            if (!ParseWhole(text, value) || value < minimum) {
              return WrongValue(name, text, fmt::format("a whole number, at least {}", minimum));
            }
            field(config) = static_cast<std::remove_reference_t<decltype(field(config))>>(value);
            return {};
          },
          [field](const TrainConfig& config) { return fmt::format("{}", field(config)); },
          "N"};
}

template <class Field>
Option Number(std::string name, std::string help, Field field) {
  return {name,
          OptionKind::kNumber,
          std::move(help),
          true,
          [=](TrainConfig& config, std::string_view text) -> Result<void> {
            double value = 0;
            if (!ParseWhole(text, value) || !std::isfinite(value) || value < 0) {
              return WrongValue(name, text, "a number, at least 0");
            }
            field(config) = value;
            return {};
          },
          [field](const TrainConfig& config) { return fmt::format("{}", field(config)); },
          "NUMBER"};
}

template <class Field>
Option Size(std::string name, std::string help, Field field) {
  return {name,
          OptionKind::kSize,
          std::move(help),
          false,
          [=](TrainConfig& config, std::string_view text) -> Result<void> {
            auto bytes = ParseByteSize(text);
            if (!bytes.ok()) return WithContext("--" + name, bytes.error());
            field(config) = *bytes;
            return {};
          },
          [field](const TrainConfig& config) { return fmt::format("{}", field(config)); },
          "SIZE"};
}

template <class Field>
Option Switch(std::string name, std::string help, bool decides, Field field) {
  return {
      name,
      OptionKind::kSwitch,
      std::move(help),
      decides,
      [=](TrainConfig& config, std::string_view text) -> Result<void> {
        if (text != "true" && text != "false") return WrongValue(name, text, "true or false");
        field(config) = text == "true";
        return {};
      },
      [field](const TrainConfig& config) { return std::string(field(config) ? "true" : "false"); }};
}

// Texts from the table of levers, for levers that have a member in the configuration.
std::string HelpOf(std::string_view lever) { return FindLever(lever)->help; }
std::string TakenBy(std::string_view lever) { return FindLever(lever)->takes; }

Option Without() {
  std::vector<std::string_view> names;
  for (const TechniqueInfo& always : AlwaysDone()) names.push_back(always.name);
  return {
      "without",
      OptionKind::kText,
      "comma-separated techniques to leave out, to measure what they save",
      false,
      [](TrainConfig& config, std::string_view text) -> Result<void> {
        config.without.clear();
        while (!text.empty()) {
          const size_t comma = std::min(text.find(','), text.size());
          config.without.emplace(text.substr(0, comma));
          text.remove_prefix(std::min(comma + 1, text.size()));
        }
        return {};
      },
      [](const TrainConfig& config) { return fmt::format("{}", fmt::join(config.without, ",")); },
      fmt::format("{}[,...]", fmt::join(names, "|"))};
}

// The whole batch as one part is the same as no parts: both have the empty text.
Option Microbatch() {
  Option microbatch = Integer(
      "microbatch", HelpOf("microbatch"), true, 1,
      [](auto& config) -> auto& { return config.microbatch; });
  const auto set_number = microbatch.set;
  const auto get_number = microbatch.get;
  microbatch.set = [set_number](TrainConfig& config, std::string_view text) -> Result<void> {
    if (!text.empty()) return set_number(config, text);
    config.microbatch = 0;
    return {};
  };
  microbatch.get = [get_number](const TrainConfig& config) {
    const bool whole = config.microbatch == 0 || config.microbatch == config.batch;
    return whole ? std::string() : get_number(config);
  };
  return microbatch;
}

Option Data() {
  Option data = Text(
      "data", DataForms() + "|" + TextDataForms(),
      "data set; shapes: generated images, and numbers: German numbers and dates in English, need "
      "no files; DIR: folder with the binary files of CIFAR, or with parallel text",
      true, [](auto& config) -> auto& { return config.data; });
  data.set = [](TrainConfig& config, std::string_view text) -> Result<void> {
    config.data = std::string(text);
    config.data_given = true;
    return {};
  };
  return data;
}

std::vector<Option> WhatOptions() {
  return {
      Text(
          "model", "wrn-DEPTH-WIDTH[:OPTIONS]|dynamicconv-iwslt|dynamicconv-tiny|FILE.toml",
          "network (see thimble models)", true, [](auto& c) -> auto& { return c.model; }),
      Data(),
      Integer(
          "batch", "samples per update; translation: tokens of the longer side", true, 1,
          [](auto& c) -> auto& { return c.batch; }),
      Microbatch(),
      Integer(
          "validation", "images held out of the training set to choose the best weights", true, 0,
          [](auto& c) -> auto& { return c.validation; }),
      Text(
          "augment", "auto|none|crop-flip",
          "augmentation of training images; auto: the usual one for the data set", true,
          [](auto& c) -> auto& { return c.augment; }),
  };
}

std::vector<Option> HowOptions() {
  return {
      Number(
          "lr", "learning rate", [](auto& c) -> auto& { return c.learning_rate; }),
      Text(
          "schedule", "constant|cosine|steps:EPOCHS:FACTOR|inverse-sqrt[:START]",
          "learning-rate schedule; steps:60,120,160:0.2 multiplies the rate by 0.2 at these "
          "epochs; inverse-sqrt: after --warmup, which begins at START, it falls as 1 / sqrt(step)",
          true, [](auto& c) -> auto& { return c.schedule; }),
      Integer(
          "warmup", "steps over which the learning rate rises from 0, or from START", true, 0,
          [](auto& c) -> auto& { return c.warmup_steps; }),
      Text(
          "optimizer", "sgd|adam",
          "how gradients change the parameters: stochastic gradient descent, or Adam with "
          "decoupled weight decay",
          true, [](auto& c) -> auto& { return c.optimizer.name; }),
      Number(
          "momentum", "momentum of sgd; 0: no momentum array",
          [](auto& c) -> auto& { return c.optimizer.momentum; }),
      Switch(
          "nesterov", "use Nesterov instead of heavy-ball momentum", true,
          [](auto& c) -> auto& { return c.optimizer.nesterov; }),
      Number(
          "adam-beta1", "decay of the mean of gradients that adam follows",
          [](auto& c) -> auto& { return c.optimizer.beta1; }),
      Number(
          "adam-beta2", "decay of the mean of squared gradients by which adam divides",
          [](auto& c) -> auto& { return c.optimizer.beta2; }),
      Number(
          "adam-epsilon", "added to the root of that mean",
          [](auto& c) -> auto& { return c.optimizer.epsilon; }),
      Number(
          "weight-decay",
          "multiple of each parameter that is added to its gradient; adam: to its step",
          [](auto& c) -> auto& { return c.optimizer.weight_decay; }),
      Number(
          "clip",
          "largest norm of all gradients together; larger ones are scaled down; 0: no limit",
          [](auto& c) -> auto& { return c.clip; }),
      Text(
          "loss-scale", "auto|none|SCALE",
          "number by which the loss is multiplied at first, so that small gradients survive in 16 "
          "bits; auto: 4096 if gradients are stored as fp16",
          true, [](auto& c) -> auto& { return c.loss_scale; }),
      Integer(
          "loss-scale-interval",
          "updates without overflow after which the loss scale grows; 0: it never changes", true, 0,
          [](auto& c) -> auto& { return c.loss_scale_interval; }),
      Number(
          "loss-scale-factor", "factor by which the loss scale grows, and shrinks at an overflow",
          [](auto& c) -> auto& { return c.loss_scale_factor; }),
      Number(
          "loss-scale-floor", "training stops at an overflow with this loss scale",
          [](auto& c) -> auto& { return c.loss_scale_floor; }),
      Integer(
          "epochs", "passes over the training set", false, 0,
          [](auto& c) -> auto& { return c.epochs; }),
      Integer(
          "steps", "total number of updates; 0: as many as --epochs gives", false, 0,
          [](auto& c) -> auto& { return c.steps; }),
      Integer(
          "seed", "random seed of weights, image order and augmentation", true, 0,
          [](auto& c) -> auto& { return c.seed; }),
      Text(
          "init", "FILE", "weights to start from (a .safetensors file)", true,
          [](auto& c) -> auto& { return c.init; }),
      Text(
          "conv", TakenBy("conv"), HelpOf("conv"), true, [](auto& c) -> auto& { return c.conv; }),
      Integer(
          "bn-group", HelpOf("bn-group"), true, 0, [](auto& c) -> auto& { return c.bn_group; }),
  };
}

// The option of a lever that has no member in the configuration.
Option LeverOption(const Lever& lever) {
  const auto set = [lever](TrainConfig& config, std::string_view text) -> Result<void> {
    if (lever.check && text != lever.plain) {
      if (auto checked = lever.check(text); !checked.ok()) {
        return WithContext("--" + lever.name, checked.error());
      }
    }
    config.levers[lever.name] = std::string(text);
    return {};
  };
  const auto get = [name = lever.name, plain = lever.plain](const TrainConfig& config) {
    const auto found = config.levers.find(name);
    return found == config.levers.end() ? plain : found->second;
  };
  const OptionKind kind = lever.takes.empty() ? OptionKind::kSwitch : OptionKind::kText;
  return {lever.name, kind, lever.help, lever.decides_results, set, get, lever.takes};
}

std::vector<Option> MemoryOptions() {
  return {
      Text(
          "recompute", TakenBy("recompute"), HelpOf("recompute"), false,
          [](auto& c) -> auto& { return c.recompute; }),
      Size(
          "scratch", HelpOf("scratch"), [](auto& c) -> auto& { return c.scratch_bytes; }),
      Size(
          "budget", "maximum size of the arena, such as 8MB; chooses what must change; 0: no limit",
          [](auto& c) -> auto& { return c.budget_bytes; }),
      Text(
          "allow", "none|same-bits|equal|lossy|LIST",
          "what --budget may change, such as recompute,microbatch>=8,fp16; none: nothing", false,
          [](auto& c) -> auto& { return c.allow; }),
      Without(),
  };
}

Option LengthPenalty() {
  Option option = Number(
      "length-penalty",
      "translation: scores are divided by the number of tokens to this power; 0: short "
      "translations win",
      [](auto& c) -> auto& { return c.length_penalty; });
  option.decides_results = false;
  return option;
}

std::vector<Option> WhereOptions() {
  return {
      Text(
          "device", "cpu|cuda", "device to run on", false,
          [](auto& c) -> auto& { return c.device; }),
      Text(
          "math", "auto|tf32|fp32",
          "precision of products and convolutions; auto: tf32 with cuda, fp32 with cpu", false,
          [](auto& c) -> auto& { return c.math; }),
      Integer(
          "threads", "CPU threads; 0: one per core", false, 0,
          [](auto& c) -> auto& { return c.threads; }),
      Text(
          "simd", "auto|TARGET", "CPU instruction set; thimble models lists the targets", false,
          [](auto& c) -> auto& { return c.simd; }),
      Text(
          "out", "DIR", "run folder; if not given, a new one in runs/", false,
          [](auto& c) -> auto& { return c.out; }),
      Switch(
          "resume", "continue the run in --out, or start it if there is none", false,
          [](auto& c) -> auto& { return c.resume; }),
      Switch(
          "extend", "with --resume: allow more epochs or steps than the run was started with",
          false, [](auto& c) -> auto& { return c.extend; }),
      Switch(
          "overwrite", "delete the run in --out and start a new one", false,
          [](auto& c) -> auto& { return c.overwrite; }),
      Integer(
          "checkpoint-every", "steps between checkpoints; 0: at the end of each epoch", false, 0,
          [](auto& c) -> auto& { return c.checkpoint_every; }),
      Integer(
          "eval-every", "epochs between evaluations; 0: only at the end", false, 0,
          [](auto& c) -> auto& { return c.eval_every; }),
      Integer(
          "beam", "translation: hypotheses for each sentence; 0: train does not measure BLEU",
          false, 0, [](auto& c) -> auto& { return c.beam; }),
      LengthPenalty(),
      Integer(
          "bleu-every",
          "translation: epochs between translations of the test set; 0: only at the "
          "end",
          false, 0, [](auto& c) -> auto& { return c.bleu_every; }),
      Integer(
          "average",
          "epochs at the end whose weights are averaged: the run ends with the average, and "
          "evaluates it; 0: none",
          true, 0, [](auto& c) -> auto& { return c.average; }),
      Integer(
          "report-every", "epochs between reports; 0: only at the end", false, 0,
          [](auto& c) -> auto& { return c.report_every; }),
      Integer(
          "log-every", "steps per line of metrics.jsonl", false, 1,
          [](auto& c) -> auto& { return c.log_every; }),
      Integer(
          "prefetch", "batches to read ahead; 0: read them in the training loop", false, 0,
          [](auto& c) -> auto& { return c.prefetch; }),
  };
}

std::vector<Option> MakeOptions() {
  std::vector<Option> table;
  const auto add = [&](std::string_view group, std::vector<Option> options) {
    for (Option& option : options) {
      option.group = group;
      table.push_back(std::move(option));
    }
  };
  add(option_group::kWhat, WhatOptions());
  add(option_group::kHow, HowOptions());
  add(option_group::kMemory, MemoryOptions());
  add(option_group::kWhere, WhereOptions());
  // After the last option of the group "Memory".
  const auto place = [&] {
    return std::find_if(table.begin(), table.end(),
                        [](const Option& option) { return option.group == option_group::kWhere; });
  };
  for (const Lever* lever : Levers()) {
    const auto same = [&](const Option& option) { return option.name == lever->name; };
    if (std::any_of(table.begin(), table.end(), same)) continue;
    Option option = LeverOption(*lever);
    option.group = option_group::kMemory;
    table.insert(place(), std::move(option));
  }
  return table;
}

}  // namespace

int ResolvedThreads(const TrainConfig& config) {
  if (config.threads > 0) return static_cast<int>(config.threads);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

DeviceKind DeviceOf(const TrainConfig& config) {
  return config.device == Name(DeviceKind::kCuda) ? DeviceKind::kCuda : DeviceKind::kCpu;
}

std::string ResolvedMath(const TrainConfig& config) {
  if (config.math != "auto") return config.math;
  return DeviceOf(config) == DeviceKind::kCuda ? "tf32" : "fp32";
}

const std::vector<Option>& TrainOptions() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static std::vector<Option> options = MakeOptions();
  static size_t num_levers = Levers().size();
  if (num_levers != Levers().size()) {  // a test has added or removed one
    num_levers = Levers().size();
    options = MakeOptions();
  }
  return options;
}

std::string ValueOf(const Lever& lever, const TrainConfig& config) {
  return FindOption(lever.name)->get(config);
}

LeverSetting SettingOf(const Lever& lever, const TrainConfig& config) {
  const auto update = UpdateSpecOf(config);
  return {.value = ValueOf(lever, config),
          .batch = config.batch,
          .device = DeviceOf(config),
          .in_parts = config.microbatch > 0 && config.microbatch < config.batch,
          .drops_gradients = update.ok() && update->checks_gradients(),
          .optimizer = config.optimizer.name,
          .counts_tokens = IsTranslation(config)};
}

void Set(const Lever& lever, const std::string& value, TrainConfig& config) {
  const auto set = FindOption(lever.name)->set(config, value);
  THIMBLE_CHECK(set.ok(), "{}", set.error().message);
}

const Option* FindOption(std::string_view name) {
  const auto found = std::ranges::find(TrainOptions(), name, &Option::name);
  return found == TrainOptions().end() ? nullptr : &*found;
}

std::string FirstDifference(const TrainConfig& saved, const TrainConfig& now) {
  for (const Option& option : TrainOptions()) {
    if (!option.decides_results || option.get(saved) == option.get(now)) continue;
    return fmt::format("--{} was '{}' and is now '{}'", option.name, option.get(saved),
                       option.get(now));
  }
  return {};
}

}  // namespace thimble
