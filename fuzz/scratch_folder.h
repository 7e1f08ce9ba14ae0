// ScratchFolder: a folder for the files that a target lets a reader open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "thimble/base/check.h"

namespace thimble {

// A new temporary folder (in memory under fuzz/run). Removed with its contents when the program
// ends.
class ScratchFolder {
 public:
  ScratchFolder() : path_(std::filesystem::temp_directory_path() / "thimble_fuzz_XXXXXX") {
    THIMBLE_CHECK(::mkdtemp(path_.data()) != nullptr, "cannot create {}", path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

  // Replaces the file and returns its path.
  std::string Write(std::string_view name, std::string_view bytes) const {
    std::string path = path_ + "/" + std::string(name);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    THIMBLE_CHECK(file.flush().good(), "cannot write {}", path);
    return path;
  }

  std::string Read(std::string_view name) const {
    std::ifstream file(path_ + "/" + std::string(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

// The input from libFuzzer as text.
inline std::string_view AsText(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace thimble
