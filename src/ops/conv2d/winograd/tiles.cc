#include "thimble/ops/conv2d/winograd/tiles.h"

#include <array>
#include <utility>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/conv2d/winograd/tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/numbers-inl.h"
#include "thimble/ops/conv2d/winograd/transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The values that tiles read outside their image.
template <class Stored>
alignas(64) constexpr Stored kZeros[kWinogradChannels] = {};

// The pixels of one tile, kSide x kSide, starting at the first of the requested channels.
template <int64_t kSide, class Stored>
struct TilePixels {
  const Stored* pixels[kSide][kSide];

  TilePixels(const Stored* images, const TiledImages& grid, size_t tile, size_t channel) {
    const auto index = static_cast<int64_t>(tile);
    const int64_t image = index / (grid.tiles_high * grid.tiles_wide);
    const int64_t top = index / grid.tiles_wide % grid.tiles_high * kWinogradOutputs + grid.top;
    const int64_t left = index % grid.tiles_wide * kWinogradOutputs + grid.left;
    for (int64_t i = 0; i < kSide; ++i) {
      const int64_t y = top + i;
      const bool row_inside = y >= 0 && y < grid.height;
      const int64_t first_pixel = (image * grid.height + y) * grid.width + left;
      for (int64_t j = 0; j < kSide; ++j) {
        const bool inside = row_inside && left + j >= 0 && left + j < grid.width;
        pixels[i][j] =
            inside ? images + (first_pixel + j) * grid.channels + channel : kZeros<Stored>;
      }
    }
  }
};

template <class Line, class Stored>
void TransformStoredTiles(const Stored* images, const TiledImages& grid, IndexRange tiles,
                          IndexRange channels, const PointMatrices<float>& values) {
  constexpr auto kSide = static_cast<int64_t>(Line::kIn);
  for (size_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const TilePixels<kSide, Stored> from(images, grid, tile, channels.begin);
    float* to = values.data + (tile - tiles.begin) * values.row_stride;
    ForEachVector(channels.size(), [&](auto tag, size_t c) HWY_ATTR {
      TransformSquare<Line>(
          tag,
          [&](size_t row, size_t column)
              HWY_ATTR { return LoadNumbers(tag, from.pixels[row][column] + c); },
          [&](size_t row, size_t column, auto value) HWY_ATTR {
            hn::StoreU(value, tag, to + (row * Line::kOut + column) * values.point_stride + c);
          });
    });
  }
}

template <class Line>
void TransformTiles(ConstNumbers images, const TiledImages& grid, IndexRange tiles,
                    IndexRange channels, const PointMatrices<float>& values) {
  VisitNumbers(images, [&](const auto* stored) {
    TransformStoredTiles<Line>(stored, grid, tiles, channels, values);
  });
}

void InputTiles(ConstNumbers images, const TiledImages& grid, IndexRange tiles, IndexRange channels,
                const PointMatrices<float>& values) {
  TransformTiles<InputLine>(images, grid, tiles, channels, values);
}

void OutputGradientTiles(ConstNumbers images, const TiledImages& grid, IndexRange tiles,
                         IndexRange channels, const PointMatrices<float>& values) {
  TransformTiles<OutputGradientLine>(images, grid, tiles, channels, values);
  // Columns that only fill up a strip are summed and discarded; zeros avoid slow denormals.
  const size_t padding = values.row_stride - channels.size();
  if (padding == 0) return;
  for (size_t point = 0; point < kWinogradPoints; ++point) {
    for (size_t tile = 0; tile < tiles.size(); ++tile) {
      float* row = values.data + point * values.point_stride + tile * values.row_stride;
      for (size_t c = channels.size(); c < values.row_stride; ++c) row[c] = 0;
    }
  }
}

// Where an output goes, in numbers from the beginning of the images and of the sums.
struct OutputPlace {
  size_t in_images;
  size_t in_sums;
};

// plus(tag, place, output) returns what is stored.
template <class Stored, class Plus>
void StoreOutputTiles(const TileOutputs& o, Stored* images, const Plus& plus) {
  const TiledImages grid = o.grid;
  const size_t num_channels = o.channels.size();
  const size_t point_stride = o.products.point_stride;
  for (size_t tile = o.tiles.begin; tile < o.tiles.end; ++tile) {
    const auto index = static_cast<int64_t>(tile);
    const int64_t image = index / (grid.tiles_high * grid.tiles_wide);
    const int64_t top = index / grid.tiles_wide % grid.tiles_high * kWinogradOutputs;
    const int64_t left = index % grid.tiles_wide * kWinogradOutputs;
    const auto first =
        static_cast<size_t>(((image * grid.height + top) * grid.width + left) * grid.channels) +
        o.channels.begin;
    const size_t row_in_group = tile - o.tiles.begin;
    const float* from = o.products.data + row_in_group * o.products.row_stride;
    ForEachVector(num_channels, [&](auto tag, size_t c) HWY_ATTR {
      TransformSquare<OutputLine>(
          tag,
          [&](size_t row, size_t column) HWY_ATTR {
            return hn::LoadU(tag, from + (row * OutputLine::kIn + column) * point_stride + c);
          },
          [&](size_t row, size_t column, auto value) HWY_ATTR {
            const auto i = static_cast<int64_t>(row);
            const auto j = static_cast<int64_t>(column);
            if (top + i >= grid.height || left + j >= grid.width) return;
            const size_t pixel = row_in_group * kTileOutputs + row * OutputLine::kOut + column;
            const OutputPlace place{
                first + static_cast<size_t>((i * grid.width + j) * grid.channels) + c,
                pixel * num_channels + c};
            StoreNumbers(plus(tag, place, value), tag, images + place.in_images);
          });
    });
  }
}

// The frequent cases have code of their own.
template <class Stored>
void PlusAddends(const TileOutputs& o, Stored* images) {
  const bool is_sum = o.add || o.sums != nullptr;
  if (!is_sum && o.added.data == nullptr) {
    return StoreOutputTiles(o, images,
                            [](auto, const OutputPlace&, auto value) HWY_ATTR { return value; });
  }
  if (!is_sum && o.added.type == o.images.type) {
    const auto* added = static_cast<const Stored*>(o.added.data);
    return StoreOutputTiles(o, images,
                            [added](auto tag, const OutputPlace& place, auto value) HWY_ATTR {
                              return hn::Add(value, LoadNumbers(tag, added + place.in_images));
                            });
  }
  StoreOutputTiles(o, images,
                   [&o, images](auto tag, const OutputPlace& place, auto value) HWY_ATTR {
                     if (o.add) value = hn::Add(LoadNumbers(tag, images + place.in_images), value);
                     if (o.sums != nullptr)
                       value = hn::Add(hn::LoadU(tag, o.sums + place.in_sums), value);
                     if (o.added.data == nullptr) return value;
                     return hn::Add(value, LoadNumbersOfAnyType(tag, o.added, place.in_images));
                   });
}

void OutputTiles(const TileOutputs& outputs) {
  VisitNumbers(outputs.images, [&](auto* images) { PlusAddends(outputs, images); });
}

constexpr size_t kStripVectors = 2;

void WeightStrip(const float* taps, size_t tap_stride, size_t rows,
                 const PointMatrices<float>& weights) {
  const hn::ScalableTag<float> tag;
  const size_t lanes = hn::Lanes(tag);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t v = 0; v < kStripVectors; ++v) {
      const float* from = taps + r * weights.row_stride + v * lanes;
      float* to = weights.data + r * weights.row_stride + v * lanes;
      TransformSquare<WeightLine>(
          tag,
          [&](size_t row, size_t column) HWY_ATTR {
            return hn::LoadU(tag, from + (row * WeightLine::kIn + column) * tap_stride);
          },
          [&](size_t row, size_t column, auto value) HWY_ATTR {
            hn::StoreU(value, tag, to + (row * WeightLine::kOut + column) * weights.point_stride);
          });
    }
  }
}

void WeightGradients(const PointMatrices<float>& sums, size_t rows, size_t columns) {
  for (size_t r = 0; r < rows; ++r) {
    ForEachVector(columns, [&](auto tag, size_t c) HWY_ATTR {
      float* at = sums.data + r * sums.row_stride + c;
      using Line = WeightGradientLine;
      TransformSquare<Line>(
          tag,
          [&](size_t row, size_t column) HWY_ATTR {
            return hn::LoadU(tag, at + (row * Line::kIn + column) * sums.point_stride);
          },
          [&](size_t row, size_t column, auto value) HWY_ATTR {
            hn::StoreU(value, tag, at + (row * Line::kOut + column) * sums.point_stride);
          });
    });
  }
}

// Rows of a product in registers; see gemm/micro_kernel.cc.
constexpr size_t kTileRows = HWY_CAP_GE512 ? 14 : 6;

// Element (r, k) of the left factor is a[r * row_step + k * depth_step].
struct LeftFactor {
  const float* a;
  size_t row_step;
  size_t depth_step;
};

// c (kRows, two vectors) = or += a (kRows, depth) * b (depth, two vectors). With +=, sums start
// from c, so that dividing the depth changes no bit.
template <size_t kRows, bool kAdd>
HWY_INLINE void MultiplyRows(const LeftFactor& left, const float* HWY_RESTRICT b, size_t b_stride,
                             size_t depth, float* HWY_RESTRICT c, size_t c_stride) {
  const hn::ScalableTag<float> tag;
  using Vector = hn::Vec<decltype(tag)>;
  const size_t lanes = hn::Lanes(tag);
  const float* a = left.a;
  Vector low[kRows];
  Vector high[kRows];
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    low[r] = kAdd ? hn::LoadU(tag, c + r * c_stride) : hn::Zero(tag);
    high[r] = kAdd ? hn::LoadU(tag, c + r * c_stride + lanes) : hn::Zero(tag);
  }
  for (size_t k = 0; k < depth; ++k, a += left.depth_step, b += b_stride) {
    const Vector b_low = hn::LoadU(tag, b);
    const Vector b_high = hn::LoadU(tag, b + lanes);
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      const Vector element = hn::Set(tag, a[r * left.row_step]);
      low[r] = hn::MulAdd(element, b_low, low[r]);
      high[r] = hn::MulAdd(element, b_high, high[r]);
    }
  }
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    hn::StoreU(low[r], tag, c + r * c_stride);
    hn::StoreU(high[r], tag, c + r * c_stride + lanes);
  }
}

template <size_t kRows>
void ProductRows(const float* a, size_t a_stride, const float* b, size_t depth, float* c,
                 size_t c_stride) {
  const size_t width = kStripVectors * hn::Lanes(hn::ScalableTag<float>());
  MultiplyRows<kRows, false>({a, a_stride, 1}, b, width, depth, c, c_stride);
}

template <size_t kRows>
void SumRows(const float* a, size_t a_stride, const float* b, size_t b_stride, size_t depth,
             float* c, size_t c_stride) {
  MultiplyRows<kRows, true>({a, 1, a_stride}, b, b_stride, depth, c, c_stride);
}

// Functions, indexed by number of rows - 1.
template <size_t... kRowsLessOne>
constexpr auto ProductFunctions(std::index_sequence<kRowsLessOne...>) {
  return std::array{&ProductRows<kRowsLessOne + 1>...};
}
template <size_t... kRowsLessOne>
constexpr auto SumFunctions(std::index_sequence<kRowsLessOne...>) {
  return std::array{&SumRows<kRowsLessOne + 1>...};
}
constexpr auto kProducts = ProductFunctions(std::make_index_sequence<kTileRows>());
constexpr auto kSums = SumFunctions(std::make_index_sequence<kTileRows>());

void Products(const TileProducts& p) {
  const size_t width = kStripVectors * hn::Lanes(hn::ScalableTag<float>());
  const EqualPieces pieces = CutEqually(p.tiles, kTileRows);
  for (size_t point = 0; point < kWinogradPoints; ++point) {
    const float* values = p.values.data + point * p.values.point_stride;
    const float* weights = p.weights.data + point * p.weights.point_stride;
    float* products = p.products.data + point * p.products.point_stride;
    for (size_t strip = 0; strip < p.strips; ++strip) {
      for (size_t piece = 0; piece < pieces.count; ++piece) {
        const IndexRange rows = pieces.Piece(piece);
        kProducts[rows.size() - 1](values + rows.begin * p.values.row_stride, p.values.row_stride,
                                   weights + strip * p.depth * width, p.depth,
                                   products + rows.begin * p.products.row_stride + strip * width,
                                   p.products.row_stride);
      }
    }
  }
}

void Sums(const TileSums& s) {
  const size_t width = kStripVectors * hn::Lanes(hn::ScalableTag<float>());
  const EqualPieces pieces = CutEqually(s.rows, kTileRows);
  for (size_t point = 0; point < kWinogradPoints; ++point) {
    const float* values = s.values.data + point * s.values.point_stride;
    const float* gradients = s.gradients.data + point * s.gradients.point_stride;
    float* sums = s.sums.data + point * s.sums.point_stride;
    for (size_t strip = 0; strip < s.strips; ++strip) {
      for (size_t piece = 0; piece < pieces.count; ++piece) {
        const IndexRange rows = pieces.Piece(piece);
        kSums[rows.size() - 1](values + rows.begin, s.values.row_stride, gradients + strip * width,
                               s.gradients.row_stride, s.tiles,
                               sums + rows.begin * s.sums.row_stride + strip * width,
                               s.sums.row_stride);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(InputTiles);
HWY_EXPORT(OutputGradientTiles);
HWY_EXPORT(OutputTiles);
HWY_EXPORT(WeightStrip);
HWY_EXPORT(WeightGradients);
HWY_EXPORT(Products);
HWY_EXPORT(Sums);

void TransformInputTiles(ConstNumbers images, const TiledImages& grid, IndexRange tiles,
                         IndexRange channels, const PointMatrices<float>& values) {
  HWY_DYNAMIC_DISPATCH(InputTiles)(images, grid, tiles, channels, values);
}
void TransformOutputGradientTiles(ConstNumbers images, const TiledImages& grid, IndexRange tiles,
                                  IndexRange channels, const PointMatrices<float>& values) {
  HWY_DYNAMIC_DISPATCH(OutputGradientTiles)(images, grid, tiles, channels, values);
}
void TransformOutputTiles(const TileOutputs& outputs) {
  HWY_DYNAMIC_DISPATCH(OutputTiles)(outputs);
}
void TransformWeightStrip(const float* taps, size_t tap_stride, size_t rows,
                          const PointMatrices<float>& weights) {
  HWY_DYNAMIC_DISPATCH(WeightStrip)(taps, tap_stride, rows, weights);
}
void MultiplyTiles(const TileProducts& product) { HWY_DYNAMIC_DISPATCH(Products)(product); }
void AddTileSums(const TileSums& sums) { HWY_DYNAMIC_DISPATCH(Sums)(sums); }
void TransformWeightGradients(const PointMatrices<float>& sums, size_t rows, size_t columns) {
  HWY_DYNAMIC_DISPATCH(WeightGradients)(sums, rows, columns);
}

}  // namespace thimble
#endif  // HWY_ONCE
