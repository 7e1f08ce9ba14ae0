#include "thimble/exec/bound_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/exec/planted_kernel.h"
#include "tests/support/recording_device.h"

namespace thimble {
namespace {

using Group = BoundPlan::Group;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<size_t>& GroupSizes() {
  static std::vector<size_t> sizes;
  return sizes;
}

// The built-in ops, and "grouped": x -> y, whose calls may run together.
OpRegistry OpsWithGrouped(size_t scratch_bytes = 0) {
  OpRegistry ops = OpsWithPlanted(&CopyInput, scratch_bytes);
  Kernel kernel = ops.Get("planted").kernels()[0];
  kernel.name = "grouped";
  kernel.run_group = [](std::span<const KernelCall> calls) {
    GroupSizes().push_back(calls.size());
    for (const KernelCall& call : calls) CopyInput(call);
  };
  ops.Add(OpDef("grouped").Input("x").Output("y").ShapeRule(SameAs(0)).Kernels({kernel}));
  return ops;
}

std::vector<size_t> AsVector(std::span<const size_t> groups) {
  return {groups.begin(), groups.end()};
}

// Nodes that read x, or the previous node if the name of the op starts with '>'.
class GroupTest : public testing::Test {
 protected:
  std::vector<Group> GroupsOf(const std::vector<std::string>& chain, size_t scratch_bytes = 0) {
    ops_ = OpsWithGrouped(scratch_bytes);
    Graph graph;
    const ValueId x = graph.AddValue({"x", {20}, DType::kF32, Role::kInput, {}, {}});
    ValueId last = x;
    for (std::string op : chain) {
      const bool follows = op.starts_with('>');
      if (follows) op.erase(0, 1);
      NodeSpec spec;
      spec.op = op;
      spec.inputs = {follows ? last : x};
      spec.layer = fmt::format("n{}", graph.nodes.size());
      spec.output_role = Role::kActivation;
      spec.output_names = {spec.layer};
      last = AppendNode(graph, ops_, std::move(spec)).value()[0];
      graph.outputs.push_back(last);
    }
    PlanOptions options;
    options.limits.scratch_bytes_per_thread = scratch_bytes;
    options.skipped_passes = {"order", "in-place"};
    program_ = PlanProgram({{"plan", graph}}, ops_, {}, options).value();
    device_ = std::make_unique<RecordingDevice>(program_.arena_bytes);
    bound_ = std::make_unique<BoundPlan>(program_.plans[0], ops_, *device_, pool_);
    return bound_->groups();
  }

  OpRegistry ops_;
  Program program_;
  ThreadPool pool_{1};
  std::unique_ptr<Device> device_;
  std::unique_ptr<BoundPlan> bound_;
};

TEST_F(GroupTest, NeighboursThatHaveNothingInCommon) {
  EXPECT_THAT(GroupsOf({"grouped", "grouped", "grouped"}), ElementsAre(Group{0, 3}));
  GroupSizes().clear();
  bound_->RunGroup({0, 3});
  EXPECT_THAT(GroupSizes(), ElementsAre(3));
}

TEST_F(GroupTest, OnlyKernelsThatKnowHow) {
  EXPECT_THAT(GroupsOf({"relu", "relu"}), ElementsAre(Group{0, 1}, Group{1, 2}));
  EXPECT_THAT(GroupsOf({"grouped", "relu", "grouped", "grouped"}),
              ElementsAre(Group{0, 1}, Group{1, 2}, Group{2, 4}));
}

TEST_F(GroupTest, NotWhereOneReadsWhatAnotherWrites) {
  EXPECT_THAT(GroupsOf({"grouped", ">grouped", "grouped"}), ElementsAre(Group{0, 1}, Group{1, 3}));
}

// Scratch is alive for one step, so that all calls use the same bytes.
TEST_F(GroupTest, NotWhereScratchIsShared) {
  EXPECT_THAT(GroupsOf({"grouped", "grouped"}, 64), ElementsAre(Group{0, 1}, Group{1, 2}));
}

TEST_F(GroupTest, AStepAloneIsAPlainCall) {
  GroupsOf({"grouped"});
  GroupSizes().clear();
  bound_->RunGroup({0, 1});
  EXPECT_TRUE(GroupSizes().empty());
}

TEST_F(GroupTest, AStepWaitsForWhatItReads) {
  GroupsOf({"relu", "relu", ">relu", ">relu", "relu"});
  EXPECT_THAT(AsVector(bound_->After(0)), IsEmpty());
  EXPECT_THAT(AsVector(bound_->After(1)), IsEmpty());
  EXPECT_THAT(AsVector(bound_->After(2)), ElementsAre(1));
  EXPECT_THAT(AsVector(bound_->After(3)), ElementsAre(2));  // and 1, for which 2 waits
  EXPECT_THAT(AsVector(bound_->After(4)), IsEmpty());
}

TEST_F(GroupTest, AStepWaitsForItsScratch) {
  GroupsOf({"grouped", "grouped"}, 64);
  EXPECT_THAT(AsVector(bound_->After(1)), ElementsAre(0));
}

TEST_F(GroupTest, APlanWithoutSteps) { EXPECT_TRUE(GroupsOf({}).empty()); }

}  // namespace
}  // namespace thimble
