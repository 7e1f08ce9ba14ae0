#include "thimble/data/text/number_phrases.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace thimble {
namespace {

// A word or group of words in both languages. English ones may have several words.
struct Wording {
  std::string_view german;
  std::array<std::string_view, 3> english;
};

constexpr std::array<Wording, 12> kMonths = {{{"Januar", {"january"}},
                                              {"Februar", {"february"}},
                                              {"März", {"march"}},
                                              {"April", {"april"}},
                                              {"Mai", {"may"}},
                                              {"Juni", {"june"}},
                                              {"Juli", {"july"}},
                                              {"August", {"august"}},
                                              {"September", {"september"}},
                                              {"Oktober", {"october"}},
                                              {"November", {"november"}},
                                              {"Dezember", {"december"}}}};
constexpr std::array<int32_t, 12> kDaysOfMonth = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
constexpr std::array<Wording, 7> kWeekdays = {{{"Montag", {"monday"}},
                                               {"Dienstag", {"tuesday"}},
                                               {"Mittwoch", {"wednesday"}},
                                               {"Donnerstag", {"thursday"}},
                                               {"Freitag", {"friday"}},
                                               {"Samstag", {"saturday"}},
                                               {"Sonntag", {"sunday"}}}};
// Before a clock time; nothing is one of them.
constexpr std::array<Wording, 6> kBeforeTimes = {{{"", {}},
                                                  {"um", {"at"}},
                                                  {"gegen", {"around"}},
                                                  {"bis", {"until"}},
                                                  {"ab", {"from"}},
                                                  {"seit", {"since"}}}};
// After a clock time of twelve hours.
constexpr std::array<Wording, 5> kTimesOfDay = {{{"", {}},
                                                 {"morgens", {"in", "the", "morning"}},
                                                 {"nachmittags", {"in", "the", "afternoon"}},
                                                 {"abends", {"in", "the", "evening"}},
                                                 {"nachts", {"at", "night"}}}};

// The words that are written in the functions below.
constexpr std::array<std::string_view, 18> kOtherGerman = {
    "der",     "jeder", "zum", "Mal",  "am",   "dem",  "im",  ",",       "Uhr",
    "Viertel", "halb",  "vor", "nach", "Euro", "Cent", "und", "Prozent", "Komma"};
constexpr std::array<std::string_view, 21> kOtherEnglish = {
    "the",  "every", "for", "time", "on",    "of",   "in",    ",",   "o'clock", "a",    "quarter",
    "half", "past",  "to",  "euro", "euros", "cent", "cents", "and", "percent", "point"};

// The random numbers of one phrase.
class PhraseDraws {
 public:
  PhraseDraws(const RandomSource& source, uint32_t step, uint32_t sample, uint32_t attempt)
      : source_(source), step_(step), sample_(sample), attempt_(attempt) {}

  // In [low, high].
  int32_t Between(int32_t low, int32_t high) {
    return low +
           static_cast<int32_t>(UniformBelow(NextWord(), static_cast<uint32_t>(high - low + 1)));
  }
  bool OneIn(int32_t n) { return Between(1, n) == 1; }
  template <class Choices>
  const auto& Choose(const Choices& choices) {
    return choices[static_cast<size_t>(Between(0, static_cast<int32_t>(choices.size()) - 1))];
  }

 private:
  uint32_t NextWord() {
    if (used_ % 4 == 0)
      words_ = source_.Words(step_, sample_, uint64_t{attempt_} << 32 | used_ / 4);
    return words_[used_++ % 4];
  }

  const RandomSource& source_;
  uint32_t step_, sample_, attempt_;
  uint32_t used_ = 0;
  std::array<uint32_t, 4> words_{};
};

void Say(const Wording& wording, NumberPhrase& phrase) {
  if (!wording.german.empty()) phrase.german.Add(wording.german);
  for (const std::string_view word : wording.english) {
    if (!word.empty()) phrase.english.Add(word);
  }
}

void SayNumber(int32_t n, GermanEnd end, NumberPhrase& phrase) {
  AddGermanNumber(n, end, phrase.german);
  AddEnglishNumber(n, phrase.english);
}

void SayOrdinal(int32_t n, GermanCase ending, NumberPhrase& phrase) {
  AddGermanOrdinal(n, ending, phrase.german);
  AddEnglishOrdinal(n, phrase.english);
}

void SayYear(int32_t year, NumberPhrase& phrase) {
  AddGermanYear(year, phrase.german);
  AddEnglishYear(year, phrase.english);
}

// Below 10^2, 10^3, …, or 10^max_digits, each equally likely: short numbers are as frequent as long
// ones, but those of one digit are rare, because there are too few to be different in each split.
int32_t DrawNumber(PhraseDraws& draws, int32_t max_digits) {
  int32_t limit = 1;
  for (int32_t digits = draws.Between(2, max_digits); digits > 0; --digits) limit *= 10;
  return draws.Between(0, limit - 1);
}

// A number of things: not 0, and not 101, 201, …, for which German has two ways.
int32_t DrawAmount(PhraseDraws& draws, int32_t max_digits) {
  const int32_t n = DrawNumber(draws, max_digits);
  return n == 0 || (n > 1 && n % 100 == 1) ? n + 2 : n;
}

void SayOrdinalPhrase(PhraseDraws& draws, NumberPhrase& phrase) {
  int32_t n = DrawNumber(draws, 3);
  if (n == 0) n = 1;
  switch (draws.Between(0, 2)) {
    case 0:
      Say({"der", {"the"}}, phrase);
      return SayOrdinal(n, GermanCase::kPlain, phrase);
    case 1:
      Say({"jeder", {"every"}}, phrase);
      return SayOrdinal(n, GermanCase::kPlain, phrase);
    default:
      Say({"zum", {"for", "the"}}, phrase);
      SayOrdinal(n, GermanCase::kWithN, phrase);
      return Say({"Mal", {"time"}}, phrase);
  }
}

int32_t DrawYear(PhraseDraws& draws) {
  return draws.OneIn(2) ? draws.Between(1900, 2099) : draws.Between(1100, 2999);
}

void SayDate(PhraseDraws& draws, NumberPhrase& phrase) {
  const int32_t month = draws.Between(0, 11);
  const int32_t form = draws.Between(0, 3);
  if (form == 0) {
    Say({"im", {"in"}}, phrase);
    Say(kMonths[month], phrase);
    return SayYear(DrawYear(draws), phrase);
  }
  if (form == 1) {
    Say({"der", {"the"}}, phrase);
  } else if (form == 2) {
    Say({"am", {"on", "the"}}, phrase);
  } else {
    Say({"am", {"on"}}, phrase);
    Say(draws.Choose(kWeekdays), phrase);
    Say({",", {","}}, phrase);
    Say({"dem", {"the"}}, phrase);
  }
  const int32_t day = draws.Between(1, kDaysOfMonth[month]);
  SayOrdinal(day, form == 1 ? GermanCase::kPlain : GermanCase::kWithN, phrase);
  phrase.english.Add("of");
  Say(kMonths[month], phrase);
  if (draws.OneIn(2)) SayYear(DrawYear(draws), phrase);
}

// "vierzehn Uhr dreißig", "vierzehn Uhr".
void SayClock(PhraseDraws& draws, int32_t hour, NumberPhrase& phrase) {
  SayNumber(hour, GermanEnd::kBeforeNoun, phrase);
  phrase.german.Add("Uhr");
  if (draws.OneIn(3)) return phrase.english.Add("o'clock");
  const int32_t minute = draws.Between(1, 59);
  if (minute < 10) phrase.english.Add("oh");
  SayNumber(minute, GermanEnd::kAlone, phrase);
}

// "zehn vor acht", "Viertel nach acht".
void SayMinutesAround(PhraseDraws& draws, int32_t hour, NumberPhrase& phrase) {
  constexpr std::array<int32_t, 4> kMinutes = {5, 10, 15, 20};
  const int32_t minutes = draws.Choose(kMinutes);
  if (minutes == 15) {
    Say({"Viertel", {"a", "quarter"}}, phrase);
  } else {
    SayNumber(minutes, GermanEnd::kAlone, phrase);
  }
  Say(draws.OneIn(2) ? Wording{"vor", {"to"}} : Wording{"nach", {"past"}}, phrase);
  SayNumber(hour, GermanEnd::kAlone, phrase);
}

// "halb acht", which is half past seven, "fünf vor halb acht", "fünf nach halb acht".
void SayHalf(PhraseDraws& draws, int32_t hour, NumberPhrase& phrase) {
  const int32_t hour_before = hour == 1 ? 12 : hour - 1;
  switch (draws.Between(0, 2)) {
    case 0:
      Say({"halb", {"half", "past"}}, phrase);
      AddEnglishNumber(hour_before, phrase.english);
      break;
    case 1:
      Say({"fünf", {"twenty", "five", "past"}}, phrase);
      Say({"vor", {}}, phrase);
      Say({"halb", {}}, phrase);
      AddEnglishNumber(hour_before, phrase.english);
      break;
    default:
      Say({"fünf", {"twenty", "five", "to"}}, phrase);
      Say({"nach", {}}, phrase);
      Say({"halb", {}}, phrase);
      AddEnglishNumber(hour, phrase.english);
  }
  AddGermanNumber(hour, GermanEnd::kAlone, phrase.german);
}

void SayTime(PhraseDraws& draws, NumberPhrase& phrase) {
  Say(draws.Choose(kBeforeTimes), phrase);
  const int32_t form = draws.Between(0, 3);
  if (form == 0) return SayClock(draws, draws.Between(13, 23), phrase);
  const int32_t hour = draws.Between(1, 12);
  if (form == 1) SayClock(draws, hour, phrase);
  if (form == 2) SayMinutesAround(draws, hour, phrase);
  if (form == 3) SayHalf(draws, hour, phrase);
  Say(draws.Choose(kTimesOfDay), phrase);
}

void SayCents(int32_t cents, NumberPhrase& phrase) {
  SayNumber(cents, GermanEnd::kBeforeNoun, phrase);
  Say({"Cent", {cents == 1 ? "cent" : "cents"}}, phrase);
}

void SayPrice(PhraseDraws& draws, NumberPhrase& phrase) {
  const int32_t form = draws.Between(0, 3);
  const int32_t cents = draws.Between(1, 99);
  if (form == 0) return SayCents(cents, phrase);
  const int32_t euros = DrawAmount(draws, 4);
  SayNumber(euros, GermanEnd::kBeforeNoun, phrase);
  Say({"Euro", {euros == 1 ? "euro" : "euros"}}, phrase);
  if (form == 1) return;
  if (form == 2) return SayNumber(cents, GermanEnd::kAlone, phrase);
  Say({"und", {"and"}}, phrase);
  SayCents(cents, phrase);
}

void SayDecimal(PhraseDraws& draws, NumberPhrase& phrase) {
  SayNumber(DrawNumber(draws, 3), GermanEnd::kAlone, phrase);
  Say({"Komma", {"point"}}, phrase);
  for (int32_t digits = draws.Between(1, 4); digits > 0; --digits) {
    SayNumber(draws.Between(0, 9), GermanEnd::kAlone, phrase);
  }
}

void SayPercentage(PhraseDraws& draws, NumberPhrase& phrase) {
  const bool whole = draws.OneIn(2);
  if (whole) SayNumber(DrawAmount(draws, 3), GermanEnd::kBeforeNoun, phrase);
  if (!whole) SayDecimal(draws, phrase);
  Say({"Prozent", {"percent"}}, phrase);
}

// Collects tokens, each once.
class TokenCollection {
 public:
  void Add(std::string_view token) {
    const bool known = std::find(tokens_.begin(), tokens_.end(), token) != tokens_.end();
    if (!token.empty() && !known) tokens_.push_back(token);
  }
  void AddAll(std::span<const std::string_view> tokens) {
    for (const std::string_view token : tokens) Add(token);
  }
  std::vector<std::string_view> Take() { return std::move(tokens_); }

 private:
  std::vector<std::string_view> tokens_;
};

template <class Visit>
void ForEachWording(Visit visit) {
  for (const Wording& wording : kMonths) visit(wording);
  for (const Wording& wording : kWeekdays) visit(wording);
  for (const Wording& wording : kBeforeTimes) visit(wording);
  for (const Wording& wording : kTimesOfDay) visit(wording);
}

}  // namespace

std::vector<std::string_view> GermanPhraseTokens() {
  TokenCollection all;
  all.AddAll(GermanNumberTokens());
  all.AddAll(kOtherGerman);
  ForEachWording([&](const Wording& wording) { all.Add(wording.german); });
  return all.Take();
}

std::vector<std::string_view> EnglishPhraseTokens() {
  TokenCollection all;
  all.AddAll(EnglishNumberTokens());
  all.AddAll(kOtherEnglish);
  ForEachWording([&](const Wording& wording) { all.AddAll(wording.english); });
  return all.Take();
}

NumberPhrase DrawNumberPhrase(const RandomSource& source, uint32_t step, uint32_t sample,
                              uint32_t attempt) {
  PhraseDraws draws(source, step, sample, attempt);
  NumberPhrase phrase;
  // In twentieths: numbers 5, dates 4, times 4, prices 3, ordinals 2, percentages and decimals 1.
  const int32_t kind = draws.Between(1, 20);
  if (kind <= 5) {
    SayNumber(DrawNumber(draws, 6), GermanEnd::kAlone, phrase);
  } else if (kind <= 9) {
    SayDate(draws, phrase);
  } else if (kind <= 13) {
    SayTime(draws, phrase);
  } else if (kind <= 16) {
    SayPrice(draws, phrase);
  } else if (kind <= 18) {
    SayOrdinalPhrase(draws, phrase);
  } else if (kind == 19) {
    SayPercentage(draws, phrase);
  } else {
    SayDecimal(draws, phrase);
  }
  return phrase;
}

}  // namespace thimble
