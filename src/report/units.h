// Numbers as people read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace thimble {

std::string BytesText(size_t bytes);                   // "393.80 MB"
std::string CountText(int64_t count);                  // "1,467,610"
std::string ShareText(double part, double whole);      // "95.2 %"; empty where there is no whole
std::string FlopsText(int64_t flops);                  // "129.72 GFLOP"
std::string RatioText(double larger, double smaller);  // "1.23x"; empty where there is no smaller

}  // namespace thimble
