// Numbers in readable form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace thimble {

std::string BytesText(size_t bytes);                   // "393.80 MB"
std::string CountText(int64_t count);                  // "1,467,610"
std::string ShareText(double part, double whole);      // "95.2 %"; empty if whole is 0
std::string FlopsText(int64_t flops);                  // "129.72 GFLOP"
std::string RatioText(double larger, double smaller);  // "1.23x"; empty if smaller is 0

}  // namespace thimble
