#include "thimble/model/file/parse_translator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "thimble/base/quote_name.h"
#include "thimble/model/file/toml_entries.h"

namespace thimble {
namespace {

struct SizeKey {
  const char* name;
  int64_t most;
  int64_t TranslatorSpec::*value;
};
constexpr std::array<SizeKey, 3> kSizes = {
    {{"width", 1 << 16, &TranslatorSpec::width},
     {"feed_forward", 1 << 16, &TranslatorSpec::feed_forward},
     {"heads", 1 << 10, &TranslatorSpec::heads}}};

struct KernelsKey {
  const char* name;
  std::vector<int64_t> TranslatorSpec::*value;
};
constexpr std::array<KernelsKey, 2> kKernels = {
    {{"encoder_kernels", &TranslatorSpec::encoder_kernels},
     {"decoder_kernels", &TranslatorSpec::decoder_kernels}}};
constexpr int64_t kLargestKernel = 1024;
constexpr size_t kMostLayers = 256;

struct ShareKey {
  const char* name;
  double TranslatorSpec::*value;
};
constexpr std::array<ShareKey, 4> kShares = {
    {{"dropout", &TranslatorSpec::dropout},
     {"attention_dropout", &TranslatorSpec::attention_dropout},
     {"tap_dropout", &TranslatorSpec::tap_dropout},
     {"label_smoothing", &TranslatorSpec::label_smoothing}}};

// The key among those of a list, or null.
template <class Keys>
auto FindKey(const Keys& keys, const std::string& name) {
  const auto found = std::ranges::find(keys, name, [](const auto& key) { return key.name; });
  return found == keys.end() ? nullptr : &*found;
}

class TranslatorParser {
 public:
  explicit TranslatorParser(const std::string& path) : path_(path) {}

  Result<TranslatorSpec> Parse(const toml::table& file) {
    for (const Entry& entry : InOrder(file)) {
      if (entry.key == kTranslatorTable) continue;
      return ErrorAt(path_, entry.place,
                     fmt::format("unknown key {}; a network for translation has [translator] alone",
                                 QuoteName(entry.key)));
    }
    const toml::node& node = *file.get(kTranslatorTable);
    if (!node.is_table())
      return ErrorAt(path_, PlaceOf(node.source()), "[translator]: expected a table");
    for (const Entry& entry : InOrder(*node.as_table())) THIMBLE_TRY(ParseEntry(entry));
    for (const KernelsKey& kernels : kKernels) {
      if (!(spec_.*kernels.value).empty()) continue;
      return ErrorAt(
          path_, PlaceOf(node.source()),
          fmt::format("[translator] has no '{}': the kernel of each layer, such as [3, 7]",
                      kernels.name));
    }
    return std::move(spec_);
  }

 private:
  Result<void> ParseEntry(const Entry& entry);
  Result<int64_t> WholeNumber(const std::string& key, const toml::node& node, int64_t least,
                              int64_t most) const;
  Result<std::vector<int64_t>> Kernels(const Entry& entry) const;
  Result<double> Share(const Entry& entry) const;

  const std::string& path_;
  TranslatorSpec spec_;
};

Result<int64_t> TranslatorParser::WholeNumber(const std::string& key, const toml::node& node,
                                              int64_t least, int64_t most) const {
  const auto* number = node.as_integer();
  if (number != nullptr && number->get() >= least && number->get() <= most) return number->get();
  return ErrorAt(path_, PlaceOf(node.source()),
                 fmt::format("'{}': expected a whole number from {} to {}", key, least, most));
}

Result<std::vector<int64_t>> TranslatorParser::Kernels(const Entry& entry) const {
  const toml::array* array = entry.node->as_array();
  if (array == nullptr || array->empty() || array->size() > kMostLayers) {
    return ErrorAt(path_, PlaceOf(entry.node->source()),
                   fmt::format("'{}': expected a list of 1 to {} whole numbers, the kernel of each "
                               "layer",
                               entry.key, kMostLayers));
  }
  std::vector<int64_t> kernels;
  for (const toml::node& element : *array) {
    THIMBLE_ASSIGN_OR_RETURN(const int64_t kernel,
                             WholeNumber(entry.key, element, 2, kLargestKernel));
    kernels.push_back(kernel);
  }
  return kernels;
}

Result<double> TranslatorParser::Share(const Entry& entry) const {
  const std::optional<double> number = entry.node->value<double>();
  if (number && *number >= 0 && *number < 1) return *number;
  return ErrorAt(path_, PlaceOf(entry.node->source()),
                 fmt::format("'{}': expected a number from 0 to less than 1", entry.key));
}

Result<void> TranslatorParser::ParseEntry(const Entry& entry) {
  if (const SizeKey* size = FindKey(kSizes, entry.key)) {
    THIMBLE_ASSIGN_OR_RETURN(spec_.*size->value,
                             WholeNumber(entry.key, *entry.node, 1, size->most));
  } else if (const KernelsKey* kernels = FindKey(kKernels, entry.key)) {
    THIMBLE_ASSIGN_OR_RETURN(spec_.*kernels->value, Kernels(entry));
  } else if (const ShareKey* share = FindKey(kShares, entry.key)) {
    THIMBLE_ASSIGN_OR_RETURN(spec_.*share->value, Share(entry));
  } else {
    std::vector<std::string_view> known;
    for (const SizeKey& key : kSizes) known.emplace_back(key.name);
    for (const KernelsKey& key : kKernels) known.emplace_back(key.name);
    for (const ShareKey& key : kShares) known.emplace_back(key.name);
    return ErrorAt(path_, entry.place,
                   fmt::format("unknown key {}; [translator] has {}", QuoteName(entry.key),
                               fmt::join(known, ", ")));
  }
  return {};
}

}  // namespace

bool HasTranslatorTable(const std::string& text) {
  const auto file = ParseToml(text, "");
  return file.ok() && file->contains(kTranslatorTable);
}

Result<TranslatorSpec> ParseTranslator(std::string text, const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const toml::table file, ParseToml(text, path));
  if (!file.contains(kTranslatorTable)) {
    return ErrorAt(path, {1, 1},
                   "no [translator]: the data are text, which this network cannot read");
  }
  THIMBLE_ASSIGN_OR_RETURN(TranslatorSpec spec, TranslatorParser(path).Parse(file));
  spec.text = std::move(text);
  return spec;
}

}  // namespace thimble
