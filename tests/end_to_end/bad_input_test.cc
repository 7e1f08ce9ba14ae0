// Wrong usage and bad files: one clear line, the right exit code, and no damage to existing files.
#include <limits>

#include "tests/data/fake_dataset.h"
#include "tests/end_to_end/thimble_fixture.h"
#include "thimble/device/device.h"

namespace thimble {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class BadInputEndToEnd : public NoReportFixture {
 protected:
  // A finished run in "run", to be continued with Resume().
  void MakeRun(const std::string& options = "") const {
    RunWell(Training("run") + "--steps 2 " + options);
  }
  static std::string Training(const std::string& run) {
    return "train --model wrn-10-1 --data shapes:12,4 --batch 4 --threads 1 --checkpoint-every 1 "
           "--out @/" +
           run + " ";
  }
  static std::string Resume() { return Training("run") + "--resume --extend --steps 3 "; }

  // The run can still be continued, with the result of an undisturbed run.
  void ExpectStillWhole() const {
    RunWell(Resume());
    RunWell(Training("undisturbed") + "--steps 3");
    EXPECT_TRUE(WeightsOf(At("run")) == WeightsOf(At("undisturbed")));
  }
};

// A failure during the run: progress comes first, the last line is the error.
void ExpectFailure(const ProcessResult& result, const std::string& reason) {
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const size_t last = result.err.rfind('\n', result.err.size() - 2) + 1;
  EXPECT_THAT(result.err.substr(last), testing::StartsWith("thimble: "));
  EXPECT_THAT(result.err.substr(last), HasSubstr(reason));
  EXPECT_THAT(result.err, EndsWith("\n"));
  EXPECT_EQ(result.out, "");
}

TEST_F(BadInputEndToEnd, SubCommands) {
  ExpectRefusal("", 2,
                "expected a command: train, eval, translate, plan, profile, report, calibrate, "
                "models or data");
  ExpectRefusal("tarin", 2, "unknown command 'tarin'; did you mean train?");
  ExpectRefusal("train plan", 2, "train: unexpected argument 'plan'");
  ExpectRefusal("--trian", 2, "unknown option --trian");
}

TEST_F(BadInputEndToEnd, Flags) {
  for (const char* command : {"train", "plan", "eval", "models", "data"}) {
    ExpectRefusal(std::string(command) + " --no-such-flag", 2,
                  "unknown option --no-such-flag (see");
  }
  ExpectRefusal("train --bacth 5", 2, "unknown option --bacth; did you mean --batch?");
  ExpectRefusal("plan --bacth=5", 2, "unknown option --bacth; did you mean --batch?");
  ExpectRefusal("plan --batch", 2, "--batch: expected a value");
  ExpectRefusal("plan --batch 1 --batch 2", 2, "--batch: given more than once");
  ExpectRefusal("plan --json=1", 2, "--json: takes no value");
  ExpectRefusal("plan stray", 2, "plan: unexpected argument 'stray'");
  ExpectRefusal("eval --part everything", 2, "--part: expected train, validation or test");
  ExpectRefusal("report", 2, "report: expected RUN...");
  ExpectRefusal("data --dump-steps 0", 2, "--dump-steps");
}

// An empty value, or one that looks like an option, is a mistake.
TEST_F(BadInputEndToEnd, ValuesThatAreSlips) {
  ExpectRefusal(Training("run") + "--out= --resume", 2, "--out=: expected a value");
  ExpectRefusal("train --model wrn-10-1 --out= --resume", 2, "--out=: expected a value");
  ExpectRefusal("train --model wrn-10-1 --out --resume", 2,
                "--out: expected a value, got what looks like an option: --resume");
  ExpectRefusal("plan --model --batch 4", 2, "looks like an option: --batch");
  ExpectRefusal("plan --batch=", 2, "--batch=: expected a value");
  for (const char* option : {"--out", "--init", "--model", "--batch", "--config"}) {
    ExpectRefusal(RunProcess({ThimbleBinary(), "train", "--data", "shapes", option, ""}), 2,
                  std::string(option) + ": expected a value, got an empty one", option);
  }
  ExpectRefusal(RunProcess({ThimbleBinary(), "report", "--out", "", At("x")}), 2,
                "--out: expected a value, got an empty one", "report");
  EXPECT_FALSE(std::filesystem::exists("--resume"));
  EXPECT_FALSE(std::filesystem::exists("runs"));
}

// Without options it prints what it needs and starts nothing.
TEST_F(BadInputEndToEnd, TrainAlone) {
  for (const char* command : {"train", "train --steps 5 --out @/run", "train --json"}) {
    const ProcessResult result = Run(command);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err,
                testing::StartsWith(
                    "thimble: train: expected at least one of --model, --data and "
                    "--config\nExamples:\n  thimble train --model wrn-16-2 --data shapes "));
    EXPECT_FALSE(std::filesystem::exists(At("run")));
  }
  // The network, the data or a file is enough, and the first line names what is trained.
  Put(At("c.toml"), "model = \"wrn-10-1\"\ndata = \"shapes:8,4\"\n");
  EXPECT_THAT(RunWell("train --config @/c.toml --batch 4 --steps 1 --out @/run").err,
              testing::StartsWith("wrn-10-1 on shapes:8,4, batch 4, cpu: "));
}

TEST_F(BadInputEndToEnd, Numbers) {
  for (const char* batch : {"0", "-1", "abc", "1.5", "99999999999999999999"}) {
    for (const char* command : {"train --out @/run", "plan", "data"}) {
      ExpectRefusal(std::string(command) + " --batch " + batch, 2,
                    std::string("--batch ") + batch + ": expected a whole number, at least 1");
    }
  }
  for (const char* command : {"train --model wrn-10-1 --out @/run", "plan", "profile"}) {
    for (const char* batch : {"9223372036854775807", "1048577"}) {
      ExpectRefusal(std::string(command) + " --batch " + batch, 2,
                    std::string("--batch ") + batch + ": must be at most 1048576");
    }
  }
  ExpectRefusal("plan --lr nan", 2, "--lr nan");
  ExpectRefusal("plan --lr -1", 2, "--lr -1");
  ExpectRefusal("plan --momentum 1", 2, "--momentum 1");
  ExpectRefusal("plan --nesterov --momentum 0", 2, "--nesterov");
  ExpectRefusal("plan --epochs -1", 2, "--epochs -1");
  ExpectRefusal("plan --threads 99999", 2, "--threads 99999");
  ExpectRefusal("plan --prefetch 1000000000", 2, "--prefetch 1000000000");
  ExpectRefusal("plan --scratch 1k", 2, "--scratch 1000");
  ExpectRefusal("train --data shapes:10,4 --validation 10 --out @/run", 2, "hold out 10 of 10");
}

TEST_F(BadInputEndToEnd, Words) {
  ExpectRefusal("plan --model resnet-50", 2, "resnet-50");
  ExpectRefusal("plan --model wrn-27-2", 2, "depth 27 is impossible");
  ExpectRefusal("plan --model wrn-4-1", 2, "depth 4 is impossible");
  ExpectRefusal("plan --model wrn-28-0", 2, "width 0");
  ExpectRefusal("plan --model wrn-28", 2, "wrn-28");
  ExpectRefusal("plan --schedule linear", 2, "--schedule linear");
  ExpectRefusal("plan --augment blur", 2, "--augment blur");
  ExpectRefusal("plan --conv fft", 2, "--conv fft");
  ExpectRefusal("plan --conv winograd --scratch 64k", 2, "--scratch");
  ExpectRefusal("plan --simd mmx", 2, "--simd mmx");
  ExpectRefusal("train --model wrn-10-1 --simd mmx --out @/run", 2, "--simd mmx");
  ExpectRefusal("plan --without gravity", 2, "'gravity'");
  ExpectRefusal("plan --data imagenet", 2, "imagenet");
  ExpectRefusal("plan --data cifar-10:x", 2, "did you mean cifar10?");
  ExpectRefusal("train --data shapes:0,5 --out @/run", 2, "shapes:0,5");
  for (const char* budget : {"much", "8XB", "-8MB", "1e99"}) {
    ExpectRefusal(std::string("plan --budget ") + budget, 2, "--budget: '" + std::string(budget));
  }
  EXPECT_FALSE(std::filesystem::exists(At("run")));
}

TEST_F(BadInputEndToEnd, Devices) {
  ExpectRefusal("plan --device tpu", 2, "--device tpu: expected cpu or cuda");
  ExpectRefusal("plan --math bf16", 2, "--math bf16: expected auto, tf32 or fp32");
  ExpectRefusal("plan --math tf32", 2, "--math tf32: only with --device cuda");
  ExpectRefusal("plan --device cuda --conv winograd", 2, "--conv winograd: only with --device cpu");
  if (CheckDevice(DeviceKind::kCuda).ok()) return;
  // Without a GPU: names what is missing, and leaves no files behind.
  const std::string reason = CheckDevice(DeviceKind::kCuda).error().message;
  EXPECT_THAT(reason, testing::AnyOf(HasSubstr("built without CUDA"), HasSubstr("no CUDA device"),
                                     HasSubstr("compute capability")));
  ExpectRefusal(Training("run") + "--device cuda", 2, reason);
  EXPECT_FALSE(std::filesystem::exists(At("run")));
  MakeRun();
  ExpectRefusal("eval @/run --device cuda", 2, reason);
  ExpectRefusal(Resume() + "--device cuda", 2, reason);
  ExpectStillWhole();
}

// Error messages stay on one line, whatever names contain.
TEST_F(BadInputEndToEnd, NamesWithControlCharacters) {
  for (const char* name : {"two\nlines", "\x1b[31mred", "\x7f"}) {
    const ProcessResult result = RunProcess({ThimbleBinary(), "plan", "--model", name});
    ExpectRefusal(result, 2, "--model", name);
    EXPECT_EQ(std::count_if(result.err.begin(), result.err.end() - 1,
                            [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
              0)
        << result.err;
  }
  ExpectRefusal(RunProcess({ThimbleBinary(), "no\nsuch"}), 2, "no\\x0asuch", "sub-command");
  ExpectRefusal(RunProcess({ThimbleBinary(), "train", "--out", At("\xff")}), 2,
                "--out: expected UTF-8", "no text");
}

TEST_F(BadInputEndToEnd, ConfigFile) {
  ExpectRefusal("plan --config @/none.toml", 2, "none.toml");
  Put(At("c.toml"), "batch = 4\nbtach = 4\n");
  ExpectRefusal("plan --config @/c.toml", 2,
                "c.toml:2: unknown option 'btach'; did you mean batch?");
  Put(At("c.toml"), "\n\nbatch = \"4\"\n");
  ExpectRefusal("plan --config @/c.toml", 2, "c.toml:3: 'batch': expected a whole number");
  Put(At("c.toml"), "batch = 4\nmodel = \"open\n");
  ExpectRefusal("plan --config @/c.toml", 2, "c.toml:2: ");
  Put(At("c.toml"), "batch = 4\nschedule = \"none\"\n");
  ExpectRefusal("plan --config @/c.toml", 2, "--schedule none");
}

TEST_F(BadInputEndToEnd, CifarFiles) {
  const std::string train = "train --model wrn-10-1 --batch 4 --out @/run --data cifar10:";
  ExpectRefusal(train + "@/nowhere", 2, "nowhere: no such folder");
  const TestFolder cifar("bad_input");
  WriteCifar10(cifar);
  RunWell("data --data cifar10:" + cifar.path());

  const std::string batch = Content(cifar.File("data_batch_2.bin"));
  std::filesystem::remove(cifar.File("data_batch_2.bin"));
  ExpectRefusal(train + cifar.path(), 2, "data_batch_2.bin");
  cifar.Write("data_batch_2.bin", batch.substr(0, batch.size() - 100));
  ExpectRefusal(train + cifar.path(), 2, "data_batch_2.bin: size of 6046 bytes");
  cifar.Write("data_batch_2.bin", batch + "\x01");
  ExpectRefusal(train + cifar.path(), 2, "not a multiple of 3073");
  cifar.Write("data_batch_2.bin", "");
  ExpectRefusal(train + cifar.path(), 2, "file is empty");
  std::string label = batch;
  label[3073] = 10;
  cifar.Write("data_batch_2.bin", label);
  ExpectRefusal(train + cifar.path(), 2, "label of record 1 (offset 3073) is 10");
  cifar.Write("data_batch_2.bin", batch);
  RunWell(train + cifar.path());
}

TEST_F(BadInputEndToEnd, CifarOfTheOtherKind) {
  const TestFolder cifar("bad_input_100");
  WriteCifar100(cifar);
  ExpectRefusal("data --data cifar10:" + cifar.path(), 2, "data_batch_1.bin");
  RunWell("train --model wrn-10-1 --batch 2 --out @/run --data cifar100:" + cifar.path());
}

TEST_F(BadInputEndToEnd, OutputFolders) {
  Put(At("file"), "x");
  ExpectRefusal(Training("file/run"), 2, "file/run");
  ExpectRefusal(Training("file"), 2, "/file");
  ExpectRefusal(Training("file/run") + "--resume", 2, "file/run");
  ExpectRefusal("data --data shapes:200,4 --dump @/file/x --dump-steps 1", 1, "file/x");
  ExpectRefusal("train --resume --model wrn-10-1", 2, "--resume requires --out");
}

TEST_F(BadInputEndToEnd, AnotherRunIsThere) {
  MakeRun();
  ExpectRefusal(Training("run") + "--steps 2", 2, "already contains a run; add --resume");
  ExpectStillWhole();
}

TEST_F(BadInputEndToEnd, ResumedWithOtherSettings) {
  MakeRun();
  ExpectRefusal(Resume() + "--lr 0.2", 2, "--lr was '0.1' and is now '0.2'");
  ExpectRefusal(Resume() + "--seed 2", 2, "--seed was '1' and is now '2'");
  ExpectRefusal(Resume() + "--conv winograd", 2, "--conv was 'direct' and is now 'winograd'");
  ExpectRefusal("train --model wrn-10-2 --data shapes:12,4 --batch 4 --resume --out @/run", 2,
                "--model was 'wrn-10-1' and is now 'wrn-10-2'");
  ExpectRefusal("train --model wrn-10-1 --data shapes:13,4 --batch 4 --resume --out @/run", 2,
                "--data was 'shapes, 12 training and 4 test images' and is now 'shapes, 13");
  ExpectStillWhole();
}

TEST_F(BadInputEndToEnd, CheckpointOfAnotherModel) {
  MakeRun();
  RunWell("train --model wrn-10-2 --data shapes:12,4 --batch 4 --steps 1 --out @/other");
  const std::string good = Content(CheckpointFile(At("run")));
  Put(CheckpointFile(At("run")), Content(CheckpointFile(At("other"))));
  ExpectRefusal(Resume(), 2, "--model was 'wrn-10-2' and is now 'wrn-10-1'");
  Put(CheckpointFile(At("run")), good);
  ExpectStillWhole();
}

TEST_F(BadInputEndToEnd, DamagedCheckpoint) {
  MakeRun();
  const std::string path = CheckpointFile(At("run"));
  const std::string good = Content(path);
  std::string header = good;
  header[8] = 'x';
  for (const std::string& bad : {std::string(), std::string("abc"), good.substr(0, 100),
                                 good.substr(0, good.size() - 1), good + "x", header}) {
    Put(path, bad);
    ExpectRefusal(Resume(), 2, path + ": byte ");
  }
  std::string data = good;
  data[good.size() / 2] = static_cast<char>(data[good.size() / 2] ^ 4);
  Put(path, data);
  ExpectRefusal(Resume(), 2, path + ": is damaged, or another program changed it");
  ExpectRefusal(Resume(), 2, "the previous checkpoint, of step 1, is intact: to continue from");
  // The suggested command gives the same result.
  std::filesystem::rename(At("run/checkpoint/previous.safetensors"), path);
  ExpectStillWhole();
}

TEST_F(BadInputEndToEnd, DamagedOrOtherWeightsToStartFrom) {
  MakeRun();
  const std::string good = WeightsOf(At("run"));
  const std::string start = Training("next") + "--steps 1 --init ";
  ExpectRefusal(start + "@/none.safetensors", 2, "none.safetensors");
  Put(At("bad.safetensors"), good.substr(0, 50));
  ExpectRefusal(start + "@/bad.safetensors", 2, "bad.safetensors: byte ");
  std::string header = good;
  header[9] = '!';
  Put(At("bad.safetensors"), header);
  ExpectRefusal(start + "@/bad.safetensors", 2, "bad.safetensors: byte ");
  ExpectRefusal(
      "train --model wrn-10-2 --data shapes:12,4 --out @/next --init "
      "@/run/weights.safetensors",
      2, "run/weights.safetensors: expected tensor");
  // A checkpoint contains more than weights.
  ExpectRefusal(start + "@/run/checkpoint/state.safetensors", 2, "has an unexpected tensor");
  std::string flipped = good;
  flipped[good.size() - 100] = static_cast<char>(flipped[good.size() - 100] ^ 1);
  Put(At("bad.safetensors"), flipped);
  ExpectRefusal(start + "@/bad.safetensors", 2, "bad.safetensors: is damaged");
  ExpectRefusal("eval @/run --weights @/bad.safetensors", 2, "bad.safetensors: is damaged");
  RunWell(start + "@/run/weights.safetensors");
}

TEST_F(BadInputEndToEnd, WeightsThatAreNotFinite) {
  MakeRun();
  // As other programs write them: without a checksum.
  std::string weights = WeightsOf(At("run"));
  weights.replace(weights.find("thimble.checksum"), 16, "somebody.else's.");
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  weights.replace(weights.size() - 4, 4, reinterpret_cast<const char*>(&nan), 4);
  Put(At("nan.safetensors"), weights);
  ExpectRefusal("eval @/run --weights @/nan.safetensors", 2, "has nan at element");
  ExpectRefusal(Training("next") + "--init @/nan.safetensors", 2, "nan.safetensors: tensor ");
  EXPECT_FALSE(std::filesystem::exists(At("next")));
}

TEST_F(BadInputEndToEnd, EvaluationWithoutWeights) {
  ExpectRefusal("eval", 2, "expected a run folder, or --weights");
  ExpectRefusal("eval @/nowhere", 2, "nowhere/config.toml");
  MakeRun();
  std::filesystem::remove(At("run/weights.safetensors"));
  ExpectRefusal("eval @/run", 2, "run/weights.safetensors");
  ExpectRefusal("eval @/run --part validation", 2, "requires --validation");
  ExpectRefusal("eval @/run --budget 1k", 3, "does not fit");
}

TEST_F(BadInputEndToEnd, DiskFullWhileSaving) {
  MakeRun();
  // More than weights.safetensors and plan.json, less than the checkpoint.
  const auto limit = static_cast<int64_t>(Content(CheckpointFile(At("run"))).size()) - 1000;
  ASSERT_GT(limit, static_cast<int64_t>(WeightsOf(At("run")).size()));
  const std::string before = Content(CheckpointFile(At("run")));
  ExpectFailure(Run(Resume(), {.max_file_bytes = limit}), "next.safetensors");
  EXPECT_TRUE(Content(CheckpointFile(At("run"))) == before);
  ExpectStillWhole();
}

TEST_F(BadInputEndToEnd, DiskFullFromTheStart) {
  const ProcessResult result = Run(Training("run") + "--steps 3", {.max_file_bytes = 2000});
  ExpectRefusal(result, 1, "plan.json", "full disk");
  ExpectStillWhole();
}

TEST_F(BadInputEndToEnd, DivergenceKeepsTheCheckpoint) {
  const std::string wild = Training("run") + "--lr 1e30 --checkpoint-every 0 ";
  std::string options = wild;
  options.erase(options.find("--checkpoint-every 1 "), 21);
  ExpectFailure(Run(options + "--epochs 3"), "training has diverged");
  EXPECT_FALSE(std::filesystem::exists(CheckpointFile(At("run"))));
  // With a checkpoint after each step, the last one is kept and readable.
  const std::string saving = Training("saving") + "--lr 1e30 ";
  ExpectFailure(Run(saving + "--epochs 3"), "training has diverged");
  ASSERT_FALSE(Content(CheckpointFile(At("saving"))).empty());
  const ProcessResult again = Run(saving + "--epochs 3 --resume");
  EXPECT_THAT(again.err, HasSubstr("resuming at step"));
  ExpectFailure(again, "training has diverged; the last good checkpoint, of step");
  // The advice helps.
  RunWell(Training("saving") + "--lr 0.01 --steps 2 --overwrite");
}

}  // namespace
}  // namespace thimble
