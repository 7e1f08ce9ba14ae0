// Every system call of a training run can fail, or be the last one: the program ends with a message
// and never by a signal, and the resumed run ends like an undisturbed one, bit for bit. The calls
// are made to fail by tests/support/fault_injector. tools/kill_and_resume does the same by hand,
// and kills at random moments.
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/test_paths.h"

namespace thimble {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// Two convolutions and a norm: a run takes 60 ms.
constexpr const char* kNetwork = R"(
[input]
height = 32
width = 32
channels = 3
classes = 10
[[layers]]
type = "conv"
name = "stem"
channels = 4
stride = 4
padding = 1
[[layers]]
type = "batch_norm"
name = "bn"
[[layers]]
type = "relu"
[[layers]]
type = "conv"
name = "conv"
channels = 4
padding = 1
[[layers]]
type = "global_avg_pool"
[[layers]]
type = "linear"
name = "fc"
features = "$classes"
)";

struct Configuration {
  std::string name;
  std::string options;
  std::string resumed = {};  // the message of resumed runs, if different
};

const std::array<Configuration, 6> kConfigurations = {{
    {"Plain", "--threads 2"},
    {"Microbatch", "--threads 2 --microbatch 2"},
    {"Recompute", "--threads 2 --recompute optimal"},
    {"NoPrefetch", "--threads 2 --prefetch 0"},
    {"OtherThreads", "--threads 1", "--threads 3"},
    {"Winograd", "--threads 2 --conv winograd --augment crop-flip --validation 4"},
}};

// The faults of each kind of call: errno values; half of the bytes; with '+', also all later calls.
const std::map<std::string, Words>& ActionsByKind() {
  static const auto* const actions = [] {
    const auto text = [](int code) { return std::to_string(code); };
    return new std::map<std::string, Words>{
        {"open", {text(EMFILE), text(ENOSPC), text(EINTR)}},
        {"read", {text(EIO), text(EINTR), "short"}},
        {"write", {text(ENOSPC), text(EIO), text(EINTR), "short", text(ENOSPC) + "+"}},
        {"fsync", {text(EIO), text(ENOSPC)}},
        {"rename", {text(EIO), text(ENOSPC)}},
        {"link", {text(EIO), text(EPERM)}},
        {"unlink", {text(EIO)}},
        {"mkdir", {text(ENOSPC)}},
        {"ftruncate", {text(EIO), text(EINTR)}},
        {"lseek", {text(EIO)}},
        {"close", {text(EIO), text(EINTR)}},
        {"mmap", {text(ENOMEM)}},
        {"mprotect", {text(ENOMEM)}},
        {"thread", {text(EAGAIN)}},
        {"flock", {text(EINTR), text(ENOLCK)}}};
  }();
  return *actions;
}

struct Fault {
  size_t call = 0;  // from 1
  std::string kind;
  std::string action;
};

class FaultInjection : public ThimbleFixture {
 protected:
  void SetUp() override {
    ThimbleFixture::SetUp();
    // (Not built with sanitizers and on some processors; see tests/CMakeLists.txt.)
    if (FaultInjector().empty())
      GTEST_SKIP() << "system calls cannot be made to fail in this build";
    std::ofstream(At("tiny.toml")) << kNetwork;
  }

  std::string Training(const std::string& run, const std::string& options) const {
    return "train --model @/tiny.toml --data shapes:16,4 --batch 4 --steps 6 --checkpoint-every 2 "
           "--log-every 1 --schedule cosine --out @/" +
           run + " " + options;
  }

  ProcessResult RunInjected(const std::string& text, Words variables) const {
    variables.push_back("LD_PRELOAD=" + FaultInjector());
    return Run(text, {.environment = std::move(variables)});
  }

  // Makes the undisturbed run; returns the kinds of its calls, in order.
  Words RunUndisturbed(const Configuration& configuration) const {
    const ProcessResult result = RunInjected(Training("whole", configuration.options),
                                             {"THIMBLE_FAULT_LOG=" + At("calls.log")});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Words kinds;
    std::ifstream log(At("calls.log"));
    std::string kind;
    for (size_t number = 0; log >> number >> kind;) kinds.push_back(kind);
    return kinds;
  }

  // A killed run may leave a process behind that still writes its report there.
  void RemoveRun() const {
    std::error_code error;
    for (int tries = 0; tries < 500; ++tries) {
      std::filesystem::remove_all(At("run"), error);
      if (!error) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << error.message();
  }

  // Runs with the fault, resumes without one, compares the results.
  void Try(const Configuration& configuration, const Fault& fault) {
    SCOPED_TRACE(configuration.name + ", call " + std::to_string(fault.call) + " (" + fault.kind +
                 "), " + fault.action);
    RemoveRun();
    const ProcessResult disturbed = RunInjected(Training("run", configuration.options),
                                                {"THIMBLE_FAULT_CALL=" + std::to_string(fault.call),
                                                 "THIMBLE_FAULT_ACTION=" + fault.action});
    ASSERT_FALSE(disturbed.timed_out);
    const bool may_be_killed = fault.action.starts_with("kill");
    if (disturbed.signal != 0) {
      ASSERT_TRUE(may_be_killed && disturbed.signal == SIGKILL) << disturbed.signal << "\n"
                                                                << disturbed.err;
      ++killed_;
    } else if (disturbed.exit_code != 0) {
      ASSERT_THAT(disturbed.exit_code, AnyOf(1, 2)) << disturbed.err;
      ASSERT_THAT(disturbed.err, HasSubstr("thimble: "));
      ++failed_;
    }
    const std::string& again =
        configuration.resumed.empty() ? configuration.options : configuration.resumed;
    const ProcessResult resumed = Run(Training("run", again) + " --resume");
    ASSERT_EQ(resumed.exit_code, 0) << "resumed after: " << disturbed.err << "\n" << resumed.err;
    ExpectSameRun(At("whole"), At("run"));
    EXPECT_EQ(SummaryOf(At("run"))["finished"], true);
  }

  int killed_ = 0;
  int failed_ = 0;
};

std::vector<Fault> ErrorsOf(const Words& kinds) {
  std::vector<Fault> faults;
  for (size_t index = 0; index < kinds.size(); ++index) {
    const auto actions = ActionsByKind().find(kinds[index]);
    EXPECT_NE(actions, ActionsByKind().end()) << kinds[index];
    if (actions == ActionsByKind().end()) continue;
    for (const std::string& action : actions->second) {
      faults.push_back({index + 1, kinds[index], action});
    }
  }
  return faults;
}

std::vector<Fault> KillsOf(const Words& kinds) {
  std::vector<Fault> faults;
  for (size_t index = 0; index < kinds.size(); ++index) {
    faults.push_back({index + 1, kinds[index], "kill-before"});
  }
  return faults;
}

TEST_F(FaultInjection, SeesEveryKindOfCall) {
  const Words kinds = RunUndisturbed(kConfigurations[0]);
  for (const char* kind : {"open", "read", "write", "fsync", "rename", "mkdir", "ftruncate",
                           "close", "mmap", "mprotect", "thread", "flock"}) {
    EXPECT_THAT(kinds, testing::Contains(kind));
  }
}

// A sample of all faults.
TEST_F(FaultInjection, SomeCallsFailOrAreTheLast) {
  const Configuration& configuration = kConfigurations[0];
  const Words kinds = RunUndisturbed(configuration);
  const std::vector<Fault> errors = ErrorsOf(kinds);
  const std::vector<Fault> kills = KillsOf(kinds);
  constexpr size_t kTries = 12;
  for (size_t i = 0; i < kTries && !HasFatalFailure(); ++i) {
    Try(configuration, errors[i * errors.size() / kTries]);
    Try(configuration, kills[(2 * i + 1) * kills.size() / (2 * kTries)]);
  }
  EXPECT_GT(failed_, 0);
  EXPECT_GT(killed_, static_cast<int>(kTries / 2));
}

// The message says what helps.
TEST_F(FaultInjection, MemoryAndThreadsThatAreNotGiven) {
  const auto refused = [&](const std::string& kind, int call, int code) {
    RemoveRun();
    return RunInjected(Training("run", "--threads 2"),
                       {"THIMBLE_FAULT_KIND=" + kind, "THIMBLE_FAULT_CALL=" + std::to_string(call),
                        "THIMBLE_FAULT_ACTION=" + std::to_string(code)});
  };
  ExpectRefusal(refused("thread", 1, EAGAIN), 1, "try --threads 1", "worker");
  EXPECT_THAT(refused("thread", 2, EAGAIN).err, HasSubstr("try --prefetch 0"));
  ExpectRefusal(refused("mmap", 1, ENOMEM), 1, "cannot map an arena", "mmap");
  ExpectRefusal(refused("mprotect", 1, ENOMEM), 1, "cannot map an arena", "first guard");
  ExpectRefusal(refused("mprotect", 2, ENOMEM), 1, "cannot map an arena", "second guard");
}

class SlowFaultInjection : public FaultInjection {};

TEST_F(SlowFaultInjection, EveryCallFails) {
  const Configuration& configuration = kConfigurations[0];
  for (const Fault& fault : ErrorsOf(RunUndisturbed(configuration))) Try(configuration, fault);
  EXPECT_GT(failed_, 100);
}

class SlowKills : public FaultInjection, public testing::WithParamInterface<Configuration> {};

TEST_P(SlowKills, EveryCallIsTheLast) {
  const std::vector<Fault> kills = KillsOf(RunUndisturbed(GetParam()));
  for (const Fault& fault : kills) Try(GetParam(), fault);
  EXPECT_GT(killed_, static_cast<int>(kills.size() * 9 / 10));
}

INSTANTIATE_TEST_SUITE_P(SlowAll, SlowKills, testing::ValuesIn(kConfigurations),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace thimble
