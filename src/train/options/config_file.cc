// Options as TOML: reads a user's file, writes the resolved configuration.
#include <fmt/format.h>

#include "thimble/base/file_reader.h"
#include "thimble/base/nearest_name.h"
#include "thimble/base/quote_name.h"
#include "thimble/base/toml_depth.h"
#include "thimble/base/toml_parser.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

Error ErrorAt(const std::string& path, const toml::source_region& where, const std::string& what) {
  return BadInput(fmt::format("{}:{}: {}", path, where.begin.line, OneLine(what)));
}

// The value as text for an option's setter; nullopt if its type does not match the option's kind.
std::optional<std::string> AsText(const toml::node& node, OptionKind kind) {
  if (const auto* text = node.as_string()) {
    const bool fits = kind == OptionKind::kText || kind == OptionKind::kSize;
    return fits ? std::optional(text->get()) : std::nullopt;
  }
  if (const auto* integer = node.as_integer()) {
    const bool fits = kind != OptionKind::kText && kind != OptionKind::kSwitch;
    return fits ? std::optional(fmt::format("{}", integer->get())) : std::nullopt;
  }
  if (const auto* real = node.as_floating_point()) {
    return kind == OptionKind::kNumber ? std::optional(fmt::format("{}", real->get()))
                                       : std::nullopt;
  }
  if (const auto* flag = node.as_boolean()) {
    return kind == OptionKind::kSwitch ? std::optional(std::string(flag->get() ? "true" : "false"))
                                       : std::nullopt;
  }
  return std::nullopt;
}

std::string_view Name(OptionKind kind) {
  switch (kind) {
    case OptionKind::kText:
      return "a string";
    case OptionKind::kInteger:
      return "a whole number";
    case OptionKind::kNumber:
      return "a number";
    case OptionKind::kSize:
      return "a number of bytes or a string such as \"8MB\"";
    case OptionKind::kSwitch:
      return "true or false";
  }
  return "?";
}

std::vector<std::string> OptionNames() {
  std::vector<std::string> names;
  for (const Option& option : TrainOptions()) names.push_back(option.name);
  return names;
}

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    // TOML requires control characters, including delete, to be escaped.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

Result<void> ReadConfigFile(const std::string& path, TrainConfig& config) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxConfigBytes));
  if (const int64_t line = LineOfDeepKey(text); line > 0) {
    return BadInput(fmt::format("{}:{}: a key has more than {} parts", path, line, kMaxKeyParts));
  }
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return ErrorAt(path, parsed.error().source(), std::string(parsed.error().description()));
  }
  for (const auto& [key, node] : parsed.table()) {
    const Option* option = FindOption(key.str());
    if (option == nullptr) {
      return ErrorAt(
          path, key.source(),
          fmt::format("unknown option '{}'{}", key.str(), DidYouMean(key.str(), OptionNames())));
    }
    const std::optional<std::string> value = AsText(node, option->kind);
    if (!value) {
      return ErrorAt(path, node.source(),
                     fmt::format("'{}': expected {}", key.str(), Name(option->kind)));
    }
    if (auto set = option->set(config, *value); !set.ok()) {
      return ErrorAt(path, node.source(), set.error().message);
    }
  }
  return {};
}

std::string ToToml(const TrainConfig& config) {
  std::string text;
  for (const Option& option : TrainOptions()) {
    const std::string value = option.get(config);
    if (value.empty() && option.kind != OptionKind::kText) continue;
    text += fmt::format("{} = {}\n", option.name,
                        option.kind == OptionKind::kText ? Quote(value) : value);
  }
  return text;
}

}  // namespace thimble
