// Gemm: C = A * B, or C += A * B, with operands read through packers, within given scratch.
// README.md explains how.
//
//   const PlainPacker x_packer(x, depth);         // A (rows, depth)
//   const TransposedPacker w_packer(w, depth);    // B (depth, columns), stored as its transpose
//   Gemm({{rows, columns, depth}, x_packer, w_packer, y}, call.scratch, call.pool);
#pragma once

#include <cstddef>
#include <span>

#include "thimble/base/function_ref.h"
#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/device/cpu/gemm/packer.h"
#include "thimble/device/cpu/thread_pool.h"

namespace thimble {

// Refers to its packers: they must outlive it (no temporaries).
struct GemmProblem {
  GemmShape shape;
  Packer a;   // (rows, depth)
  Packer b;   // (depth, columns)
  Numbers c;  // (rows, columns); overwritten, must not overlap the operands
  // Added to each row of C: (columns), or null.
  ConstNumbers bias = {};
  // C is added to instead, each depth block to the previous sum. Requires f32 and no bias.
  bool adds = false;
};

// Scratch bytes for Gemm; at most threads * scratch_bytes_per_thread if that is at least 64 KiB per
// thread.
size_t GemmScratchBytes(const GemmShape& shape, size_t threads, size_t scratch_bytes_per_thread);

// Requires at least the bytes that GemmScratchBytes gave for this shape and the pool's threads,
// 64-byte aligned. A depth of zero is a sum of nothing.
void Gemm(const GemmProblem& problem, std::span<std::byte> scratch, ThreadPool& pool);

}  // namespace thimble
