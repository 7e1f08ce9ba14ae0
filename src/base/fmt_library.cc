// The functions of fmt that normally live in its library, instantiated from its headers: Debian has
// only the shared library, and our programs are to run without it (decision 17). If one is missing
// here, linking fails and names it.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include <cstdio>

template char fmt::detail::decimal_point_impl<char>(locale_ref);
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(locale_ref);
template fmt::detail::dragonbox::decimal_fp<float> fmt::detail::dragonbox::to_decimal(
    float) noexcept;
template fmt::detail::dragonbox::decimal_fp<double> fmt::detail::dragonbox::to_decimal(
    double) noexcept;

namespace thimble {

// Taking the address of an inline function instantiates it.
struct FmtFunctions {
  std::string (*vformat)(fmt::string_view, fmt::format_args) = &fmt::vformat;
  void (*vprint)(fmt::string_view, fmt::format_args) = &fmt::vprint;
  void (*vprint_to)(std::FILE*, fmt::string_view, fmt::format_args) = &fmt::vprint;
  bool (*is_printable)(uint32_t) = &fmt::detail::is_printable;
  void (*throw_format_error)(const char*) = &fmt::detail::throw_format_error;
  void (*assert_fail)(const char*, int, const char*) = &fmt::detail::assert_fail;
};
extern const FmtFunctions kFmtFunctions;
const FmtFunctions kFmtFunctions;

}  // namespace thimble
