#include "thimble/device/cuda/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <array>

#include "thimble/base/check.h"
#include "thimble/device/cuda/check.h"

namespace thimble {
namespace {

// A function of the driver, which programs do not link.
template <class Function>
Function DriverFunction(const char* name) {
  constexpr unsigned kSince = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  THIMBLE_CUDA(
      cudaGetDriverEntryPointByVersion(name, &function, kSince, cudaEnableDefault, &found));
  THIMBLE_CHECK(found == cudaDriverEntryPointSuccess && function != nullptr,
                "the NVIDIA driver has no function {}", name);
  return reinterpret_cast<Function>(function);  // NOLINT: the driver hands out untyped addresses
}

CUtensorMapDataType MapType(DType type) {
  return type == DType::kF16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

CUtensorMapSwizzle SwizzleOf(uint32_t chunk) {
  return chunk == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B;
}

// The driver copies the address into the map and reads nothing from it.
void* Address(const void* array) { return const_cast<void*>(array); }  // NOLINT

constexpr size_t kMaxRank = 4;

// Bytes from one element to the next along each dimension but the innermost.
std::array<cuuint64_t, kMaxRank> StridesOf(std::span<const uint64_t> sizes) {
  std::array<cuuint64_t, kMaxRank> strides{};
  cuuint64_t bytes = 2;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) strides[i] = bytes *= sizes[i];
  return strides;
}

}  // namespace

CUtensorMap MapOfWindows(const void* images, DType type, const WindowedImages& w, int chunk,
                         int pixels) {
  static const auto encode =
      DriverFunction<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col");
  const std::array<uint64_t, 4> sizes = {
      static_cast<uint64_t>(w.channels), static_cast<uint64_t>(w.width),
      static_cast<uint64_t>(w.height), static_cast<uint64_t>(w.batch)};
  const auto stride = static_cast<cuuint32_t>(w.stride);
  const std::array<cuuint32_t, 4> steps = {1, stride, stride, 1};
  // The first window's first pixel, relative to the image's first, and the last window's first
  // pixel, relative to the image's last.
  const std::array<int, 2> lower = {w.first_column, w.first_row};
  const std::array<int, 2> upper = {w.first_column + (w.across - 1) * w.stride - (w.width - 1),
                                    w.first_row + (w.down - 1) * w.stride - (w.height - 1)};
  CUtensorMap map{};
  const CUresult code = encode(
      &map, MapType(type), 4, Address(images), sizes.data(), StridesOf(sizes).data(), lower.data(),
      upper.data(), static_cast<cuuint32_t>(chunk), static_cast<cuuint32_t>(pixels), steps.data(),
      CU_TENSOR_MAP_INTERLEAVE_NONE, SwizzleOf(static_cast<uint32_t>(chunk)),
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  THIMBLE_CHECK(code == CUDA_SUCCESS, "cuTensorMapEncodeIm2col: error {}", static_cast<int>(code));
  return map;
}

CUtensorMap MapOfBoxes(const void* array, DType type, std::span<const uint64_t> sizes,
                       std::span<const uint32_t> box) {
  static const auto encode =
      DriverFunction<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled");
  constexpr std::array<cuuint32_t, kMaxRank> kSteps = {1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult code = encode(
      &map, MapType(type), static_cast<cuuint32_t>(sizes.size()), Address(array), sizes.data(),
      StridesOf(sizes).data(), box.data(), kSteps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      SwizzleOf(box[0]), CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  THIMBLE_CHECK(code == CUDA_SUCCESS, "cuTensorMapEncodeTiled: error {}", static_cast<int>(code));
  return map;
}

bool CanMapWindows(const WindowedImages& w) {
  constexpr int kMaxOffset = 127;  // of the windows' area from the image
  constexpr int kMaxStride = 8;
  // Drivers up to version 13 describe smaller arrays wrongly.
  constexpr int64_t kMinBytes = 131072;
  const auto fits = [&](int first, int count, int size) {
    const int last = first + (count - 1) * w.stride - (size - 1);
    return first >= -kMaxOffset && first <= kMaxOffset && last >= -kMaxOffset && last <= kMaxOffset;
  };
  const int64_t bytes = int64_t{2} * w.batch * w.height * w.width * w.channels;
  return w.stride <= kMaxStride && fits(w.first_row, w.down, w.height) &&
         fits(w.first_column, w.across, w.width) && bytes >= kMinBytes;
}

}  // namespace thimble
