#include <fmt/ranges.h>

#include <memory>

#include "apps/thimble/command.h"
#include "thimble/base/json.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/model/image_classifier.h"

namespace thimble {
namespace {

void PrintModels(bool json) {
  if (json) {
    Json list;
    for (const ModelFamily& family : ModelFamilies()) {
      list.push_back(
          {{"pattern", family.pattern}, {"what", family.what}, {"example", family.example}});
    }
    Print("{}\n", Json{{"models", list}, {"simd", SupportedSimdTargets()}}.Dump(1));
    return;
  }
  for (const ModelFamily& family : ModelFamilies()) {
    Print("{}  {}\n  example: thimble plan --model {}\n", family.pattern, family.what,
          family.example);
  }
  Print("SIMD targets of this machine, for --simd: {}\n", fmt::join(SupportedSimdTargets(), ", "));
}

}  // namespace

void AddModelsCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("models", "list the available networks and SIMD targets");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print one JSON object");
  command->callback([json, exit_code] {
    PrintModels(*json);
    *exit_code = 0;
  });
}

}  // namespace thimble
