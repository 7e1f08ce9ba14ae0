#include "thimble/model/file/parse_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "thimble/base/quote_name.h"
#include "thimble/model/file/layer_types.h"
#include "thimble/model/file/parse_translator.h"
#include "thimble/model/file/toml_entries.h"

namespace thimble {
namespace {

constexpr size_t kMaxWordBytes = 64;
constexpr size_t kMaxBlockParameters = 32;  // per block

constexpr NumberKey kHeight{"height", 1, 1 << 13};
constexpr NumberKey kWidth{"width", 1, 1 << 13};
constexpr NumberKey kChannels{"channels", 1, 1 << 10};
constexpr NumberKey kClasses{"classes", 2, 1 << 16};

// Names that a block's parameter cannot have: they are keys of every use of a block.
constexpr std::array<std::string_view, 8> kReserved = {"type", "name",   "as",    "from",
                                                       "with", "repeat", "first", "classes"};

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

bool IsWord(std::string_view text) {
  return !text.empty() && text.size() <= kMaxWordBytes &&
         std::all_of(text.begin(), text.end(), &IsWordCharacter);
}

bool HasCounter(const std::string& name) { return name.find("{i}") != std::string::npos; }

// The name of one repetition, for checking its spelling.
std::string WithoutCounter(std::string_view name) {
  const size_t at = name.find("{i}");
  if (at == std::string_view::npos) return std::string(name);
  return fmt::format("{}0{}", name.substr(0, at), name.substr(at + 3));
}

// The keys of a layer type or block, in addition to those that all layers have.
struct LayerKeys {
  bool may_have_name = false;
  bool must_have_name = false;
  bool is_sum = false;
  std::vector<NumberKey> numbers = {};
};

class ModelParser {
 public:
  explicit ModelParser(const std::string& path) { model_.path = path; }

  Result<ModelDescription> Parse(const toml::table& file) {
    THIMBLE_TRY(ParseTop(file));
    THIMBLE_TRY(ParseInput(*file.get("input")));
    if (const toml::node* blocks = file.get("blocks")) THIMBLE_TRY(ParseBlocks(*blocks));
    if (!file.contains("layers")) return At({1, 1}, "no [[layers]]: expected at least one");
    THIMBLE_TRY(ParseLayers(*file.get("layers"), model_.body));
    return std::move(model_);
  }

 private:
  Result<void> ParseTop(const toml::table& file) const;
  Result<void> ParseInput(const toml::node& node);
  Result<void> ParseBlocks(const toml::node& node);
  Result<BlockDescription> ParseBlockHead(const Entry& entry) const;
  Result<void> ParseParameters(const toml::node& node, BlockDescription& block) const;
  Result<void> ParseLayers(const toml::node& node, BlockDescription& block) const;
  Result<LayerDescription> ParseLayer(const toml::node& node) const;
  Result<std::string> ParseType(const toml::table& table) const;
  LayerKeys KeysOf(const std::string& type_name) const;
  Result<void> ParseEntry(const Entry& entry, const LayerKeys& keys, LayerDescription& layer) const;
  Result<void> Complete(const LayerKeys& keys, LayerDescription& layer) const;
  Result<void> CheckCounter(const LayerDescription& layer) const;

  Result<const toml::table*> AsTable(std::string_view what, const toml::node& node) const;
  Result<PlacedText> AsWord(std::string_view key, const toml::node& node) const;
  Result<PlacedText> AsName(const toml::node& node) const;
  Result<PlacedNumber> AsNumber(const NumberKey& key, const toml::node& node) const;
  Error Unknown(const Entry& entry, const LayerKeys& keys, const std::string& type) const;
  Error At(SourcePlace place, const std::string& what) const {
    return ErrorAt(model_.path, place, what);
  }
  bool IsBlock(const std::string& name) const { return model_.FindBlock(name) != nullptr; }

  ModelDescription model_;
};

Result<const toml::table*> ModelParser::AsTable(std::string_view what,
                                                const toml::node& node) const {
  if (const toml::table* table = node.as_table()) return table;
  return At(PlaceOf(node.source()), fmt::format("{}: expected a table", what));
}

Result<PlacedText> ModelParser::AsWord(std::string_view key, const toml::node& node) const {
  const SourcePlace place = PlaceOf(node.source());
  const auto* text = node.as_string();
  if (text == nullptr) return At(place, fmt::format("'{}': expected a string", key));
  if (IsWord(text->get())) return PlacedText{text->get(), place};
  return At(place, fmt::format("'{}': {}: expected 1 to {} letters, digits, '_', '-' and '.'", key,
                               QuoteName(text->get()), kMaxWordBytes));
}

Result<PlacedText> ModelParser::AsName(const toml::node& node) const {
  const auto* text = node.as_string();
  if (text != nullptr && IsWord(WithoutCounter(text->get()))) {
    return PlacedText{text->get(), PlaceOf(node.source())};
  }
  return AsWord("name", node);
}

Result<PlacedNumber> ModelParser::AsNumber(const NumberKey& key, const toml::node& node) const {
  const SourcePlace place = PlaceOf(node.source());
  if (const auto* number = node.as_integer()) {
    const int64_t value = number->get();
    if (value >= key.least && value <= key.most) return PlacedNumber{value, "", place};
    return At(place, fmt::format("'{}' is {}, expected {}", key.name, value, RangeOf(key)));
  }
  const auto* text = node.as_string();
  if (text != nullptr && text->get().starts_with('$') && IsWord(text->get().substr(1))) {
    return PlacedNumber{0, text->get().substr(1), place};
  }
  return At(
      place,
      fmt::format("'{}': expected a whole number, or a parameter such as \"$channels\"", key.name));
}

Result<void> ModelParser::ParseTop(const toml::table& file) const {
  for (const Entry& entry : InOrder(file)) {
    if (entry.key == kTranslatorTable) {
      return At(entry.place, "[translator] describes a network for text, the data are images");
    }
    if (entry.key != "input" && entry.key != "blocks" && entry.key != "layers") {
      return At(entry.place, fmt::format("unknown key {}; a model file has [input], [blocks.NAME] "
                                         "and [[layers]]",
                                         QuoteName(entry.key)));
    }
  }
  if (file.contains("input")) return {};
  return At({1, 1}, "no [input]: expected its height, width, channels and classes");
}

Result<void> ModelParser::ParseInput(const toml::node& node) {
  THIMBLE_ASSIGN_OR_RETURN(const toml::table* table, AsTable("[input]", node));
  model_.input_place = PlaceOf(node.source());
  ImageSpec& images = model_.images;
  const std::array<std::pair<const NumberKey*, int64_t*>, 4> fields = {
      {{&kHeight, &images.height},
       {&kWidth, &images.width},
       {&kChannels, &images.channels},
       {&kClasses, &images.classes}}};
  for (const Entry& entry : InOrder(*table)) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const auto& f) { return f.first->name == entry.key; });
    if (field == fields.end()) {
      return At(entry.place, fmt::format("unknown key {}; [input] has height, width, channels and "
                                         "classes",
                                         QuoteName(entry.key)));
    }
    if (!entry.node->is_integer()) {
      return At(PlaceOf(entry.node->source()),
                fmt::format("'{}': expected a whole number", entry.key));
    }
    THIMBLE_ASSIGN_OR_RETURN(const PlacedNumber number, AsNumber(*field->first, *entry.node));
    *field->second = number.value;
  }
  for (const auto& [key, value] : fields) {
    if (!table->contains(key->name)) {
      return At(model_.input_place, fmt::format("[input] has no '{}'", key->name));
    }
  }
  images.mean.assign(static_cast<size_t>(images.channels), ImageSpec().mean[0]);
  images.std.assign(static_cast<size_t>(images.channels), ImageSpec().std[0]);
  return {};
}

Result<void> ModelParser::ParseBlocks(const toml::node& node) {
  THIMBLE_ASSIGN_OR_RETURN(const toml::table* table, AsTable("[blocks]", node));
  const std::vector<Entry> entries = InOrder(*table);
  // Names and parameters first: a block may use blocks defined after it.
  for (const Entry& entry : entries) {
    THIMBLE_ASSIGN_OR_RETURN(BlockDescription block, ParseBlockHead(entry));
    model_.blocks.push_back(std::move(block));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const toml::node* layers = entries[i].node->as_table()->get("layers");
    if (layers == nullptr) {
      return At(entries[i].place, fmt::format("block '{}' has no 'layers'", entries[i].key));
    }
    THIMBLE_TRY(ParseLayers(*layers, model_.blocks[i]));
  }
  return {};
}

Result<BlockDescription> ModelParser::ParseBlockHead(const Entry& entry) const {
  if (!IsWord(entry.key)) {
    return At(entry.place, fmt::format("block {}: expected 1 to {} letters, digits, '_', '-' and "
                                       "'.' as a name",
                                       QuoteName(entry.key), kMaxWordBytes));
  }
  BlockDescription block{entry.key, {}, {}, entry.place};
  if (FindLayerType(block.name) != nullptr) {
    return At(entry.place,
              fmt::format("block '{}': the name of a layer type is reserved", block.name));
  }
  THIMBLE_ASSIGN_OR_RETURN(const toml::table* table,
                           AsTable(fmt::format("block '{}'", block.name), *entry.node));
  for (const Entry& inside : InOrder(*table)) {
    if (inside.key == "parameters") {
      THIMBLE_TRY(ParseParameters(*inside.node, block));
    } else if (inside.key != "layers") {
      return At(inside.place, fmt::format("unknown key {}; a block has parameters and layers",
                                          QuoteName(inside.key)));
    }
  }
  return block;
}

Result<void> ModelParser::ParseParameters(const toml::node& node, BlockDescription& block) const {
  const toml::array* array = node.as_array();
  if (array == nullptr || array->size() > kMaxBlockParameters) {
    return At(
        PlaceOf(node.source()),
        fmt::format("'parameters': expected a list of at most {} strings", kMaxBlockParameters));
  }
  for (const toml::node& element : *array) {
    THIMBLE_ASSIGN_OR_RETURN(PlacedText parameter, AsWord("parameters", element));
    if (std::find(kReserved.begin(), kReserved.end(), parameter.text) != kReserved.end()) {
      return At(parameter.place,
                fmt::format("parameter '{}': this name is reserved", parameter.text));
    }
    for (const PlacedText& other : block.parameters) {
      if (other.text == parameter.text) {
        return At(parameter.place, fmt::format("parameter '{}' is given twice", parameter.text));
      }
    }
    block.parameters.push_back(std::move(parameter));
  }
  return {};
}

Result<void> ModelParser::ParseLayers(const toml::node& node, BlockDescription& block) const {
  const toml::array* array = node.as_array();
  if (array == nullptr || array->empty()) {
    return At(PlaceOf(node.source()), "'layers': expected a list of layers, at least one");
  }
  for (const toml::node& element : *array) {
    THIMBLE_ASSIGN_OR_RETURN(LayerDescription layer, ParseLayer(element));
    block.layers.push_back(std::move(layer));
  }
  return {};
}

Result<std::string> ModelParser::ParseType(const toml::table& table) const {
  const toml::node* node = table.get("type");
  if (node == nullptr) return At(PlaceOf(table.source()), "layer has no 'type'");
  THIMBLE_ASSIGN_OR_RETURN(const PlacedText type, AsWord("type", *node));
  if (FindLayerType(type.text) != nullptr || IsBlock(type.text)) return type.text;
  std::vector<std::string_view> known;
  for (const LayerType& candidate : LayerTypes()) known.push_back(candidate.name);
  return At(type.place, fmt::format("unknown type '{}'; expected {} or a block of this file",
                                    type.text, fmt::join(known, ", ")));
}

Result<LayerDescription> ModelParser::ParseLayer(const toml::node& node) const {
  THIMBLE_ASSIGN_OR_RETURN(const toml::table* table, AsTable("a layer", node));
  LayerDescription layer;
  layer.place = PlaceOf(node.source());
  THIMBLE_ASSIGN_OR_RETURN(layer.type, ParseType(*table));
  const LayerKeys keys = KeysOf(layer.type);
  for (const Entry& entry : InOrder(*table)) THIMBLE_TRY(ParseEntry(entry, keys, layer));
  THIMBLE_TRY(Complete(keys, layer));
  if (table->contains("first") && !table->contains("repeat")) {
    return At(layer.first.place, "'first' without 'repeat'");
  }
  THIMBLE_TRY(CheckCounter(layer));
  return layer;
}

// Requires a type that ParseType accepted.
LayerKeys ModelParser::KeysOf(const std::string& type_name) const {
  if (const LayerType* type = FindLayerType(type_name)) {
    return {type->has_parameters, type->has_parameters, type->is_sum, type->keys};
  }
  LayerKeys keys{.may_have_name = true};
  for (const PlacedText& parameter : model_.FindBlock(type_name)->parameters) {
    keys.numbers.push_back({parameter.text, INT64_MIN, INT64_MAX});
  }
  return keys;
}

Result<void> ModelParser::ParseEntry(const Entry& entry, const LayerKeys& keys,
                                     LayerDescription& layer) const {
  const std::string& key = entry.key;
  const toml::node& node = *entry.node;
  const auto number = std::find_if(keys.numbers.begin(), keys.numbers.end(),
                                   [&](const NumberKey& known) { return known.name == key; });
  if (number != keys.numbers.end()) {
    THIMBLE_ASSIGN_OR_RETURN(layer.numbers[key], AsNumber(*number, node));
  } else if (key == "name" && keys.may_have_name) {
    THIMBLE_ASSIGN_OR_RETURN(layer.name, AsName(node));
  } else if (key == "as") {
    THIMBLE_ASSIGN_OR_RETURN(layer.as, AsWord(key, node));
  } else if (key == "from") {
    THIMBLE_ASSIGN_OR_RETURN(layer.from, AsWord(key, node));
  } else if (key == "with" && keys.is_sum) {
    THIMBLE_ASSIGN_OR_RETURN(layer.with, AsWord(key, node));
  } else if (key == "repeat") {
    THIMBLE_ASSIGN_OR_RETURN(layer.repeat, AsNumber(kRepeatKey, node));
  } else if (key == "first") {
    THIMBLE_ASSIGN_OR_RETURN(layer.first, AsNumber(kFirstKey, node));
  } else if (key != "type") {
    return Unknown(entry, keys, layer.type);
  }
  return {};
}

Error ModelParser::Unknown(const Entry& entry, const LayerKeys& keys,
                           const std::string& type) const {
  std::vector<std::string_view> known;
  if (keys.may_have_name) known.push_back("name");
  for (const NumberKey& key : keys.numbers) known.push_back(key.name);
  if (keys.is_sum) known.push_back("with");
  known.insert(known.end(), {"as", "from", "repeat", "first"});
  return At(entry.place, fmt::format("unknown key {}; '{}' takes {}", QuoteName(entry.key), type,
                                     fmt::join(known, ", ")));
}

// Sets omitted keys to their defaults; fails if a required one is missing.
Result<void> ModelParser::Complete(const LayerKeys& keys, LayerDescription& layer) const {
  const auto missing = [&](std::string_view key) {
    return At(layer.place, fmt::format("'{}' needs '{}'", layer.type, key));
  };
  if (keys.must_have_name && layer.name.text.empty()) return missing("name");
  if (keys.is_sum && layer.with.text.empty()) return missing("with");
  for (const NumberKey& key : keys.numbers) {
    if (layer.numbers.contains(std::string(key.name))) continue;
    if (!key.fallback) return missing(key.name);
    layer.numbers[std::string(key.name)] = {*key.fallback, "", layer.place};
  }
  return {};
}

Result<void> ModelParser::CheckCounter(const LayerDescription& layer) const {
  const bool repeated = layer.repeat.place.line != 0;
  const bool counts = HasCounter(layer.name.text);
  if (counts && !repeated) return At(layer.name.place, "{i} in the name requires 'repeat'");
  if (repeated && !counts && !layer.name.text.empty()) {
    return At(layer.name.place,
              fmt::format("'{}' is repeated: its name needs {{i}}, the number of the repetition",
                          layer.name.text));
  }
  return {};
}

}  // namespace

Result<ModelDescription> ParseModel(const std::string& text, const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const toml::table file, ParseToml(text, path));
  return ModelParser(path).Parse(file);
}

}  // namespace thimble
