// The innermost product: a strip of packed A times packed columns of B, summed in registers.
// Compiled per SIMD target; its tile is as large as the target's registers allow.
#pragma once

#include <cstddef>

namespace thimble {

// Maximum depth of a block. A strip of 14 rows is then 14 KiB, a strip of 32 columns of B 32 KiB:
// together about the size of the first-level cache.
inline constexpr size_t kPanelDepth = 256;

// The largest tile of any target; scratch is sized for it, so that a plan does not depend on the
// target.
inline constexpr size_t kMaxTileRows = 14;
inline constexpr size_t kMaxTileColumns = 32;

// The tile of the active target.
struct MicroTile {
  size_t rows = 0;     // maximum rows of a strip of A
  size_t columns = 0;  // width of a strip of B: two vectors
  size_t lanes = 0;    // the last strip of B is one vector wide if that suffices
};
MicroTile ActiveMicroTile();

struct StripProduct {
  // (rows, segments, depth): a row of A consists of one or more segments, as the window of a
  // convolution spans several lines of an image. Rows may overlap.
  const float* a = nullptr;
  size_t a_stride = 0;          // floats from one row of A to the next
  size_t a_segment_stride = 0;  // floats from one segment of a row to the next
  // Strips of columns one after the other, each (segments * depth, strip width); columns past the
  // end hold zeros.
  const float* b = nullptr;
  float* const* c_rows = nullptr;  // [rows]: address of `columns` floats of each row of C
  size_t rows = 0;
  size_t columns = 0;
  size_t segments = 1;
  size_t depth = 0;  // of a segment
  // Whether A and B consist of pairs of bf16 numbers (pairs.h). Requires MultipliesPairs().
  bool pairs = false;
  // What happens to the previous numbers in C.
  enum class Old {
    kOverwrite,
    kAdd,       // sums from zero, added to C: short chains
    kContinue,  // sums from C: the same bits as with undivided depth
  } old = Old::kOverwrite;
  // [rows]: address of `columns` floats to add to each row of C in the end; null if there are none.
  // Not together with kAdd.
  const float* const* added_rows = nullptr;
};

// Requires 1 <= rows <= the tile's rows.
void MultiplyStrip(const StripProduct& product);

}  // namespace thimble
