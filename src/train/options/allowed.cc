#include "thimble/train/options/allowed.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "thimble/base/byte_size.h"
#include "thimble/program/techniques.h"

namespace thimble {
namespace {

constexpr Exactness kClasses[] = {Exactness::kSameBits, Exactness::kEqual, Exactness::kLossy};

// A fraction, a count or a byte size.
std::optional<double> NumberIn(std::string_view text) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc() && end == text.data() + text.size()) return number;
  const Result<int64_t> bytes = ParseByteSize(text);
  return bytes.ok() ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
}

// "fp16" names the values "fp16" and "optimizer=fp16".
bool NamesValue(std::string_view name, std::string_view value) {
  return value == name || value.ends_with(fmt::format("={}", name));
}

// Whether help lists it among the values of a lever.
bool IsKnownValue(std::string_view name) {
  if (name == "q8") return true;  // of --store, which takes pairs
  for (const Lever* lever : Levers()) {
    std::string_view values = lever->takes;
    while (!values.empty() && lever->takes.find('|') != std::string::npos) {
      const size_t end = std::min(values.find('|'), values.size());
      if (values.substr(0, end) == name) return true;
      values.remove_prefix(std::min(end + 1, values.size()));
    }
  }
  return false;
}

std::string LeverNames() {
  std::string names;
  for (const Lever* lever : Levers()) {
    if (lever->worth_trying || lever->budget_steps) names += ", " + lever->name;
  }
  return names;
}

}  // namespace

Result<Allowed::Term> Allowed::ParseTerm(std::string_view text) {
  const auto bad = [&](std::string_view reason) {
    return BadInput(fmt::format("--allow {}: {}", text, reason));
  };
  Term term;
  const size_t end = std::min(text.find_first_of("<>="), text.size());
  term.name = text.substr(0, end);
  const bool is_lever = FindLever(term.name) != nullptr;
  if (end == text.size()) {
    if (is_lever || IsKnownValue(term.name)) return term;
    return bad("expected none, same-bits, equal, lossy, a value such as fp16, or one of" +
               LeverNames().substr(1));
  }
  if (!is_lever) return bad("no such lever; expected one of" + LeverNames().substr(1));
  term.relation = text.substr(end, 2);
  const std::optional<double> limit = NumberIn(text.substr(std::min(end + 2, text.size())));
  if (!limit || (term.relation != "<=" && term.relation != ">=")) {
    return bad(fmt::format("expected a limit, such as {0}<=N or {0}>=N", term.name));
  }
  term.limit = *limit;
  return term;
}

Result<Allowed> Allowed::Parse(std::string_view text) {
  Allowed allowed;
  if (text == "none") return allowed;
  for (bool more = true; more;) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    more = end < text.size();
    text.remove_prefix(more ? end + 1 : end);
    const auto* named = std::ranges::find(kClasses, word, [](Exactness e) { return Name(e); });
    if (named != std::end(kClasses)) {
      if (allowed.most_) return BadInput(fmt::format("--allow: {} is a second class", word));
      allowed.most_ = *named;
      continue;
    }
    THIMBLE_ASSIGN_OR_RETURN(Term term, ParseTerm(word));
    allowed.terms_.push_back(std::move(term));
  }
  return allowed;
}

bool Allowed::Permits(const Lever& lever, const std::string& value, Exactness exactness) const {
  bool is_named = false;
  for (const Term& term : terms_) {
    if (NamesValue(term.name, value)) is_named = true;
    if (term.name != lever.name) continue;
    is_named = true;
    const std::optional<double> number = NumberIn(value);
    if (!number) continue;
    if (term.relation == "<=" && *number > term.limit) return false;
    if (term.relation == ">=" && *number < term.limit) return false;
  }
  return is_named || (most_ && exactness <= *most_);
}

}  // namespace thimble
