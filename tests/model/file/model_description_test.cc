#include "thimble/model/file/model_description.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(ModelDescription, ErrorsNameFileLineAndColumn) {
  const Error error = ErrorAt("net.toml", {12, 3}, "wrong");
  EXPECT_EQ(error.kind, ErrorKind::kBadInput);
  EXPECT_EQ(error.message, "net.toml:12:3: wrong");
}

TEST(ModelDescription, FindsBlocksByName) {
  ModelDescription model;
  EXPECT_EQ(model.FindBlock("a"), nullptr);
  model.blocks.push_back({"a", {}, {}, {}});
  model.blocks.push_back({"b", {}, {}, {}});
  EXPECT_EQ(model.FindBlock("b"), &model.blocks[1]);
  EXPECT_EQ(model.FindBlock(""), nullptr);
}

}  // namespace
}  // namespace thimble
