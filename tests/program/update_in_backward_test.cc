#include "thimble/program/update_in_backward/update_in_backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

using testing::HasSubstr;

std::string Done(bool in_parts, UpdateSpec update) {
  const auto done = MakeUpdateInBackward()->ChangeUpdate("true", in_parts, update);
  EXPECT_TRUE(done.ok());
  EXPECT_TRUE(update.in_backward);
  return done.ok() ? *done : "";
}

TEST(UpdateInBackward, SaysWhatIsDoneWithGradients) {
  EXPECT_EQ(Done(false, {}), "parameters are updated in backward");
  EXPECT_EQ(Done(true, {}), "parts add their gradients to the momentum");
  EXPECT_EQ(Done(true, {.optimizer = {.name = "adam"}}),
            "parts add their gradients to the moments");
  EXPECT_THAT(Done(true, {.loss_scale = {.initial = 8}}), HasSubstr("not finite are dropped"));
}

TEST(UpdateInBackward, SaysWhyAnArrayIsKept) {
  EXPECT_EQ(Done(false, {.clip = 1}),
            "not done, an array of gradients is kept: clipping needs the norm of all gradients");
  EXPECT_THAT(Done(true, {.optimizer = {.nesterov = true}}), HasSubstr("Nesterov needs"));
  EXPECT_THAT(Done(true, {.optimizer = {.momentum = 0}}), HasSubstr("without momentum"));
  EXPECT_EQ(Done(false, {.optimizer = {.nesterov = true}}), "parameters are updated in backward");
}

TEST(UpdateInBackward, ItsClassDependsOnPartsAndScaling) {
  const auto technique = MakeUpdateInBackward();
  const auto& exactness = technique->lever()->exactness;
  EXPECT_EQ(exactness(Graph(), {.value = "false", .in_parts = true}), "same-bits");
  EXPECT_EQ(exactness(Graph(), {.value = "true"}), "same-bits");
  EXPECT_EQ(exactness(Graph(), {.value = "true", .in_parts = true}), "equal");
  EXPECT_EQ(exactness(Graph(), {.value = "true", .optimizer = "adam"}), "same-bits");
  EXPECT_THAT(exactness(Graph(), {.value = "true", .in_parts = true, .optimizer = "adam"}),
              HasSubstr("lossy: the second moment"));
  EXPECT_THAT(exactness(Graph(), {.value = "true", .drops_gradients = true}), HasSubstr("lossy"));
}

}  // namespace
}  // namespace thimble
