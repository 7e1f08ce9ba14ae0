// Which files of a folder are the parallel text of which two languages.
#pragma once

#include <string>
#include <string_view>

#include "thimble/base/result.h"

namespace thimble {

struct BitextFolder {
  std::string path;
  std::string source_language;  // the files' suffixes: "de"
  std::string target_language;
  bool has_validation = false;
  std::string source_dictionary;  // path, or empty if there is none
  std::string target_dictionary;
  std::string merges;  // path of bpe.codes, or empty if there is none

  // Of "train", "valid" or "test".
  std::string SourcePath(const std::string& part) const { return FilePath(part, source_language); }
  std::string TargetPath(const std::string& part) const { return FilePath(part, target_language); }

 private:
  std::string FilePath(const std::string& part, const std::string& language) const {
    return path + "/" + part + "." + language;
  }
};

// "DIR" or "DIR,de-en", the argument of "bitext:". A folder's name may have a comma, if the
// languages follow.
struct BitextArgument {
  std::string folder;
  std::string languages;  // or empty
};
BitextArgument SplitBitextArgument(std::string_view argument);

// Looks for files, but opens none. `languages` as in OpenBitext. BadInput, with what was found, if
// the folder is missing, the languages are not clear, or only one of two files is there.
Result<BitextFolder> FindBitext(const std::string& folder, const std::string& languages);

}  // namespace thimble
