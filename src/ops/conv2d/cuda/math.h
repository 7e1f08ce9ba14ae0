// How the factors of a convolution are multiplied on a GPU.
#pragma once

namespace thimble {

enum class Math {
  kTf32,  // rounded to 10 bits of mantissa, on tensor cores
  kFp32,  // unrounded
};

}  // namespace thimble
