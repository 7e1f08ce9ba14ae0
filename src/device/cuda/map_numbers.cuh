// Element-wise functions of tensors with any storage types.
#pragma once

#include <array>

#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/numbers.cuh"

namespace thimble {

// One thread per `kWidth` neighbouring elements, 16 bytes if all types are the same; then one
// thread for each of the remaining elements.
template <class Storage, size_t kInputs, class Map>
struct MapElements {
  static constexpr int kWidth = std::is_same_v<Storage, float> ? 4 : 8;

  InNumbers<Storage> in[kInputs];
  OutNumbers<Storage> out;
  int64_t packs;
  Map map;

  // The result for inputs at(0), at(1).
  template <class At>
  __device__ float Result(const At& at) const {
    if constexpr (kInputs == 1) {
      return map(at(0));
    } else {
      static_assert(kInputs == 2);
      return map(at(0), at(1));
    }
  }
  __device__ void operator()(int64_t i) const {
    if (i < packs) return MapPack(i * kWidth);
    const int64_t element = packs * kWidth + (i - packs);
    StoreNumber(Result([&](int n) { return LoadNumber(in[n] + element); }), out + element);
  }
  __device__ void MapPack(int64_t first) const {
    Pack<Storage, kWidth> loaded[kInputs];
#pragma unroll
    for (int n = 0; n < kInputs; ++n) loaded[n] = LoadPack<kWidth>(in[n] + first);
    float results[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) results[k] = Result([&](int n) { return loaded[n][k]; });
    StorePack(results, out + first);
  }
};

// out = map(in...) for each element, as floats. `map` is copied to the device; `out` may have the
// address of an input whose type has the same size.
template <size_t kInputs, class Map>
void LaunchMap(cudaStream_t stream, std::span<const TensorView, kInputs> in, const TensorView& out,
               const Map& map) {
  std::array<DType, kInputs + 1> types{};
  types[kInputs] = out.dtype;
  bool aligned = AllAligned16(out.data);
  for (size_t n = 0; n < kInputs; ++n) {
    types[n] = in[n].dtype;
    aligned = aligned && AllAligned16(in[n].data);
  }
  WithCommonStorage(types, [&](auto storage) {
    using Storage = decltype(storage);
    using Elements = MapElements<Storage, kInputs, Map>;
    const int64_t elements = out.shape.elements();
    const int64_t packs = aligned ? elements / Elements::kWidth : 0;
    Elements body{.in = {}, .out = As<Storage>(NumbersOf(out)), .packs = packs, .map = map};
    for (size_t n = 0; n < kInputs; ++n) body.in[n] = As<Storage>(ConstNumbersOf(in[n]));
    LaunchElements(stream, elements - packs * (Elements::kWidth - 1), body);
  });
}

}  // namespace thimble
