// Atomic functions and fences of CUDA C++.
#pragma once

#include <algorithm>
#include <atomic>

#include "tests/support/gpu_emulator/block.h"

namespace gpu_emulator {

// *place = change(*place); returns the old value.
template <class T, class Change>
T Exchange(T* place, const Change& change) {
  std::atomic_ref<T> atomic(*place);
  T old = atomic.load();
  while (!atomic.compare_exchange_weak(old, change(old))) {
  }
  CountProgress();
  return old;
}

// A type that is not deduced, so that constants of other types can be passed.
template <class T>
using Same = std::type_identity_t<T>;

}  // namespace gpu_emulator

template <class T>
T atomicAdd(T* place, gpu_emulator::Same<T> value) {
  return gpu_emulator::Exchange(place, [&](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicSub(T* place, gpu_emulator::Same<T> value) {
  return gpu_emulator::Exchange(place, [&](T old) { return static_cast<T>(old - value); });
}
template <class T>
T atomicMax(T* place, gpu_emulator::Same<T> value) {
  return gpu_emulator::Exchange(place, [&](T old) { return std::max(old, value); });
}
template <class T>
T atomicMin(T* place, gpu_emulator::Same<T> value) {
  return gpu_emulator::Exchange(place, [&](T old) { return std::min(old, value); });
}
template <class T>
T atomicAnd(T* place, gpu_emulator::Same<T> value) {
  return gpu_emulator::Exchange(place, [&](T old) { return old & value; });
}
template <class T>
T atomicOr(T* place, gpu_emulator::Same<T> value) {
  return gpu_emulator::Exchange(place, [&](T old) { return old | value; });
}
template <class T>
T atomicXor(T* place, gpu_emulator::Same<T> value) {
  return gpu_emulator::Exchange(place, [&](T old) { return old ^ value; });
}
template <class T>
T atomicExch(T* place, gpu_emulator::Same<T> value) {
  return gpu_emulator::Exchange(place, [&](T /*old*/) { return value; });
}
template <class T>
T atomicCAS(T* place, gpu_emulator::Same<T> expected, gpu_emulator::Same<T> value) {
  return gpu_emulator::Exchange(place, [&](T old) { return old == expected ? value : old; });
}

// Blocks run one after the other, and the threads of a block take turns.
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
