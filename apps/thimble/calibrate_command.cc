#include <memory>

#include "apps/thimble/command.h"
#include "thimble/base/standard_streams.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/profile/calibrate.h"
#include "thimble/train/step_time/op_times_file.h"

namespace thimble {
namespace {

Result<int> RunCalibrate(const ConfigFlags& flags) {
  THIMBLE_ASSIGN_OR_RETURN(const TrainConfig config, flags.Resolve());
  THIMBLE_TRY(PinSimdTarget(config.simd));
  THIMBLE_ASSIGN_OR_RETURN(const std::string path, OpTimesPath(config));
  THIMBLE_ASSIGN_OR_RETURN(const OpTimes times,
                           Calibrate(config, NetworksToMeasure(DeviceOf(config)), BuiltinOps()));
  THIMBLE_TRY(SaveOpTimes(config, times));
  Print("times of ops measured on this machine: {}\n", path);
  return 0;
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "measure how long ops take on this machine, to predict the time of steps");
  auto flags = std::make_shared<ConfigFlags>();
  flags->AddTo(*command, {"device", "threads", "simd", "math"});
  command->callback([flags, exit_code] {
    const auto result = RunCalibrate(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
