// A network described by a file, with every command.
#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/test_paths.h"
#include "thimble/base/json.h"
#include "thimble/base/sealed_text.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ModelFileEndToEnd : public NoReportFixture {
 protected:
  static std::string Example(const std::string& name) {
    return ExamplesFolder() + "/models/" + name + ".toml";
  }
  // A copy of an example in the test's folder, to be changed.
  std::string Copy(const std::string& name) const {
    std::filesystem::copy_file(Example(name), At(name + ".toml"));
    return At(name + ".toml");
  }
  static std::string Training(const std::string& model, const std::string& run) {
    return "train --model " + model + " --data shapes:8,4 --batch 4 --threads 1 --out @/" + run +
           " --steps ";
  }
};

TEST_F(ModelFileEndToEnd, PlansTheBuiltInNetworkAlike) {
  Json built_in = ParseObject(RunWell("plan --model wrn-28-2 --batch 100 --json").out);
  Json from_file =
      ParseObject(RunWell("plan --model " + Example("wrn-28-2") + " --batch 100 --json").out);
  EXPECT_EQ(from_file["model"], Example("wrn-28-2"));
  for (Json* plan : {&built_in, &from_file}) {
    plan->erase("model");
    (*plan)["ratios"].erase("to_pytorch");  // a file with this name may be another network
  }
  EXPECT_EQ(built_in, from_file);
}

TEST_F(ModelFileEndToEnd, PlansWhatTheFileIsFor) {
  const std::string path = Copy("mlp");
  std::string text = Content(path);
  text.replace(text.find("width = 32"), 10, "width = 28");
  Put(path, text);
  RunWell("plan --model " + path + " --batch 4");
  ExpectRefusal("plan --data shapes --batch 4 --model " + path, 2,
                "mlp.toml:3:1: [input] is 32 x 28 images of 3 channels in 10 classes, the data has "
                "32 x 32 images");
  ExpectRefusal(Training(path, "run") + "2", 2, "[input] is 32 x 28 images");
}

TEST_F(ModelFileEndToEnd, ExamplesTrain) {
  for (const char* name : {"cnn", "resnet", "mlp"}) {
    SCOPED_TRACE(name);
    const std::string path = Copy(name);
    RunWell(Training(path, name) + "2");
    const Json summary = SummaryOf(At(name));
    EXPECT_EQ(summary["steps"], 2);
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]);
    EXPECT_EQ(WithoutSeal(BytesAt(At(name) + "/model.toml")), Content(path));
    // The run is complete without the original.
    std::filesystem::remove(path);
    const Json evaluation = ParseObject(RunWell("eval @/" + std::string(name) + " --json").out);
    EXPECT_EQ(evaluation["images"], 4);
    EXPECT_EQ(evaluation["accuracy"], summary["test_accuracy"]);
  }
}

// Convolutions whose padding is much larger than the kernel: most windows are outside the image.
TEST_F(ModelFileEndToEnd, LargePaddingGivesTheSameWeightsForAnyNumberOfThreads) {
  const std::string input = "[input]\nheight = 32\nwidth = 32\nchannels = 3\nclasses = 10\n";
  const std::string end =
      "[[layers]]\ntype = \"global_avg_pool\"\n"
      "[[layers]]\ntype = \"linear\"\nname = \"fc\"\nfeatures = \"$classes\"\n";
  const auto convolution = [](const std::string& name, const std::string& settings) {
    return "[[layers]]\ntype = \"conv\"\nname = \"" + name + "\"\n" + settings;
  };
  const std::string models[] = {convolution("a", "channels = 16\nkernel = 1\npadding = 300\n"),
                                convolution("a", "channels = 1\nkernel = 1\npadding = 280\n"),
                                convolution("a", "channels = 512\nkernel = 1\nstride = 4\n") +
                                    convolution("b", "channels = 4\nkernel = 1\npadding = 6\n")};
  int number = 0;
  for (const std::string& layers : models) {
    SCOPED_TRACE(layers);
    const std::string name = "padded" + std::to_string(number++);
    Put(At(name + ".toml"), input + layers + end);
    const auto weights_with = [&](const std::string& threads) {
      const std::string run = name + "-" + threads;
      RunWell("train --model @/" + name + ".toml --data shapes:4,2 --batch 2 --steps 2" +
              " --scratch 16KiB --out @/" + run + " --threads " + threads);
      return WeightsOf(At(run));
    };
    const std::string with_one = weights_with("1");
    EXPECT_EQ(with_one, weights_with("2"));
    EXPECT_EQ(with_one, weights_with("3"));
  }
}

TEST_F(ModelFileEndToEnd, RunsAreNamedAfterTheFile) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  RunWell("train --model " + Example("mlp") + " --data shapes:8,4 --batch 4 --threads 1 --steps 1");
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::is_directory(At("runs/mlp-shapes-1")));
}

TEST_F(ModelFileEndToEnd, AChangedFileIsNotResumed) {
  const std::string path = Copy("mlp");
  RunWell(Training(path, "run") + "2");
  std::string text = Content(path);
  text.replace(text.find("features = 256"), 14, "features = 128");
  Put(path, text);
  ExpectRefusal(Training(path, "run") + "3 --resume --extend", 2,
                "mlp.toml has changed since this run was started");
  RunWell(Training("@/run/model.toml", "run") + "3 --resume --extend");
  EXPECT_EQ(SummaryOf(At("run"))["steps"], 3);
}

TEST_F(ModelFileEndToEnd, BadFiles) {
  ExpectRefusal("plan --model @/none.toml", 2, "none.toml: cannot open");
  ExpectRefusal("plan --model @", 2, "unknown model");
  const std::string path = Copy("resnet");
  const std::string good = Content(path);
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& reason) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
    Put(path, text);
    for (const std::string command : {"plan --model ", "train --out @/run --model "}) {
      ExpectRefusal(command + path, 2, reason);
    }
    EXPECT_FALSE(std::filesystem::exists(At("run")));
  };
  refused("repeat = 3", "repaet = 3", "resnet.toml:53:1: unknown key \"repaet\"; 'residual' takes");
  refused("type = \"halve\"", "type = \"a\\u0007\"", "resnet.toml:57:8: 'type': \"a\\u0007\"");
  refused("with = \"input\"", "with = \"inptu\"", "resnet.toml:18:26: 'with': no layer above");
  refused("kernel = 1, stride = 2", "kernel = 1",
          "resnet.toml:33:3 (block used in line 56): layer 'layer2.0.bn2' (add): ");
  refused("[input]", "[inptu]", "resnet.toml:4:2: unknown key \"inptu\"");
}

TEST_F(ModelFileEndToEnd, ModelsMentionsThem) {
  EXPECT_THAT(RunWell("models").out, HasSubstr("FILE.toml"));
}

}  // namespace
}  // namespace thimble
