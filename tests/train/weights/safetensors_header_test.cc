#include "thimble/train/weights/safetensors_header.h"

#include <gtest/gtest.h>

#include <cstring>

namespace thimble {
namespace {

// The header's text without the length before it.
std::string TextOf(const std::string& formatted) {
  uint64_t length = 0;
  std::memcpy(&length, formatted.data(), sizeof(length));
  EXPECT_EQ(length, formatted.size() - 8);
  return formatted.substr(8);
}

TEST(SafetensorsHeader, FormatsKnownText) {
  const std::vector<TensorSpec> specs = {{"a", DType::kF32, {2, 3}}, {"b", DType::kU8, {}}};
  const Result<std::string> header = FormatSafetensorsHeader(specs, {{"key", "va\"lue"}});
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->size() % 8, 0U);
  std::string text = TextOf(*header);
  text.erase(text.find_last_not_of(' ') + 1);
  EXPECT_EQ(text,
            R"({"__metadata__":{"key":"va\"lue"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":)"
            R"([0,24]},"b":{"dtype":"U8","shape":[],"data_offsets":[24,25]}})");
}

TEST(SafetensorsHeader, ParsesWhatItFormats) {
  const std::vector<TensorSpec> specs = {{"weight", DType::kF32, {4, 1, 3, 3}},
                                         {"empty", DType::kF32, {0, 7}},
                                         {"größe \n\x01", DType::kI32, {2, 1, 1, 1, 1}},
                                         {"", DType::kU8, {5}}};
  const TensorMetadata metadata = {
      {"", ""}, {"json", R"({"a": ["\\", null]})"}, {"zero", std::string("\0x", 2)}};
  const Result<std::string> text = FormatSafetensorsHeader(specs, metadata);
  ASSERT_TRUE(text.ok());
  const Result<SafetensorsHeader> header = ParseSafetensorsHeader(TextOf(*text), 144 + 8 + 5);
  ASSERT_TRUE(header.ok()) << header.error().message;
  EXPECT_EQ(header->metadata, metadata);
  ASSERT_EQ(header->tensors.size(), specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(header->tensors[i].name, specs[i].name);
    EXPECT_EQ(header->tensors[i].dtype, specs[i].dtype);
    EXPECT_EQ(header->tensors[i].shape, specs[i].shape);
  }
}

TEST(SafetensorsHeader, NoTensorsNoMetadata) {
  const Result<std::string> text = FormatSafetensorsHeader({}, {});
  ASSERT_TRUE(text.ok());
  const Result<SafetensorsHeader> header = ParseSafetensorsHeader(TextOf(*text), 0);
  ASSERT_TRUE(header.ok());
  EXPECT_TRUE(header->tensors.empty());
}

TEST(SafetensorsHeader, TensorsComeInTheOrderOfTheirData) {
  const Result<SafetensorsHeader> header =
      ParseSafetensorsHeader(R"({"z":{"dtype":"U8","shape":[3],"data_offsets":[2,5]},)"
                             R"("e":{"data_offsets":[2,2],"shape":[0],"dtype":"U8"},)"
                             R"("a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}  )",
                             5);
  ASSERT_TRUE(header.ok()) << header.error().message;
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[1].name, "e");
  EXPECT_EQ(header->tensors[2].name, "z");
}

TEST(SafetensorsHeader, UnsupportedTypesAreListed) {
  const Result<SafetensorsHeader> header =
      ParseSafetensorsHeader(R"({"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F3_FUTURE","shape":[9],"data_offsets":[8,11]}})",
                             11);
  ASSERT_TRUE(header.ok()) << header.error().message;
  EXPECT_EQ(header->tensors[0].dtype, std::nullopt);
  EXPECT_EQ(header->tensors[0].dtype_name, "I64");
  EXPECT_EQ(header->tensors[1].dtype_name, "F3_FUTURE");
}

TEST(SafetensorsHeader, FormatRefusesWhatTheFormatCannotHold) {
  const auto error = [](std::vector<TensorSpec> specs, TensorMetadata metadata) {
    const Result<std::string> header = FormatSafetensorsHeader(specs, metadata);
    EXPECT_FALSE(header.ok());
    EXPECT_EQ(header.error().kind, ErrorKind::kBadInput);
    return header.ok() ? "" : header.error().message;
  };
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(error({{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}}, {}),
            "tensor name \"a\" is used twice or reserved");
  EXPECT_EQ(error({{"__metadata__", DType::kU8, {1}}}, {}),
            "tensor name \"__metadata__\" is used twice or reserved");
  EXPECT_EQ(error({{"a", DType::kU8, {huge, huge}}}, {}), "tensor \"a\" is too large to save");
  EXPECT_EQ(error({{"a", DType::kF32, {huge, 1 << 22}}}, {}), "tensor \"a\" is too large to save");
  EXPECT_EQ(error({{"a", DType::kU8, {huge, 1 << 22}}, {"b", DType::kU8, {huge, 1 << 22}}}, {}),
            "tensor \"b\" is too large to save");
  EXPECT_NE(error({{"\xff", DType::kU8, {1}}}, {}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(error({}, {{"key", "\xc3"}}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(error({}, {{"key", std::string(100'000'001, 'x')}}).find("the format allows"),
            std::string::npos);
}

}  // namespace
}  // namespace thimble
