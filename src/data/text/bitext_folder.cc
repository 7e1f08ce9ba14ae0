#include "thimble/data/text/bitext_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "thimble/base/quote_name.h"
#include "thimble/data/text/subwords/merge_list.h"

namespace thimble {
namespace {

constexpr std::string_view kTrainPrefix = "train.";
// Files that are being written, or were when a program was killed (base/atomic_file.h).
constexpr std::string_view kOpenFileSuffix = ".tmp";
// Enough to name the languages of any folder in a message.
constexpr size_t kMaxLanguages = 20;

bool FileExists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// The X of all files "train.X", in alphabetical order.
Result<std::vector<std::string>> LanguagesOf(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  std::vector<std::string> languages;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kTrainPrefix) || name.ends_with(kOpenFileSuffix)) continue;
    if (languages.size() == kMaxLanguages) continue;
    languages.push_back(name.substr(kTrainPrefix.size()));
  }
  if (error) {
    return BadInput(
        fmt::format("{}: cannot read the folder: {}; expected parallel text there: train.de, "
                    "train.en, test.de, "
                    "test.en",
                    folder, error.message()));
  }
  std::sort(languages.begin(), languages.end());
  return languages;
}

Result<std::pair<std::string, std::string>> OnlyPair(const std::string& folder) {
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<std::string> languages, LanguagesOf(folder));
  if (languages.size() == 2) return std::pair(languages[0], languages[1]);
  std::string names;
  for (const std::string& language : languages) names += fmt::format(" {}", QuoteName(language));
  return BadInput(fmt::format(
      "{}: expected training text in two languages (train.de and train.en), found {}{}{}; name two "
      "as in bitext:DIR,de-en",
      folder, languages.size(), names.empty() ? "" : ":", names));
}

Result<std::pair<std::string, std::string>> SplitLanguages(const std::string& languages) {
  const size_t dash = languages.find('-');
  const std::string source = languages.substr(0, dash);
  const std::string target = dash == std::string::npos ? "" : languages.substr(dash + 1);
  const bool one_dash = target.find('-') == std::string::npos;
  const bool no_path = languages.find('/') == std::string::npos;
  if (one_dash && no_path && !source.empty() && !target.empty() && source != target) {
    return std::pair(source, target);
  }
  return BadInput(
      fmt::format("languages {}: expected two, source first, as in de-en", QuoteName(languages)));
}

// Both files of an optional kind are there, or neither.
Result<bool> HasBoth(const std::string& first, const std::string& second) {
  const bool has_first = FileExists(first);
  if (has_first == FileExists(second)) return has_first;
  return BadInput(fmt::format("{}: is missing, but {} is there", has_first ? second : first,
                              has_first ? first : second));
}

}  // namespace

BitextArgument SplitBitextArgument(std::string_view argument) {
  const size_t comma = argument.rfind(',');
  const bool has_languages = comma != std::string_view::npos;
  return {std::string(argument.substr(0, comma)),
          std::string(has_languages ? argument.substr(comma + 1) : "")};
}

Result<BitextFolder> FindBitext(const std::string& folder, const std::string& languages) {
  BitextFolder found;
  found.path = folder;
  THIMBLE_ASSIGN_OR_RETURN(std::tie(found.source_language, found.target_language),
                           languages.empty() ? OnlyPair(folder) : SplitLanguages(languages));
  THIMBLE_ASSIGN_OR_RETURN(found.has_validation,
                           HasBoth(found.SourcePath("valid"), found.TargetPath("valid")));
  const std::string source = folder + "/dict." + found.source_language + ".txt";
  const std::string target = folder + "/dict." + found.target_language + ".txt";
  THIMBLE_ASSIGN_OR_RETURN(const bool has_dictionaries, HasBoth(source, target));
  if (has_dictionaries) {
    found.source_dictionary = source;
    found.target_dictionary = target;
  }
  const std::string merges = folder + "/" + kMergesFile;
  if (FileExists(merges)) found.merges = merges;
  return found;
}

}  // namespace thimble
