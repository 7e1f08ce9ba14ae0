#include "thimble/ops/conv2d/line_tiles.h"

#include <algorithm>

namespace thimble {

static_assert(2 * kTileSide == kMaxTileColumns);

LineTiles::LineTiles(const TileShape& shape, const StripProduct& strip, size_t width)
    : shape_(shape), strip_(strip), width_(width) {}

void LineTiles::Multiply(const StripProduct& product, const float* windows, size_t pixels,
                         const OutputLine& line) {
  for (size_t begin = 0; begin < pixels; begin += shape_.rows) {
    const size_t pixel = std::min(begin, pixels - shape_.rows);
    const Piece piece{
        line, windows + pixel * strip_.a_stride, product.b, product.segments, pixel, begin - pixel};
    // Lines at the top and bottom of an image have fewer tap rows than others.
    const bool fits = count_ == 0 || (pieces_[0].weights == piece.weights &&
                                      pieces_[0].segments == piece.segments);
    if (!fits) MultiplyPieces();
    pieces_[count_++] = piece;
    if (count_ == pieces_.size()) MultiplyPieces();
  }
}

void LineTiles::Finish() {
  if (count_ > 0) MultiplyPieces();
}

void LineTiles::MultiplyPieces() {
  const size_t num_segments = pieces_[0].segments;
  std::array<TileSegment, kMaxTileSegments> segments;
  for (size_t s = 0; s < num_segments; ++s) {
    for (size_t p = 0; p < count_; ++p) {
      segments[s].a[p] = pieces_[p].windows + s * strip_.a_segment_stride;
    }
    segments[s].b = pieces_[0].weights + s * strip_.depth * width_;
  }
  const bool resumes = strip_.old == StripProduct::Old::kContinue;
  const auto sums_of = [&](size_t piece) { return sums_ + piece * kTileSide * kMaxTileColumns; };
  for (size_t p = 0; p < count_ && resumes; ++p) LoadSums(pieces_[p], sums_of(p));
  MultiplyTiles({.shape = shape_,
                 .segments = {segments.data(), num_segments},
                 .depth = strip_.depth,
                 .a_stride = strip_.a_stride,
                 .b_stride = width_,
                 .halves = count_,
                 .column_tiles = width_ / kTileSide,
                 .sums = sums_,
                 .sums_stride = kMaxTileColumns,
                 .adds = resumes});
  for (size_t p = 0; p < count_; ++p) StoreSums(pieces_[p], sums_of(p));
  count_ = 0;
}

void LineTiles::LoadSums(const Piece& piece, float* sums) const {
  const OutputLine& line = piece.line;
  const ConstNumbers old{line.out.data, line.out.type};
  DecodeNumberRows(old + piece.pixel * line.pixel_stride,
                   {shape_.rows, strip_.columns, line.pixel_stride, kMaxTileColumns}, sums);
}

void LineTiles::StoreSums(const Piece& piece, float* sums) const {
  const OutputLine& line = piece.line;
  const size_t first = (piece.pixel + piece.skipped) * line.pixel_stride;
  const NumberRows rows{shape_.rows - piece.skipped, strip_.columns, line.pixel_stride,
                        kMaxTileColumns};
  float* stored = sums + piece.skipped * kMaxTileColumns;
  if (line.added.data != nullptr) AddNumberRows(line.added + first, rows, stored);
  EncodeNumberRows(stored, {rows.rows, rows.count, rows.to_stride, rows.from_stride},
                   line.out + first);
}

}  // namespace thimble
