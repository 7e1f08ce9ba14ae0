#include "thimble/data/text/number_words.h"

#include "thimble/base/check.h"

namespace thimble {
namespace {

// Index: the number. "eins" and "ein" are chosen apart.
constexpr std::array<std::string_view, 13> kGermanSmall = {
    "null",   "eins", "zwei", "drei", "vier", "fünf", "sechs",
    "sieben", "acht", "neun", "zehn", "elf",  "zwölf"};
constexpr std::array<std::string_view, 13> kGermanSmallGlued = {
    "",         "ein@@",  "zwei@@", "drei@@", "vier@@", "fünf@@", "sechs@@",
    "sieben@@", "acht@@", "neun@@", "zehn@@", "elf@@",  "zwölf@@"};
// The first part of 13 to 19, and the number of tens from 20 on.
constexpr std::array<std::string_view, 10> kGermanTeens = {
    "", "", "", "drei@@", "vier@@", "fünf@@", "sech@@", "sieb@@", "acht@@", "neun@@"};
constexpr std::array<std::string_view, 10> kGermanTens = {
    "", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};
constexpr std::array<std::string_view, 10> kGermanTensGlued = {
    "",          "",          "zwanzig@@", "dreißig@@", "vierzig@@",
    "fünfzig@@", "sechzig@@", "siebzig@@", "achtzig@@", "neunzig@@"};

constexpr std::array<std::string_view, 20> kEnglishSmall = {
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<std::string_view, 10> kEnglishTens = {
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr std::array<std::string_view, 20> kEnglishOrdinals = {
    "",           "first",     "second",    "third",       "fourth",     "fifth",     "sixth",
    "seventh",    "eighth",    "ninth",     "tenth",       "eleventh",   "twelfth",   "thirteenth",
    "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"};
constexpr std::array<std::string_view, 10> kEnglishTensOrdinals = {
    "",         "",         "twentieth",  "thirtieth", "fortieth",
    "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth"};

constexpr std::array<std::string_view, 61> kGermanTokens = {
    "null",      "eins",      "ein",       "zwei",      "drei",      "vier",      "fünf",
    "sechs",     "sieben",    "acht",      "neun",      "zehn",      "elf",       "zwölf",
    "ein@@",     "zwei@@",    "drei@@",    "vier@@",    "fünf@@",    "sechs@@",   "sech@@",
    "sieben@@",  "sieb@@",    "acht@@",    "neun@@",    "zehn@@",    "elf@@",     "zwölf@@",
    "und@@",     "zwanzig",   "dreißig",   "vierzig",   "fünfzig",   "sechzig",   "siebzig",
    "achtzig",   "neunzig",   "zwanzig@@", "dreißig@@", "vierzig@@", "fünfzig@@", "sechzig@@",
    "siebzig@@", "achtzig@@", "neunzig@@", "hundert",   "hundert@@", "tausend",   "tausend@@",
    "erste",     "ersten",    "dritte",    "dritten",   "siebte",    "siebten",   "achte",
    "achten",    "te",        "ten",       "ste",       "sten"};
constexpr std::array<std::string_view, 59> kEnglishTokens = {
    "zero",       "one",        "two",        "three",     "four",      "five",        "six",
    "seven",      "eight",      "nine",       "ten",       "eleven",    "twelve",      "thirteen",
    "fourteen",   "fifteen",    "sixteen",    "seventeen", "eighteen",  "nineteen",    "twenty",
    "thirty",     "forty",      "fifty",      "sixty",     "seventy",   "eighty",      "ninety",
    "hundred",    "thousand",   "oh",         "first",     "second",    "third",       "fourth",
    "fifth",      "sixth",      "seventh",    "eighth",    "ninth",     "tenth",       "eleventh",
    "twelfth",    "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth",
    "nineteenth", "twentieth",  "thirtieth",  "fortieth",  "fiftieth",  "sixtieth",    "seventieth",
    "eightieth",  "ninetieth",  "hundredth"};

// Requires 1 <= n < 100.
void AddGermanBelowHundred(int32_t n, GermanEnd end, TokenList& tokens) {
  const bool glued = end == GermanEnd::kGlued;
  if (n == 1 && end == GermanEnd::kBeforeNoun) return tokens.Add("ein");
  if (n <= 12) return tokens.Add(glued ? kGermanSmallGlued[n] : kGermanSmall[n]);
  if (n < 20) {
    tokens.Add(kGermanTeens[n % 10]);
    return tokens.Add(glued ? "zehn@@" : "zehn");
  }
  if (n % 10 != 0) {
    tokens.Add(kGermanSmallGlued[n % 10]);
    tokens.Add("und@@");
  }
  tokens.Add(glued ? kGermanTensGlued[n / 10] : kGermanTens[n / 10]);
}

// Requires 1 <= n < 1,000.
void AddGermanBelowThousand(int32_t n, GermanEnd end, TokenList& tokens) {
  const int32_t rest = n % 100;
  if (n >= 100) {
    tokens.Add(kGermanSmallGlued[n / 100]);
    tokens.Add(rest != 0 || end == GermanEnd::kGlued ? "hundert@@" : "hundert");
  }
  if (rest != 0) AddGermanBelowHundred(rest, end, tokens);
}

// Requires 1 <= n < 100.
void AddEnglishBelowHundred(int32_t n, TokenList& tokens) {
  if (n < 20) return tokens.Add(kEnglishSmall[n]);
  tokens.Add(kEnglishTens[n / 10]);
  if (n % 10 != 0) tokens.Add(kEnglishSmall[n % 10]);
}

// Requires 1 <= n < 1,000.
void AddEnglishBelowThousand(int32_t n, TokenList& tokens) {
  if (n >= 100) {
    tokens.Add(kEnglishSmall[n / 100]);
    tokens.Add("hundred");
  }
  if (n % 100 != 0) AddEnglishBelowHundred(n % 100, tokens);
}

// The ordinals that are not a cardinal number and an ending; empty for others.
std::string_view IrregularOrdinal(int32_t n, bool with_n) {
  switch (n) {
    case 1:
      return with_n ? "ersten" : "erste";
    case 3:
      return with_n ? "dritten" : "dritte";
    case 7:
      return with_n ? "siebten" : "siebte";
    case 8:
      return with_n ? "achten" : "achte";
    default:
      return {};
  }
}

}  // namespace

void TokenList::Add(std::string_view token) {
  THIMBLE_CHECK(size_ < kMaxTokens, "more than {} tokens", kMaxTokens);
  tokens_[size_++] = token;
}

void AddGermanNumber(int32_t n, GermanEnd end, TokenList& tokens) {
  THIMBLE_CHECK(n >= 0 && n < 1'000'000, "number {}", n);
  THIMBLE_CHECK(end != GermanEnd::kBeforeNoun || n == 1 || n % 100 != 1, "{} things", n);
  THIMBLE_CHECK(end != GermanEnd::kGlued || n != 0, "a word that begins with 0");
  if (n == 0) return tokens.Add(kGermanSmall[0]);
  const int32_t rest = n % 1000;
  if (n >= 1000) {
    AddGermanBelowThousand(n / 1000, GermanEnd::kGlued, tokens);
    tokens.Add(rest != 0 || end == GermanEnd::kGlued ? "tausend@@" : "tausend");
  }
  if (rest != 0) AddGermanBelowThousand(rest, end, tokens);
}

void AddEnglishNumber(int32_t n, TokenList& tokens) {
  THIMBLE_CHECK(n >= 0 && n < 1'000'000, "number {}", n);
  if (n == 0) return tokens.Add(kEnglishSmall[0]);
  if (n >= 1000) {
    AddEnglishBelowThousand(n / 1000, tokens);
    tokens.Add("thousand");
  }
  if (n % 1000 != 0) AddEnglishBelowThousand(n % 1000, tokens);
}

void AddGermanOrdinal(int32_t n, GermanCase ending, TokenList& tokens) {
  THIMBLE_CHECK(n >= 1 && n < 1000, "ordinal {}", n);
  const bool with_n = ending == GermanCase::kWithN;
  const int32_t rest = n % 100;
  const std::string_view irregular = IrregularOrdinal(rest, with_n);
  if (irregular.empty()) {
    AddGermanBelowThousand(n, GermanEnd::kGlued, tokens);
    if (rest >= 1 && rest < 20) return tokens.Add(with_n ? "ten" : "te");
    return tokens.Add(with_n ? "sten" : "ste");
  }
  if (n >= 100) AddGermanBelowThousand(n - rest, GermanEnd::kGlued, tokens);
  tokens.Add(irregular);
}

void AddEnglishOrdinal(int32_t n, TokenList& tokens) {
  THIMBLE_CHECK(n >= 1 && n < 1000, "ordinal {}", n);
  const int32_t rest = n % 100;
  if (n >= 100) {
    tokens.Add(kEnglishSmall[n / 100]);
    tokens.Add(rest == 0 ? "hundredth" : "hundred");
  }
  if (rest == 0) return;
  if (rest < 20) return tokens.Add(kEnglishOrdinals[rest]);
  if (rest % 10 == 0) return tokens.Add(kEnglishTensOrdinals[rest / 10]);
  tokens.Add(kEnglishTens[rest / 10]);
  tokens.Add(kEnglishOrdinals[rest % 10]);
}

void AddGermanYear(int32_t year, TokenList& tokens) {
  THIMBLE_CHECK(year >= 1100 && year < 10'000, "year {}", year);
  if (year >= 2000) return AddGermanNumber(year, GermanEnd::kAlone, tokens);
  AddGermanBelowHundred(year / 100, GermanEnd::kGlued, tokens);
  const int32_t rest = year % 100;
  tokens.Add(rest != 0 ? "hundert@@" : "hundert");
  if (rest != 0) AddGermanBelowHundred(rest, GermanEnd::kAlone, tokens);
}

void AddEnglishYear(int32_t year, TokenList& tokens) {
  THIMBLE_CHECK(year >= 1100 && year < 10'000, "year {}", year);
  if (year >= 2000) return AddEnglishNumber(year, tokens);
  AddEnglishBelowHundred(year / 100, tokens);
  const int32_t rest = year % 100;
  if (rest == 0) return tokens.Add("hundred");
  if (rest < 10) tokens.Add("oh");
  AddEnglishBelowHundred(rest, tokens);
}

std::span<const std::string_view> GermanNumberTokens() { return kGermanTokens; }
std::span<const std::string_view> EnglishNumberTokens() { return kEnglishTokens; }

}  // namespace thimble
