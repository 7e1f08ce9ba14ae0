// Plans as JSON: writes and reads the run folder's plan.json.
#pragma once

#include <string>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/plan/program_record.h"

namespace thimble {

// The whole record, one line per step and holding, with derived totals for readers: the peak step
// and its categories.
std::string ToJson(const ProgramRecord& record);

// Parses the output of ToJson. The text is not trusted: a returned record has live ranges within
// the steps, bytes within the arena and at least one plan. An error says where and what was
// expected.
Result<ProgramRecord> ProgramRecordFromJson(std::string_view text);

}  // namespace thimble
