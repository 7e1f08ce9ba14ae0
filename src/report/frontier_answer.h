// FrontierAnswer: the result of `thimble plan --sweep`, as a table and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/report/text_style.h"
#include "thimble/train/planning/frontier.h"

namespace thimble {

struct FrontierAnswer {
  std::string model;
  int64_t batch = 0;
  std::string device;  // "cpu", "cuda"
  int64_t plain_arena_bytes = 0;
  std::vector<FrontierPoint> points;  // at least one
};

std::string FrontierText(const FrontierAnswer& answer, const TextStyle& style = {});
std::string ToJson(const FrontierAnswer& answer);

}  // namespace thimble
