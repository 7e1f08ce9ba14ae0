// Malformed headers. The files are whole, so that the reader's part is tested with them.
#include "thimble/train/weights/safetensors_parser.h"

#include <gtest/gtest.h>

#include "tests/train/file_fixture.h"
#include "thimble/train/weights/safetensors_reader.h"

namespace thimble {
namespace {

struct BadFile {
  const char* name;
  std::string content;
  const char* message;  // what the error must contain
};

std::string Tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string One(const std::string& dtype, const std::string& shape, const std::string& offsets,
                size_t data_bytes) {
  return RawFile(R"({"w":)" + Tensor(dtype, shape, offsets) + "}", data_bytes);
}

std::string Two(const std::string& first_offsets, const std::string& second_offsets) {
  return RawFile(R"({"a":)" + Tensor(R"("U8")", "[4]", first_offsets) + R"(,"b":)" +
                     Tensor(R"("U8")", "[4]", second_offsets) + "}",
                 8);
}

std::vector<BadFile> BadFrames() {
  const std::string good = R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  return {
      {"empty", "", "byte 0: expected the header's length in 8 bytes, the file has 0"},
      {"short", "1234567", "byte 0: expected the header's length in 8 bytes, the file has 7"},
      {"zero_length", RawFile(0, "", 0), "byte 0: expected a header length"},
      {"length_1", RawFile(1, "{", 0), "byte 0: expected a header length"},
      {"length_past_end", RawFile(good.size() + 3, good, 2), "byte 0: expected a header length"},
      {"length_max", RawFile(UINT64_MAX, good, 2), "found 18446744073709551615"},
      {"length_sign", RawFile(uint64_t{1} << 63, good, 2), "byte 0: expected a header length"},
      {"other_file", "PK\x03\x04 an archive of some kind", "not a safetensors file"},
      {"truncated_header", RawFile(good.size(), good.substr(0, 20), 0),
       "byte 0: expected a header"},
      {"header_cut", RawFile(20, good, 2), "byte 28: expected JSON"},
      {"truncated_data", RawFile(good, 1), "within the 1 bytes of data, found [0, 2]"},
      {"trailing_data", RawFile(good, 3),
       "byte 63: expected the end of the file after the last "
       "tensor, found 1 more bytes"},
      {"data_without_tensors", RawFile("{}", 1), "expected the end of the file"},
      {"byte_order_mark", RawFile("\xef\xbb\xbf{}", 0), "byte 8: expected '{'"},
      {"leading_space", RawFile(" {}", 0), "byte 8: expected '{'"},
      {"zero_padding", RawFile(std::string("{}\0\0", 4), 0),
       "byte 10: expected JSON, found a zero"},
      {"text_after", RawFile("{} x", 0), "byte 12: expected JSON"},
      {"second_object", RawFile("{}{}", 0), "expected JSON"},
  };
}

std::vector<BadFile> BadJson() {
  return {
      {"array", RawFile("[1]", 0), "byte 8: expected '{'"},
      {"number", RawFile("17", 0), "byte 8: expected '{'"},
      {"not_json", RawFile("{hello", 0), "expected JSON"},
      {"comment", RawFile("{/**/}", 0), "expected JSON"},
      {"bad_utf8", RawFile("{\"\xff\":1}", 0), "expected JSON"},
      {"raw_newline_in_name", RawFile("{\"\n\":1}", 0), "expected JSON"},
      {"number_overflow", RawFile(R"({"w":1e999})", 0), "expected JSON"},
      {"tensor_null", RawFile(R"({"w":null})", 0), "an object that describes \"w\", found null"},
      {"tensor_array", RawFile(R"({"w":[]})", 0), "an object that describes \"w\", found an array"},
      {"tensor_string", RawFile(R"({"w":"x"})", 0), "found a string"},
      {"tensor_number", RawFile(R"({"w":3})", 0), "found a number"},
      {"tensor_empty", RawFile(R"({"w":{}})", 0), "expected dtype, shape and data_offsets in"},
      {"no_offsets", RawFile(R"({"w":{"dtype":"U8","shape":[0]}})", 0),
       "expected dtype, shape and"},
      {"unknown_member", RawFile(R"({"w":{"color":"red"}})", 0), "found \"color\""},
      {"member_twice", RawFile(R"({"w":{"dtype":"U8","dtype":"U8"}})", 0), "found \"dtype\" twice"},
      {"metadata_array", RawFile(R"({"__metadata__":[]})", 0), "\"__metadata__\", found an array"},
      {"metadata_number", RawFile(R"({"__metadata__":{"k":1}})", 0), "a string for metadata \"k\""},
      {"metadata_nested", RawFile(R"({"__metadata__":{"k":{}}})", 0),
       "a string for metadata \"k\""},
      {"metadata_key_twice", RawFile(R"({"__metadata__":{"k":"","k":""}})", 0), "\"k\" twice"},
      {"metadata_twice", RawFile(R"({"__metadata__":{},"__metadata__":{}})", 0), "twice"},
      {"name_twice",
       RawFile(R"({"w":)" + Tensor(R"("U8")", "[2]", "[0,2]") + R"(,"w":)" +
                   Tensor(R"("U8")", "[2]", "[2,4]") + "}",
               4),
       "found \"w\" twice"},
      {"name_twice_escaped",
       RawFile(R"({"w":)" + Tensor(R"("U8")", "[0]", "[0,0]") + R"(,"\u0077":)" +
                   Tensor(R"("U8")", "[0]", "[0,0]") + "}",
               0),
       "found \"w\" twice"},
      {"deep", RawFile(R"({"w":{"shape":)" + std::string(1'000'000, '['), 0), "found an array"},
      {"deep_objects", RawFile(R"({"w":{"dtype":{"x":{)", 0), "found an object"},
  };
}

std::vector<BadFile> BadTensors() {
  return {
      {"dtype_number", One("32", "[1]", "[0,4]", 4), "a string for dtype of tensor \"w\""},
      {"dtype_array", One("[]", "[1]", "[0,4]", 4), "a string for dtype of tensor \"w\""},
      {"shape_string", One(R"("F32")", R"("1")", "[0,4]", 4), "an array for shape of tensor \"w\""},
      {"shape_of_strings", One(R"("F32")", R"(["1"])", "[0,4]", 4), "found a string"},
      {"shape_nested", One(R"("F32")", "[[1]]", "[0,4]", 4), "found an array"},
      {"shape_negative", One(R"("F32")", "[-1]", "[0,4]", 4), "found a negative number"},
      {"shape_both_negative", One(R"("F32")", "[-1,-1]", "[0,4]", 4), "found a negative number"},
      {"shape_fraction", One(R"("F32")", "[1.0]", "[0,4]", 4), "not a 64-bit integer"},
      {"shape_2_63", One(R"("F32")", "[9223372036854775808]", "[0,4]", 4), "not a 64-bit integer"},
      {"shape_2_64", One(R"("F32")", "[18446744073709551617]", "[0,4]", 4), "not a 64-bit integer"},
      {"elements_overflow", One(R"("F32")", "[4294967296,4294967296]", "[0,0]", 0),
       "expected fewer than 2^63 bytes"},
      {"bytes_overflow", One(R"("F32")", "[4611686018427387904]", "[0,0]", 0),
       "expected fewer than 2^63 bytes"},
      {"overflow_with_zero", One(R"("F32")", "[4294967296,4294967296,0]", "[0,0]", 0),
       "expected fewer than 2^63 bytes"},
      {"rank_6", One(R"("F32")", "[1,1,1,1,1,1]", "[0,4]", 4),
       "expected at most 5 numbers in shape"},
      {"huge_rank", One(R"("F32")", "[1" + std::string(100'000, '0') + "]", "[0,4]", 4),
       "expected"},
      {"size_too_small", One(R"("F32")", "[2,2]", "[0,12]", 12),
       "expected 16 bytes for tensor \"w\" of F32 (2, 2), found 12"},
      {"size_of_other_type", One(R"("BF16")", "[4]", "[0,16]", 16), "expected 8 bytes for tensor"},
      {"offsets_number", One(R"("U8")", "[4]", "4", 4), "an array for data_offsets"},
      {"offsets_none", One(R"("U8")", "[4]", "[]", 4), "expected two numbers in data_offsets"},
      {"offsets_one", One(R"("U8")", "[4]", "[0]", 4), "expected two numbers in data_offsets"},
      {"offsets_three", One(R"("U8")", "[4]", "[0,4,4]", 4), "at most 2 numbers in data_offsets"},
      {"offsets_negative", One(R"("U8")", "[4]", "[-4,0]", 4), "found a negative number"},
      {"offsets_swapped", One(R"("U8")", "[4]", "[4,0]", 4), "found [4, 0]"},
      {"offsets_past_end", One(R"("U8")", "[4]", "[4,8]", 4), "within the 4 bytes of data"},
      {"offsets_max", One(R"("U8")", "[1]", "[9223372036854775806,9223372036854775807]", 4),
       "within the 4 bytes of data"},
      {"unknown_type_past_end", One(R"("F3")", "[4]", "[0,8]", 4), "within the 4 bytes of data"},
      {"overlap", Two("[0,4]", "[3,7]"),
       "tensor \"b\" to begin here, at data offset 4; it overlaps"},
      {"same_place", Two("[0,4]", "[0,4]"), "overlaps the one before at 0"},
      {"hole",
       RawFile(R"({"a":)" + Tensor(R"("U8")", "[2]", "[0,2]") + R"(,"b":)" +
                   Tensor(R"("U8")", "[4]", "[4,8]") + "}",
               8),
       "leaves a hole at 4"},
      {"hole_at_begin", One(R"("U8")", "[4]", "[4,8]", 8), "data offset 0; it leaves a hole at 4"},
  };
}

class SafetensorsBadFiles : public FileFixture, public testing::WithParamInterface<BadFile> {};

TEST_P(SafetensorsBadFiles, OneClearLine) {
  Put(path_, GetParam().content);
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path_);
  ASSERT_FALSE(reader.ok());
  const Error& error = reader.error();
  EXPECT_EQ(error.kind, ErrorKind::kBadInput);
  EXPECT_TRUE(error.message.starts_with(path_ + ": byte ")) << error.message;
  EXPECT_NE(error.message.find(GetParam().message), std::string::npos) << error.message;
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  EXPECT_LT(error.message.size(), path_.size() + 400);
}

std::string NameOf(const testing::TestParamInfo<BadFile>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Frame, SafetensorsBadFiles, testing::ValuesIn(BadFrames()), NameOf);
INSTANTIATE_TEST_SUITE_P(Json, SafetensorsBadFiles, testing::ValuesIn(BadJson()), NameOf);
INSTANTIATE_TEST_SUITE_P(Tensor, SafetensorsBadFiles, testing::ValuesIn(BadTensors()), NameOf);

TEST(SafetensorsParser, KeepsTheOrderOfTheText) {
  const Result<SafetensorsHeader> header =
      ParseSafetensorsJson(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                           R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                           2);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->tensors[0].name, "b");
}

TEST(SafetensorsParser, SaysWhereInTheText) {
  const Result<SafetensorsHeader> header = ParseSafetensorsJson(R"({"w":null})", 0);
  EXPECT_EQ(header.error().message, "byte 17: expected an object that describes \"w\", found null");
}

}  // namespace
}  // namespace thimble
