// LineInput: the lines of a stream that may be a file, a pipe or a terminal, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

struct InputLine {
  std::string text;      // without its line feed
  bool was_cut = false;  // it is longer than kMaxInputLineBytes, so its end is missing
};

inline constexpr size_t kMaxInputLineBytes = size_t{1} << 20;

class LineInput {
 public:
  // Does not close the descriptor.
  explicit LineInput(int descriptor) : descriptor_(descriptor) {}

  // Waits for a line; then takes more, up to `most` (at least 1), as long as they arrive without
  // waiting, so that whoever writes line by line gets an answer to each. Empty at the end of the
  // input. A last line without a line feed is one, too. kFailed if the stream cannot be read.
  Result<std::vector<InputLine>> Next(size_t most);

 private:
  // Reads what is there, at least a byte; waits for it. Sets `ended_` if there is no more.
  Result<void> ReadMore();
  bool CanReadWithoutWaiting() const;
  // Moves the lines that are complete, up to `most`, from the bytes read to `lines`.
  void TakeLines(size_t most, std::vector<InputLine>& lines);
  void AppendToOpenLine(const char* begin, const char* end);

  int descriptor_;
  bool ended_ = false;
  std::string bytes_;    // read, but not taken yet
  size_t taken_ = 0;     // of them
  InputLine open_line_;  // the beginning of a line whose end was not read yet
  bool in_line_ = false;
};

}  // namespace thimble
