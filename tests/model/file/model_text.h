// Texts of model files, for tests of the parser.
#pragma once

#include <string>

namespace thimble {

// The section that every file needs, as its last lines.
inline const std::string kInputText =
    "[input]\nheight = 8\nwidth = 8\nchannels = 3\nclasses = 10\n";

// The layers are lines 2, 3, …; blocks come after them.
inline std::string ModelText(const std::string& layers, const std::string& blocks = "") {
  return "layers = [\n" + layers + "]\n" + blocks + kInputText;
}

// A last layer, for ten classes.
inline const std::string kScores = R"({ type = "linear", name = "fc", features = 10 },
)";

}  // namespace thimble
