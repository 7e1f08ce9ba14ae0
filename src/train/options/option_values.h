// What an option takes, as help shows it, read by programs: "cpu|cuda", "none|blocks[:N]|optimal",
// "shapes|cifar10:DIR", "FILE", "N". Alternatives stand between bars; capitals stand for what the
// user fills in; brackets for what may be left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thimble {

struct OptionValue {
  std::string word;      // up to what the user fills in: "cuda", "blocks", "cifar10:"; may be empty
  bool whole = false;    // the word alone is a value
  bool is_file = false;  // FILE is filled in behind it
  bool is_folder = false;  // DIR is filled in behind it
};

// The alternatives, in their order. None for an empty text.
std::vector<OptionValue> ValuesOf(std::string_view text);

// The words of a text in which nothing is left to the user, else none: the only values there are.
std::vector<std::string> OnlyValues(std::string_view text);

// "cpu or cuda", "auto, tf32 or fp32".
std::string AnyOf(const std::vector<std::string>& words);

}  // namespace thimble
