#include "thimble/data/image_dataset.h"

#include <gtest/gtest.h>

#include "tests/data/fake_dataset.h"

namespace thimble {
namespace {

std::string OpenError(std::string_view spec, const DataOptions& options = {}) {
  const auto data = OpenImageData(spec, options);
  if (data.ok()) return "opened";
  EXPECT_EQ(data.error().kind, ErrorKind::kBadInput);
  return data.error().message;
}

TEST(OpenImageDataTest, ShapesTakesItsSizesFromSpecOrOptions) {
  const auto plain = OpenImageData("shapes", {.shapes_train = 50, .shapes_test = 20});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->name, "shapes");
  EXPECT_EQ(plain->train->size(), 50);
  EXPECT_EQ(plain->test->size(), 20);
  EXPECT_EQ(plain->validation, nullptr);
  EXPECT_EQ(plain->augmentation, Augmentation::kNone);
  const auto one = OpenImageData("shapes:700", {});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->train->size(), 700);
  EXPECT_EQ(one->test->size(), 2000);
  const auto two = OpenImageData("shapes:700,30", {});
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->test->size(), 30);
}

TEST(OpenImageDataTest, CifarIsAugmented) {
  const TestFolder folder("open10");
  WriteCifar10(folder);
  const auto data = OpenImageData("cifar10:" + folder.path(), {.seed = 1, .validation = 4});
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->name, "cifar10");
  EXPECT_EQ(data->augmentation, Augmentation::kCropFlip);
  EXPECT_EQ(data->train->size(), 6);
  EXPECT_EQ(data->validation->size(), 4);
  EXPECT_EQ(data->test->size(), 3);
  EXPECT_EQ(data->train->format().mean[0], 125.3);
}

TEST(OpenImageDataTest, IdentityIsThatOfTheImages) {
  EXPECT_EQ(OpenImageData("shapes:700,30", {.validation = 5})->identity,
            "shapes, 700 training and 30 test images");
  const TestFolder folder("identity");
  WriteCifar10(folder);
  const TestFolder other("identity_copy");
  WriteCifar10(other);
  const auto identity = [](const TestFolder& data) {
    return OpenImageData("cifar10:" + data.path(), {})->identity;
  };
  EXPECT_EQ(identity(folder).find("cifar10, 10 training and 3 test images, crc64:"), 0U);
  EXPECT_EQ(identity(folder), identity(other));
  other.Write("test_batch.bin", CifarRecord(std::string(1, '\1'), 7) +
                                    CifarRecord(std::string(1, '\2'), 7) +
                                    CifarRecord(std::string(1, '\3'), 7));
  EXPECT_NE(identity(folder), identity(other));
}

TEST(OpenImageDataTest, OpensCifar100) {
  const TestFolder folder("open100");
  WriteCifar100(folder);
  const auto data = OpenImageData("cifar100:" + folder.path(), {});
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->test->format().classes, 100);
}

TEST(OpenImageDataTest, UnknownSpecListsWhatExists) {
  for (const char* spec : {"", "mnist", "cifar10", "cifar10:", "shapes:", ":", "Shapes", "cifar"}) {
    const std::string message = OpenError(spec);
    for (const char* known : {"shapes[:TRAIN[,TEST]]", "cifar10:DIR", "cifar100:DIR"}) {
      EXPECT_NE(message.find(known), std::string::npos) << message;
    }
  }
}

TEST(OpenImageDataTest, BadShapesSizes) {
  for (const char* spec :
       {"shapes:0", "shapes:-5", "shapes:10,0", "shapes:ten", "shapes:10,", "shapes:,10",
        "shapes:10,20,30", "shapes:10 ", "shapes:4000000000", "shapes:99999999999999999999"}) {
    const std::string message = OpenError(spec);
    EXPECT_EQ(message.find(std::string("data '") + spec + "': "), 0U) << message;
  }
  EXPECT_NE(OpenError("shapes", {.shapes_train = -1}).find("-1 images"), std::string::npos);
}

TEST(OpenImageDataTest, BadValidationSizes) {
  EXPECT_EQ(OpenError("shapes:10", {.validation = 10}),
            "validation: cannot hold out 10 of 10 training images, expected 1 to 9");
  EXPECT_NE(OpenError("shapes:10", {.validation = 11}), "opened");
  EXPECT_NE(OpenError("shapes:10", {.validation = -1}), "opened");
  EXPECT_NE(OpenError("shapes:1", {.validation = 1}), "opened");
  EXPECT_EQ(OpenError("shapes:10", {.validation = 9}), "opened");
}

TEST(OpenImageDataTest, MissingFolderIsNamed) {
  EXPECT_NE(OpenError("cifar10:/nowhere").find("/nowhere"), std::string::npos);
}

TEST(DescribeImageData, KnowsCifarWithoutItsFiles) {
  const auto cifar = DescribeImageData("cifar100", {});
  ASSERT_TRUE(cifar.ok());
  EXPECT_EQ(cifar->augmentation, Augmentation::kCropFlip);
  EXPECT_EQ(cifar->format.classes, 100);
  EXPECT_EQ(cifar->counts.train, 50000);
  EXPECT_EQ(DescribeImageData("cifar10:/nowhere", {})->counts.test, 10000);
  EXPECT_EQ(DescribeImageData("shapes:12,5", {})->counts.test, 5);
}

TEST(DescribeImageData, HoldsOutTheValidationSet) {
  for (const char* spec : {"cifar10", "shapes:50000,10000"}) {
    const auto data = DescribeImageData(spec, {.validation = 5000});
    ASSERT_TRUE(data.ok()) << spec;
    EXPECT_EQ(data->counts.train, 45000);
    EXPECT_EQ(data->counts.validation, 5000);
    EXPECT_EQ(data->counts.test, 10000);
    EXPECT_FALSE(DescribeImageData(spec, {.validation = 50000}).ok());
  }
}

TEST(DescribeImageData, Unknown) {
  for (const char* spec : {"", "imagenet", "shapes:0", "shapes:", "shapes:x", "cifar"}) {
    const auto data = DescribeImageData(spec, {});
    ASSERT_FALSE(data.ok()) << spec;
    EXPECT_EQ(data.error().kind, ErrorKind::kBadInput);
  }
}

TEST(FindPartTest, FindsPartsByNameAndSaysWhatIsMissing) {
  const auto whole = OpenImageData("shapes:30,20", {});
  const auto split = OpenImageData("shapes:30,20", {.seed = 1, .validation = 10});
  ASSERT_TRUE(whole.ok() && split.ok());
  EXPECT_EQ(*FindPart(*whole, "train"), whole->train.get());
  EXPECT_EQ(*FindPart(*whole, "test"), whole->test.get());
  EXPECT_EQ(*FindPart(*split, "validation"), split->validation.get());
  EXPECT_EQ(FindPart(*whole, "validation").error().message,
            "part 'validation': requires --validation N");
  EXPECT_EQ(FindPart(*whole, "Test").error().message,
            "part 'Test': expected train, validation or test");
}

}  // namespace
}  // namespace thimble
