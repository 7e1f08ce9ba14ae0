// How rewire moves stored numbers: bits stay in 16 and 32 bits; numbers in 8 bits are encoded
// again.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/ops/rewire_run.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/op_inputs.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using Bytes = std::vector<std::byte>;

// A call of the op, with stored bytes.
struct PoolCase {
  std::vector<int64_t> elements;
  std::vector<int32_t> pattern;
  DType weight_type = DType::kF32;
  DType momentum_type = DType::kF32;
  Bytes weights = {};
  Bytes momentum = {};
  float threshold = 0.5F;

  int64_t active() const { return pattern.back(); }
  int64_t pool_numbers() const {
    return PoolNumbers(momentum_type, active(), static_cast<int64_t>(elements.size()));
  }
};

struct PoolResult {
  std::vector<int32_t> pattern;
  Bytes weights;
  Bytes momentum;
  friend bool operator==(const PoolResult&, const PoolResult&) = default;
};

template <class T>
Bytes BytesOf(const std::vector<T>& numbers) {
  const auto* begin = reinterpret_cast<const std::byte*>(numbers.data());
  return {begin, begin + numbers.size() * sizeof(T)};
}

PoolCase MakePoolCase(const std::vector<int64_t>& elements, double sparsity) {
  PoolCase made{.elements = elements, .pattern = {}};
  made.pattern.resize(static_cast<size_t>(PatternWords(PatternBlocks(elements))));
  DrawPattern(made.pattern, elements, sparsity, /*seed=*/3);
  return made;
}

// In place or not.
PoolResult RunPools(const PoolCase& c, int threads, bool in_place) {
  const Attributes attributes = {{"tensors", c.elements},
                                 {"method", int64_t{0}},
                                 {"quota", int64_t{0}},
                                 {"fraction", 0.0},
                                 {"seed", int64_t{1}}};
  const Bytes contents[] = {BytesOf(c.pattern), c.weights, c.momentum,
                            BytesOf(std::vector<float>{c.threshold}),
                            BytesOf(std::vector<int32_t>{4})};
  const DType types[] = {DType::kI32, c.weight_type, c.momentum_type, DType::kF32, DType::kI32};
  const std::vector<Shape> shapes = {Shape{static_cast<int64_t>(c.pattern.size())},
                                     Shape{c.active()}, Shape{c.pool_numbers()}, Shape{1},
                                     Shape{1}};
  std::vector<GuardedBuffer> buffers;
  std::vector<TensorView> in;
  std::vector<TensorView> out;
  for (size_t i = 0; i < 5; ++i) {
    buffers.emplace_back(contents[i].size());
    std::copy(contents[i].begin(), contents[i].end(), buffers.back().data());
    in.push_back({buffers.back().data(), types[i], shapes[i]});
    EXPECT_EQ(in.back().size_bytes(), contents[i].size());
    if (!in_place || i == 4) buffers.emplace_back(contents[i].size());
    out.push_back({buffers.back().data(), types[i], shapes[i]});
  }
  const Kernel& kernel = BuiltinOps().Get("rewire").kernels()[0];
  const OpCall call{shapes, shapes, attributes, types, types};
  EXPECT_EQ(kernel.declines(call), "");
  GuardedBuffer scratch(kernel.scratch_bytes(call, {threads}));
  ThreadPool pool(threads);
  kernel.run({in, out, attributes, scratch.bytes(), pool});
  EXPECT_TRUE(scratch.GuardsIntact() && scratch.LastWordWritten());
  for (const GuardedBuffer& buffer : buffers) EXPECT_TRUE(buffer.GuardsIntact());
  const auto bytes = [&](size_t i) { return Bytes(out[i].bytes().begin(), out[i].bytes().end()); };
  PoolResult result{{}, bytes(1), bytes(2)};
  const auto words = out[0].As<int32_t>();
  result.pattern.assign(words.begin(), words.end());
  EXPECT_TRUE(CheckPattern(result.pattern, c.elements, c.active()).ok());
  return result;
}

// The same for any number of threads, in place and not.
PoolResult RunPoolsEachWay(const PoolCase& c) {
  PoolResult first = RunPools(c, 1, false);
  for (const int threads : {1, 2, 3, 5}) {
    EXPECT_TRUE(RunPools(c, threads, false) == first) << threads << " threads";
    EXPECT_TRUE(RunPools(c, threads, true) == first) << threads << " threads, in place";
  }
  return first;
}

std::vector<float> Numbers01(uint32_t stream, int64_t count) {
  std::vector<float> numbers;
  for (const double number : RandomNormals(7, stream, static_cast<size_t>(count))) {
    numbers.push_back(static_cast<float>(number));
  }
  return numbers;
}

Bytes Encoded(const std::vector<float>& numbers, DType type) {
  Bytes bytes(StorageBytes(type, numbers.size()));
  EncodeNumbers(numbers.data(), numbers.size(), {bytes.data(), type});
  return bytes;
}

// Calls body(old place, new place) for each active position of the new pattern; old places of those
// that grew are -1.
template <class Body>
void ForEachMove(const std::vector<int32_t>& before, const std::vector<int32_t>& after,
                 const Body& body) {
  int64_t old_place = 0;
  int64_t new_place = 0;
  const int64_t blocks = static_cast<int64_t>(before.size()) / (kPatternBlockWords + 1);
  for (int64_t position = 0; position < blocks * kPatternBlock; ++position) {
    const auto is_active = [&](const std::vector<int32_t>& words) {
      const auto word = static_cast<uint32_t>(words[static_cast<size_t>(position / 32)]);
      return (word >> (position % 32) & 1) != 0;
    };
    const int64_t old_one = is_active(before) ? old_place++ : -1;
    if (is_active(after)) body(old_one, new_place++);
  }
}

template <class Stored>
void ExpectSameBits(const PoolCase& c, const PoolResult& result, const Bytes& before,
                    const Bytes& after) {
  int64_t grown = 0;
  ForEachMove(c.pattern, result.pattern, [&](int64_t old_place, int64_t new_place) {
    Stored expected{0};
    Stored actual;
    if (old_place >= 0) {
      std::memcpy(&expected, before.data() + static_cast<size_t>(old_place) * sizeof(Stored),
                  sizeof(Stored));
    }
    std::memcpy(&actual, after.data() + static_cast<size_t>(new_place) * sizeof(Stored),
                sizeof(Stored));
    ASSERT_EQ(actual, expected) << "place " << new_place;
    grown += old_place < 0 ? 1 : 0;
  });
  EXPECT_GT(grown, 100);
}

// Any 16 bits: numbers below the smallest normal one, NaN with all kinds of bits, -0.
TEST(RewirePools, NumbersIn16BitsKeepTheirBits) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    PoolCase c = MakePoolCase({3000, 17, 20001}, 0.6);
    c.weight_type = c.momentum_type = type;
    std::vector<uint16_t> weights;
    std::vector<uint16_t> momentum;
    for (int64_t i = 0; i < c.active(); ++i) {
      weights.push_back(static_cast<uint16_t>(i * 40503));
      momentum.push_back(static_cast<uint16_t>(i * 30011 + 7));
    }
    c.weights = BytesOf(weights);
    c.momentum = BytesOf(momentum);
    const PoolResult result = RunPoolsEachWay(c);
    ExpectSameBits<uint16_t>(c, result, c.weights, result.weights);
    ExpectSameBits<uint16_t>(c, result, c.momentum, result.momentum);
  }
}

TEST(RewirePools, NumbersOfTwoSizesKeepTheirBits) {
  PoolCase c = MakePoolCase({3000, 17, 20001}, 0.6);
  c.weight_type = DType::kBF16;
  c.weights = Encoded(Numbers01(1, c.active()), DType::kBF16);
  c.momentum = BytesOf(Numbers01(2, c.active()));
  const PoolResult result = RunPoolsEachWay(c);
  ExpectSameBits<uint16_t>(c, result, c.weights, result.weights);
  ExpectSameBits<uint32_t>(c, result, c.momentum, result.momentum);
}

// The bytes of a pool in 8 bits with these numbers, tensor by tensor.
Bytes PoolIn8Bits(const PoolCase& c, const std::vector<int32_t>& pattern,
                  const std::vector<float>& numbers) {
  Bytes pool(StorageBytes(DType::kQ8, static_cast<size_t>(c.pool_numbers())));
  int64_t block = 0;
  for (size_t t = 0; t < c.elements.size(); ++t) {
    const PackedPlace place = PackedPlaceIn(pattern.data(), PatternBlocks(c.elements), block,
                                            c.elements[t], static_cast<int64_t>(t));
    EncodeNumbers(numbers.data() + place.begin(), place.count(),
                  {pool.data() + place.OffsetBytes(DType::kQ8), DType::kQ8});
    block += place.blocks;
  }
  return pool;
}

std::vector<float> NumbersInPool(const PoolCase& c, const std::vector<int32_t>& pattern,
                                 const Bytes& pool) {
  std::vector<float> numbers(static_cast<size_t>(c.active()));
  int64_t block = 0;
  for (size_t t = 0; t < c.elements.size(); ++t) {
    const PackedPlace place = PackedPlaceIn(pattern.data(), PatternBlocks(c.elements), block,
                                            c.elements[t], static_cast<int64_t>(t));
    DecodeNumbers({pool.data() + place.OffsetBytes(DType::kQ8), DType::kQ8}, place.count(),
                  numbers.data() + place.begin());
    block += place.blocks;
  }
  return numbers;
}

// What the numbers before, moved, would be in 8 bits: the same bytes, zeros where no number is.
TEST(RewirePools, NumbersIn8BitsAreEncodedAgain) {
  for (const double sparsity : {0.3, 0.6, 0.95}) {
    PoolCase c = MakePoolCase({3000, 17, 256, 20001, 512}, sparsity);
    c.momentum_type = DType::kQ8;
    c.weights = BytesOf(Numbers01(1, c.active()));
    c.momentum = PoolIn8Bits(c, c.pattern, Numbers01(2, c.active()));
    const PoolResult result = RunPoolsEachWay(c);
    ExpectSameBits<uint32_t>(c, result, c.weights, result.weights);
    const std::vector<float> before = NumbersInPool(c, c.pattern, c.momentum);
    std::vector<float> moved(before.size());
    ForEachMove(c.pattern, result.pattern, [&](int64_t old_place, int64_t new_place) {
      moved[static_cast<size_t>(new_place)] =
          old_place < 0 ? 0 : before[static_cast<size_t>(old_place)];
    });
    EXPECT_TRUE(result.momentum == PoolIn8Bits(c, result.pattern, moved)) << sparsity;
    // No number is further away than half a step of its block; |momentum| is below 5.
    const std::vector<float> after = NumbersInPool(c, result.pattern, result.momentum);
    for (size_t i = 0; i < moved.size(); ++i) ASSERT_NEAR(after[i], moved[i], 2.6 / 127);
  }
}

TEST(RewirePools, PoolsOfOtherTypesOrSizesAreDeclined) {
  const Attributes attributes = {{"tensors", std::vector<int64_t>{300, 70}}};
  const std::vector<Shape> shapes = {Shape{28}, Shape{50}, Shape{50}, Shape{1}, Shape{1}};
  const Kernel& kernel = BuiltinOps().Get("rewire").kernels()[0];
  const std::vector<DType> in = {DType::kI32, DType::kF32, DType::kF32, DType::kF32, DType::kI32};
  std::vector<DType> out = in;
  EXPECT_EQ(kernel.declines({shapes, shapes, attributes, in, out}), "");
  out[1] = DType::kBF16;
  EXPECT_NE(kernel.declines({shapes, shapes, attributes, in, out}), "");
  out[1] = DType::kF32;
  std::vector<DType> in_8_bits = in;
  in_8_bits[2] = DType::kQ8;
  EXPECT_NE(kernel.declines({shapes, shapes, attributes, in_8_bits, in_8_bits}), "");
}

}  // namespace
}  // namespace thimble
