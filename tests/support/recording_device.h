// RecordingDevice: a device that behaves like a GPU (its arena is not host memory, work is
// asynchronous until someone waits) and runs CPU kernels. It records its calls, returns results no
// earlier than promised, and detects host memory that changes while it may still be read.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "thimble/device/cpu/cpu_device.h"

namespace thimble {

class RecordingDevice final : public CpuDevice {
 public:
  explicit RecordingDevice(size_t arena_bytes) : CpuDevice(Arena::Map(arena_bytes).value()) {}

  // The calls since the last one of this function, in order: "write 4", "replay 0", "read 4", …
  std::vector<std::string> TakeLog() { return std::exchange(log_, {}); }

  std::string name() const override { return "recording"; }
  bool arena_is_host_memory() const override { return false; }
  size_t runs_in_flight() const override { return 2; }

  void Write(std::byte* to, std::span<const std::byte> from) override {
    log_.push_back(fmt::format("write {}", from.size()));
    CpuDevice::Write(to, from);
    writes_.push_back({next_mark_, from, {from.begin(), from.end()}});
  }
  void Read(const std::byte* from, std::span<std::byte> to) override {
    log_.push_back(fmt::format("read {}", to.size()));
    reads_.push_back({next_mark_, to, {from, from + to.size()}});
    std::fill(to.begin(), to.end(), std::byte{0xEE});  // not available yet
  }
  bool Replay(size_t key, const Work& work) override {
    log_.push_back(fmt::format("replay {}", key));
    // In the order that is furthest from the given one: always the last piece that is ready.
    std::vector<bool> done(work.pieces, false);
    const auto ready = [&](size_t piece) {
      const auto after = work.after(piece);
      return !done[piece] &&
             std::all_of(after.begin(), after.end(), [&](size_t other) { return done[other]; });
    };
    for (size_t count = 0; count < work.pieces; ++count) {
      size_t piece = work.pieces - 1;
      while (!ready(piece)) --piece;
      work.enqueue(piece);
      done[piece] = true;
      out_of_order_ += piece != count;
    }
    return replayed_.insert(key).second;
  }
  bool runs_side_by_side() const override { return true; }
  // The number of pieces of work that were not done in the given order.
  int out_of_order() const { return out_of_order_; }
  DeviceMark Mark() override { return next_mark_++; }
  void Wait(DeviceMark mark) override {
    Settle(writes_, mark, [](const auto& write) {
      EXPECT_TRUE(std::equal(write.host.begin(), write.host.end(), write.bytes.begin()))
          << write.bytes.size() << " bytes changed while they were copied";
    });
    Settle(reads_, mark, [](const auto& read) {
      std::copy(read.bytes.begin(), read.bytes.end(), read.host.begin());
    });
  }
  void Synchronize() override { Wait(next_mark_); }

 private:
  template <class Bytes>
  struct Copy {
    DeviceMark mark;  // the first one after it
    Bytes host;
    std::vector<std::byte> bytes;
  };
  template <class Copies, class Function>
  static void Settle(Copies& copies, DeviceMark mark, const Function& function) {
    std::erase_if(copies, [&](const auto& copy) {
      if (copy.mark > mark) return false;
      function(copy);
      return true;
    });
  }

  std::vector<std::string> log_;
  int out_of_order_ = 0;
  std::set<size_t> replayed_;
  DeviceMark next_mark_ = 1;
  std::vector<Copy<std::span<const std::byte>>> writes_;
  std::vector<Copy<std::span<std::byte>>> reads_;
};

}  // namespace thimble
