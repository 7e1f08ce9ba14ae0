#include "thimble/data/text/line_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "thimble/base/check.h"

namespace thimble {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;  // what a pipe holds

}  // namespace

bool LineInput::CanReadWithoutWaiting() const {
  pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, 0) > 0;
}

Result<void> LineInput::ReadMore() {
  bytes_.resize(kReadBytes);
  taken_ = 0;
  ssize_t count = 0;
  do {
    count = ::read(descriptor_, bytes_.data(), bytes_.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    return Failed(fmt::format("standard input: cannot read: {}", std::strerror(errno)));
  }
  bytes_.resize(static_cast<size_t>(count));
  ended_ = count == 0;
  return {};
}

void LineInput::AppendToOpenLine(const char* begin, const char* end) {
  const auto bytes = static_cast<size_t>(end - begin);
  const size_t room = kMaxInputLineBytes - open_line_.text.size();
  open_line_.text.append(begin, std::min(bytes, room));
  open_line_.was_cut |= bytes > room;
  in_line_ = true;
}

void LineInput::TakeLines(size_t most, std::vector<InputLine>& lines) {
  const char* const end = bytes_.data() + bytes_.size();
  while (taken_ < bytes_.size() && lines.size() < most) {
    const char* const begin = bytes_.data() + taken_;
    const char* const feed = std::find(begin, end, '\n');
    AppendToOpenLine(begin, feed);
    taken_ = static_cast<size_t>(feed - bytes_.data());
    if (feed == end) return;
    ++taken_;
    lines.push_back(std::exchange(open_line_, {}));
    in_line_ = false;
  }
}

Result<std::vector<InputLine>> LineInput::Next(size_t most) {
  THIMBLE_CHECK(most >= 1, "asked for {} lines", most);
  std::vector<InputLine> lines;
  while (true) {
    TakeLines(most, lines);
    if (lines.size() == most || ended_) break;
    if (!lines.empty() && !CanReadWithoutWaiting()) break;
    THIMBLE_TRY(ReadMore());
    if (!ended_ || !in_line_) continue;
    lines.push_back(std::exchange(open_line_, {}));
    in_line_ = false;
  }
  return lines;
}

}  // namespace thimble
