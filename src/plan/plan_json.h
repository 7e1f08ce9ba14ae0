// Plans as JSON: the run folder's plan.json, written and read.
#pragma once

#include <string>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/plan/program_record.h"

namespace thimble {

// Everything, one line per step and holding, with totals that readers need not work out: the peak
// step and the categories there.
std::string ToJson(const ProgramRecord& record);

// The record that ToJson wrote. Distrusts the text: what it returns has live ranges within the
// steps, bytes within the arena and at least one plan. An error says where and what was expected.
Result<ProgramRecord> ProgramRecordFromJson(std::string_view text);

}  // namespace thimble
