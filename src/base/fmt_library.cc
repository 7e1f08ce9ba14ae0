// The functions of fmt that normally live in its library, compiled from its headers: Debian has
// only the shared library, and our programs are to run without it (decision 17). If one is missing
// here, linking fails and names it.
#include <fmt/format-inl.h>

template char fmt::detail::decimal_point_impl<char>(locale_ref);
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(locale_ref);
template fmt::detail::dragonbox::decimal_fp<float> fmt::detail::dragonbox::to_decimal(
    float) noexcept;
template fmt::detail::dragonbox::decimal_fp<double> fmt::detail::dragonbox::to_decimal(
    double) noexcept;
