// Parses the values of an option as help shows them: "cpu|cuda", "none|blocks[:N]|optimal",
// "shapes|cifar10:DIR", "FILE", "N". Bars separate alternatives, capitals are placeholders for the
// user's input, brackets enclose optional parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thimble {

struct OptionValue {
  std::string word;        // before the placeholder: "cuda", "blocks", "cifar10:"; may be empty
  bool whole = false;      // the word alone is a value
  bool is_file = false;    // the placeholder FILE follows it
  bool is_folder = false;  // the placeholder DIR follows it
};

// The alternatives, in order. Empty for an empty text.
std::vector<OptionValue> ValuesOf(std::string_view text);

// All possible values, if the text has neither placeholders nor brackets; empty otherwise.
std::vector<std::string> OnlyValues(std::string_view text);

// "cpu or cuda", "auto, tf32 or fp32".
std::string AnyOf(const std::vector<std::string>& words);

}  // namespace thimble
